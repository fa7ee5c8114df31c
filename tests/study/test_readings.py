"""Curves: reduced to what a study is told, and recorded with a reference to their raw data."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.exceptions import (
    ConflictingMeasurementError,
    InvalidArgumentError,
    InvalidMeasurementError,
)

ENERGY = np.linspace(0, 1, 50)


def spectrum(point: dict) -> np.ndarray:
    return (1 - (point["x"] - 0.3) ** 2) * np.exp(-((ENERGY - 0.5) ** 2) / 0.01)


def a_study(goal: object = None, **options: object) -> tv.Study:
    domain = tv.Domain.grid(x=np.linspace(0, 1, 21))
    return tv.Study(domain, goal or tv.Maximize(), **{"noise": 1e-6, **options})  # type: ignore[arg-type]


def test_a_curve_is_reduced_and_its_raw_data_are_found_by_the_reference(tmp_path: Path) -> None:
    study = a_study()
    study.run(tv.Reduced(spectrum, np.max, folder=tmp_path / "raw"), steps=6)
    table = study.measurements
    for _, row in table.iterrows():
        raw = np.load(row["reference"])
        np.testing.assert_array_equal(raw, spectrum({"x": row["x"]}))
        assert row["value"] == raw.max()
    assert not list((tmp_path / "raw").glob("*.part"))


def test_a_reduction_to_several_quantities(tmp_path: Path) -> None:
    goal = tv.AllOf(tv.LevelSet(0.9, of="height"), tv.LevelSet(below=9.5, of="area"))
    study = a_study(goal, noise=None)
    reduced = tv.Reduced(
        lambda point: {"energy": ENERGY, "counts": spectrum(point)},
        lambda raw: {"height": raw["counts"].max(), "area": raw["counts"].sum()},
        folder=tmp_path,
    )
    study.run(reduced, steps=6)
    row = study.measurements.iloc[-1]
    raw = np.load(row["reference"])
    assert set(raw) == {"energy", "counts"}
    assert (row["height"], row["area"]) == (raw["counts"].max(), raw["counts"].sum())


def test_a_reading_brings_its_own_reference_cost_and_noise() -> None:
    study = a_study(noise=0.01)
    study.run(lambda point: tv.Reading(point["x"], 3.5, "run 12", noise_sd=0.2), steps=1)
    (record,) = study.measurement_records()
    assert (record.cost, record.reference) == (3.5, "run 12")
    assert record.noise == pytest.approx(0.04)
    reduced = tv.Reduced(
        lambda point: tv.Reading(spectrum(point), cost=2.0, reference="run 13"),
        lambda counts: tv.Reading(counts.max(), noise_sd=0.1),
    )
    assert reduced({"x": 0.3}) == tv.Reading(spectrum({"x": 0.3}).max(), 2.0, "run 13", 0.1)


def test_curves_are_reduced_where_they_are_measured(tmp_path: Path) -> None:
    study = a_study()
    with ProcessPoolExecutor(1) as pool:
        study.run(tv.Reduced(spectrum, np.max, folder=tmp_path), steps=3, executor=pool)
    assert all(Path(each).exists() for each in study.measurements["reference"])


def test_raw_data_are_kept_when_the_reduction_fails(tmp_path: Path) -> None:
    study = a_study()

    def no_peak(counts: np.ndarray) -> float:
        raise ValueError("no peak")

    with pytest.warns(RuntimeWarning, match="no peak"), pytest.raises(tv.TruvarError):
        study.run(tv.Reduced(spectrum, no_peak, folder=tmp_path), steps=1, retries=0)
    assert len(list(tmp_path.glob("*.npy"))) > 0
    assert study.steps == 0


def test_references_are_stored_corrected_withdrawn_and_copied(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    place = {"store": f"sqlite:///{tmp_path / 'a.db'}", "name": "a"}
    study = a_study(**place)
    first = study.tell({"x": 0.5}, 1.0, reference="scan/1.h5")
    study.tell({"x": 0.25}, 2.0)
    study.correct(first, 1.5)
    stored = tv.load(place["store"], "a")
    assert [each.reference for each in stored.measurement_records()] == ["scan/1.h5", None]
    assert tv.Study.from_json(study.to_json()).measurements.equals(study.measurements)
    assert stored.measurement_records()[0].to_dict()["reference"] == "scan/1.h5"
    assert "reference" not in stored.measurement_records()[1].to_dict()
    other = a_study()
    other.tell_frame(study.measurements)
    assert other.measurements["reference"].tolist() == study.measurements["reference"].tolist()
    study.withdraw(first)
    assert "reference" not in study.measurements
    assert isinstance(study.measurements, pd.DataFrame)


def test_another_reference_of_a_recorded_value_is_refused() -> None:
    study = a_study()
    suggestion = study.ask()
    study.tell(suggestion, 1.0, reference="scan/1.h5")
    study.tell(suggestion, 1.0, reference="scan/1.h5")
    study.tell(suggestion, 1.0)
    with pytest.raises(ConflictingMeasurementError, match=r"has the reference 'scan/1.h5', got"):
        study.tell(suggestion, 1.0, reference="scan/2.h5")
    assert study.steps == 1


@pytest.mark.parametrize("reference", [7, "", "  ", Path("a.h5")])
def test_a_reference_must_be_text(reference: object) -> None:
    study = a_study()
    with pytest.raises(InvalidMeasurementError, match="reference must be text"):
        study.tell({"x": 0.5}, 1.0, reference=reference)  # type: ignore[arg-type]
    with pytest.raises(InvalidMeasurementError, match="reference must be text"):
        tv.Reading(1.0, reference=reference)  # type: ignore[arg-type]
    assert study.steps == 0


def test_functions_and_raw_data_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="reduce must be a function, got 3"):
        tv.Reduced(spectrum, 3)  # type: ignore[arg-type]
    for raw in (object(), [[1, 2], [3]], {"a": [None]}):
        with pytest.raises(InvalidMeasurementError, match="raw data must be an array"):
            tv.Reduced(lambda _, raw=raw: raw, len, folder=tmp_path)({"x": 0})
    assert not list(tmp_path.iterdir())
