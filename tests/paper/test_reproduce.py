"""The figures of the paper: small versions end to end, the data they use, and seeded checks of
its claims."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.ndimage import label

import truvar as tv
from truvar.backtest import Backtest, backtest
from truvar.cli import main
from truvar.paper import FIGURES, draws, fig1, fig2c, fig3a, fig3c, fig4, lake, noiseless, svm
from truvar.paper._curves import _first_cost, curves, leaders, trimmed_mean
from truvar.paper.experiment import ReproductionConfig, reproduce
from truvar.paper.fields import load_field, simulated_lake, terrain
from truvar.paper.fig2b import _POLICIES as LAKE_POLICIES

# Files of a figure in addition to NAME.json, NAME.csv and NAME.png.
ADDITIONAL_FILES = {
    "fig2a": {"fig2a-curves.csv"},
    "fig2b": {"fig2b-curves.csv", "fig2b-routes.png"},
    "draws": {"draws-curves.csv"},
    "fig2c": {"fig2c-curves.csv", "fig2c-leaders.csv"},
    "fig3a": {"fig3a-curves.csv"},
    "fig3b": {"fig3b-curves.csv"},
    "fig3c": {"fig3c-curves.csv"},
    "fig5": {"fig5-variance.csv"},
    "noiseless": {"noiseless-curves.csv"},
    "terrain": {
        "terrain-curves.csv",
        "terrain-unit-curves.csv",
        "terrain-routes.png",
        "terrain-unit.png",
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduction")


def tiny(folder: Path, **changes: object) -> ReproductionConfig:
    return ReproductionConfig(folder, **{"replicates": 1, "quick": True, "scale": 0.05, **changes})


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_made_and_written(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRUVAR_DATA", raising=False)
    figure, paths = reproduce(name, tiny(folder))
    assert {path.name for path in paths} == {
        f"{name}.json",
        f"{name}.csv",
        f"{name}.png",
        *ADDITIONAL_FILES.get(name, set()),
    }
    for path in paths:
        assert path.stat().st_size > 0
    written = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert written["figure"] == name
    assert len(written["table"]) == len(figure.table) == len(pd.read_csv(folder / f"{name}.csv"))
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    for part, frame in figure.tables.items():
        assert len(pd.read_csv(folder / f"{name}-{part}.csv")) == len(frame) > 0


def test_figures_with_the_same_runs_share_them(folder: Path) -> None:
    fig2c.make(tiny(folder))
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}
    assert before
    fig4.make(tiny(folder))
    assert {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()} == before


def test_the_command_prints_a_table_or_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "fig5", "--out", str(tmp_path), "--quiet"]) == 0
    assert "excess variance" in capsys.readouterr().out
    assert main(["reproduce", "fig5", "--out", str(tmp_path), "--quiet", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["figure"] == "fig5"
    assert all(Path(path).exists() for path in printed["files"])


def test_an_unsuitable_table_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "fig1", "--data", "x.csv", "--out", str(tmp_path)]) == 1
    assert "leave out --data" in capsys.readouterr().err
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    for name in ("fig2a", "fig3c"):
        assert (
            main(["reproduce", name, "--data", str(tmp_path / "x.csv"), "--out", str(tmp_path)])
            == 1
        )
        assert "rename the column" in capsys.readouterr().err


# -- data of the figures
# -------------------------------------------------------------------------------------------


def test_figure_1_shows_an_epoch_that_ends_after_three_points_of_m_as_m_shrinks(
    tmp_path: Path,
) -> None:
    table = fig1.make(tiny(tmp_path)).table
    assert table.index.tolist() == [6, 7, 8, 9]  # as in the paper
    assert table["epoch"].tolist() == [1, 1, 1, 2]
    assert table["share of the domain in M"].is_monotonic_decreasing
    assert (table["widest confidence in M"].iloc[:3] > 1).all()
    assert table["widest confidence in M"].iloc[3] <= 1
    assert table["last point was in M"].tolist() == [None, True, True, True]


def test_the_table_of_svms_is_a_grid_of_25_x_14_x_4_and_can_be_computed_again() -> None:
    frame = svm.table()
    assert [frame[name].nunique() for name in svm.COLUMNS] == [25, 14, 4]
    assert len(frame) == 1400
    assert (frame[svm.COST] > 0).all()
    data = svm._digits()
    for row in (0, 542, 1399):
        setting = [float(axis) for axis in frame.loc[row, list(svm.COLUMNS)]]
        assert svm._evaluate(setting, data)[0] == pytest.approx(
            frame.loc[row, svm.VALUE], abs=0.003
        )


def test_a_random_function_is_the_same_every_time_and_its_maximum_is_one() -> None:
    functions = fig3a.RandomFunctions()
    one = functions(3)
    again = functions(3)
    other = functions(4)
    points = np.random.default_rng(0).random((5000, 2))
    assert (one.f(points) == again.f(points)).all()
    assert not np.allclose(one.f(points), other.f(points))
    assert one.f(points).max() <= one.optimum < one.f(points).max() + 0.1
    assert (
        0.7 < np.std([functions(k).f(points[:50]) for k in range(8)]) < 1.3
    )  # the kernel has unit variance


def test_the_function_with_three_noise_levels_has_separate_regions_above_the_threshold() -> None:
    truth = fig2c.draw()[1].reshape(fig2c._SIDE, fig2c._SIDE)
    assert truth.std() == pytest.approx(1.0, abs=0.2)
    assert 0.01 < (truth >= fig2c.THRESHOLD).mean() < 0.1
    assert label(truth >= fig2c.THRESHOLD)[1] >= 3


def test_the_function_with_three_noise_levels_has_the_most_regions_of_the_seeds_0_to_9() -> None:
    above = [
        fig2c.draw(seed)[1].reshape(fig2c._SIDE, fig2c._SIDE) >= fig2c.THRESHOLD
        for seed in range(10)
    ]
    regions = [label(mask)[1] for mask in above]
    assert regions.index(max(regions)) == fig2c.SEED
    assert regions.count(max(regions)) == 1


def test_the_further_functions_are_the_first_with_enough_points_above_the_threshold() -> None:
    seeds = draws._seeds()
    assert seeds[0] == fig2c.SEED
    assert len(seeds) == draws._FUNCTIONS + 1
    others = seeds[1:]
    skipped = set(range(max(others))) - set(seeds)
    assert all(draws._share_above(seed) >= 0.01 for seed in others)
    assert all(draws._share_above(seed) < 0.01 for seed in skipped)


def test_the_shares_of_the_noise_levels_count_the_cost_up_to_a_given_one() -> None:
    columns = ["policy", "replicate", "step", "spent", "score", "seconds", "level"]
    first = [
        ("truvar", 0, 1, 2.0, 0.1, 0.0, 2),
        ("truvar", 0, 2, 12.0, 0.2, 0.0, 1),
        ("truvar", 0, 3, 27.0, 0.3, 0.0, 0),
    ]
    second = [
        ("truvar", 1, 1, 2.0, 0.1, 0.0, 2),
        ("truvar", 1, 2, 4.0, 0.2, 0.0, 2),
        ("gchk", 0, 1, 2.0, 0.2, 0.0, 2),
    ]
    result = Backtest(pd.DataFrame([*first, *second], columns=columns), "F1", 30.0)
    assert fig2c.level_costs(result, 30.0).tolist() == [7.5, 5.0, 3.0]
    assert fig2c.level_costs(result, 12.0).tolist() == [0.0, 5.0, 3.0]


def test_the_leaders_are_the_policies_with_the_highest_curve() -> None:
    scores = {"b": [0.2, 0.5, 0.9, 0.9], "a": [0.1, 0.6, 0.6, 0.9]}
    rows = [
        (policy, 10.0 * (k + 1), score)
        for policy, values in scores.items()
        for k, score in enumerate(values)
    ]
    rows.append(("a", 5.0, 0.9))  # a cost at which b has no score yet
    best = leaders(pd.DataFrame(rows, columns=["policy", "spent", "mean"]))
    assert best.to_numpy().tolist() == [["b", 10.0, 10.0], ["a", 20.0, 20.0], ["b", 30.0, 40.0]]


def test_the_lake_has_the_hyperparameters_of_the_public_program() -> None:
    """Lake.py says where they come from: as logarithms 5.5, 1, 0.75 and -1."""
    constants = [*lake.LENGTHSCALES, lake.SIGNAL_SD, lake.NOISE_SD]
    assert constants == pytest.approx(np.exp([5.5, 1.0, 0.75, -1.0]), rel=0.01)
    truth = simulated_lake().truth
    assert (truth >= lake.THRESHOLD).mean() == pytest.approx(0.07, abs=0.005)
    assert (truth >= 1.5).mean() == pytest.approx(0.62, abs=0.005)


def test_the_noise_that_stands_for_none_is_small_against_the_differences_shown(
    tmp_path: Path,
) -> None:
    assert np.sqrt(fig3c._NOISELESS) <= 1e-4 / 10  # mean errors differ by 1e-4
    assert np.sqrt(noiseless._NOISE) <= 1e-5 / 10  # regrets differ by 1e-5
    figure = noiseless.make(tiny(tmp_path))
    lake_costs = figure.table.loc["lake"].index.tolist()
    assert lake_costs[:2] == ["truvar, model noise 0.0001", "gchk, model noise 0.0001"]
    assert lake_costs[3] == "truvar, model noise 1e-08"
    assert set(figure.table.loc["optimum"].index) == set(fig3a.POLICIES)
    assert set(figure.table.loc["optimum, noise as in the paper"].index) == set(noiseless._COMPARED)


def test_the_terrain_is_real_and_three_quarters_of_it_lie_below_the_threshold() -> None:
    field = terrain()
    assert field.domain.shape == (50, 50)
    assert (field.truth >= field.threshold).mean() == pytest.approx(0.25, abs=0.01)
    assert 200 < field.truth.min() < field.truth.max() < 1100  # metres
    assert all(
        0.01 < length / width < 0.5
        for length, width in zip(field.lengthscales, field.domain.extent, strict=True)
    )


def test_the_lake_has_the_papers_cost() -> None:
    study = simulated_lake().problem(cost=True).study()
    study.tell({"distance_m": 0.0, "depth_m": 0.0}, 1.0)
    cost = study.candidates().cost[-1, 0]  # at the far end of the surface
    assert cost == pytest.approx(0.25 * 1478 + 4)


def test_curves_have_the_statistics_of_the_runs() -> None:
    columns = ["policy", "replicate", "step", "spent", "score", "seconds"]
    rows = [("a", r, t, float(t), float(10 * r + t), 0.1) for r in range(20) for t in (1, 2, 3)]
    frame = curves(Backtest(pd.DataFrame(rows, columns=columns), "F1", 3.0), np.array([1.0, 3.0]))
    assert frame["mean"].tolist() == [96.0, 98.0]
    assert frame["median"].tolist() == [96.0, 98.0]
    assert frame["trimmed_mean"].tolist() == [96.0, 98.0]
    assert _first_cost(frame, "a", 97.0) == 3.0
    assert _first_cost(frame, "a", 99.0) == np.inf


def test_the_trimmed_mean_leaves_out_the_best_and_the_worst_of_twenty() -> None:
    assert trimmed_mean(np.array([[1e9], *[[1.0]] * 18, [-1e9]])).tolist() == [1.0]


# -- claims of the paper, seeded
# ------------------------------------------------------------------------------------


def lake_ratio(starts: int, first: str, second: str, budget: float) -> float:
    """Return the median cost to F1 0.9 on the lake with travel and depth, of one policy divided
    by that of another."""
    field = simulated_lake()
    policies = {name: LAKE_POLICIES[name] for name in (first, second)}
    problem = field.problem(cost=True)
    result = backtest(
        problem, field.truth, policies, replicates=starts, budget=budget, noisy=False, until=0.9
    )
    costs = result.costs_to(0.9).median()
    assert np.isfinite(costs[first])
    return float(costs[first] / costs[second])


def test_with_travel_costs_truvar_needs_less_than_gchk_which_ignores_them() -> None:
    assert lake_ratio(4, "truvar", "gchk", 6500.0) < 0.9


@pytest.mark.slow
def test_over_twenty_starts_truvar_needs_less_than_nine_tenths_of_what_gchk_needs() -> None:
    assert lake_ratio(20, "truvar", "gchk", 8000.0) < 0.9


def test_gchk_divided_by_cost_needs_less_than_truvar() -> None:
    """The paper does not make this comparison, but a reader will ask for it."""
    assert lake_ratio(3, "gchk/cost", "truvar", 5000.0) < 0.9


def test_truvar_begins_with_the_cheap_and_noisy_level_and_uses_precise_ones_later() -> None:
    result = backtest(
        fig2c.problem(), fig2c.draw()[1], {"truvar": tv.TruVaR()}, replicates=1, budget=450.0
    )
    precise = result.curves["level"].to_numpy() < 2
    assert precise[:30].mean() < 0.1
    assert precise[-20:].mean() >= 0.25


# -- measured data
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["glider_transect", "reservoir_transect"])
def test_measured_transects_can_replace_the_lake(
    real_data: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = real_data / f"{name}.csv"
    field = load_field(path)
    assert field.domain.shape == (50, 50)
    assert (field.truth >= field.threshold).mean() == pytest.approx(0.1, abs=0.01)
    monkeypatch.setattr(
        "truvar.paper.fig2b.load_field", {path: field}.__getitem__
    )  # fitting it takes seconds
    figure, _ = reproduce("fig2b", tiny(tmp_path, data=path))
    assert figure.facts["field"] == name


def test_the_svm_table_of_the_paper_can_be_used(real_data: Path, tmp_path: Path) -> None:
    figure, _ = reproduce("fig3c", tiny(tmp_path, data=real_data / "svm_on_grid.csv", scale=0.3))
    assert figure.facts["best_error"] == pytest.approx(0.2411)
    assert figure.table.loc["truvar", "error at 10"] < 0.3


def test_the_papers_svm_table_is_run_in_addition_where_the_folder_of_the_data_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = (
        svm.table()
        .iloc[::20]
        .rename(columns={"log10_C": "C", "log10_gamma": "alpha", "log10_tolerance": "epsilon"})
    )
    monkeypatch.setenv("TRUVAR_DATA", str(tmp_path))
    assert svm.papers_table() is None
    frame.to_csv(tmp_path / "svm_on_grid.csv", index=False)
    figure, paths = reproduce("fig3c", tiny(tmp_path, scale=0.1))
    assert {"fig3c.png", "fig3c-svm_on_grid.png", "fig3c-svm_on_grid-curves.csv"} <= {
        path.name for path in paths
    }
    assert set(figure.table.index.get_level_values("table")) == {"our SVM grid", "svm_on_grid"}
    assert figure.facts["svm_on_grid"]["best_error"] == pytest.approx(
        frame["validation_error"].min()
    )
    assert figure.facts["best_error"] == pytest.approx(svm.table()["validation_error"].min())
    only, _ = reproduce(
        "fig3c", tiny(tmp_path / "only", scale=0.1, data=tmp_path / "svm_on_grid.csv")
    )
    assert only.facts["table"] == "svm_on_grid"
    assert only.table.index.tolist() == list(fig3c._POLICIES)


def test_without_measured_data_the_built_in_table_is_used() -> None:
    name, domain, errors = fig3c._read_errors(None)
    assert (name, len(domain), len(errors)) == ("our SVM grid", 1400, 1400)
    assert os.path.commonpath([svm._TABLE, Path(tv.__file__).parent]) == str(
        Path(tv.__file__).parent
    )  # ships with it
