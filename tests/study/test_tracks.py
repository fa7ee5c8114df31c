"""Tracks: many values sampled en route, told as a mean for each candidate that was passed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import Matern

import truvar as tv
from truvar.cli import main
from truvar.exceptions import (
    InvalidArgumentError,
    InvalidMeasurementError,
    RepeatedMeasurementWarning,
)

DOMAIN = tv.Domain.grid(distance=np.linspace(0, 10, 11), depth=np.linspace(0, 4, 5))
COST = tv.Cost(1.0, travel=tv.Euclidean({"distance": 0.5, "depth": 0.5}))


def study(**options: Any) -> tv.Study:
    settings = {"kernel": Matern([3.0, 2.0]), "mean": 0.0, "noise": 0.01, "cost": COST, **options}
    return tv.Study(DOMAIN, tv.LevelSet(0.3), quantity="oxygen", **settings)


def track(n: int = 600, seed: int = 0, correlation: float = 0.0) -> pd.DataFrame:
    """Values around zero along a sawtooth."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 10, n)
    noise = rng.standard_normal(n)
    for k in range(1, n):
        noise[k] = correlation * noise[k - 1] + np.sqrt(1 - correlation**2) * noise[k]
    z = 2 - 2 * np.cos(2 * np.pi * x / 5)
    return pd.DataFrame({"distance": x, "depth": z, "oxygen": 0.2 * noise})


def test_means_and_counts_are_those_of_the_values_of_each_candidate() -> None:
    frame = track()
    found = tv.bin_track(DOMAIN, frame, "oxygen")
    nearest = [DOMAIN.nearest(x) for x in frame[["distance", "depth"]].to_numpy()]
    expected = frame["oxygen"].groupby(nearest).agg(["mean", "size"])
    table = found.table.set_index("row").sort_index()
    np.testing.assert_allclose(table["value"], expected["mean"])
    assert table["samples"].tolist() == expected["size"].tolist()
    assert (found.n_values, found.n_outside) == (600, 0)
    assert found.table["row"].iloc[-1] == nearest[-1]  # in the order in which they were left


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_noise_of_a_mean_is_that_of_its_error(correlation: float) -> None:
    """The errors of 40 tracks, about 950 means, have the stated variance.

    The false-alarm rate is below 1e-4: the ratio has a standard error below 0.1.
    """
    ratios = []
    for seed in range(40):
        table = tv.bin_track(DOMAIN, track(seed=seed, correlation=correlation), "oxygen").table
        table = table[table["samples"] >= 10]
        ratios += (table["value"] ** 2 / table["noise_sd"] ** 2).tolist()
    assert 0.5 < np.mean(ratios) < 1.4
    assert len(ratios) > 500


def test_a_gradient_across_a_bin_widens_its_mean() -> None:
    frame = track()
    frame["oxygen"] += 2.0 * frame["depth"]
    table = tv.bin_track(DOMAIN, frame, "oxygen").table
    errors = (table["value"] - 2.0 * table["depth"]) / table["noise_sd"]
    assert np.abs(errors).max() < 3.5
    assert (
        table["noise_sd"].min()
        > 2 * tv.bin_track(DOMAIN, track(), "oxygen").table["noise_sd"].min()
    )


def test_a_known_noise_counts_where_the_track_cannot_tell() -> None:
    frame = pd.DataFrame({"distance": [0.0, 5.0], "depth": [0.0, 0.0], "value": [1.0, 1.0]})
    assert tv.bin_track(DOMAIN, frame).table["noise_sd"].isna().all()
    assert tv.bin_track(DOMAIN, frame, noise_sd=0.3).table["noise_sd"].tolist() == [0.3, 0.3]
    assert "that of the study" in str(tv.bin_track(DOMAIN, frame))


def test_a_track_answers_suggestions_and_leaves_the_vehicle_at_its_end() -> None:
    survey = study()
    suggestion = survey.ask()
    frame = track()
    frame = pd.concat([frame, pd.DataFrame([{**suggestion.point, "oxygen": 0.1}])])
    passed = tv.bin_track(DOMAIN, frame, "oxygen").table
    ids = survey.tell_track(frame)
    assert survey.pending == []
    assert len(ids) == len(passed) == survey.steps
    assert survey.spent == pytest.approx(suggestion.cost)  # the others cost nothing
    assert survey.ask().cost == pytest.approx(_cost_from(survey, suggestion.point))
    survey.tell_track(track(seed=1), cost=7.0)
    assert survey.spent == pytest.approx(suggestion.cost + 7.0)
    end = {"distance": 10.0, "depth": 0.0}
    survey.withdraw(survey.pending[0], again=True)
    assert survey.ask().cost == pytest.approx(_cost_from(survey, end))


def _cost_from(survey: tv.Study, origin: dict[str, float]) -> float:
    """Cost of the last suggestion after a position."""
    (suggestion,) = survey.pending
    far = np.subtract(list(suggestion.point.values()), list(origin.values()))
    return 1.0 + 0.5 * float(np.hypot(*far))


