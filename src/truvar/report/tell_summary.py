"""What a command answers when something was told, corrected or taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from truvar.exceptions import TruvarError
from truvar.report.formatting import format_number

if TYPE_CHECKING:
    from truvar.study.measurements_io import MeasurementInput
    from truvar.study.result import Result
    from truvar.study.study import Study

SURPRISING = 4.0  # standard deviations: one value in 16,000, if the model is right


def tell_summary(ids: Sequence[Any], before: Result, study: Study, done: str = "told") -> str:
    """What was done, and what changed by it."""
    now = study.result()
    listed = ", ".join(map(str, ids)) if len(ids) <= 10 else f"{len(ids)} values"
    changes = [
        f"{name} {after.sum()}{_change(int(after.sum()) - int(earlier.sum()))}"
        for name, earlier, after in (
            ("above", before.above, now.above),
            ("below", before.below, now.below),
            ("open", before.potential, now.potential),
        )
        if study.goal.level_set or name == "open"
    ]
    end = f"; {now.reason}" if now.reason else ""
    return f"{done} {listed}: {', '.join(changes)}; cost {format_number(now.spent)} so far{end}"


def unexpected_values(study: Study, told: Iterable[MeasurementInput]) -> list[str]:
    """Values so far from what was expected that they may be typing mistakes."""
    said = []
    for one in told:
        try:
            mean, sd = study.predict_measurement(one.what)
        except TruvarError:  # told already, or no point of the domain: `tell` says so
            continue
        away = abs(one.value - mean) / sd if sd > 0 else 0.0
        if away > SURPRISING:
            what = one.what if isinstance(one.what, int) else "ID"
            said.append(
                f"{one.value:g} is {away:.1f} standard deviations away from the {mean:.4g} ± {sd:.2g} that was "
                f"expected; if it was a typing mistake, put it right: truvar correct {what} VALUE"
            )
    return said


def _change(difference: int) -> str:
    return f" ({difference:+d})" if difference else ""
