"""The numbers in the tables of docs/reproduction.md are those in docs/reproduction/."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "reproduction"


def table_after(words: str) -> pd.DataFrame:
    """Return the first table of the page after some words, as text, with its first column as the
    index."""
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    pieces = re.split(
        re.escape(words).replace(r"\ ", r"\s+"), text
    )  # a line may end within the words
    assert len(pieces) == 2
    lines = pieces[1].split("\n|", 1)[1].split("\n\n", 1)[0].splitlines()
    cells = [[cell.strip(" *") for cell in line.strip().strip("|").split("|")] for line in lines]
    return pd.DataFrame(
        [row[1:] for row in cells[2:]], index=[row[0] for row in cells[2:]], columns=cells[0][1:]
    )


def stored(name: str, **options: object) -> pd.DataFrame:
    return pd.read_csv(RESULTS / name, **options)


def assert_shown(shown: pd.DataFrame, expected: dict[str, pd.Series], tolerance: float) -> None:
    """Check each row of a table of the page against a row of results; a dash stands for no
    value."""
    assert list(shown.index) == list(expected)
    for name, row in expected.items():
        for column, text in shown.loc[name].items():
            if text == "-":
                assert not pd.notna(row[column]) or row[column] == float("inf")
            else:
                assert float(text.replace(",", "")) == pytest.approx(
                    row[column], **_within(tolerance)
                ), (name, column)


def _within(tolerance: float) -> dict[str, float]:
    """Return a relative tolerance if it is negative, an absolute one otherwise."""
    return {"rel": -tolerance} if tolerance < 0 else {"abs": tolerance, "rel": 0.0}


def test_f1_with_three_noise_levels() -> None:
    results = stored("fig2c.csv", index_col="policy")
    shown = table_after("Mean F1 on the function of figure 4")
    assert_shown(shown, {f"{cost}": results[f"F1 at {cost}"] for cost in shown.index}, 0.00051)


def test_shares_of_the_noise_levels() -> None:
    results = stored("fig4.csv", dtype={"noise variance": str}).set_index("noise variance")
    shown = table_after("TruVaR's cost by noise level, in per cent")
    assert_shown(
        shown, {f"{cost}": 100 * results[f"share until {cost}"] for cost in shown.index}, 0.51
    )


def test_further_functions() -> None:
    results = stored("draws.csv", index_col="function")
    shown = table_after("On six functions")
    renamed = {
        "truvar at 700": "F1 at 700, truvar",
        "best gchk at 700": "best gchk at 700",
        "truvar at 1500": "F1 at 1500, truvar",
        "gchk 1e-6 at 1500": "F1 at 1500, gchk, noise 1e-06",
        "truvar not behind": "share of the costs at which no gchk is ahead of truvar",
    }
    gchk = [f"F1 at 700, gchk, noise {variance}" for variance in ("1e-06", "0.001", "0.05")]
    results["best gchk at 700"] = results[gchk].max(axis=1)
    expected = {
        name: pd.Series({label: results.loc[name, column] for label, column in renamed.items()})
        for name in shown.index
    }
    others = [name for name in shown.columns if name not in renamed]
    assert_shown(shown.drop(columns=others), expected, 0.0051)
    ends = shown["truvar ends at"].str.replace(",", "").astype(float)
    assert ends.tolist() == pytest.approx(
        results.loc[shown.index, "mean cost of truvar's runs"].tolist(), abs=0.51
    )
    for until in ("1500", "2500"):
        columns = [
            f"share until {until}, noise {variance}" for variance in ("1e-06", "0.001", "0.05")
        ]
        for name in shown.index:
            numbers = [float(part) for part in shown.loc[name, f"levels at {until}, %"].split("/")]
            assert numbers == pytest.approx((100 * results.loc[name, columns]).tolist(), abs=0.51)


@pytest.mark.parametrize(
    ("words", "table"), [("Our table:", "our SVM grid"), ("The paper's table:", "svm_on_grid")]
)
def test_errors_of_the_svms(words: str, table: str) -> None:
    results = stored("fig3c.csv", index_col=["table", "policy"]).loc[table]
    shown = table_after(words)
    expected = {name: results[name] for name in shown.index}
    assert any(name.startswith("error") for name in expected)
    assert_shown(shown, expected, 0.000051)


def test_regrets() -> None:
    results = stored("fig3a.csv", index_col="policy")
    shown = table_after("Median regret, 200 functions")
    assert_shown(shown, {t: results[f"t = {t}"] for t in shown.index}, -0.05)


def test_regrets_and_costs_with_less_noise() -> None:
    results = stored("noiseless.csv", index_col=["experiment", "policy"])
    shown = table_after("Median regret with noise of variance 1e-12")
    assert_shown(shown, {t: results.loc["optimum"][f"t = {t}"] for t in shown.index}, -0.05)
    noisy = table_after("Median regret on the same functions with noise of variance 1e-6")
    compared = results.loc["optimum, noise as in the paper"]
    assert_shown(noisy, {t: compared[f"t = {t}"] for t in noisy.index}, -0.05)
    costs = table_after("Median cost on the lake")
    assert_shown(costs, {name: results.loc["lake"].loc[name] for name in costs.index}, 0.51)


def test_costs_on_the_lake() -> None:
    results = stored("fig2b.csv", index_col="policy")
    shown = table_after("on this lake it is not.")
    assert_shown(shown, {f1: results[f"median cost to {f1}"] for f1 in shown.index}, 0.51)


def test_the_page_states_the_runs_that_were_made_and_the_command_for_all() -> None:
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    stated = {
        command: re.findall(r"\d+", here)
        for here, command in re.findall(r"\| ([^|]*) \| `truvar reproduce (\w+)", text)
    }

    def facts(name: str) -> dict[str, object]:
        return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))

    assert stated["fig2a"] == [str(facts("fig2a")["runs"])]
    assert stated["fig2b"] == [str(facts("fig2b")["runs"])]
    assert stated["fig2c"] == [str(facts("fig2c")[name]) for name in ("runs", "runs_of_sur")]
    assert stated["fig4"] == [str(facts("fig4")["runs"])]
    assert stated["draws"] == [str(facts("draws")["runs_per_function"])]
    assert stated["fig3c"] == [str(facts("fig3c")["runs"])]
    assert stated["terrain"] == [str(facts("terrain")["unit_cost"]["runs"])]
    assert "truvar reproduce all --jobs 2" in text


def test_the_ratios_among_the_claims_follow_from_the_results() -> None:
    claims = (DOCS / "reproduction.md").read_text(encoding="utf-8").split("## How much was run")[0]
    lake = stored("fig2b.csv", index_col="policy")
    ratios = [
        lake.loc["truvar", f"median cost to {f1}"] / lake.loc["gchk", f"median cost to {f1}"]
        for f1 in ("0.9", "0.95")
    ]
    assert f"{ratios[0]:.2f} to F1 0.9, {ratios[1]:.2f} to 0.95" in claims

    regret = stored("fig3a.csv", index_col="policy")
    others = regret.drop(["truvar", "truvar, a = 1"])
    late = [
        f"{others[t].min() / regret.loc['truvar', t]:.1f} ({others[t].idxmin().upper()})"
        for t in ("t = 60", "t = 80", "t = 100")
    ]
    assert f"{late[0]}, {late[1]} and {late[2]} times TruVaR's regret" in claims
    assert others["t = 20"].nsmallest(2).index.tolist() == ["mrs", "es"]
    assert regret.loc["truvar", "t = 20"] / others.loc["mrs", "t = 20"] == pytest.approx(8, abs=0.5)

    levels = stored("fig4.csv")["share until 1500"]
    assert f"until 1,500 differ by {100 * (levels.max() - levels.min()):.0f} points" in claims

    errors = stored("fig3c.csv", index_col=["table", "policy"]).loc["svm_on_grid"]
    behind = {
        t: errors.loc["truvar", f"error at {t}"] > errors.loc[["ei", "ucb"], f"error at {t}"]
        for t in (10, 20, 30, 70)
    }
    assert [t for t, worse in behind.items() if worse.any()] == [70]
    assert behind[70].all()
    assert errors.loc["truvar", "sd at 10"] < 0.4 * errors.loc[["ei", "ucb"], "sd at 10"].min()
    for t in (10, 20, 30, 40, 50):
        assert errors.loc["truvar", f"sd at {t}"] < errors.loc[["ei", "ucb"], f"sd at {t}"].min()
    assert errors.loc["truvar", "sd at 70"] > errors.loc[["ei", "ucb"], "sd at 70"].max()


def test_the_claims_about_three_noise_levels_follow_from_the_results() -> None:
    claims = (DOCS / "reproduction.md").read_text(encoding="utf-8").split("## How much was run")[0]
    means = stored("fig2c-curves.csv").pivot(index="spent", columns="policy", values="mean")
    best = means.filter(like="gchk").idxmax(axis=1)
    last = {
        variance: best.index[best.str.endswith(variance)].max() for variance in ("0.05", "0.001")
    }
    assert (
        f"at 0.05 until cost {last['0.05']:,.0f}, at 1e-3 until {last['0.001']:,.0f}, at 1e-6 from "
        "then on"
    ) in claims
    assert best.iloc[-1] == "gchk, noise 1e-06"
    leading = stored("fig2c-leaders.csv")
    assert "gchk, noise 0.05" in leading["policy"].iloc[:2].tolist()
    ours = leading[(leading["policy"] == "truvar") & (leading["to"] >= leading["from"] + 50)]
    stretches = [
        f"from {row['from']:,.0f} "
        + ("on" if row["to"] == means.index.max() else f"to {row['to']:,.0f}")
        for _, row in ours.iterrows()
    ]
    assert f"best {', '.join(stretches[:-1])} and {stretches[-1]}; before" in claims
    between = leading.loc[ours.index[0] + 1 : ours.index[-1], "policy"]
    assert between[between != "truvar"].tolist() == ["gchk, noise 0.001", "gchk, noise 1e-06"]

    shares = stored("fig4.csv", dtype={"noise variance": str}).set_index("noise variance")
    first, fourth = (100 * shares[f"share in quarter {quarter}"] for quarter in (1, 4))
    assert (
        f"falls from {first['0.05']:.0f} % of the first quarter's cost to {fourth['0.05']:.0f} % of "
        f"the last's, that of 1e-6 rises from {first['1e-06']:.0f} to {fourth['1e-06']:.0f} %"
    ) in claims


def test_the_end_with_three_noise_levels_is_as_described() -> None:
    curves = stored("fig2c-curves.csv")
    low, high, mean = (
        curves.pivot(index="spent", columns="policy", values=name)
        for name in ("low", "high", "mean")
    )
    late = mean.index > 1500
    other = "gchk, noise 1e-06"
    assert (low.loc[late, "truvar"] <= high.loc[late, other]).all()
    assert (low.loc[late, other] <= high.loc[late, "truvar"]).all()
    papers = mean.drop(columns="sur/cost").max(axis=1)
    assert (mean["sur/cost"] >= papers).all()


def test_the_claims_about_unit_cost_follow_from_the_results() -> None:
    claims = (DOCS / "reproduction.md").read_text(encoding="utf-8").split("## How much was run")[0]
    results = stored("fig2a.csv", index_col="policy")
    needed = results["mean F1 0.9 at"]
    assert (
        f"mean F1 0.9 after {needed['truvar']:.0f} (TruVaR), {needed['gchk']:.0f} (GCHK), "
        f"{needed['sur']:.0f} (SUR) measurements; straddle stays at F1 "
        f"{results.loc['straddle', 'F1 at 120']:.2f}"
    ) in claims
    assert (
        f"VAR needs {needed['variance']:.0f} to F1 0.9 and ends at "
        f"{results.loc['variance', 'F1 at 120']:.2f}"
    ) in claims


def test_what_is_said_beyond_the_paper_about_the_lake_follows_from_the_results() -> None:
    page = " ".join((DOCS / "reproduction.md").read_text(encoding="utf-8").split())
    over = stored("fig2b.csv", index_col="policy")["over truvar's at 0.9"]
    assert (
        f"needs {over['gchk/cost']:.2f} of what TruVaR needs to F1 0.9, and SUR per unit cost "
        f"{over['sur/cost']:.2f}."
    ) in page
