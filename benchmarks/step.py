"""One step at N = 2500, all points active, against reading and writing such a matrix once: by the
engine in double, and
in single, which is what a choice is made with unless it meets many ties."""

from __future__ import annotations

import numpy as np

from benchmarks.cases import Array, optimum
from benchmarks.measure import Row, Stopwatch, at_most, median, no_collection
from truvar.engines._dense import Dense
from truvar.models.posterior import Posterior


def rows(quick: bool) -> list[Row]:
    return [row for single in (False, True) for row in _rows(quick, single)]


def _rows(quick: bool, single: bool) -> list[Row]:
    case = optimum(12 if quick else 50)
    n = len(case.domain)
    posterior = Posterior(case.kernel, case.domain.points, case.mean)
    engine = Dense(posterior, single)
    everyone = np.arange(n)
    where = np.random.default_rng(0).permutation(n)[: 20 if quick else 120]
    matrix = np.random.default_rng(1).random((n, n))
    half = matrix.astype(np.float32)

    def score() -> Array:
        """Makes the update that is due and sums over all rows: nothing is truncated."""
        predictive = posterior.pending_variance[:, None] + case.noise
        return engine.best_sums(everyone, posterior.pending_variance, predictive, 1.0 / predictive)

    step = []
    whole = []
    through = []
    through_half = []
    with no_collection():
        for site in where.tolist():
            with Stopwatch() as adding:
                posterior.add(case.domain.points[site], case.noise, site)
            with Stopwatch() as scoring:
                score()
            with Stopwatch() as telling:
                posterior.observe(0.0)
            step.append(scoring.seconds)
            whole.append(adding.seconds + scoring.seconds + telling.seconds)
            for passed, taken in ((matrix, through), (half, through_half)):
                with Stopwatch() as passing:
                    np.negative(passed, out=passed)
                taken.append(passing.seconds)
    warm = slice(3, None)  # the first builds the matrix
    double = median(through[warm])
    half_as_long = median(through_half[warm])
    name, precision, unit, target = (
        ("step-single", "single", half_as_long, None)
        if single
        else ("step", "double", double, at_most(1.15))
    )
    what = f"one step, N={n}, all active, in {precision} / one pass over the matrix in {precision}"
    note = f"{1e3 * median(step[warm]):.2f} ms; a pass in double {1e3 * double:.2f}, in single {1e3 * half_as_long:.2f}"
    return [
        Row(name, what, median(step[warm]) / unit, "x", target, note),
        Row(f"{name}-whole", "... with the posterior's own update, t = 1..120", median(whole[warm]) / unit, "x",
            None, f"{1e3 * median(whole[warm]):.2f} ms"),
    ]  # fmt: skip
