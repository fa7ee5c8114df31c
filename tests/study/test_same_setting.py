"""`ask(n, same=[...])`: batches whose suggestions share the value of some columns."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError

TEMPERATURES = [60.0, 70.0, 80.0, 90.0]
DOMAIN = tv.Domain.grid(temperature_C=TEMPERATURES, ph=np.linspace(4, 8, 9))
KNOWN = {"kernel": RBF([10.0, 1.0]), "mean": 0.0, "noise": 0.1}


def value(suggestion: tv.Suggestion) -> float:
    """Return a value that is best at 80 degrees and pH 6."""
    point = suggestion.point
    return 2 - ((point["temperature_C"] - 80) / 15) ** 2 - (point["ph"] - 6) ** 2


def temperatures(batch: list[tv.Suggestion]) -> set[float]:
    """Return the settings of a batch."""
    return {suggestion.point["temperature_C"] for suggestion in batch}


@pytest.mark.parametrize("goal", [tv.Maximize(), tv.LevelSet(1.0), tv.Map(0.3)])
@pytest.mark.parametrize("learned", [False, True])
def test_every_batch_shares_its_setting(goal: tv.Maximize, learned: bool) -> None:
    study = tv.Study(DOMAIN, goal, repeats=False, **({} if learned else KNOWN))
    for _ in range(3):
        batch = study.ask(6, same=["temperature_C"])
        assert len(batch) == 6
        assert len(temperatures(batch)) == 1
        for suggestion in batch:
            study.tell(suggestion, value(suggestion))


def test_the_setting_is_chosen_for_the_whole_batch() -> None:
    # One promising point stands alone, so that a batch does better at another temperature.
    frame = pd.DataFrame(
        {
            "temperature_C": [60.0, *[90.0] * 6],
            "ph": [0.0, *(10.0 * np.arange(1, 7))],
        }
    )
    study = tv.Study(
        tv.Domain.table(frame), tv.LevelSet(0.0), kernel=RBF([1.0, 1.0]), mean=0.0, noise=0.1,
        repeats=False, start=0,
    )  # fmt: skip
    batch = study.ask(5, same=["temperature_C"])
    assert temperatures(batch) == {90.0}


def test_units_and_order_of_the_rows_change_no_batch() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"temperature_C": np.repeat(TEMPERATURES, 6), "ph": rng.uniform(4, 8, 24).round(3)}
    )
    shuffled = frame.iloc[rng.permutation(24)]
    chosen = []
    for rows, factor in ((frame, 1.0), (shuffled, 1.0), (frame, 100.0)):
        domain = tv.Domain.table(rows)
        start = list(rows.index).index(3)
        kernel = ConstantKernel(factor**2) * RBF([10.0, 1.0])
        study = tv.Study(
            domain, tv.LevelSet(factor), kernel=kernel, mean=0.0, noise=0.1 * factor**2, start=start
        )
        for suggestion in study.ask(4, same=["temperature_C"]):
            study.tell(suggestion, factor * value(suggestion))
        batch = study.ask(4, same=["temperature_C"])
        chosen.append([*study.measurements["ph"], *(each.point["ph"] for each in batch)])
    assert chosen[0] == chosen[1]
    assert chosen[0] == chosen[2]


def test_the_last_temperature_is_not_the_best_of_all_single_ones_only() -> None:
    study = tv.Study(DOMAIN, tv.Maximize(), **KNOWN)
    before = [action.id for action in study.pending]
    batch = study.ask(4, same=["temperature_C"])
    assert [action.id for action in study.pending] == [*before, *(each.id for each in batch)]
    assert [each.id for each in batch] == [1, 2, 3, 4]


def test_a_replay_equals_the_live_study() -> None:
    study = tv.Study(DOMAIN, tv.Maximize(), **KNOWN)
    for suggestion in study.ask(3, same=["temperature_C"]):
        study.tell(suggestion, value(suggestion))
    copy = tv.Study.from_json(study.to_json())
    one = study.ask(4, same=["temperature_C"])
    other = copy.ask(4, same=["temperature_C"])
    assert [each.index for each in one] == [each.index for each in other]
    assert study.ask().index == copy.ask().index


def test_a_box_shares_exactly_one_value() -> None:
    domain = tv.Domain.box(temperature_C=(60, 90), ph=(4, 8), representers=60)
    study = tv.Study(domain, tv.Maximize(), **KNOWN)
    for _ in range(2):
        batch = study.ask(3, same=["temperature_C"])
        assert len(temperatures(batch)) == 1
        for suggestion in batch:
            study.tell(suggestion, value(suggestion))


def test_a_context_is_kept() -> None:
    frame = pd.DataFrame(
        list(itertools.product([1.0, 2.0], [60.0, 70.0], [4.0, 5.0, 6.0])),
        columns=["day", "temperature_C", "ph"],
    )
    domain = tv.Domain.table(frame).with_context(["day"])
    study = tv.Study(
        domain, tv.Maximize(), kernel=RBF([1.0, 10.0, 1.0]), mean=0.0, noise=0.1, repeats=False
    )
    batch = study.ask(3, context={"day": 2.0}, same=["temperature_C"])
    assert len(batch) == 3
    assert len(temperatures(batch)) == 1
    assert {each.point["day"] for each in batch} == {2.0}


def test_a_batch_with_travel_is_a_short_route() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"depth": np.repeat([5.0, 10.0], 15), "x": rng.uniform(0, 100, 30)})
    study = tv.Study(
        tv.Domain.table(frame), tv.LevelSet(0.0), kernel=RBF([5.0, 5.0]), mean=0.0, noise=0.1,
        cost=tv.Cost(base=1.0, travel={"x": 1.0}, start={"x": 0.0, "depth": 5.0}), repeats=False,
    )  # fmt: skip
    batch = study.ask(6, same=["depth"])
    x = [each.point["x"] for each in batch]
    steps = np.abs(np.diff([0.0, *x]))
    assert sum(each.cost for each in batch) == pytest.approx(6 + steps.sum())
    best = min(np.abs(np.diff([0.0, *order])).sum() for order in itertools.permutations(sorted(x)))
    assert steps.sum() == pytest.approx(best)


@pytest.mark.parametrize(
    ("same", "message"),
    [
        (["temp"], "same: unknown column 'temp'"),
        ("temperature_C", "same must be a list of columns"),
        ([], "same must be a list of columns"),
        (["temperature_C", "ph"], "same must leave a column to choose"),
        ([3], "same: unknown column '3'"),
    ],
)
def test_bad_input_gets_one_clear_message(same: object, message: str) -> None:
    study = tv.Study(DOMAIN, tv.Maximize(), **KNOWN)
    with pytest.raises(InvalidArgumentError, match=message):
        study.ask(3, same=same)  # type: ignore[call-overload]
    assert study.pending == []
    assert study.version == 1


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("oven.toml").write_text(
        "[domain]\ngrid = {temperature_C = [60, 90, 4], ph = [4, 8, 9]}\n[goal]\nmaximize = true\n"
    )
    assert main(["new", "oven.toml"]) == 0
    capsys.readouterr()
    assert main(["ask", "-n", "4", "--same", "temperature_C", "--json"]) == 0
    suggestions = json.loads(capsys.readouterr().out)["suggestions"]
    assert len({each["point"]["temperature_C"] for each in suggestions}) == 1
    assert main(["ask", "-n", "4", "--same", "temp"]) == 1
    assert "same: unknown column 'temp'" in capsys.readouterr().err
