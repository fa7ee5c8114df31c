"""Cost of a `Study` beyond its engine: ask and tell against a bare loop that makes the same choices.

The bare loop has the same posterior and engine, is given M and the truncation, scores, picks, conditions, and keeps no
books: no bounds, regions, epochs, table of candidates, checks or history.
"""

from __future__ import annotations

import numpy as np

from benchmarks.cases import level_set
from benchmarks.measure import Row, Stopwatch, at_most, median, no_collection
from truvar.acquisition.truncation import truncated_reduction
from truvar.engines import engine_for
from truvar.models.posterior import Posterior


def rows(quick: bool) -> list[Row]:
    side, steps = (12, 12) if quick else (50, 150)
    case = level_set(side, steps)
    study = case.study()
    measure = case.measurer()
    posterior = Posterior(case.kernel, case.domain.points, case.mean)
    engine = engine_for(posterior, case.domain)
    table = study.candidates()
    whole = []
    bare = []
    choices = []
    with no_collection():
        while study.steps < case.steps:
            state = study._learner.state
            tau = state.epoch.tau * posterior.scale**2

            with Stopwatch() as asking:
                suggestion = study.ask()
            with Stopwatch() as choosing:
                gains = truncated_reduction(engine, state.targets, tau, table, only_best=True)
                row = int(np.argmax(gains / table.cost))
            site = int(suggestion.index or 0)
            y = measure(suggestion)
            with Stopwatch() as telling:
                study.tell(suggestion, y)
            with Stopwatch() as conditioning:
                posterior.add(table.points[site], float(table.noise[site, 0]), site)
                posterior.observe(y)
            whole.append(asking.seconds + telling.seconds)
            bare.append(choosing.seconds + conditioning.seconds)
            choices.append(row == site)
    beyond = 1e3 * median([a - b for a, b in zip(whole[3:], bare[3:], strict=True)])
    times = f"{1e3 * median(whole[3:]):.2f} against {1e3 * median(bare[3:]):.2f} ms"
    note = f"{times}; the same choice in {sum(choices)} of {len(choices)} steps"
    what = f"Study beyond the engine, per ask and tell, N={len(case.domain)}"
    return [Row("study-overhead", what, beyond, "ms", at_most(1.0), note)]
