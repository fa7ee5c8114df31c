"""Cost of a `Study` beyond its engine: ask and tell against a bare loop that makes the same
choices.

    python -m benchmarks --only overhead
    python -m benchmarks.trace           print the calls of one tell

The bare loop has the same posterior and engine, is given M and the truncation, scores, picks,
conditions, and keeps no books: no bounds, regions, epochs, table of candidates, checks or history.

Other rows time whole steps, the check whether the study is finished included, with a mean that is
given or estimated. Release 0.1.0, which had no such check, is the target: 2.6 ms, and 27.6 times as
fast as the supplement's recipe over all points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks import trace
from benchmarks.cases import level_set, optimum
from benchmarks.measure import Row, Stopwatch, at_least, at_most, median, no_collection
from benchmarks.recipe import Fixed
from benchmarks.runs import compete
from truvar.acquisition.truncation import truncated_reduction
from truvar.engines import engine_for
from truvar.models.posterior import Posterior

RELEASE_0_1_0_MS = 2.6  # an ask and a tell at 2,500 points
RELEASE_0_1_0_RATIO = 28.0  # of the supplement's recipe to it, rounded up


def rows(quick: bool) -> list[Row]:
    return [_beyond_the_engine(quick), *_whole_steps(quick), *trace.rows()]


def _whole_steps(quick: bool) -> list[Row]:
    """Return milliseconds of an ask and a tell, and the ratio to the recipe, by goal and mean."""
    side, samples, repeats = (12, 2, 1) if quick else (50, 12, 5)
    steps = {"steps": 8} if quick else {}
    found = []
    for case in (level_set(side, **steps), optimum(side, **steps)):
        recipe = Fixed(case.recipe().prior)
        for mean, constant in (("given", case.mean), ("estimated", None)):
            contest = compete(
                replace(case, mean=constant), {"over D": recipe.choose}, samples, repeats
            )
            name = f"study-{case.name.replace(' ', '-')}-mean-{mean}"
            what = f"TruVaR through Study: {case.name}, N={len(case.domain)}, mean {mean}"
            milliseconds = Row(name, what, contest.milliseconds, "ms", at_most(RELEASE_0_1_0_MS))
            ratio = contest.row(
                "over D",
                f"{name}-ratio",
                "... against the recipe over D",
                at_least(RELEASE_0_1_0_RATIO),
            )
            found += [milliseconds, ratio]
    return found


def _beyond_the_engine(quick: bool) -> Row:
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
    return Row("study-overhead", what, beyond, "ms", at_most(1.0), note)
