"""Properties that hold for every study, on small problems that Hypothesis generates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv

EXAMPLES = settings(max_examples=30)

values = st.floats(-3, 3, allow_nan=False).map(lambda y: round(y, 3))


@dataclass(frozen=True)
class Problem:
    """A small study in numbers, so that it can be made again with some of them changed."""

    seed: int  # of the points
    n: int
    goal: str  # "max" | "min" | "level" | "implicit"
    monotone: bool
    threshold: float
    scale: float  # variance of the kernel
    length: float
    smooth: bool
    mean: float | None
    noise: float
    uneven: bool
    cost: Any = None
    policy: dict[str, Any] = field(default_factory=dict)

    @property
    def domain(self) -> tv.Domain:
        points = np.random.default_rng(self.seed).uniform(size=(self.n, 2))
        return tv.Domain.table(pd.DataFrame(points, columns=["x", "y"]))

    def study(self, policy: Any = None) -> tv.Study:
        goal = {
            "max": lambda: tv.Maximize(monotone=self.monotone),
            "min": lambda: tv.Minimize(monotone=self.monotone),
            "level": lambda: tv.LevelSet(self.threshold, monotone=self.monotone),
            "implicit": lambda: tv.LevelSet(fraction_of_max=0.6, monotone=self.monotone),
        }[self.goal]()
        shape = RBF(self.length) if self.smooth else Matern([self.length, 2 * self.length], nu=2.5)
        spread = np.random.default_rng(self.seed + 1).uniform(0.2, 3.0, size=self.n)
        return tv.Study(
            self.domain,
            goal,
            kernel=ConstantKernel(self.scale) * shape,
            mean=self.mean,
            noise=self.noise * spread if self.uneven else self.noise,
            cost=self.cost,
            policy=policy or tv.TruVaR(**self.policy),
        )


@st.composite
def problems(draw: st.DrawFn, **fixed: Any) -> Problem:
    drawn = {
        "seed": st.integers(0, 10_000),
        "n": st.integers(4, 16),
        "goal": st.sampled_from(["max", "min", "level", "implicit"]),
        "monotone": st.booleans(),
        "threshold": st.sampled_from([-0.7, 0.1, 0.45]),
        "scale": st.sampled_from([0.1, 1.0, 7.0]),
        "length": st.sampled_from([0.1, 0.3, 0.8]),
        "smooth": st.booleans(),
        "mean": st.sampled_from([0.0, 1.3, None]),
        "noise": st.sampled_from([1e-4, 1e-2, 0.3]),
        "uneven": st.booleans(),
    }
    return Problem(**{name: draw(how) for name, how in drawn.items() if name not in fixed}, **fixed)


def observations(n: int = 8) -> st.SearchStrategy[list[tuple[float, float]]]:
    """Draw measurements: the position as a share of the domain, and the value."""
    return st.lists(st.tuples(st.floats(0, 0.999), values), min_size=1, max_size=n)


def answers(n: int = 8) -> st.SearchStrategy[list[float]]:
    return st.lists(values, min_size=2, max_size=n)


def tell_all(study: tv.Study, domain: tv.Domain, observations: list[tuple[float, float]]) -> None:
    for share, y in observations:
        study.tell(domain.point(int(share * len(domain))), y)


def ask(study: tv.Study, count: int) -> list[tv.Suggestion]:
    """Up to so many suggestions: none if the study is finished."""
    try:
        return study.ask(count)
    except tv.Finished:
        return []


def path(study: tv.Study, ys: list[float], batch: bool = False) -> list[tv.Suggestion]:
    """The suggestions of a study that is answered with ys, as far as it goes."""
    taken = []
    for y in ys:
        try:
            suggestion = study.ask(1)[0] if batch else study.ask()
        except tv.Finished:
            break
        taken.append(suggestion)
        study.tell(suggestion, y)
    assert taken
    return taken


def steps(suggestions: list[tv.Suggestion]) -> list[tuple[int | None, int | None]]:
    return [(s.index, s.level) for s in suggestions]


@EXAMPLES
@given(problem=problems(), observations=observations())
def test_m_h_and_l_partition_the_domain(
    problem: Problem, observations: list[tuple[float, float]]
) -> None:
    study = problem.study()
    domain = problem.domain
    for measurement in observations:
        tell_all(study, domain, [measurement])
        result = study.result()
        count = result.potential.astype(int) + result.above.astype(int) + result.below.astype(int)
        assert (count == 1).all()


@EXAMPLES
@given(problem=problems(monotone=True), observations=observations())
def test_m_never_grows_when_monotone(
    problem: Problem, observations: list[tuple[float, float]]
) -> None:
    study = problem.study()
    domain = problem.domain
    before = study.result()
    assert before.potential.all()
    for measurement in observations:
        tell_all(study, domain, [measurement])
        after = study.result()
        assert (after.potential <= before.potential).all()
        assert (after.above >= before.above).all()
        assert (after.below >= before.below).all()
        before = after


@EXAMPLES
@given(problem=problems(), observations=observations(12))
def test_variance_never_grows(problem: Problem, observations: list[tuple[float, float]]) -> None:
    study = problem.study()
    domain = problem.domain
    before = study.result().sd
    np.testing.assert_allclose(before**2, problem.scale, rtol=1e-12)
    for measurement in observations:
        tell_all(study, domain, [measurement])
        after = study.result().sd
        assert (after >= 0).all()
        assert (after <= before + 1e-12).all()
        before = after


POLICIES = [
    {},
    {"eta": 0.0},
    {"slack": 0.2, "r": 0.5},
    {"beta": tv.ConstantBeta(3.0)},
    {"anticipate": "mean"},
    {"anticipate": "average"},
]


@EXAMPLES
@given(problem=problems(), policy=st.sampled_from(POLICIES))
def test_a_new_study_has_something_to_gain(problem: Problem, policy: dict[str, Any]) -> None:
    study = replace(problem, policy=policy).study()
    assert study.finished is None
    suggestion = study.ask()
    assert suggestion.gain > 0


@EXAMPLES
@given(
    problem=problems(monotone=True),
    observations=observations(),
    policy=st.sampled_from(POLICIES),
    pend=st.booleans(),
)
def test_no_gain_is_negative(
    problem: Problem, observations: list[tuple[float, float]], policy: dict[str, Any], pend: bool
) -> None:
    study = replace(problem, policy=policy).study()
    domain = problem.domain
    for measurement in observations:
        if pend:
            ask(study, 1)  # pending from here on
        tell_all(study, domain, [measurement])
        gains = study.gains()
        assert gains.shape == (len(domain),)
        assert (gains >= -1e-12 * len(domain)).all()


@EXAMPLES
@given(
    problem=problems(),
    ys=answers(),
    factor=st.sampled_from([1e-3, 0.5, 3.7, 250.0]),
    travel=st.booleans(),
)
def test_scaling_all_costs_changes_no_choice(
    problem: Problem, ys: list[float], factor: float, travel: bool
) -> None:
    def cost(unit: float) -> Any:
        if travel:
            return tv.Cost(base=unit, travel={"x": 2 * unit}, magnitude={"y": 3 * unit})
        return unit * np.random.default_rng(problem.seed + 2).uniform(0.5, 4.0, size=problem.n)

    cheap = path(replace(problem, cost=cost(1.0)).study(), ys)
    expensive = path(replace(problem, cost=cost(factor)).study(), ys)
    assert steps(cheap) == steps(expensive)
    np.testing.assert_allclose(
        [factor * s.cost for s in cheap], [s.cost for s in expensive], rtol=1e-12
    )


@EXAMPLES
@given(problem=problems(), observations=observations(), data=st.data())
def test_the_order_of_tells_does_not_change_the_posterior(
    problem: Problem, observations: list[tuple[float, float]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(observations))
    one = problem.study()
    other = problem.study()
    tell_all(one, problem.domain, observations)
    tell_all(other, problem.domain, shuffled)
    np.testing.assert_allclose(one.result().mean, other.result().mean, rtol=0, atol=1e-7)
    np.testing.assert_allclose(one.result().sd ** 2, other.result().sd ** 2, rtol=0, atol=1e-9)


@EXAMPLES
@given(
    problem=problems(),
    ys=answers(),
    factor=st.sampled_from([0.01, 0.5, 3.7, 1000.0]),
    shift=st.sampled_from([-40.0, 0.0, 2.6]),
)
def test_an_affine_change_of_all_values_changes_no_choice(
    problem: Problem, ys: list[float], factor: float, shift: float
) -> None:
    if problem.goal == "implicit":
        shift = 0.0  # a fraction of the maximum means something else once zero is elsewhere
    other = replace(
        problem,
        threshold=factor * problem.threshold + shift,
        scale=factor**2 * problem.scale,
        mean=None if problem.mean is None else factor * problem.mean + shift,
        noise=factor**2 * problem.noise,
    )
    one = problem.study()
    two = other.study()
    here = path(one, ys)
    there = path(two, [factor * y + shift for y in ys])
    assert steps(here) == steps(there)
    np.testing.assert_allclose(
        [s.gain for s in here], [s.gain for s in there], rtol=1e-6, atol=1e-9
    )
    np.testing.assert_array_equal(one.result().potential, two.result().potential)
    assert one.epoch.index == two.epoch.index
    np.testing.assert_allclose(
        factor * one.result().upper + shift,
        two.result().upper,
        rtol=0,
        atol=1e-7 * factor * (1 + abs(shift)),
    )


@EXAMPLES
@given(problem=problems(goal="max"), ys=answers())
def test_minimising_is_maximising_upside_down(problem: Problem, ys: list[float]) -> None:
    mirrored = replace(problem, goal="min", mean=None if problem.mean is None else -problem.mean)
    one = problem.study()
    two = mirrored.study()
    assert steps(path(one, ys)) == steps(path(two, [-y for y in ys]))
    up = one.result()
    down = two.result()
    np.testing.assert_array_equal(up.potential, down.potential)
    np.testing.assert_array_equal(up.below, down.above)
    np.testing.assert_allclose(up.upper, -down.lower, rtol=0, atol=1e-9)
    assert up.best.index == down.best.index


@EXAMPLES
@given(problem=problems(), ys=answers())
def test_a_batch_of_one_is_a_single_ask(problem: Problem, ys: list[float]) -> None:
    one = problem.study()
    other = problem.study()
    assert steps(path(one, ys)) == steps(path(other, ys, batch=True))
    np.testing.assert_array_equal(one.result().mean, other.result().mean)
    np.testing.assert_array_equal(one.result().potential, other.result().potential)
    assert one.epoch == other.epoch


@EXAMPLES
@given(problem=problems(), ys=st.lists(values, min_size=4, max_size=4))
def test_a_batch_is_as_many_single_asks(problem: Problem, ys: list[float]) -> None:
    one = problem.study()
    other = problem.study()
    batch = one.ask(4)
    singles = [other.ask() for _ in batch]
    assert steps(batch) == steps(singles)
    for s, t, y in zip(batch, singles, ys, strict=False):
        one.tell(s, y)
        other.tell(t, y)
    np.testing.assert_array_equal(one.result().mean, other.result().mean)
    np.testing.assert_array_equal(one.result().potential, other.result().potential)


@EXAMPLES
@given(problem=problems(), ys=st.lists(values, min_size=1, max_size=4))
def test_pending_measurements_told_as_asked_leave_what_telling_alone_leaves(
    problem: Problem, ys: list[float]
) -> None:
    asked = problem.study()
    alone = problem.study()
    batch = asked.ask(len(ys))
    assume(len(batch) == len(ys))
    for suggestion, y in zip(batch, ys, strict=True):
        asked.tell(suggestion, y)
        alone.tell(suggestion.point, y)
    assert asked.pending == []
    one = asked.result()
    other = alone.result()
    np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.sd, other.sd, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(one.potential, other.potential)
    assert asked.epoch.index == alone.epoch.index
    np.testing.assert_allclose(asked.gains(), alone.gains(), rtol=1e-7, atol=1e-9)


@EXAMPLES
@given(problem=problems(), observations=observations(), count=st.integers(1, 4))
def test_what_is_asked_and_withdrawn_to_be_asked_again_was_never_asked(
    problem: Problem, observations: list[tuple[float, float]], count: int
) -> None:
    asked = problem.study()
    never = problem.study()
    tell_all(asked, problem.domain, observations)
    tell_all(never, problem.domain, observations)
    before = asked.gains()
    for suggestion in ask(asked, count):
        asked.withdraw(suggestion, again=True)
    assert asked.pending == []
    np.testing.assert_allclose(asked.gains(), before, rtol=1e-9, atol=1e-12)
    assert steps(ask(asked, 1)) == steps(ask(never, 1))


@EXAMPLES
@given(problem=problems(), observations=observations())
def test_pending_points_change_neither_mean_nor_bounds_nor_sets(
    problem: Problem, observations: list[tuple[float, float]]
) -> None:
    study = problem.study()
    tell_all(study, problem.domain, observations)
    before = study.result()
    epoch = study.epoch
    ask(study, 3)
    after = study.result()
    for name in ("mean", "sd", "lower", "upper", "potential", "above", "below"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
    assert study.epoch == epoch
