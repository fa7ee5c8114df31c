"""The optimizer within bluesky's RunEngine, with simulated devices: `make test-labs`."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truvar as tv
from truvar.exceptions import (
    InvalidArgumentError,
    PointNotInDomainError,
    UnknownSuggestionError,
    UnsupportedGoalError,
)

pytest.importorskip("bluesky_adaptive", reason="needs truvar[test-labs]")
pytest.importorskip("ophyd", reason="needs truvar[test-labs]")

import bluesky.plan_stubs as bps
from bluesky import RunEngine
from bluesky.utils import FailedStatus, RequestAbort
from bluesky_adaptive import protocols
from bluesky_adaptive.plan_stubs import navigate_to_best
from bluesky_adaptive.plans import acquire_baseline, optimize, sample_suggestions
from bluesky_adaptive.protocols import OptimizationProblem
from ophyd.sim import SynAxis, SynSignal
from ophyd.status import Status

from truvar.integrations.bluesky import TruVaROptimizer, motor_cost

PEAK = {"pitch": 1.2, "roll": -0.7}
BOX = {"pitch": (-3.0, 3.0), "roll": (-3.0, 3.0)}


class Beamline:
    """Two motors, a detector, and the evaluation of what it counted."""

    def __init__(self) -> None:
        self.engine = RunEngine(call_returns_result=True)
        self.motors = [SynAxis(name=name, value=0.0) for name in BOX]
        self.detector = SynSignal(name="counts", func=self.count)
        self.runs: dict[str, list[dict[str, Any]]] = {}
        self.order: dict[str, list[Any]] = {}
        self.travelled = 0.0
        self._descriptors: dict[str, str] = {}
        self._last = dict.fromkeys(BOX, 0.0)
        self.engine.subscribe(self.receive)

    def count(self) -> float:
        offsets = [motor.position - PEAK[motor.name] for motor in self.motors]
        return float(100 * np.exp(-sum(each**2 for each in offsets) / 4))

    def receive(self, name: str, document: dict[str, Any]) -> None:
        if name == "start":
            self.order[document["uid"]] = document.get("blop_acquisition_order", [])
            self.runs[document["uid"]] = []
        elif name == "descriptor":
            self._descriptors[document["uid"]] = document["run_start"]
        elif name == "event":
            self.runs[self._descriptors[document["descriptor"]]].append(document["data"])
            position = {key: document["data"].get(key, self._last[key]) for key in BOX}
            self.travelled += sum(abs(position[key] - self._last[key]) for key in BOX)
            self._last = position

    def evaluate(self, uid: str, suggestions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rows = zip(self.order[uid], self.runs[uid], strict=True)
        return [{"_id": id_, "intensity": data["counts"], "run": uid} for id_, data in rows]

    def problem(self, optimizer: TruVaROptimizer, **options: Any) -> OptimizationProblem:
        evaluate = options.pop("evaluate", self.evaluate)
        return OptimizationProblem(optimizer, self.motors, [self.detector], evaluate, **options)


@pytest.fixture
def beamline() -> Beamline:
    return Beamline()


def an_optimizer(goal: Any = None, **options: Any) -> TruVaROptimizer:
    defaults = {"objective": "intensity", "noise_sd": 0.1, "seed": 0}
    domain = options.pop("domain", None) or tv.Domain.box(**BOX, representers=400)
    return TruVaROptimizer(domain, goal or tv.Maximize(), **(defaults | options))


def test_it_has_every_protocol_of_bluesky_adaptive() -> None:
    optimizer = an_optimizer()
    assert isinstance(optimizer, protocols.Optimizer)
    assert isinstance(optimizer, protocols.CanRegisterSuggestions)
    assert isinstance(optimizer, protocols.TrialFaultAware)
    assert isinstance(optimizer, protocols.SupportsStoppingCriteria)
    assert isinstance(optimizer, protocols.Checkpointable)


def test_the_run_engine_finds_the_peak_and_says_why_it_stops(
    beamline: Beamline, caplog: pytest.LogCaptureFixture
) -> None:
    optimizer = an_optimizer(stop={"regret": 2.0, "steps": 60}, reference_outcome="run")
    with caplog.at_level(logging.INFO, logger="bluesky_adaptive.plans"):
        beamline.engine(optimize(beamline.problem(optimizer), iterations=None, n_points=2))
    stopped, reason = optimizer.should_stop()
    assert stopped
    assert reason is not None
    assert "expected regret" in reason
    assert reason.endswith(" reached 2, with 97.5 % probability given the model")
    assert reason in caplog.text
    ((id_, positions, outcomes),) = optimizer.get_best_points()
    assert positions == pytest.approx(PEAK, abs=0.3)
    mean, sd = outcomes["intensity"]  # expected: no measurement was made exactly there
    assert id_ is None
    assert mean == pytest.approx(100, abs=3 * sd)
    assert all(
        record.reference in beamline.runs for record in optimizer.study.measurement_records()
    )
    beamline.engine(navigate_to_best(beamline.motors, optimizer))
    assert {motor.name: motor.position for motor in beamline.motors} == pytest.approx(positions)


def test_the_best_point_of_a_grid_is_the_one_that_was_measured(beamline: Beamline) -> None:
    axis = np.linspace(-3, 3, 13)
    optimizer = an_optimizer(domain=tv.Domain.grid(pitch=axis, roll=axis))
    assert optimizer.get_best_points() == []
    beamline.engine(optimize(beamline.problem(optimizer), iterations=25))
    ((id_, positions, outcomes),) = optimizer.get_best_points()
    assert positions == {"pitch": 1.0, "roll": -0.5}
    (measured,) = [each for each in optimizer.study.measurement_records() if each.id == id_]
    assert outcomes == {"intensity": measured.value}


def test_settling_and_travel_are_costs_and_shorten_the_way(beamline: Beamline) -> None:
    cost = motor_cost({"pitch": 0.1, "roll": 10.0}, settle=0.5, count=1.0)
    careful = an_optimizer(tv.LevelSet(50.0), cost=cost)
    beamline.engine(optimize(beamline.problem(careful), iterations=15))
    records = careful.study.measurement_records()
    seconds = 1.0
    for before, after in pairwise(records):
        legs = {name: abs(after.point[name] - before.point[name]) for name in BOX}
        seconds += 1.0 + legs["pitch"] / 0.1 + legs["roll"] / 10
        seconds += 0.5 * sum(leg > 0 for leg in legs.values())
    assert careful.study.spent == pytest.approx(seconds)

    other = Beamline()
    hasty = an_optimizer(tv.LevelSet(50.0))
    other.engine(optimize(other.problem(hasty), iterations=15))

    def moved(optimizer: TruVaROptimizer) -> float:
        return float(optimizer.study.measurements["pitch"].diff().abs().sum())

    assert moved(careful) < moved(hasty)
    assert careful.get_best_points() == []


def test_a_failed_move_is_a_failure_and_an_abort_is_none(beamline: Beamline) -> None:
    class Jammed(SynAxis):
        def set(self, value: float) -> Any:
            if value > 0.5:
                status = Status()
                status.set_exception(RuntimeError("limit switch"))
                return status
            return super().set(value)

    beamline.motors[0] = Jammed(name="pitch", value=0.0)
    optimizer = an_optimizer()
    failed = 0
    for _ in range(12):
        try:
            beamline.engine(optimize(beamline.problem(optimizer), iterations=1))
        except FailedStatus:
            failed += 1
    failures = optimizer.study.failures
    assert len(failures) == failed > 0
    assert all(each.point["pitch"] > 0.5 for each in failures)
    assert all((each.reason or "").startswith("FailedStatus") for each in failures)
    assert optimizer.study.steps == 12 - failed

    def aborted(*_: Any, **__: Any) -> Any:
        yield from bps.null()
        raise RequestAbort

    before = optimizer.study.steps
    ended = beamline.engine(optimize(beamline.problem(optimizer, acquisition_plan=aborted)))
    assert ended.exit_status == "abort"
    assert (len(optimizer.study.failures), optimizer.study.steps) == (failed, before)
    assert not optimizer.study.pending


def test_points_of_ones_own_and_a_baseline_are_learned_from(beamline: Beamline) -> None:
    optimizer = an_optimizer()
    problem = beamline.problem(optimizer)
    own = [{"pitch": 1.0, "roll": 0.0}, {"pitch": 2.0, "roll": 1.0}]
    beamline.engine(sample_suggestions(problem, own))
    assert optimizer.study.measurements[["pitch", "roll"]].to_dict("records") == own
    beamline.engine(sample_suggestions(problem, optimizer.suggest(2)))
    assert not optimizer.study.pending
    assert optimizer.study.steps == 4
    beamline.engine(acquire_baseline(problem, {"pitch": 0.5, "roll": 0.5}))
    assert optimizer.study.steps == 5
    with pytest.raises(PointNotInDomainError):
        optimizer.register_suggestions([{"pitch": 99.0, "roll": 0.0}])
    with pytest.raises(InvalidArgumentError, match="got none of 'roll'"):
        optimizer.register_suggestions([{"pitch": 1.0}])


def test_a_checkpoint_is_the_store_and_a_second_optimizer_continues(
    beamline: Beamline, tmp_path: Path
) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'beamline.db'}", "name": "alignment"}
    first = an_optimizer(**place)
    beamline.engine(optimize(beamline.problem(first), iterations=4, checkpoint_interval=2))
    second = an_optimizer(**place)
    assert second.study.measurements.equals(first.study.measurements)
    beamline.engine(optimize(beamline.problem(second), iterations=1))
    assert tv.load(place["store"], "alignment").steps == 5
    with pytest.raises(InvalidArgumentError, match="a checkpoint needs a store"):
        an_optimizer().checkpoint()


def test_outcomes_with_errors_costs_and_without_values() -> None:
    optimizer = an_optimizer(noise_sd=None, cost_outcome="seconds", cost="learned")
    first, second, third = optimizer.suggest(3)
    optimizer.ingest(
        [
            {"_id": first["_id"], "intensity": (5.0, 0.5), "seconds": 12.5},
            {"_id": second["_id"], "intensity": float("nan"), "seconds": 3.0},
            {"_id": third["_id"], "intensity": 4.0, "seconds": 2.0},
        ]
    )
    (record, other) = optimizer.study.measurement_records()
    assert (record.value, record.cost, other.cost) == (5.0, 12.5, 2.0)
    assert record.noise == pytest.approx(0.25)
    assert [each.reason for each in optimizer.study.failures] == ["outcome intensity: got nan"]
    point = optimizer.suggest()[0]
    with pytest.raises(InvalidArgumentError, match="the outcome 'intensity' is missing"):
        optimizer.ingest([{"_id": point["_id"], "counts": 3.0}])


def test_outcomes_that_cannot_be_used_are_refused_and_none_is_a_failure() -> None:
    optimizer = an_optimizer()
    (point,) = optimizer.suggest()
    for outcome in ("much", (1.0, 0.1, 3.0), [1.0, "wide"], {}):
        with pytest.raises(InvalidArgumentError, match="'intensity' must be a number"):
            optimizer.ingest([{"_id": point["_id"], "intensity": outcome}])
    for id_ in ("own-0123456789ab", 99):
        with pytest.raises(UnknownSuggestionError):
            optimizer.ingest([{"_id": id_, "intensity": 1.0}])
    assert (optimizer.study.steps, len(optimizer.study.failures)) == (0, 0)
    optimizer.ingest([{"_id": point["_id"], "intensity": None}])
    assert [each.reason for each in optimizer.study.failures] == ["outcome intensity: got nan"]


def test_several_outcomes() -> None:
    goal = tv.Maximize("intensity", subject_to="width <= 1")
    optimizer = an_optimizer(goal, objective=None, noise_sd=None)
    for point in optimizer.suggest(4):
        outcome = {"intensity": point["pitch"], "width": point["roll"] ** 2}
        optimizer.ingest([{"_id": point["_id"], **outcome}])
    ((_, _, outcomes),) = optimizer.get_best_points()
    assert set(outcomes) >= {"intensity"}


def test_settings_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="objective must be the name of the outcome"):
        an_optimizer(objective=None)
    with pytest.raises(InvalidArgumentError, match="unknown limit 'regrets'"):
        an_optimizer(stop={"regrets": 1.0})
    with pytest.raises(UnsupportedGoalError):
        an_optimizer(stop={"f1": 0.9})
    with pytest.raises(InvalidArgumentError, match=r"velocity of 'x' must be > 0"):
        motor_cost({"x": 0.0})
