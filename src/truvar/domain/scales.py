"""Linear or logarithmic: which scale suits the values of a column."""

from __future__ import annotations

import numpy as np

from truvar._typing import Array


def is_geometric(values: Array, min_ratio: float = 1.0) -> bool:
    """Return whether positive values are spaced by ratios rather than differences: 0.1, 1, 10.

    Args:
        values: Values of a column, in any order, with or without repeats.
        min_ratio: Smallest quotient of the largest and the smallest value for which a logarithmic
            scale is worth it.
    """
    distinct = np.unique(values)
    if len(distinct) < 3 or distinct[0] <= 0 or distinct[-1] / distinct[0] < min_ratio:
        return False
    differences = np.diff(distinct)
    log_ratios = np.diff(np.log(distinct))
    return bool(
        np.std(log_ratios) / np.mean(log_ratios) < np.std(differences) / np.mean(differences)
    )
