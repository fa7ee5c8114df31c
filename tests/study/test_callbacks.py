"""Callbacks of a run, and its progress display where nobody gave a limit."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import InvalidArgumentError


def new_study(**options: Any) -> tv.Study:
    return tv.Study(
        tv.Domain.grid(x=np.linspace(0, 1, 20)),
        tv.Maximize(),
        kernel=RBF(0.3),
        mean=0.0,
        noise=0.01,
        **options,
    )


def measure(point: dict[str, float]) -> float:
    return float(np.sin(4 * point["x"]))


def test_callbacks_see_the_study_the_suggestion_and_the_value_after_it_was_told() -> None:
    study = new_study()
    seen: list[tuple[int, int, float]] = []

    def remember(running: tv.Study, suggestion: tv.Suggestion, value: float) -> None:
        assert running is study
        assert value == measure(suggestion.point)
        seen.append((running.steps, suggestion.id, value))

    study.run(measure, steps=4, callbacks=[remember, lambda *_: None])
    assert [steps for steps, _, _ in seen] == [1, 2, 3, 4]
    assert [id_ for _, id_, _ in seen] == [record.id for record in study.measurement_records()]


@pytest.mark.parametrize("returned", [(0.5,), [0.5], np.array([0.5]), {"y": 0.5}])
def test_a_function_may_return_whatever_tell_takes(returned: Any) -> None:
    seen: list[Any] = []
    study = new_study()
    study.run(lambda point: returned, steps=2, callbacks=[lambda *given: seen.append(given[2])])
    assert seen == study.measurements["value"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("returned", ["yes", True])
def test_a_function_may_return_a_yes(returned: Any) -> None:
    study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 20)), tv.LevelSet(0.5), outcome="binary")
    seen: list[Any] = []
    study.run(lambda point: returned, steps=2, callbacks=[lambda *given: seen.append(given[2])])
    assert seen == study.measurements["value"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(True, "a callback ended the run"), ("good enough", "good enough"), ("", "a callback ended")],
)
def test_a_callback_that_returns_true_or_a_text_ends_the_run(answer: Any, reason: str) -> None:
    study = new_study()
    result = study.run(measure, steps=9, callbacks=[lambda study, *_: study.steps == 3 and answer])
    assert study.steps == 3
    assert str(result.reason).startswith(reason)
    assert study.ask().id  # the run has ended, not the study


def test_other_answers_do_not_end_the_run() -> None:
    study = new_study()
    study.run(measure, steps=3, callbacks=[lambda *_: 1, lambda *_: np.True_, lambda *_: False])
    assert study.steps == 3


def test_a_callback_ends_a_run_on_workers_after_what_is_running() -> None:
    study = new_study()
    with ThreadPoolExecutor(2) as pool:
        study.run(measure, steps=12, executor=pool, callbacks=[lambda *_: "enough"])
    assert 1 <= study.steps <= 3
    assert study.pending == []


def test_what_a_callback_raises_ends_the_run_and_keeps_the_measurements() -> None:
    study = new_study()

    def fail(*_: Any) -> None:
        raise RuntimeError("no disk")

    with pytest.raises(RuntimeError, match="no disk"):
        study.run(measure, steps=3, callbacks=[fail])
    assert study.steps == 1
    assert study.pending == []


def test_a_callback_that_is_no_function_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="callbacks must be functions"):
        new_study().run(measure, steps=1, callbacks=["print"])  # type: ignore[list-item]
    with pytest.raises(InvalidArgumentError, match="give a list of functions"):
        new_study().run(measure, steps=1, callbacks=print)  # type: ignore[arg-type]


class Terminal(io.StringIO):
    """A terminal that remembers what was written."""

    def isatty(self) -> bool:
        return True


def test_a_run_without_limits_shows_its_progress_in_a_terminal_and_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    result = new_study().run(measure)
    assert result.reason
    assert "measurement" in terminal.getvalue()
    quiet = Terminal()
    monkeypatch.setattr("sys.stderr", quiet)
    new_study().run(measure, steps=3)
    new_study().run(measure, progress=False)
    assert quiet.getvalue() == ""


def test_a_run_without_limits_writes_nothing_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    new_study().run(measure)
    assert capsys.readouterr().err == ""
