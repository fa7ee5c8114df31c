"""One step at N = 2500, all points active, against reading and writing the same matrix once."""

from __future__ import annotations

import numpy as np

from benchmarks.cases import Array, optimum
from benchmarks.measure import Row, Stopwatch, at_most, median, no_collection
from truvar.engines import Dense
from truvar.posterior import Posterior


def rows(quick: bool) -> list[Row]:
    case = optimum(12 if quick else 50)
    n = len(case.domain)
    posterior = Posterior(case.kernel, case.domain.points, case.mean)
    engine = Dense(posterior)
    everyone = np.arange(n)
    where = np.random.default_rng(0).permutation(n)[: 20 if quick else 120]

    def score() -> Array:
        """Makes the update that is due and sums over all rows: nothing is truncated."""
        predictive = posterior.pending_variance[:, None] + case.noise
        return engine.best_sums(everyone, posterior.pending_variance, predictive, 1.0 / predictive)

    step, whole, through = [], [], []
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
            for _ in range(2):  # twice: the signs are back
                with Stopwatch() as passing:
                    np.negative(engine._matrix, out=engine._matrix)
                through.append(passing.seconds)
    warm = slice(3, None)  # the first builds the matrix
    unit = median(through[6:])
    note = f"{1e3 * median(step[warm]):.2f} ms against {1e3 * unit:.2f} ms"
    return [
        Row("step", f"one step, N={n}, all active / one pass over the matrix", median(step[warm]) / unit, "x",
            at_most(1.15), note),
        Row("step-whole", "... with the posterior's own update, t = 1..120", median(whole[warm]) / unit, "x",
            None, f"{1e3 * median(whole[warm]):.2f} ms"),
    ]  # fmt: skip
