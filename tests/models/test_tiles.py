"""Posteriors on many sites, conditioned tile by tile, agree with those conditioned row by row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from truvar.models import _tiles, ensemble, posterior
from truvar.models.ensemble import Ensemble, EnsembleModel
from truvar.models.posterior import Posterior
from truvar.models.transforms import OutputTransform

RNG = np.random.default_rng(2)
SITES = RNG.random((900, 2))
CHOSEN = RNG.permutation(len(SITES))[:30]
VALUES = RNG.normal(size=30)


@pytest.fixture
def many_sites(monkeypatch):
    """Make 900 sites many, in tiles that do not divide them."""
    for module in (_tiles, ensemble, posterior):
        monkeypatch.setattr(module, "FEW_SITES", 100)
    monkeypatch.setattr(_tiles, "TILE", 128)


@pytest.mark.usefixtures("many_sites")
@pytest.mark.parametrize("mean", [None, 0.3])
@pytest.mark.parametrize("kernel", [ConstantKernel(2.0) * Matern(0.3, nu=2.5), RBF(0.2)])
def test_all_observations_at_once_give_the_posterior_of_one_after_the_other(kernel, mean):
    noise = np.linspace(0.01, 0.1, len(CHOSEN))
    one = Posterior(kernel, SITES, mean, offset=lambda points: points[:, 0])
    whole = Posterior(kernel, SITES, mean, offset=lambda points: points[:, 0])
    for site, each, y in zip(CHOSEN, noise, VALUES, strict=True):
        one.add(SITES[site], float(each), int(site))
        one.observe(float(y))
    assert whole.condition(SITES[CHOSEN], noise, VALUES)
    for made in (one, whole):  # and both go on in the same way
        made.add(SITES[5], 0.05, 5)
        made.observe(0.7)
        made.add(SITES[7], 0.05, 7)
    for name in ("mean", "variance", "pending_variance", "values", "points", "prior_mean"):
        np.testing.assert_allclose(getattr(whole, name), getattr(one, name), atol=1e-10)
    np.testing.assert_allclose(whole.factor.v, one.factor.v, atol=1e-10)
    np.testing.assert_allclose(whole.leave_one_out(), one.leave_one_out(), atol=1e-9)
    assert len(whole.row_ids) == len(set(whole.row_ids)) == whole.n_rows


@pytest.mark.usefixtures("many_sites")
def test_exact_repeats_are_added_one_by_one():
    made = Posterior(RBF(0.2), SITES)
    points = SITES[[3, 3]]
    assert not made.condition(points, np.zeros(2), np.ones(2))
    assert made.n_rows == 0
    assert not Posterior(RBF(0.2), SITES[:50]).condition(points, np.ones(2), np.ones(2))


def sampled_model():
    return EnsembleModel(
        "matern52",
        np.array([[0.3, 0.4], [0.2, 0.5], [0.5, 0.3]]),
        np.array([1.0, 2.0, 0.5]),
        np.array([0.01, 0.02, 0.03]),
        OutputTransform(0.1, 1.0),
    )


def conditioned(spare=None):
    made = Ensemble(sampled_model(), SITES, None, 64)
    if spare is not None:
        made.take_memory(spare)
    made.condition(SITES[CHOSEN], VALUES, np.zeros(30), np.ones(30, bool))
    return made


def test_members_on_many_sites_agree_with_those_conditioned_in_one_piece(request):
    few = conditioned()
    request.getfixturevalue("many_sites")
    many = conditioned()
    again = conditioned(spare=conditioned())
    for made in (few, many, again):
        made.append(SITES[5], 0.7, 0.0, True, 5)
    for made in (many, again):
        np.testing.assert_allclose(made.means, few.means, atol=1e-10)
        np.testing.assert_allclose(made.variances, few.variances, atol=1e-10)
    np.testing.assert_array_equal(again.means, many.means)
