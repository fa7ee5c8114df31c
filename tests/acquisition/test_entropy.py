"""ES, PES, MRS, MES and SUR against brute force: conditioning and counting over joint draws,
numerical integration.

Rank correlations with Monte-Carlo references are limited by the references' own error; two
references of 20,000 draws agree with each other to 0.994 or better on these problems.
"""

from math import log, pi, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm, spearmanr
from sklearn.gaussian_process.kernels import RBF, Matern
from tests.reference import compiled as references

import truvar as tv
from truvar._numba.ambiguity import ambiguity_reductions_by_quadrature
from truvar._numba.entropy import cell_information, log_variance
from truvar.acquisition import entropy as entropy_policies
from truvar.algorithm.selection import policy_context
from truvar.testing._policies import f

N = 30
X = np.linspace(0, 1, N)[:, None]
KERNEL = Matern(0.15, nu=2.5)
PROBLEMS = [(1e-6, 4, 0), (1e-3, 5, 1), (1e-1, 4, 2)]  # noise, measurements, seed


class Problem:
    """A draw of f from the prior, measured at a few of 30 points; the posterior by `inv`, and
    joint draws from it."""

    def __init__(self, noise, measurements, seed):
        rng = np.random.default_rng(seed)
        self.noise = noise
        self.seed = seed
        truth = np.linalg.cholesky(KERNEL(X) + 1e-9 * np.eye(N)) @ rng.standard_normal(N)
        self.where = rng.choice(N, measurements, replace=False)
        self.y = truth[self.where] + sqrt(noise) * rng.standard_normal(measurements)
        across = KERNEL(X, X[self.where])
        inverse = np.linalg.inv(KERNEL(X[self.where]) + noise * np.eye(measurements))
        self.mean = across @ inverse @ self.y
        self.covariance = KERNEL(X) - across @ inverse @ across.T

    def study(self, policy, **options):
        made = tv.Study(
            tv.Domain.grid(x=X[:, 0]),
            tv.Maximize(),
            kernel=KERNEL,
            mean=0.0,
            noise=self.noise,
            policy=policy,
            **options,
        )
        for index, y in zip(self.where, self.y, strict=True):
            made.tell({"x": X[index, 0]}, y)
        return made

    def draws(self, count=20_000):
        """Joint draws (count, N) of f, and for every point a measurement of it (count, N)."""
        rng = np.random.default_rng([7, self.seed])
        values, vectors = np.linalg.eigh(self.covariance)
        sample = (
            self.mean + rng.standard_normal((count, N)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
        )
        return sample, sample + sqrt(self.noise) * rng.standard_normal((count, N))


def entropy(counts):
    share = counts[counts > 0] / counts.sum()
    return -(share * np.log(share)).sum() + (len(share) - 1) / (
        2 * counts.sum()
    )  # Miller and Madow's correction


def by_outcome(y, cells=40):
    """The draws in groups of similar measured values."""
    return np.array_split(np.argsort(y), cells)


def fall_of_entropy(problem):
    """ES by its definition: draws with about the same measured value are draws of what is known
    after measuring it."""
    sample, measured = problem.draws()
    winner = sample.argmax(axis=1)
    before = entropy(np.bincount(winner, minlength=N))
    after = [
        np.mean([entropy(np.bincount(winner[group], minlength=N)) for group in by_outcome(y)])
        for y in measured.T
    ]
    return before - np.array(after)


def fall_of_regret(problem):
    """MRS by its definition: the expected regret of a point drawn from p_max, before and after."""
    sample, measured = problem.draws()

    def regret(group):
        p_max = np.bincount(sample[group].argmax(axis=1), minlength=N) / len(group)
        return p_max @ (sample[group].max(axis=1)[:, None] - sample[group]).mean(axis=0)

    before = regret(np.arange(len(sample)))
    return before - np.array(
        [np.mean([regret(group) for group in by_outcome(y)]) for y in measured.T]
    )


def fall_of_predictive_entropy(problem):
    """PES by its definition, with normal entropies: the variance of y before, and given each
    maximiser."""
    sample, measured = problem.draws()
    winner = sample.argmax(axis=1)
    after = np.zeros(N)
    for r in np.unique(winner):
        group = winner == r
        if group.sum() > 1:
            after += group.mean() * 0.5 * np.log(measured[group].var(axis=0, ddof=1))
    return 0.5 * np.log(measured.var(axis=0)) - after


@pytest.fixture(scope="module", params=PROBLEMS, ids=lambda p: f"noise {p[0]:g}, {p[1]} values")
def problem(request):
    return Problem(*request.param)


@pytest.mark.parametrize(
    ("policy", "reference"),
    [(tv.ES, fall_of_entropy), (tv.PES, fall_of_predictive_entropy), (tv.MRS, fall_of_regret)],
    ids=["ES", "PES", "MRS"],
)
def test_candidates_rank_as_by_brute_force_over_20000_joint_draws(problem, policy, reference):
    wanted = reference(problem)
    gains = problem.study(policy()).gains()
    correlation = spearmanr(gains, wanted).statistic
    assert correlation > 0.95
    assert wanted[gains.argmax()] > 0.95 * wanted.max()


def test_mrs_and_es_have_the_right_size_too(problem):
    es = problem.study(tv.ES(draws=8192)).gains()
    mrs = problem.study(tv.MRS(draws=8192)).gains()
    assert es.max() == pytest.approx(fall_of_entropy(problem).max(), rel=0.15)
    assert mrs.max() == pytest.approx(fall_of_regret(problem).max(), rel=0.1)


def test_es_and_pes_see_the_same_information_from_both_sides(problem):
    es = problem.study(tv.ES(draws=8192)).gains()
    pes = problem.study(tv.PES(draws=8192)).gains()
    assert spearmanr(es, pes).statistic > 0.95


def test_candidates_that_are_no_representers_rank_alike(problem):
    """20 of the 30 points stand for all; what they leave open is drawn, or cut off below the
    maximum."""
    for policy in (tv.ES, tv.PES, tv.MRS):
        full = problem.study(policy(draws=4096)).gains()
        some = problem.study(policy(representers=20, draws=4096)).gains()
        assert spearmanr(full, some).statistic > 0.8


def test_the_rules_share_one_draw_of_maximisers():
    study = Problem(*PROBLEMS[0]).study("es")
    context = policy_context(study._learner, 1)
    table = study.candidates()
    made = []
    original = entropy_policies._draw

    def counted(*arguments):
        made.append(arguments)
        return original(*arguments)

    entropy_policies._draw = counted
    try:
        for policy in (tv.ES(), tv.PES(), tv.MRS(), tv.MES()):
            first = policy.score(context, table)
            assert (
                policy.score(context, table) == first
            ).all()  # a function of the candidate, within one choice
    finally:
        entropy_policies._draw = original
    assert len(made) == 1


def test_in_a_box_the_search_goes_on_between_the_representers_once_one_of_them_wins_all_draws():
    def hill(point):
        return -((point["x"] - 0.43) ** 2)

    for name in ("es", "pes", "mrs"):
        study = tv.Study(
            tv.Domain.box(x=(0, 1), representers=5),
            tv.Maximize(),
            kernel=RBF(0.3),
            mean=0.0,
            noise=1e-8,
            policy=name,
        )
        result = study.run(hill, steps=12)
        assert result.steps == 12
        assert result.best.point["x"] == pytest.approx(0.43, abs=1e-2)


# -- the maximum
# --------------------------------------------------------------------------------------------------


def test_mes_is_the_fall_of_entropy_of_a_normal_that_is_cut_at_the_maximum():
    study = Problem(*PROBLEMS[1]).study(tv.MES(maxima=5))
    context = study.policy_context()
    best = entropy_policies.posterior_draws(context, 50, 1024).maximum
    floor = max(Problem(*PROBLEMS[1]).y) + 5 * sqrt(1e-3)
    maxima = np.maximum(np.quantile(best, [0.1, 0.3, 0.5, 0.7, 0.9]), floor)
    mean, sd = context.moments
    wanted = np.zeros(N)
    for i in range(N):
        for top in maxima:
            z = (top - mean[i]) / sd[i]

            def integrand(v, z=z):
                p = norm.pdf(v) / norm.cdf(z)
                return -p * np.log(p) if p > 0 else 0.0

            cut = quad(integrand, -12.0 if z > -2 else z - 10, min(z, 12.0), limit=200)[0]
            wanted[i] += (0.5 * log(2 * pi * np.e) - cut) / len(maxima)
    assert study.gains() == pytest.approx(wanted, rel=1e-5, abs=1e-7)


def test_mes_ranks_as_the_information_between_a_value_and_the_maximum():
    """By counting joint draws in 20 x 20 cells."""
    problem = Problem(*PROBLEMS[1])
    sample, _ = problem.draws()
    cells = 20
    top = np.argsort(np.argsort(sample.max(axis=1))) * cells // len(sample)
    wanted = np.empty(N)
    for i in range(N):
        own = np.argsort(np.argsort(sample[:, i])) * cells // len(sample)
        wanted[i] = 2 * log(cells) - entropy(np.bincount(cells * top + own))
    assert spearmanr(problem.study(tv.MES(maxima=200)).gains(), wanted).statistic > 0.9


def test_the_draws_have_the_moments_of_the_posterior():
    problem = Problem(*PROBLEMS[1])
    context = policy_context(problem.study(tv.ES())._learner, 1)
    drawn = entropy_policies.posterior_draws(context, 50, 8192)
    # Cov(normal, f) is the inverse of whitening on its range: normal recovers f - mean.
    weights, rest = drawn.weights(problem.covariance / np.sqrt(np.diag(problem.covariance)))
    assert rest == pytest.approx(np.zeros(N), abs=2e-3)  # the representers are all the points
    f_again = problem.mean[:, None] + np.sqrt(np.diag(problem.covariance))[:, None] * (
        weights @ drawn.normal
    )
    assert f_again.mean(axis=1) == pytest.approx(problem.mean, abs=0.01)
    assert np.cov(f_again) == pytest.approx(problem.covariance, abs=0.03)
    assert (f_again.argmax(axis=0) == drawn.maximiser).mean() > 0.99
    assert f_again.max(axis=0) == pytest.approx(drawn.maximum, abs=0.01)


# -- the level set
# --------------------------------------------------------------------------------------------------


def level_study(policy, threshold=0.2, noise=1e-2, n=12, **options):
    domain = tv.Domain.grid(x=np.linspace(0, 1, n))
    goal = tv.LevelSet(threshold) if threshold is not None else tv.LevelSet(fraction_of_max=0.5)
    made = tv.Study(domain, goal, kernel=KERNEL, mean=0.0, noise=noise, policy=policy, **options)
    for x in (domain.points[1, 0], domain.points[n // 2, 0]):
        made.tell({"x": x}, f({"x": x}))
    return made


@pytest.mark.parametrize("threshold", [0.2, None], ids=["explicit", "implicit"])
def test_sur_is_the_expected_reduction_of_the_ambiguity(threshold):
    """For every candidate: condition on its measured value, at 4001 of them, and sum p (1 - p)
    over the domain."""
    study = level_study("sur", threshold)
    x = study.domain.points
    noise = 1e-2
    measurements = study.measurements
    there = measurements[["x"]].to_numpy()
    across = KERNEL(x, there)
    inverse = np.linalg.inv(KERNEL(there) + noise * np.eye(2))
    mean = across @ inverse @ np.array([f({"x": x}) for x in there[:, 0]])
    covariance = KERNEL(x) - across @ inverse @ across.T
    h = 0.2 if threshold is not None else 0.5 * mean.max()
    nodes = np.linspace(-8, 8, 4001)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()

    def ambiguity(means, variance):
        p = ndtr((means - h) / np.sqrt(variance))
        return (p * (1 - p)).sum(axis=-1)

    wanted = np.empty(len(x))
    for i in range(len(x)):
        d = covariance[i, i] + noise
        left = np.diag(covariance) - covariance[:, i] ** 2 / d
        after = ambiguity(mean + np.outer(nodes, covariance[:, i] / sqrt(d)), left)
        wanted[i] = ambiguity(mean, np.diag(covariance)) - weights @ after
    assert study.gains() == pytest.approx(wanted, rel=1e-3, abs=1e-5)


def test_sur_over_a_sample_of_the_domain_estimates_the_sum_over_all():
    full = level_study(tv.SUR(representers=1000), n=400)
    some = level_study(tv.SUR(representers=60), n=400)
    assert spearmanr(full.gains(), some.gains()).statistic > 0.99
    assert some.gains().max() == pytest.approx(full.gains().max(), rel=0.1)


# -- noise levels and tasks
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", [tv.ES, tv.PES, tv.MRS, tv.SUR], ids=lambda policy: policy.__name__
)
def test_a_more_precise_measurement_tells_more(policy):
    levels = tv.NoiseLevels(variance=[1e-4, 0.1, 2.0], cost=[30, 3, 1])
    goal = tv.LevelSet(0.2) if policy is tv.SUR else tv.Maximize()
    study = tv.Study(
        tv.Domain.grid(x=X[:, 0]), goal, kernel=KERNEL, mean=0.0, noise=levels, policy=policy()
    )
    for index in (3, 12, 22):
        study.tell({"x": X[index, 0]}, f({"x": X[index, 0]}), level=0)
    fine, coarse, coarsest = study.gains().reshape(N, 3).T
    assert fine.max() > coarse.max() > coarsest.max()
    assert study.ask().level == 0
    per_cost = tv.Study(
        tv.Domain.grid(x=X[:, 0]),
        goal,
        kernel=KERNEL,
        mean=0.0,
        noise=levels,
        policy=policy(per_cost=True),
    )
    assert per_cost.ask().level > 0


@pytest.mark.parametrize("policy", [tv.ES, tv.PES, tv.MRS], ids=lambda policy: policy.__name__)
def test_a_task_tells_as_much_as_a_measurement_with_the_noise_that_its_correlation_leaves(policy):
    """A quantity r f + sqrt(1 - r^2) g, g unknown and like f, measured at x: like f with more
    noise at x itself."""
    tasks = tv.Tasks(covariance=[[1.0, 0.8], [0.8, 1.0]], names=["f", "proxy"])
    study = tv.Study(
        tv.Domain.grid(x=X[:, 0]),
        tv.Maximize(),
        kernel=KERNEL,
        mean=0.0,
        noise=1e-4,
        tasks=tasks,
        policy=policy(),
    )
    own, proxy = study.gains().reshape(2, N)
    assert (proxy < own + 1e-9).mean() > 0.95
    assert proxy.max() > 0.1 * own.max()


# -- the compiled loops
# ------------------------------------------------------------------------------------------------


@pytest.fixture
def sample():
    rng = np.random.default_rng(4)
    m = 40
    k = 13
    draws = 256
    return {
        "weights": (rng.standard_normal((m, k)) / 5).astype(np.float32),
        "rest": rng.random(m),
        "normal": rng.standard_normal((k, draws)).astype(np.float32),
        "spare": rng.standard_normal(draws).astype(np.float32),
        "labels": np.sort(rng.integers(0, 30, draws)),
        "best": 50 + rng.standard_normal(draws),
        "mean": 49 + rng.standard_normal(m),
        "scale": 0.5 + rng.random(m),
        "seen": rng.integers(0, 2, m),
    }


def test_cell_information_agrees_with_its_reference(sample):
    compiled = np.empty(40)
    reference = np.empty(40)
    given = [sample[name] for name in ("weights", "rest", "normal", "spare", "labels")]
    given[1] = given[1].astype(np.float32)
    cell_information(*given, entropy_policies._interval_edges(), compiled)
    references.cell_information_reference(*given, entropy_policies._interval_edges(), reference)
    assert compiled == pytest.approx(
        reference, abs=2e-2
    )  # a draw at the edge of a cell may fall to either side
    assert np.median(np.abs(compiled - reference)) < 1e-9


def test_log_variance_agrees_with_its_reference(sample):
    compiled = np.empty(40)
    reference = np.empty(40)
    starts = np.flatnonzero(np.diff(sample["labels"], prepend=-1))
    rest = sample["rest"]
    given = (
        sample["weights"],
        rest,
        rest * sample["seen"],
        sample["mean"],
        sample["scale"],
        sample["normal"],
    )
    log_variance(*given, sample["best"], starts, compiled)
    references.log_variance_reference(*given, sample["best"], starts, reference)
    assert compiled == pytest.approx(reference, abs=1e-4)


def test_reductions_of_ambiguity_agree_with_their_reference():
    rng = np.random.default_rng(4)
    step = 0.6 * rng.standard_normal((30, 40))
    square = 4 * rng.random(30)
    worth = rng.random(30)
    compiled = np.empty(40)
    reference = np.empty(40)
    given = (
        step,
        square,
        np.full(30, 2.0),
        worth,
        entropy_policies.QUADRATURE_NODES,
        entropy_policies.QUADRATURE_WEIGHTS,
    )
    ambiguity_reductions_by_quadrature(*given, compiled)
    references.ambiguity_reductions_by_quadrature_reference(*given, reference)
    assert compiled == pytest.approx(reference, rel=1e-4)
