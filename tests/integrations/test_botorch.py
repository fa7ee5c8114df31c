"""Truncated variance reduction as a BoTorch acquisition function agrees with truvar's own
engine."""

import importlib
import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import truvar as tv
from truvar.domain.candidates import Candidates
from truvar.exceptions import InvalidArgumentError, InvalidModelError, MissingDependencyError

KERNEL = ConstantKernel(2.25) * Matern([0.3, 0.6], nu=2.5)
NOISE = 0.04  # variance
MEAN = 0.5
SIDE = np.linspace(0, 1, 9)


def test_a_missing_library_is_reported_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "botorch", None)
    monkeypatch.delitem(sys.modules, "truvar.integrations.botorch", raising=False)
    message = r'TruncatedVarianceReduction needs botorch, which is missing: pip install "truvar\[botorch\]"'
    with pytest.raises(MissingDependencyError, match=message):
        importlib.import_module("truvar.integrations.botorch")


torch = pytest.importorskip(
    "torch", reason="needs botorch, which is large: pip install 'truvar[botorch]'"
)
pytest.importorskip(
    "botorch", reason="needs botorch, which is large: pip install 'truvar[botorch]'"
)


def measured_study(goal, steps: int = 7) -> tv.Study:
    domain = tv.Domain.grid(x=SIDE, y=SIDE)
    study = tv.Study(domain, goal, kernel=KERNEL, mean=MEAN, noise=NOISE, policy="truvar")
    for _ in range(steps):
        suggestion = study.ask()
        study.tell(suggestion, float(np.sin(5 * suggestion.point["x"]) + suggestion.point["y"]))
    return study


def botorch_model(study: tv.Study, standardized: bool = False):
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood

    frame = study.measurements
    X = torch.tensor(frame[["x", "y"]].to_numpy(), dtype=torch.double)
    Y = torch.tensor(frame["value"].to_numpy(), dtype=torch.double)[:, None]
    spread = float(Y.std()) if standardized else 1.0
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2))
    model = SingleTaskGP(
        X,
        Y,
        covar_module=kernel,
        likelihood=GaussianLikelihood(),
        outcome_transform=Standardize(1) if standardized else None,
    ).double()
    with torch.no_grad():
        kernel.outputscale = 2.25 / spread**2
        kernel.base_kernel.lengthscale = torch.tensor([[0.3, 0.6]], dtype=torch.double)
        model.likelihood.noise = NOISE / spread**2
        model.mean_module.constant.fill_(
            (MEAN - (float(Y.mean()) if standardized else 0.0)) / spread
        )
    return model.eval()


def acquisition(study: tv.Study, standardized: bool = False, **options):
    from truvar.integrations.botorch import TruncatedVarianceReduction

    points = torch.tensor(study.domain.points.copy(), dtype=torch.double)
    return TruncatedVarianceReduction(
        botorch_model(study, standardized), points, study.goal, **options
    ), points


GOALS = [tv.Maximize(monotone=False), tv.Minimize(monotone=False), tv.LevelSet(1.0, monotone=False)]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: type(goal).__name__)
@pytest.mark.parametrize("standardized", [False, True])
def test_the_gains_on_the_grid_are_those_of_the_engine(goal, standardized):
    study = measured_study(goal)
    function, points = acquisition(study, standardized, beta=study.epoch.beta, eta=study.epoch.eta)
    np.testing.assert_array_equal(function.potential, study.result().potential)
    with torch.no_grad():
        gains = function(points[:, None, :]).numpy()
    scale = study.gains().max()
    assert scale > 0
    np.testing.assert_allclose(gains, study.gains(), atol=1e-6 * scale)


def test_the_gains_between_grid_points_are_those_of_the_engine():
    study = measured_study(GOALS[0])
    function, _ = acquisition(study, beta=study.epoch.beta, eta=study.epoch.eta)
    anywhere = np.random.default_rng(0).random((20, 2))
    table = Candidates(anywhere, np.full((20, 1), NOISE), np.ones((20, 1)), None)
    with torch.no_grad():
        gains = function(torch.tensor(anywhere)[:, None, :]).numpy()
    np.testing.assert_allclose(
        gains, study.policy.score(study.policy_context(), table)[:, 0], atol=1e-6 * gains.max()
    )


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: type(goal).__name__)
@pytest.mark.parametrize("standardized", [False, True])
@pytest.mark.parametrize("steps", [3, 25])
def test_beta_eta_noise_and_scale_default_to_those_of_the_study(goal, standardized, steps):
    study = measured_study(goal, steps)
    function, points = acquisition(study, standardized)
    assert function.beta == pytest.approx(study.epoch.beta)
    assert function.eta == pytest.approx(study.epoch.eta)
    assert function.noise == pytest.approx(NOISE)
    assert function.scale == pytest.approx(1.5)
    with torch.no_grad():
        gains = function(points[:, None, :]).numpy()
    np.testing.assert_allclose(gains, study.gains(), atol=1e-6 * study.gains().max())


