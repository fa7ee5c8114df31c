"""The simulated lake has the published properties of the lake in the paper."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.ndimage import label
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from truvar.paper import lake

EXAMPLES = Path(__file__).parents[2] / "examples"


def section(n_distance: int = 50, n_depth: int = 50) -> np.ndarray:
    return lake.simulate(n_distance, n_depth)["chlorophyll"].to_numpy().reshape(n_distance, n_depth)


def test_the_example_file_can_be_generated_again(tmp_path: Path) -> None:
    lake._write_csv(tmp_path / "lake.csv")
    written = pd.read_csv(tmp_path / "lake.csv")
    # The last digit may be rounded differently by another machine's mathematical library.
    pd.testing.assert_frame_equal(written, pd.read_csv(EXAMPLES / "lake.csv"), rtol=0, atol=1.1e-4)


def test_the_example_problem_has_the_constants_of_the_lake() -> None:
    problem = tomllib.loads((EXAMPLES / "lake.toml").read_text())
    assert problem["goal"]["level_set"] == lake.THRESHOLD
    assert tuple(problem["model"]["lengthscales"]) == lake.LENGTHSCALES
    assert problem["model"]["mean"] == lake.MEAN
    assert problem["model"]["variance"] == pytest.approx(lake.SIGNAL_SD**2, abs=5e-3)
    assert problem["noise"]["variance"] == pytest.approx(lake.NOISE_SD**2, abs=5e-4)


def test_the_first_example_is_the_same_lake_with_nothing_known() -> None:
    known = tomllib.loads((EXAMPLES / "lake.toml").read_text())
    learned = tomllib.loads((EXAMPLES / "bloom.toml").read_text())
    assert {key: learned[key] for key in ("domain", "goal", "cost")} == {
        key: known[key] for key in ("domain", "goal", "cost")
    }
    assert "model" not in learned
    assert "noise" not in learned
    assert learned["run"]["f1"] == 0.9


def test_the_grid_spans_the_section_and_depth_varies_fastest() -> None:
    frame = lake.simulate(4, 3)
    assert list(frame.columns) == ["distance_m", "depth_m", "chlorophyll"]
    assert frame["distance_m"].tolist() == pytest.approx(np.repeat(np.linspace(0, 1478, 4), 3))
    assert frame["depth_m"].tolist() == pytest.approx([-18, -9, 0] * 4)


def test_every_resolution_shows_the_same_lake() -> None:
    np.testing.assert_allclose(section(99, 99)[::2, ::2], section(50, 50), rtol=1e-12)


def test_the_seed_determines_the_lake() -> None:
    pd.testing.assert_frame_equal(lake.simulate(seed=5), lake.simulate(seed=5))
    assert not lake.simulate(seed=5).equals(lake.simulate(seed=6))


def test_three_patches_at_eight_to_nine_metres_fill_about_seven_percent() -> None:
    value = section(150, 120)
    patches, count = label(value > lake.THRESHOLD)
    assert count == 3
    assert (value > lake.THRESHOLD).mean() == pytest.approx(0.07, abs=0.005)
    depth = np.linspace(-lake.DEPTH_M, 0, 120)
    for patch in range(1, count + 1):
        crest = depth[np.argmax(np.where(patches == patch, value, 0).max(axis=0))]
        assert -9.5 < crest < -7.5


def test_three_patches_stay_separate_at_neighbouring_thresholds() -> None:
    value = section()
    assert [label(value > h)[1] for h in (6.7, 7.0, 7.3)] == [3, 3, 3]


def test_concentrations_have_the_range_and_the_mean_of_the_lake() -> None:
    value = section()
    assert value.min() == pytest.approx(0.75, abs=0.05)
    assert value.max() == pytest.approx(9.1, abs=0.1)
    assert value.mean() == pytest.approx(lake.MEAN, abs=0.3)
    assert value.std() == pytest.approx(lake.SIGNAL_SD, abs=0.2)


def test_the_texture_is_a_unit_matern_field() -> None:
    """Over 400 seeds the covariance of two points is that of the kernel, within four standard
    errors of 0.05."""
    points = np.array([[0.0, 0.0], [200.0, 2.0]])
    draws = np.array([lake._texture(points[:, 0], points[:, 1], seed) for seed in range(400)])
    kernel = Matern(lake.LENGTHSCALES, nu=2.5)(points)
    np.testing.assert_allclose(draws.T @ draws / 400, kernel, atol=0.2)


def test_a_fit_to_it_finds_length_scales_and_signal_of_the_lake() -> None:
    frame = lake.simulate().iloc[::7]
    kernel = ConstantKernel(4.0) * Matern(
        [300.0, 3.0], [(30, 3000), (0.3, 30)], nu=2.5
    ) + WhiteKernel(0.1)
    noise = lake.NOISE_SD * np.random.default_rng(0).standard_normal(len(frame))
    model = GaussianProcessRegressor(kernel)
    model.fit(frame[["distance_m", "depth_m"]].to_numpy(), frame["chlorophyll"] + noise - lake.MEAN)
    signal = model.kernel_.k1
    white = model.kernel_.k2
    assert signal.k2.length_scale == pytest.approx(lake.LENGTHSCALES, rel=0.5)
    assert np.sqrt(signal.k1.constant_value) == pytest.approx(lake.SIGNAL_SD, rel=0.25)
    assert np.sqrt(white.noise_level) == pytest.approx(lake.NOISE_SD, rel=0.25)
