"""The generator within Xopt itself: `make test-labs`."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import truvar as tv

pytest.importorskip("xopt", reason="needs truvar[test-labs]")

import yaml
from gest_api.vocs import VOCS
from xopt import Evaluator, Xopt
from xopt.asynchronous import AsynchronousXopt
from xopt.errors import XoptError
from xopt.stopping_conditions import MaxEvaluationsCondition

from truvar.integrations.gest import TruVaRGenerator

MINIMUM = 0.397887  # of Branin's function; two of its three minima satisfy the constraint


def branin(point: dict[str, Any]) -> dict[str, float]:
    x = point["x"]
    y = point["y"]
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return {"f": valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10, "heat": x}


def a_problem(**constraints: list) -> VOCS:
    return VOCS(
        variables={"x": [-5, 10], "y": [0, 15]},
        objectives={"f": "MINIMIZE"},
        constraints=constraints,
    )


def a_generator(vocs: VOCS | None = None, **options: Any) -> TruVaRGenerator:
    vocs = vocs or a_problem(heat=["LESS_THAN", 6.0])
    return TruVaRGenerator(vocs, representers=500, noise=1e-4, **options)


def an_xopt(generator: TruVaRGenerator, count: int, **options: Any) -> Xopt:
    return Xopt(
        generator=generator,
        evaluator=Evaluator(function=options.pop("function", branin)),
        stopping_condition=MaxEvaluationsCondition(max_evaluations=count),
        **options,
    )


def test_a_run_resumed_from_a_dump_finds_the_minimum_beside_a_constraint(tmp_path: Path) -> None:
    dump = tmp_path / "run.yml"
    first = an_xopt(a_generator(), 12, xopt_dump_file=str(dump))
    first.run()
    failures = [each.reason for each in first.generator.study.failures]
    assert failures
    assert all(reason.startswith("constraint heat: got ") for reason in failures)

    data = yaml.safe_load(dump.read_text())["data"]
    second = an_xopt(a_generator(), 32, data=data)
    study = second.generator.study
    assert (study.steps, len(study.failures)) == (12 - len(failures), len(failures))
    second.run()
    assert len(second.data) == 32 == study.steps + len(study.failures)
    assert second.generator.best_point["heat"] < 6
    assert second.generator.best_point["f"] == pytest.approx(MINIMUM, abs=0.01)
    assert not study.pending
    # The constraint is learned: half of the first points violate it, or fewer, and later fewer.
    assert np.mean(second.data["heat"][16:] > 6) < np.mean(second.data["heat"][:16] > 6)


def test_the_generator_that_was_given_is_not_the_one_that_runs() -> None:
    generator = a_generator()
    xopt = an_xopt(generator, 3)
    xopt.run()
    assert generator.study.steps == 0
    assert xopt.generator.study.steps + len(xopt.generator.study.failures) == 3


def test_a_stored_generator_and_its_copy_write_to_the_same_study(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'runs.db'}", "name": "branin"}
    first = an_xopt(a_generator(**place), 5)
    first.run()
    measured = tv.load(place["store"], place["name"]).steps
    assert measured == first.generator.study.steps > 0
    again = an_xopt(
        a_generator(**place), 7, data=first.data
    )  # rows of the study do not count twice
    assert again.generator.study.steps == measured
    again.run()
    stored = tv.load(place["store"], place["name"])
    assert stored.steps + len(stored.failures) == 7


def test_a_dump_of_a_stored_study_counts_once_and_its_rows_can_be_removed(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'runs.db'}", "name": "branin"}
    vocs = a_problem()
    dump = tmp_path / "run.yml"
    an_xopt(a_generator(vocs, **place), 4, xopt_dump_file=str(dump)).run()
    data = yaml.safe_load(dump.read_text())["data"]
    again = an_xopt(a_generator(vocs, **place), 6, data=data)
    assert again.generator.study.steps == 4
    again.run()
    assert again.generator.study.steps == 6
    new = an_xopt(a_generator(vocs, **place), 2)
    new.run()
    new.remove_data([1])
    assert tv.load(place["store"], place["name"]).steps == 7


def test_removed_and_reset_data_are_withdrawn() -> None:
    xopt = an_xopt(a_generator(a_problem()), 6)
    xopt.run()
    removed = xopt.data.loc[1]
    xopt.remove_data([1])
    study = xopt.generator.study
    assert study.steps == 5 == len(xopt.generator.data)
    assert removed["f"] not in study.measurements["value"].to_numpy()
    xopt.step()
    assert study.steps == 6
    xopt.reset_data()
    assert study.steps == 0 == len(xopt.generator.data)
    xopt.random_evaluate(2, seed=0)
    xopt.step()
    assert study.steps == 3


def test_evaluations_that_raise_are_failures_when_xopt_is_not_strict() -> None:
    def hot(point: dict[str, Any]) -> dict[str, float]:
        if point["x"] > 6:
            raise RuntimeError("too hot")
        return {"f": branin(point)["f"]}

    xopt = an_xopt(a_generator(a_problem()), 10, function=hot, strict=False)
    xopt.run()
    study = xopt.generator.study
    assert {each.reason for each in study.failures} == {"RuntimeError: too hot"}
    assert all(each.point["x"] > 6 for each in study.failures)
    assert study.steps + len(study.failures) == 10


def test_several_evaluations_at_a_time() -> None:
    with ThreadPoolExecutor(2) as pool:
        xopt = AsynchronousXopt(
            generator=a_generator(),
            evaluator=Evaluator(function=branin, executor=pool, max_workers=2),
            stopping_condition=MaxEvaluationsCondition(max_evaluations=8),
        )
        xopt.run()
    study = xopt.generator.study
    assert study.steps + len(study.failures) == len(xopt.data) >= 8


def test_data_outside_the_variables_are_refused() -> None:
    frame = pd.DataFrame({"x": [99.0], "y": [1.0], "f": [1.0], "heat": [0.0]})
    with pytest.raises(ValueError, match="must lie within the variables' domains"):
        an_xopt(a_generator(), 3, data=frame)


def test_xopt_cannot_make_the_generator_from_a_dump_alone(tmp_path: Path) -> None:
    """docs/integrations.md says so."""
    xopt = an_xopt(a_generator(), 2, xopt_dump_file=str(tmp_path / "run.yml"))
    xopt.run()
    with pytest.raises(XoptError, match="No generator named"):
        Xopt.from_file(str(tmp_path / "run.yml"))


def test_xopt_takes_sets_of_numbers_and_none_of_texts() -> None:
    """docs/integrations.md says so."""
    box = {"x": [-5, 10], "y": [0, 15]}
    for values, is_taken in (({1, 2, 4}, True), ({"in", "out"}, False)):
        vocs = VOCS(variables={**box, "z": values}, objectives={"f": "MINIMIZE"})
        xopt = an_xopt(a_generator(vocs), 1)
        if is_taken:
            xopt.run()
            assert xopt.data["z"].isin(values).all()
        else:
            with pytest.raises(ValueError, match="could not convert string to float"):
                xopt.run()