def test_pending_points_count_as_measured():
    function, points = acquisition(measured_study(GOALS[2]), eta=0.1)
    with torch.no_grad():
        alone = float(function(points[55][None, None]))
        both = float(function(points[[10, 55]][None]))
        first = float(function(points[10][None, None]))
        function.set_X_pending(points[[10]])
        assert float(function(points[55][None, None])) == pytest.approx(both - first)
        assert float(function(points[10][None, None])) < 0.2 * first
        function.set_X_pending(None)
        assert float(function(points[55][None, None])) == pytest.approx(alone)


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: type(goal).__name__)
def test_the_gains_given_pending_points_are_those_of_a_batch_of_the_study(goal):
    study = measured_study(goal)
    function, points = acquisition(study)
    first_eta = function.eta
    pending = []
    for _ in range(8):
        if pending:
            function.set_X_pending(points[pending])
        suggestion = study.ask()
        with torch.no_grad():
            gains = function(points[:, None, :]).numpy()
        # Where the pending points leave nothing to gain, both continue with the eta of a later
        # epoch.
        assert suggestion.gain > 0
        assert gains[suggestion.index] == pytest.approx(suggestion.gain, rel=1e-5)
        assert gains.max() == pytest.approx(suggestion.gain, rel=1e-5)
        pending.append(suggestion.index)
    assert len(set(pending)) == 8
    assert function.eta < first_eta
    function.set_X_pending(None)
    assert function.eta == first_eta


def test_an_eta_that_is_given_stays_whatever_is_pending():
    function, points = acquisition(measured_study(GOALS[2]), eta=1.0)
    function.set_X_pending(points)
    assert function.eta == 1.0
    with torch.no_grad():
        assert function(points[:3, None, :]).numpy() == pytest.approx(0, abs=1e-9)


def test_a_sequential_batch_has_different_points():
    from botorch.optim import optimize_acqf

    function, _ = acquisition(measured_study(GOALS[2]))
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    torch.manual_seed(0)
    batch, _ = optimize_acqf(
        function,
        bounds,
        q=3,
        num_restarts=1,
        raw_samples=32,
        sequential=True,
        options={"maxiter": 15},
    )
    assert float(torch.pdist(batch).min()) > 0.05


def test_the_gain_of_a_batched_model_is_the_mean_over_its_members():
    from botorch.models import SingleTaskGP

    from truvar.integrations.botorch import TruncatedVarianceReduction

    study = measured_study(GOALS[2])
    points = torch.tensor(study.domain.points.copy(), dtype=torch.double)
    frame = study.measurements
    X = torch.tensor(frame[["x", "y"]].to_numpy(), dtype=torch.double)
    Y = torch.tensor(frame["value"].to_numpy(), dtype=torch.double)[:, None]
    settings = {"beta": 4.0, "eta": 0.1, "noise": NOISE, "scale": 1.0}
    batched = SingleTaskGP(X.expand(2, *X.shape), Y.expand(2, *Y.shape)).eval()
    batched.covar_module.lengthscale = torch.tensor(
        [[[0.3, 0.3]], [[0.6, 0.6]]], dtype=torch.double
    )
    function = TruncatedVarianceReduction(batched, points, study.goal, **settings)
    assert function.potential.shape == (2, 81)
    gains = []
    for scale in (0.3, 0.6):
        single = SingleTaskGP(X, Y).eval()
        single.covar_module.lengthscale = torch.tensor([[scale, scale]], dtype=torch.double)
        own = TruncatedVarianceReduction(single, points, study.goal, **settings)
        gains.append(own(points[:6, None, :]).detach())
    expected = (gains[0] + gains[1]) / 2
    np.testing.assert_allclose(function(points[:6, None, :]).detach(), expected, rtol=1e-6)


def test_a_batched_model_has_the_beta_and_eta_of_a_study_too():
    from botorch.models import SingleTaskGP

    from truvar.integrations.botorch import TruncatedVarianceReduction

    study = measured_study(GOALS[2], steps=25)
    points = torch.tensor(study.domain.points.copy(), dtype=torch.double)
    frame = study.measurements
    X = torch.tensor(frame[["x", "y"]].to_numpy(), dtype=torch.double)
    Y = torch.tensor(frame["value"].to_numpy(), dtype=torch.double)[:, None]
    single = TruncatedVarianceReduction(SingleTaskGP(X, Y), points, study.goal)
    other = SingleTaskGP(X.expand(2, *X.shape), torch.stack([Y, Y]))
    batched = TruncatedVarianceReduction(other, points, study.goal)
    assert (batched.beta, batched.eta) == pytest.approx((single.beta, single.eta))
    assert batched.scale == pytest.approx(single.scale)
    np.testing.assert_allclose(
        batched(points[:6, None, :]).detach(),
        single(points[:6, None, :]).detach(),
        rtol=1e-5,
        atol=1e-9,
    )
    batched.set_X_pending(points[[10]])
    single.set_X_pending(points[[10]])
    both = points[[20, 55]][None]
    assert batched(both).item() == pytest.approx(single(both).item(), rel=1e-5)