def test_a_track_is_told_once_and_replays_exactly(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    survey = study(store=url, name="bay")
    survey.tell_track(track())
    with pytest.warns(RepeatedMeasurementWarning, match="told before"):
        assert survey.tell_track(track()) == []
    copy = tv.Study.from_json(tv.load(url, "bay").to_json())
    np.testing.assert_array_equal(copy.result().mean, survey.result().mean)
    assert copy.ask().point == survey.ask().point
    steps = survey.steps
    survey.tell_track(track(), again=True)
    assert survey.steps == 2 * steps


def test_all_means_are_told_or_none() -> None:
    survey = study()
    frame = track()
    before = survey.version
    with pytest.raises(InvalidArgumentError, match="vehicle"):
        survey.tell_track(frame, vehicle="nobody")
    assert (survey.steps, survey.version) == (0, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="depth"), "unknown column 'depth'"),
        (lambda frame: frame.rename(columns={"oxygen": "o2"}), "; value='COLUMN' says where"),
        (lambda frame: frame.rename(columns={"oxygen": "oxygn"}), "did you mean 'value'|'value'"),
        (lambda frame: frame.assign(distance=frame["distance"] + 100), "none of the 600 values"),
        (lambda frame: frame.assign(oxygen=np.nan), "no row with a position and a value"),
    ],
)
def test_a_track_that_cannot_be_used_is_refused(change: Any, message: str) -> None:
    survey = study()
    with pytest.raises((InvalidArgumentError, InvalidMeasurementError), match=message):
        survey.tell_track(change(track()))
    assert survey.steps == 0


def test_studies_that_cannot_take_a_track_say_so() -> None:
    box = tv.Study(tv.Domain.box(distance=(0, 10), depth=(0, 4)), tv.Maximize())
    with pytest.raises(InvalidArgumentError, match="got a box"):
        box.tell_track(track(), value="oxygen")
    learned = tv.Study(DOMAIN, tv.LevelSet(0.3), cost="learned")
    with pytest.raises(InvalidArgumentError, match="give the cost of the track"):
        learned.tell_track(track(), value="oxygen")


def test_sampling_along_counts_what_a_leg_passes() -> None:
    """Two far corners tell as much; the leg to one of them passes points that are known."""
    answers = {}
    for sampling in ("stops", "along"):
        cost = tv.Cost(
            1.0,
            travel=tv.Euclidean({"distance": 0.1, "depth": 0.1}),
            start={"distance": 5.0, "depth": 2.0},
            sampling=sampling,
        )
        survey = study(cost=cost)
        answers[sampling] = survey.ask()
    corner = answers["along"].point
    middle = answers["stops"].point
    reach = [abs(point["distance"] - 5.0) + abs(point["depth"] - 2.0) for point in (corner, middle)]
    assert reach[0] > reach[1]
    assert answers["along"].gain > answers["stops"].gain


def test_sampling_is_stored_and_checked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    along = tv.Cost(1.0, travel={"distance": 0.5}, sampling="along")
    survey = study(cost=along, store=url, name="bay")
    survey.tell(survey.ask(), 0.5)
    copy = tv.Study.from_json(tv.load(url, "bay").to_json())
    assert copy.ask().point == survey.ask().point
    with pytest.raises(InvalidArgumentError, match="sampling must be one of stops, along"):
        tv.Cost(1.0, travel={"distance": 0.5}, sampling="everywhere")
    for travel in ({}, tv.TravelMatrix([[0, 1], [1, 0]])):
        with pytest.raises(InvalidArgumentError, match="straight lines"):
            tv.Cost(1.0, travel=travel, sampling="along")
    with pytest.raises(InvalidArgumentError, match="got a box"):
        tv.Study(tv.Domain.box(distance=(0, 1)), tv.Maximize(), cost=along)


def test_the_command_line_tells_a_track(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study(store="sqlite:///bay.db", name="bay")
    track().to_csv("glider.csv", index=False)
    assert main(["tell", "bay.db", "--track", "glider.csv", "--within", "depth=0.3"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"\d+ of 600 values lie at \d+ candidates, \d+ are too far", said)
    told = tv.load("sqlite:///bay.db", "bay").steps
    assert f"told {told} values" in said
    assert main(["tell", "bay.db", "--track", "glider.csv", "--within", "depth=0.3"]) == 0
    assert "were told before and left out" in capsys.readouterr().err
    for words, message in (
        (["1", "0.4", "--track", "glider.csv"], "--track takes a file"),
        (["--track", "glider.csv", "--within", "depth"], "COLUMN=DISTANCE"),
        (["1", "0.4", "--within", "depth=1"], "--within is for --track"),
        (["--track", "glider.csv", "--value", "oxigen"], "did you mean 'oxygen'"),
    ):
        assert main(["tell", "bay.db", *words]) == 1
        assert message in capsys.readouterr().err
    assert tv.load("sqlite:///bay.db", "bay").steps == told
