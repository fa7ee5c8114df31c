"""Full runs of the paper against the supplement's recipe, at the same states.

A run is deterministic, so it is made several times, and each step counts with its median. The other
side is timed at a sample of the steps, just before the study is asked, and a sampled step stands
for those around it. The first step is left out on both sides: there the dense engine builds the
matrix of prior covariances, which the recipe is given. How long it took is in the note. At 10k the
engine is the matrix-free one, and the dense one is timed for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

import truvar as tv
from benchmarks.cases import Case, level_set, noise_levels, optimum, state_of
from benchmarks.measure import Row, Stopwatch, Target, at_least, median, no_collection
from benchmarks.recipe import ChoiceInputs, Fixed, Measurements, Recipe, Tuned

Suggests = Callable[[Measurements, ChoiceInputs], object]


@dataclass(frozen=True)
class Contest:
    """Seconds that a run took without its first step, by truvar and by others, and truvar's
    first step."""

    steps: int
    first: float
    ours: float
    theirs: Mapping[str, float]
    engine: str

    @property
    def milliseconds(self) -> float:
        """Milliseconds of an ask and a tell, without the first."""
        return 1e3 * self.ours / (self.steps - 1)

    def row(self, who: str, name: str, what: str, target: Target | None) -> Row:
        theirs = 1e3 * self.theirs[who] / (self.steps - 1)
        times = f"{theirs:.1f} against {self.milliseconds:.2f} ms a step"
        note = f"{times}, {self.steps} steps, {self.engine} engine; first step {1e3 * self.first:.0f} ms"
        return Row(name, what, self.theirs[who] / self.ours, "x", target, note)


def rows(quick: bool) -> list[Row]:
    small, large = (12, 14) if quick else (50, 100)
    most = {"steps": 8} if quick else {}
    found = []
    for case, target in (
        (optimum(small, **most), at_least(40)),
        (level_set(small, **most), at_least(40)),
        (noise_levels(small, **most), at_least(40)),
        (optimum(large, **most), at_least(150)),
        (level_set(large, **most), at_least(150)),
    ):
        prior = case.recipe().prior
        recipes = {
            "over M": Recipe(prior).choose,
            "over D": Fixed(prior).choose,
            "tuned": Tuned(prior).choose,
        }
        samples, repeats = (12, 5) if len(case.domain) < 10_000 else (6, 3)
        if quick:
            samples = 2
            repeats = 1
        contest = compete(case, recipes, samples, repeats)
        name = f"{case.name.replace(' ', '-')}-{'10k' if target.value > 40 else '2500'}"
        what = f"run: {case.name}, N={len(case.domain)}, against the recipe"
        found.append(contest.row("over M", name, f"{what} over M", target))
        found.append(contest.row("over D", f"{name}-fixed", f"{what} over D", target))
        found.append(contest.row("tuned", f"{name}-tuned", f"{what} over M, tuned", None))
        if target.value > 40:
            dense = compete(
                replace(case, engine="dense"), {"over M": Recipe(prior).choose}, samples, repeats
            )
            found.append(dense.row("over M", f"{name}-dense", f"{what} over M, dense engine", None))
    return found


def compete(case: Case, others: Mapping[str, Suggests], samples: int, repeats: int) -> Contest:
    """The run of a case by truvar, and the others at a sample of its states."""
    steps = len(run(case, lambda study: None))  # compiles, too
    at = np.unique(np.linspace(1, steps - 1, samples).round().astype(int))
    taken: dict[str, dict[int, list[float]]] = {name: {int(t): [] for t in at} for name in others}

    def sample(study: tv.Study) -> None:
        if study.steps not in at:
            return
        measured, inputs = state_of(study, study._learner.posterior.prior_mean)
        for name, suggest in others.items():
            with Stopwatch() as watch:
                suggest(measured, inputs)
            taken[name][study.steps].append(watch.seconds)

    own = [run(case, sample) for _ in range(repeats)]
    stands_for = np.diff(np.concatenate([[1], (at[1:] + at[:-1]) / 2, [steps]]))
    totals = {name: float(stands_for @ [median(of[t]) for t in at]) for name, of in taken.items()}
    first, *rest = np.median(own, axis=0).tolist()
    return Contest(steps, first, sum(rest), totals, case.study()._learner.engine.name)


def run(case: Case, before: Callable[[tv.Study], object]) -> list[float]:
    """The seconds of every ask and tell of a run, the check whether it is finished included.

    `before` is called before each ask, off the clock.
    """
    study = case.study()
    measure = case.measurer()
    taken = []
    with no_collection():
        while study.steps < case.steps:
            before(study)
            try:
                with Stopwatch() as asking:
                    suggestion = study.ask()
            except tv.Finished:
                break
            y = measure(suggestion)
            with Stopwatch() as telling:
                study.tell(suggestion, y)
            taken.append(asking.seconds + telling.seconds)
    return taken
