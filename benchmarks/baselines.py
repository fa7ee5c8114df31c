"""Entropy search, predictive entropy search and minimum regret search: a suggestion against
TruVaR's own.

All are told the same, the measurements of a TruVaR run, and asked at every step; only the asking is
timed.
"""

from __future__ import annotations

from benchmarks.cases import optimum
from benchmarks.measure import Row, Stopwatch, at_most, median, no_collection
from truvar.acquisition.registry import POLICY_NAMES

BASELINES = {
    "es": "entropy search",
    "pes": "predictive entropy search",
    "mrs": "minimum regret search",
}


def rows(quick: bool) -> list[Row]:
    case = optimum(8, 3) if quick else optimum(50, 36)
    leader = case.study()
    measure = case.measurer()
    followers = {name: case.study(name) for name in BASELINES if name in POLICY_NAMES}
    taken: dict[str, list[float]] = {name: [] for name in ("truvar", *followers)}
    with no_collection():
        while leader.steps < case.steps and leader.finished is None:
            with Stopwatch() as watch:
                suggestion = leader.ask()
            taken["truvar"].append(watch.seconds)
            y = measure(suggestion)
            for name, study in followers.items():
                if study.finished is None:
                    with Stopwatch() as watch:
                        other = study.ask()
                    taken[name].append(watch.seconds)
                    study.withdraw(other)
                study.tell(suggestion.point, y)
            leader.tell(suggestion, y)
    found = []
    for name, title in BASELINES.items():
        what = f"{title} / TruVaR, a suggestion, N={len(case.domain)}"
        if name not in followers:
            found.append(
                Row(f"baseline-{name}", what, None, "x", at_most(50), "there is no such policy")
            )
            continue
        pairs = list(zip(taken[name], taken["truvar"], strict=False))[1:]
        ratios = [a / b for a, b in pairs]
        theirs, own = (1e3 * median(column) for column in zip(*pairs, strict=True))
        note = f"{theirs:.1f} against {own:.2f} ms; {len(pairs)} steps, at most {max(ratios):.0f} x in one of them"
        found.append(Row(f"baseline-{name}", what, median(ratios), "x", at_most(50), note))
    return found
