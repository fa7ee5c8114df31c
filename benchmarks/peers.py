"""truvar against what one would build on the usual libraries: scikit-learn, GPyTorch and BoTorch.

scikit-learn and GPyTorch give the joint posterior over the domain, which holds both targets and
candidates; the truncated formula of eq. (3) is then NumPy's work. BoTorch's
qNegIntegratedPosteriorVariance is another criterion (no truncation, no M, no cost) and the nearest
that it ships. GPyTorch and BoTorch are optional: install "truvar[peers]".
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

from benchmarks.cases import LENGTHSCALE, Array, Case, optimum, state_of
from benchmarks.measure import Row, Stopwatch, Target, at_least, median, no_collection
from benchmarks.recipe import ChoiceInputs, Measurements
from benchmarks.runs import Suggests, compete, run

TOGETHER = 8  # candidates that BoTorch is given at a time


def rows(quick: bool) -> list[Row]:
    case = optimum(12, 8) if quick else optimum(50)
    peers: dict[str, Suggests] = {"scikit-learn": with_sklearn(case)}
    missing = {}
    if quick:
        missing = dict.fromkeys(("gpytorch", "botorch"), "left out by --quick")
    else:
        missing = {
            name: _install(name) for name in ("gpytorch", "botorch") if find_spec(name) is None
        }
    if "gpytorch" not in missing:
        peers["GPyTorch"] = with_gpytorch(case)
    contest = compete(case, peers, *((2, 1) if quick else (8, 3)))
    what = f"suggestion, N={len(case.domain)}, formula on"
    found = [
        contest.row(
            "scikit-learn",
            "peer-scikit-learn",
            f"{what} scikit-learn's joint posterior",
            at_least(50),
        )
    ]
    if "GPyTorch" in peers:
        found.append(
            contest.row(
                "GPyTorch", "peer-gpytorch", f"{what} GPyTorch's joint posterior", at_least(50)
            )
        )
    else:
        found.append(
            _absent(
                "peer-gpytorch",
                f"{what} GPyTorch's joint posterior",
                missing["gpytorch"],
                at_least(50),
            )
        )
    other = f"suggestion, N={len(case.domain)}, BoTorch qNegIntegratedPosteriorVariance (another criterion)"
    if "botorch" in missing:
        found.append(_absent("peer-botorch", other, missing["botorch"]))
    else:
        own = contest.ours / (contest.steps - 1)
        batch = integrated_variance(case)
        theirs = batch * len(case.domain) / TOGETHER
        note = f"{theirs:.0f} s against {1e3 * own:.2f} ms; {TOGETHER} candidates at a time timed, scaled to all"
        found.append(Row("peer-botorch", other, theirs / own, "x", None, note))
    reason = "not installable: the one public implementation is a repository without a package"
    found.append(_absent("peer-jax", "suggestion, a public TruVaR in JAX", reason))
    return found


def truncated_formula(covariance: Array, inputs: ChoiceInputs) -> int:
    """Eq. (3) from a joint posterior covariance over the domain; unit prior variance."""
    variance = covariance.diagonal()
    rows = covariance[inputs.targets]
    own = variance[inputs.targets][:, None]
    floor = inputs.eta**2
    delta = rows**2 / (variance + inputs.noise[:, 0])
    gained = np.maximum(inputs.beta * own, floor) - np.maximum(inputs.beta * (own - delta), floor)
    return int(np.argmax(gained.sum(axis=0) / inputs.cost[:, 0]))


def with_sklearn(case: Case) -> Suggests:
    points = case.domain.points

    def suggest(measured: Measurements, inputs: ChoiceInputs) -> int:
        model = GaussianProcessRegressor(case.kernel, alpha=measured.noise, optimizer=None)
        model.fit(points[measured.sites], measured.values)
        return truncated_formula(model.predict(points, return_cov=True)[1], inputs)

    return suggest


def with_gpytorch(case: Case) -> Suggests:
    import gpytorch
    import torch

    torch.set_num_threads(1)
    points = torch.tensor(case.domain.points)

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.RBFKernel().double()
            self.covar_module.lengthscale = LENGTHSCALE

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    def suggest(measured: Measurements, inputs: ChoiceInputs) -> int:
        likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.tensor(measured.noise))
        model = Model(
            points[torch.tensor(measured.sites)], torch.tensor(measured.values), likelihood
        ).eval()
        with torch.no_grad():
            return truncated_formula(model(points).covariance_matrix.numpy(), inputs)

    return suggest


def integrated_variance(case: Case) -> float:
    """Seconds that BoTorch's criterion takes for a few candidates, halfway through a run,
    integrating over D."""
    import torch
    from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import RBFKernel
    from gpytorch.means import ZeroMean

    states: list[Measurements] = []
    run(case, lambda study: states.append(state_of(study, case.mean)[0]))
    measured = states[len(states) // 2]
    points = torch.tensor(case.domain.points)
    kernel = RBFKernel().double()
    kernel.lengthscale = LENGTHSCALE
    model = SingleTaskGP(
        points[torch.tensor(measured.sites)],
        torch.tensor(measured.values)[:, None],
        train_Yvar=torch.tensor(measured.noise)[:, None],
        covar_module=kernel,
        mean_module=ZeroMean(),
        outcome_transform=None,
    )
    criterion = qNegIntegratedPosteriorVariance(model, mc_points=points)
    some = points[:: len(points) // TOGETHER][:TOGETHER, None, :]
    taken = []
    with torch.no_grad(), no_collection():
        for _ in range(4):
            with Stopwatch() as watch:
                criterion(some)
            taken.append(watch.seconds)
    return median(taken[1:])


def _absent(name: str, what: str, why: str, target: Target | None = None) -> Row:
    return Row(name, what, None, "x", target, why)


def _install(name: str) -> str:
    return f'{name} is not installed: pip install "truvar[peers]"'
