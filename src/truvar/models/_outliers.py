"""Detection of outliers among measured values: a typing error, a failed instrument.

The rule looks at the values alone and is deliberately blunt, since a high value that stands alone
may be exactly what a study looks for. A group of at most a tenth of the values counts as outliers
if it is separated from all others by many times their range, and the others are spread over that
range rather than piled up with a few exceptions or a heavy tail. A value that was given as exact is
no error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truvar._typing import Array, Mask

MIN_VALUES = 6  # values below which nothing is called an outlier
# gap between the outliers and the other values, in ranges of the latter
MIN_SEPARATION_RANGES = 12.0
# smallest interquartile range of the other values, as a share of their range
MIN_QUARTILE_SHARE_OF_RANGE = 0.12
# root mean square distance of the coordinates, in extents, of two measurements that confirm each
# other
MAX_CONFIRMING_DISTANCE = 0.05
# and as a share of the range from their lowest to their highest tenth; a normal distribution has
# 0.53
MIN_QUARTILE_SHARE_OF_TENTHS = 0.3


def find_outliers(
    values: Array,
    references: Sequence[float] = (),
    points: Array | None = None,
    exact: Mask | None = None,
) -> tuple[int, ...]:
    """Return the positions of outliers among the values.

    Args:
        values: Measured values, in order. (t,)
        references: Values that count as plausible, such as the thresholds of a level set.
        points: Where they were measured, in extents of the domain: values that are alike and close
            to each other confirm each other. (t, d)
        exact: Values that are known to be right, and plausible like the references; None: there are
            none. (t,)
    """
    plausible = np.array(references, dtype=float)
    if exact is not None:
        plausible = np.append(plausible, values[exact])
    found = _separate_group(values, plausible)
    if points is not None and _confirm_each_other(points[list(found)]):
        return ()
    return found


def separation(values: Array, outliers: Sequence[int], references: Sequence[float] = ()) -> float:
    """Return the gap from outliers to other values and references, in ranges of the latter."""
    rest = np.delete(values, outliers)
    low = min([float(rest.min()), *references])
    high = max([float(rest.max()), *references])
    far = values[list(outliers)]
    gap = float(np.min(np.maximum(far - high, low - far)))
    return gap / (high - low) if high > low else np.inf


def _confirm_each_other(points: Array) -> bool:
    """Return whether two of some points are close to each other."""
    for i, point in enumerate(points[:-1]):
        distances = np.sqrt(((points[i + 1 :] - point) ** 2).mean(axis=1))
        if (distances <= MAX_CONFIRMING_DISTANCE).any():
            return True
    return False


def _separate_group(values: Array, plausible: Array) -> tuple[int, ...]:
    t = len(values)
    if t < MIN_VALUES:
        return ()
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    for count in range(1, max(1, t // 10) + 1):
        if _is_separate(ascending[:-count], float(ascending[-count]), plausible):
            return tuple(sorted(int(i) for i in order[-count:]))
        if _is_separate(ascending[count:], float(ascending[count - 1]), plausible):
            return tuple(sorted(int(i) for i in order[:count]))
    return ()


def _is_separate(inside: Array, nearest: float, plausible: Array) -> bool:
    """Return whether a group with this nearest value is far from the others, in ascending order."""
    low = float(plausible.min(initial=inside[0]))
    high = float(plausible.max(initial=inside[-1]))
    if max(nearest - high, low - nearest) <= MIN_SEPARATION_RANGES * (high - low):
        return False
    tenth, quarter, three_quarters, nine_tenths = np.quantile(inside, [0.1, 0.25, 0.75, 0.9])
    spread = three_quarters - quarter
    return bool(
        spread > MIN_QUARTILE_SHARE_OF_RANGE * (inside[-1] - inside[0])
        and spread > MIN_QUARTILE_SHARE_OF_TENTHS * (nine_tenths - tenth)
    )