def test_a_model_in_training_keeps_its_input_transform():
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize

    from truvar.integrations.botorch import TruncatedVarianceReduction

    X = 0.25 + 0.5 * torch.rand(8, 2, dtype=torch.double)
    model = SingleTaskGP(X, X[:, :1], input_transform=Normalize(2))
    model.train()
    TruncatedVarianceReduction(model, torch.rand(50, 2, dtype=torch.double))
    torch.testing.assert_close(
        model.input_transform.bounds, torch.stack([X.min(dim=0).values, X.max(dim=0).values])
    )


def test_units_are_those_of_the_outcomes_however_they_are_standardized():
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import ChainedOutcomeTransform, Standardize

    from truvar.integrations.botorch import TruncatedVarianceReduction

    X = torch.rand(8, 2, dtype=torch.double)
    Y = 100.0 + 30.0 * torch.sin(5 * X[:, :1])
    settings = {"points": torch.rand(50, 2, dtype=torch.double), "goal": tv.LevelSet(100.0)}
    plain = TruncatedVarianceReduction(
        SingleTaskGP(X, Y, outcome_transform=Standardize(1)), **settings
    )
    chained = SingleTaskGP(X, Y, outcome_transform=ChainedOutcomeTransform(one=Standardize(1)))
    for model in (chained, ModelListGP(chained)):
        other = TruncatedVarianceReduction(model, **settings)
        assert (other.scale, other.noise) == pytest.approx((plain.scale, plain.noise))
        assert (other.beta, other.eta) == pytest.approx((plain.beta, plain.eta))
        np.testing.assert_allclose(other(X[:, None, :]).detach(), plain(X[:, None, :]).detach())


def test_where_everything_is_decided_the_gain_is_zero():
    function, points = acquisition(measured_study(tv.LevelSet(500.0, monotone=False), steps=1))
    assert not function.potential.any()
    x = points[:4, None, :].clone().requires_grad_()
    gains = function(x)
    gains.sum().backward()
    assert gains.tolist() == [0.0] * 4
    assert not x.grad.any()


def test_the_gain_of_a_batch_lies_between_the_largest_and_the_sum_of_its_parts():
    function, points = acquisition(measured_study(GOALS[2]), eta=0.1)
    with torch.no_grad():
        one = float(function(points[10][None, None]))
        other = float(function(points[55][None, None]))
        both = float(function(points[[10, 55]][None]))
    assert max(one, other) < both <= one + other + 1e-9


def test_it_is_differentiable_and_can_be_optimized():
    from botorch.optim import optimize_acqf

    function, points = acquisition(measured_study(GOALS[2]))
    x = torch.tensor([[[0.37, 0.52]]], dtype=torch.double)
    assert torch.autograd.gradcheck(function, (x.requires_grad_(),))
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    torch.manual_seed(0)
    _, best = optimize_acqf(
        function, bounds, q=1, num_restarts=2, raw_samples=128, options={"maxiter": 30}
    )
    with torch.no_grad():
        assert float(best) >= 0.95 * float(function(points[:, None, :]).max())


WRONG = [
    ({"points": np.zeros(3)}, r"points must be of shape \(n, d\), got \(3,\)"),
    ({"points": np.zeros((0, 2))}, "points must be at least one, got none"),
    ({"X_pending": np.zeros((1, 3))}, r"X_pending must be of shape \(n, 2\), got \(1, 3\)"),
    ({"goal": "maximize"}, "goal must be .* got 'maximize'"),
    ({"beta": 0.0}, "beta must be > 0, got 0.0"),
    ({"eta": -1.0}, "eta must be >= 0, got -1.0"),
    ({"noise": -1.0}, "noise must be >= 0, got -1.0"),
    ({"scale": 0.0}, "scale must be > 0, got 0.0"),
    ({"r": 1.0}, "r must lie between 0 and 1, got 1.0"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: next(iter(value), None))
def test_wrong_arguments_are_reported(arguments, message):
    from truvar.integrations.botorch import TruncatedVarianceReduction

    model = botorch_model(measured_study(GOALS[0], steps=2))
    with pytest.raises(InvalidArgumentError, match=message):
        TruncatedVarianceReduction(model, **{"points": np.zeros((4, 2)), **arguments})


def test_a_posterior_that_is_not_gaussian_is_reported():
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Log

    from truvar.integrations.botorch import TruncatedVarianceReduction

    X = torch.rand(5, 2, dtype=torch.double)
    model = SingleTaskGP(X, 1 + X[:, :1], outcome_transform=Log())
    with pytest.raises(
        InvalidModelError,
        match="Gaussian posterior, got TransformedPosterior; leave out the outcome",
    ):
        TruncatedVarianceReduction(model, X)
