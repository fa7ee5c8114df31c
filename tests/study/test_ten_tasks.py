"""Ten tasks from Python: create, ask, tell, correct, exclude, fail, stop, report, export,
resume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.report.html_report import write_html_report


def depth(point: dict[str, float]) -> float:
    return float(np.sin(3 * point["x"]) + point["y"])


def test_ten_tasks(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/pond.db"
    domain = tv.Domain.grid(x=np.linspace(0, 2, 9), y=np.linspace(0, 1, 5))

    study = tv.Study(
        domain, tv.LevelSet(0.8), kernel=RBF(0.6), mean=0.0, noise=0.01, store=store, name="pond"
    )  # create
    first = study.ask()  # ask
    assert study.pending == [first]
    study.tell(first, 55.0 * depth(first.point))  # tell
    study.correct(first, depth(first.point))  # correct
    assert study.measurements["value"].tolist() == [depth(first.point)]
    study.exclude({"x": (1.5, 2.0)}, reason="under a jetty")  # exclude
    assert study.result().n_excluded == 15
    second = study.ask()
    assert second.point["x"] < 1.5
    study.fail(second, reason="probe stuck")  # fail
    assert [failure.reason for failure in study.failures] == ["probe stuck"]
    result = study.run(depth, steps=6)  # stop
    assert result.reason == "step limit (6) reached"
    report = write_html_report(study, tmp_path / "pond.html")  # report
    text = report.read_text()
    assert "under a jetty" in text
    assert "probe stuck" in text
    exported = study.to_json()  # export
    frame = study.result().to_frame()
    assert len(frame) == 45
    resumed = tv.load(store, "pond")  # resume
    assert resumed.steps == 6
    copy = tv.Study.from_json(exported)
    assert resumed.ask() == copy.ask()
    assert copy.measurements["value"].tolist() == study.measurements["value"].tolist()
    np.testing.assert_array_equal(copy.result().mean, result.mean)
