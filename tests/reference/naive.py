"""A naive transcription of the paper: loops and matrix inversion, nothing from the package.

The tests compare the package with it. There are no rank-one updates, and nothing but single kernel
values is cached; every number is computed from the equations when it is needed.

| symbol             | here              | meaning                                                          |
|--------------------|-------------------|------------------------------------------------------------------|
| D                  | points            | n rows, user units                                               |
| k(x, x')           | self.k            | coregionalised if there are tasks: B[a, b] k(x, x')              |
| sigma_t, mu_t      | variances, means  | eqs (1), (2), user units                                         |
| beta_(i), eta_(i)  | beta, eta         | eta in units of the prior standard deviation                     |
| t_(i)              | start             | index of the first choice made in the epoch                      |
| M_t, H_t, L_t      | M, H, L           | sets of point indices                                            |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

TINY = 1e-12  # smallest eta^2 / beta and smallest variance that count, on the scale k(x, x) = 1


class Action(NamedTuple):
    """One measurement: task, point and noise variance."""

    task: int
    x: tuple[float, ...]
    noise: float


class Row(NamedTuple):
    """One candidate. `cost` does not include travel."""

    task: int
    point: int
    level: int
    noise: float
    cost: float


class Sets(NamedTuple):
    M: set[int]
    H: set[int]
    L: set[int]
    targets: set[int]


def cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def interval_above(
    line: tuple[float, float], others: Sequence[tuple[float, float]], factor: float
) -> tuple[float, float]:
    """Return the interval of z in which a line (value at 0, slope) is at least `factor` times every
    other line.

    Where there is none, both ends are equal.
    """
    left = -math.inf
    right = math.inf
    for value, slope in others:
        gap = factor * value - line[0]
        rise = line[1] - factor * slope
        if rise > 0:
            left = max(left, gap / rise)
        elif rise < 0:
            right = min(right, gap / rise)
        elif gap > 0:
            return 0.0, 0.0
    return (left, right) if left < right else (0.0, 0.0)


def pdf(z: float) -> float:
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def expected_improvement(mean: float, sd: float, incumbent: float) -> float:
    if sd <= 0.0:
        return max(0.0, mean - incumbent)
    z = (mean - incumbent) / sd
    return (mean - incumbent) * cdf(z) + sd * pdf(z)


def inverse(k: Callable, actions: Sequence[Action]) -> np.ndarray:
    """Return (K_t + Sigma_t)^-1 of eqs (1) and (2)."""
    t = len(actions)
    A = np.zeros((t, t))
    for i in range(t):
        for j in range(t):
            A[i, j] = k(actions[i].task, actions[i].x, actions[j].task, actions[j].x)
        A[i, i] += actions[i].noise
    return np.linalg.inv(A)


def k_vector(k: Callable, actions: Sequence[Action], task: int, x: tuple[float, ...]) -> np.ndarray:
    """Return k_t(x)."""
    return np.array([k(a.task, a.x, task, x) for a in actions])


def posterior_mean(
    k: Callable,
    actions: Sequence[Action],
    residuals: Sequence[float],
    x: tuple,
    A: np.ndarray | None = None,
) -> float:
    """Return eq. (1) for the target task, from residuals y - prior mean. A: see
    `posterior_variance`."""
    if not actions:
        return 0.0
    if A is None:
        A = inverse(k, actions)
    return float(k_vector(k, actions, 0, x) @ A @ np.array(residuals))


def posterior_variance(
    k: Callable, actions: Sequence[Action], x: tuple, A: np.ndarray | None = None
) -> float:
    """Return eq. (2) for the target task. A = inverse(k, actions), if the caller has it already."""
    prior = k(0, x, 0, x)
    if not actions:
        return prior
    if Action(0, x, 0.0) in actions:
        return 0.0  # measured without noise: zero, and not what rounding leaves of the difference
    if A is None:
        A = inverse(k, actions)
    v = k_vector(k, actions, 0, x)
    return float(prior - v @ A @ v)


def posterior_covariance(
    k: Callable,
    actions: Sequence[Action],
    a: tuple,
    task_b: int,
    b: tuple,
    A: np.ndarray | None,
    task_a: int = 0,
) -> float:
    """Return Cov_t(a, b), supplement B."""
    prior = k(task_a, a, task_b, b)
    if not actions:
        return prior
    return float(prior - k_vector(k, actions, task_a, a) @ A @ k_vector(k, actions, task_b, b))


def generalised_least_squares(k: Callable, actions: Sequence[Action], y: Sequence[float]) -> float:
    """Return the most likely constant c if y ~ N(c 1, K_t + Sigma_t)."""
    A = inverse(k, actions)
    above = sum(A[i, j] * y[j] for i in range(len(y)) for j in range(len(y)))
    below = sum(A[i, j] for i in range(len(y)) for j in range(len(y)))
    return above / below


@dataclass
class NaiveTruVaR:
    """Algorithms 1 and 2 and the variations of the supplement.

    Attributes:
        points: D. (n, d)
        goal: "max", "min", "level" (threshold h) or "implicit" (the threshold is that fraction of
            the maximum).
        kernel: A scikit-learn kernel.
        mean: Prior mean; None: the constant of generalised least squares, after every observation.
        noise: Variance, one number or one per point; ignored where `levels` are given.
        cost: One number or one per point.
        travel: Cost per unit of distance, for each coordinate.
        magnitude: Cost per unit of |x|, for each coordinate.
        levels: (variance, cost) of every noise level; the cost of the level is added to that of the
            point.
        tasks: Covariance of the tasks; task 0 is the target, and M consists of its points.
        task_noise: `noise` of each task; with `levels`, one per level for each task.
        task_cost: `cost` of each task; travel and magnitude are added.
        task_mean: `mean` of each task.
        beta_schedule: ("log", a) or ("constant", b).
        among: None, "potential" or ("top", k, "ucb" or "ei").
        anticipate: None, "mean" or "average".
        trail: Actions suggested, or told without a suggestion, in order.
        lowered: How often pending actions left nothing to gain.
    """

    points: np.ndarray
    goal: str
    kernel: Any
    threshold: float = math.nan
    monotone: bool = True
    mean: float | None = 0.0
    noise: float | np.ndarray = 0.01
    cost: float | np.ndarray = 1.0
    travel: Sequence[float] | None = None
    magnitude: Sequence[float] | None = None
    levels: Sequence[tuple[float, float]] | None = None
    tasks: np.ndarray | None = None
    task_noise: Sequence[float] | Sequence[Sequence[float]] | None = None
    task_cost: Sequence[float] | None = None
    task_mean: Sequence[float] | None = None
    beta_schedule: tuple[str, float] = ("log", 1.0)
    eta: float = 1.0
    r: float = 0.1
    slack: float = 0.0
    among: Any = None
    anticipate: str | None = None

    i: int = 1
    start: int = 1  # t_(i)
    actions: list[Action] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    pending: list[Action] = field(default_factory=list)
    trail: list[Action] = field(default_factory=list)
    lowered: int = 0
    trace: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.D = [tuple(float(c) for c in x) for x in self.points]
        self._cache: dict[tuple, float] = {}
        self._rows = self.all_rows()
        self.scale2 = max(self.k(0, x, 0, x) for x in self.D)
        self.beta = self.beta_at(1)
        everything = set(range(len(self.D)))
        self.sets = Sets(everything, set(), set(), everything)
        self.constant = 0.0 if self.mean is None else self.mean
        self.update_bounds()
        self.advance()  # an eta that the prior reaches already leaves nothing to gain

    # -- the model ---------------------------------------------------------------------------------

    def k(self, task_a: int, a: tuple, task_b: int, b: tuple) -> float:
        key = (task_a, a, task_b, b)
        value = self._cache.get(key)
        if value is None:
            between = 1.0 if self.tasks is None else float(self.tasks[task_a, task_b])
            value = self._cache[key] = between * float(
                self.kernel(np.array([a]), np.array([b]))[0, 0]
            )
        return value

    def k_unit(self, task_a: int, a: tuple, task_b: int, b: tuple) -> float:
        """Return the kernel normalised so that k(x, x) = 1 for the target."""
        return self.k(task_a, a, task_b, b) / self.scale2

    def unit(self, actions: Sequence[Action]) -> list[Action]:
        return [Action(a.task, a.x, a.noise / self.scale2) for a in actions]

    def means(self) -> np.ndarray:
        residuals = [y - self.prior(a.task) for a, y in zip(self.actions, self.y, strict=True)]
        A = inverse(self.k, self.actions) if self.actions else None
        return np.array(
            [self.prior(0) + posterior_mean(self.k, self.actions, residuals, x, A) for x in self.D]
        )

    def prior(self, task: int) -> float:
        return self.constant if self.task_mean is None else self.task_mean[task]

    def variances(self, actions: Sequence[Action]) -> np.ndarray:
        """Return the variances after `actions`, in user units."""
        A = inverse(self.k, actions) if actions else None
        return np.array([posterior_variance(self.k, actions, x, A) for x in self.D])

    # -- confidence --------------------------------------------------------------------------------

    def beta_at(self, t: int) -> float:
        kind, constant = self.beta_schedule
        if kind == "constant":
            return constant
        return constant * math.log(len(self.points) * t**2)

    def update_bounds(self) -> None:
        """Update the bounds, eq. (4)."""
        self.mu = self.means()
        self.sd = np.array([math.sqrt(max(v, 0.0)) for v in self.variances(self.actions)])
        self.upper = np.array(
            [m + math.sqrt(self.beta) * s for m, s in zip(self.mu, self.sd, strict=True)]
        )
        self.lower = np.array(
            [m - math.sqrt(self.beta) * s for m, s in zip(self.mu, self.sd, strict=True)]
        )

    def updated_sets(self, lower: Sequence[float], upper: Sequence[float], monotone: bool) -> Sets:
        """Return the sets after eqs (5)-(7); if not monotone, M_{t-1} is replaced by D and
        nothing stays decided."""
        everything = set(range(len(self.D)))
        if monotone:
            M = set(self.sets.M)
            H = set(self.sets.H)
            L = set(self.sets.L)
        else:
            M = everything
            H = set()
            L = set()
        if self.goal == "max":
            best = max(lower[j] for j in M)
            new = {j for j in M if upper[j] >= best}  # eq. (5)
            return Sets(new, set(), everything - new, new)
        if self.goal == "min":
            best = min(upper[j] for j in M)
            new = {j for j in M if lower[j] <= best}
            return Sets(new, everything - new, set(), new)
        if self.goal == "level":
            h = self.threshold
            new = {j for j in M if upper[j] >= h and lower[j] <= h}  # eq. (6)
            H = H | {j for j in M if lower[j] > h}  # eq. (7)
            L = L | {j for j in M if upper[j] < h}
            return Sets(new, H, L, new)
        assert self.goal == "implicit"
        optimistic = self.threshold * max(upper)
        pessimistic = self.threshold * max(lower)
        new_H = {j for j in M if lower[j] > optimistic}
        new_L = {j for j in M if upper[j] < pessimistic}
        new = M - new_H - new_L
        maximisers = {j for j in everything if upper[j] >= max(lower)}
        return Sets(new, H | new_H, L | new_L, new | maximisers)

    # -- candidates --------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        return self._rows

    def all_rows(self) -> list[Row]:
        """Return all candidates: tasks outermost, then points, then levels."""
        rows = []
        n_tasks = 1 if self.tasks is None else len(self.tasks)
        for task in range(n_tasks):
            for point in range(len(self.D)):
                noise = float(np.broadcast_to(self.noise, len(self.D))[point])
                cost = float(np.broadcast_to(self.cost, len(self.D))[point])
                if self.task_noise is not None:
                    noise = self.task_noise[task]
                if self.task_cost is not None:
                    cost = self.task_cost[task]
                for c in range(self.points.shape[1]):
                    if self.magnitude is not None:
                        cost += self.magnitude[c] * abs(self.D[point][c])
                if self.levels is None:
                    rows.append(Row(task, point, 0, noise, cost))
                    continue
                for level, (variance, extra) in enumerate(self.levels):
                    if self.task_noise is not None:
                        variance = self.task_noise[task][level]
                    rows.append(Row(task, point, level, variance, cost + extra))
        return rows

    def row_cost(self, row: Row) -> float:
        cost = row.cost
        if self.travel is not None and self.trail:  # the first measurement pays no travel
            for c in range(self.points.shape[1]):
                cost += self.travel[c] * abs(self.D[row.point][c] - self.trail[-1].x[c])
        return cost

    def action(self, row: Row) -> Action:
        return Action(row.task, self.D[row.point], row.noise)

    def acquisition(self) -> np.ndarray:
        """Return the score by which the prefilter ranks, one number per point."""
        _, _, by = self.among
        sign = -1.0 if self.goal == "min" else 1.0
        observed = [sign * y for a, y in zip(self.actions, self.y, strict=True) if a.task == 0]
        incumbent = max(observed) if observed else sign * self.prior(0)
        values = []
        for m, s in zip(self.mu, self.sd, strict=True):
            if by == "ucb":
                values.append(sign * m + math.sqrt(self.beta) * s)
            else:
                values.append(expected_improvement(sign * m, s, incumbent))
        return np.array(values)

    def allowed(self) -> set[int]:
        """Return the points that the choice is limited to; the prefilter breaks ties by the
        earlier point."""
        if self.among is None:
            return set(range(len(self.D)))
        if self.among == "potential":
            return set(self.sets.targets)  # the M that eq. (3) sums over
        values = self.acquisition()
        order = sorted(range(len(self.D)), key=lambda j: (-values[j], j))
        return set(order[: self.among[1]])

    # -- eq. (3) -----------------------------------------------------------------------------------

    def truncated(self, variance: float, eta: float) -> float:
        return max(self.beta * variance, eta**2)

    def gain(
        self,
        row: Row,
        known: Sequence[Action],
        eta: float,
        A: np.ndarray | None,
        before: Sequence[float],
    ) -> float:
        """Return the numerator of eq. (3) for one candidate.

        Args:
            row: The candidate.
            known: Actions with a value, then pending ones.
            eta: Target confidence.
            A: Inverse of their covariance matrix.
            before: Variances given them.
        """
        if row.noise == 0.0 and self.action(row) in known:
            return 0.0  # known exactly: eq. (2) does not change, and its matrix would be singular
        before_actions = self.unit(known)
        after_actions = self.unit([*known, self.action(row)])
        B = inverse(self.k_unit, after_actions)
        if self.anticipate is None:
            total = 0.0
            for j in sorted(self.sets.targets):
                after = posterior_variance(self.k_unit, after_actions, self.D[j], B)
                total += self.truncated(before[j], eta) - self.truncated(after, eta)
            return total
        after = [posterior_variance(self.k_unit, after_actions, x, B) for x in self.D]
        first = sum(self.truncated(before[j], eta) for j in sorted(self.sets.targets))
        width = [math.sqrt(self.beta * max(v, 0.0) * self.scale2) for v in after]
        if self.anticipate == "mean":
            lower = [m - w for m, w in zip(self.mu, width, strict=True)]
            upper = [m + w for m, w in zip(self.mu, width, strict=True)]
            return first - sum(self.truncated(after[j], eta) for j in self.staying(lower, upper))

        assert self.anticipate == "average"
        # y = mu(x) + sqrt(s2(x) + noise) z with z ~ N(0, 1): the mean at j becomes mu_j + shift_j z
        shift = [a * math.sqrt(self.scale2) for a in self.shifts(row, before_actions, A)]
        second = 0.0
        if self.goal == "level":
            for j in sorted(self.sets.M):
                second += self.probability_to_stay(j, width[j], shift[j]) * self.truncated(
                    after[j], eta
                )
            return first - second
        for j in sorted(self.sets.targets):
            second += self.probability_of_stay(j, width, shift) * self.truncated(after[j], eta)
        return first - second

    def probability_of_stay(self, j: int, width: Sequence[float], shift: Sequence[float]) -> float:
        """Return the probability over z that j stays in M_{t-1|x} where no threshold is given.

        The bounds are lines in z. A minimum is the maximum of -f.
        """
        sign = -1.0 if self.goal == "min" else 1.0
        others = sorted(self.sets.targets)
        lower = {k: (sign * self.mu[k] - width[k], sign * shift[k]) for k in others}
        upper = {k: (sign * self.mu[k] + width[k], sign * shift[k]) for k in others}
        best = interval_above(upper[j], list(lower.values()), 1.0)  # eq. (5)
        if self.goal != "implicit":
            return cdf(best[1]) - cdf(best[0])
        not_below = interval_above(upper[j], list(lower.values()), self.threshold)
        surely_above = interval_above(lower[j], list(upper.values()), self.threshold)
        ends = sorted([-math.inf, *best, *not_below, *surely_above, math.inf])
        total = 0.0
        for left, right in pairwise(ends):  # in between, nothing changes
            z = (max(left, -40.0) + min(right, 40.0)) / 2
            undecided = (
                not_below[0] <= z <= not_below[1] and not surely_above[0] < z < surely_above[1]
            )
            if best[0] <= z <= best[1] or (undecided and j in self.sets.M):
                total += cdf(right) - cdf(left)
        return total

    def staying(self, lower: Sequence[float], upper: Sequence[float]) -> set[int]:
        """Return M_{t-1|x}: the part of M that an update with these bounds leaves.

        This is also used where M is not monotone, since a measurement should not be penalised for
        points that may become undecided again. Points outside M play no part: the maximum that an
        implicit threshold refers to is sought among its possible locations.
        """
        lower = [low if j in self.sets.targets else -math.inf for j, low in enumerate(lower)]
        upper = [up if j in self.sets.targets else -math.inf for j, up in enumerate(upper)]
        return self.updated_sets(lower, upper, monotone=True).targets & self.sets.targets

    def shifts(self, row: Row, before: Sequence[Action], A: np.ndarray | None) -> list[float]:
        """Return Cov(j, x) / sqrt(s2(x) + noise) for all j, on the scale k(x, x) = 1."""
        (action,) = self.unit([self.action(row)])
        k = self.k_unit
        task = action.task
        x = action.x
        own = posterior_covariance(k, before, x, task, x, A, task_a=task)
        return [
            posterior_covariance(k, before, j, task, x, A) / math.sqrt(own + action.noise)
            for j in self.D
        ]

    def probability_to_stay(self, j: int, width: float, shift: float) -> float:
        """Return the probability that upper >= h and lower <= h at j after the measurement."""
        # bounds on shift z
        low = self.threshold - self.mu[j] - width
        high = self.threshold - self.mu[j] + width
        if shift == 0.0:
            return 1.0 if low <= 0.0 <= high else 0.0
        return cdf(high / abs(shift)) - cdf(low / abs(shift))

    def gains(self, eta: float | None = None) -> np.ndarray:
        """Return the numerator of eq. (3) for every candidate, given observations and pending
        actions."""
        known = [*self.actions, *self.pending]
        A = inverse(self.k_unit, self.unit(known)) if known else None
        before = [posterior_variance(self.k_unit, self.unit(known), x, A) for x in self.D]
        return np.array(
            [
                self.gain(row, known, self.eta if eta is None else eta, A, before)
                for row in self.rows()
            ]
        )

    def gains_ahead(self) -> np.ndarray:
        """Return the gains; where pending actions leave nothing to gain, eta is lowered for this
        one choice."""
        eta = self.eta
        gains = self.gains()
        while self.pending and max(gains) <= TINY and eta**2 / self.beta >= TINY:
            eta *= self.r
            self.lowered += 1
            gains = self.gains(eta)
        return gains

    def costs(self) -> np.ndarray:
        return np.array([self.row_cost(row) for row in self.rows()])

    # -- loop --------------------------------------------------------------------------------------

    def choose(self) -> int:
        """Return the first best candidate, Algorithm 1, line 3."""
        scores = self.gains_ahead() / self.costs()
        allowed = self.allowed()
        rows = self.rows()
        inside = [c for c in range(len(rows)) if rows[c].point in allowed]
        best = max(scores[c] for c in inside)
        return min(c for c in inside if scores[c] >= best - 1e-9 * abs(best))

    def ask(self, choice: int) -> Action:
        """Make candidate number `choice` pending."""
        action = self.action(self.rows()[choice])
        self.pending.append(action)
        self.trail.append(action)
        return action

    def withdraw(self, action: Action) -> None:
        """Withdraw a pending action; travel then starts at the position before it."""
        self.pending.remove(action)
        del self.trail[max(k for k, a in enumerate(self.trail) if a == action)]

    def tell(self, action: Action, y: float) -> None:
        """Take a value, Algorithm 1, lines 4 to 7."""
        if action in self.pending:
            self.pending.remove(action)
        else:
            self.trail.append(action)
        self.actions.append(action)
        self.y.append(float(y))
        if self.mean is None:
            self.constant = generalised_least_squares(self.k, self.actions, self.y)
        self.update_bounds()
        self.sets = self.updated_sets(self.lower, self.upper, self.monotone)
        self.advance()

    def advance(self) -> None:
        """Start new epochs, Algorithm 1, lines 5 and 6: a `while` loop; with eta = 0 there is
        nothing to lower."""
        if self.eta == 0.0:
            return
        while self.sets.targets:
            widest = max(self.sd[j] for j in self.sets.targets) / math.sqrt(self.scale2)
            if math.sqrt(self.beta) * widest > (1 + self.slack) * self.eta:
                return
            if self.eta**2 / self.beta < TINY or widest**2 <= TINY:
                return
            self.i += 1
            self.eta *= self.r
            self.start = len(self.y) + 1
            self.beta = self.beta_at(self.start)

    def run(self, f: Callable[[Action], float], steps: int) -> list[dict]:
        """Run some steps and return for each the gains, the choice and the state afterwards."""
        for _ in range(steps):
            gains = self.gains()
            choice = self.choose()
            action = self.ask(choice)
            self.tell(action, f(action))
            self.trace.append(
                {
                    "gains": gains,
                    "choice": choice,
                    "lower": self.lower,
                    "upper": self.upper,
                    "M": self.sets.M,
                    "H": self.sets.H,
                    "L": self.sets.L,
                    "i": self.i,
                    "eta": self.eta,
                    "beta": self.beta,
                }
            )
        return self.trace
