"""The generator within libEnsemble and Optimas themselves: `make test-labs`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("libensemble", reason="needs truvar[test-labs]")

from gest_api.vocs import VOCS
from libensemble import Ensemble
from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
from libensemble.specs import AllocSpecs, ExitCriteria, GenSpecs, LibeSpecs, SimSpecs

from truvar.integrations.gest import TruVaRGenerator

MINIMUM = 0.397887  # of Branin's function; two of its three minima satisfy the constraint
BOX = {"x": [-5, 10], "y": [0, 15]}
PROBLEM = VOCS(
    variables=BOX, objectives={"f": "MINIMIZE"}, constraints={"heat": ["LESS_THAN", 6.0]}
)


def branin(point: dict[str, Any]) -> dict[str, float]:
    x = point["x"]
    y = point["y"]
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return {"f": valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10, "heat": x}


def run(generator: TruVaRGenerator, count: int, **options: Any) -> np.ndarray:
    ensemble = Ensemble(
        libE_specs=LibeSpecs(comms="threads", nworkers=2, gen_on_manager=True, final_gen_send=True),
        gen_specs=GenSpecs(generator=generator, batch_size=2, vocs=PROBLEM),
        sim_specs=SimSpecs(simulator=branin, vocs=PROBLEM),
        alloc_specs=AllocSpecs(alloc_f=only_persistent_gens),
        exit_criteria=ExitCriteria(sim_max=count),
        **options,
    )
    history, _, _ = ensemble.run()
    return history


def a_generator(vocs: VOCS = PROBLEM, **options: Any) -> TruVaRGenerator:
    return TruVaRGenerator(vocs, representers=500, noise=1e-4, **options)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # libEnsemble writes its logs there


def test_a_run_resumed_from_a_dump_finds_the_minimum_beside_a_constraint() -> None:
    first = a_generator()
    np.save("history.npy", run(first, 12))
    assert first.study.steps + len(first.study.failures) == 12
    assert first.study.failures
    assert all(each.point["x"] >= 6 for each in first.study.failures)

    second = a_generator()
    history = run(second, 20, H0=np.load("history.npy"))
    study = second.study
    assert len(history) == 32 == study.steps + len(study.failures)
    assert not study.pending
    assert second.best_point is not None
    assert second.best_point["heat"] < 6
    assert second.best_point["f"] == pytest.approx(MINIMUM, abs=0.02)
    # What the second run was given and what it did are in the history that the first one began.
    told = {*study.measurements["value"]} | {each.point["x"] for each in study.failures}
    assert told == {*history["f"][history["heat"] < 6], *history["x"][history["heat"] >= 6]}


def test_a_stored_generator_takes_each_row_of_the_history_once(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'runs.db'}", "name": "branin"}
    history = run(a_generator(**place), 6)
    second = a_generator(**place)
    run(second, 2, H0=history)
    assert second.study.steps + len(second.study.failures) == 8


def test_optimas_finds_the_minimum() -> None:
    pytest.importorskip("optimas", reason="needs truvar[test-labs]")
    from optimas.evaluators import FunctionEvaluator
    from optimas.explorations import Exploration
    from optimas.generators import ExternalGenerator

    def evaluate(inputs: Any, outputs: Any) -> None:
        outcome = branin(inputs)
        outputs["f"] = outcome["f"] if outcome["heat"] < 6 else math.nan

    vocs = VOCS(variables=BOX, objectives={"f": "MINIMIZE"})
    generator = a_generator(vocs)
    exploration = Exploration(
        generator=ExternalGenerator(ext_gen=generator, vocs=vocs),
        evaluator=FunctionEvaluator(function=evaluate),
        max_evals=28,
        sim_workers=2,
        libe_comms="threads",
    )
    exploration.run()
    failures = generator.study.failures
    assert failures
    assert all(each.point["x"] >= 6 for each in failures)
    assert generator.study.steps + len(failures) == 28 == len(exploration.history)
    assert generator.best_point is not None
    assert generator.best_point["f"] == pytest.approx(MINIMUM, abs=0.02)
