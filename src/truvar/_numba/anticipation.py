"""Compiled sums for the anticipating variants of eq. (3): which targets stay in M.

| symbol | argument | shape |
|---|---|---|
| C_jx, posterior covariance of target j and candidate x | `covariance` | (a, c) |
| 1 / d_x^(1/2), d_x the predictive variance of x | `scale` | (c,) |
| sigma_j^2, mu_j | `variance`, `mean` | (a,) |
| beta^(1/2) | `root_beta` | |
| max(share s2, floor), the truncated variance | `share`, `floor` | |

A measurement of x with the standardised value z moves the mean of target j by z C_jx scale_x and
leaves it the variance s2 = sigma_j^2 - (C_jx scale_x)^2. So every bound is a line in z, and the
highest of the bounds, to which those of a target are compared, is convex and piecewise linear: a
target stays in M for z in an interval, or in a few. `expected_bounds` has the probabilities of
these intervals for a standard normal z: its average over the measurement is exact.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

MAX_Z = 9.0  # |z| beyond has probability 2e-19
ROUNDING = 4e-16  # share of two bounds: if they differ by less, they are equal


@njit(cache=True, nogil=True, error_model="numpy")
def anticipated_bounds(  # type: ignore[no-untyped-def]
    covariance,
    scale,
    variance,
    mean,
    root_beta,
    share,
    floor,
    nodes,
    weights,
    fraction,
    member,
    out,
):
    """Add to out_x the sum over targets of P(target stays in M after x) max(share s2, floor).

    Args:
        covariance: C_jx. (a, c)
        scale: 1 / d_x^(1/2). (c,)
        variance: sigma_j^2. (a,)
        mean: mu_j. (a,)
        root_beta: beta^(1/2).
        share: Factor of the variance.
        floor: Truncation.
        nodes: Values z over which the measurement is averaged. (q,)
        weights: Their probabilities. (q,)
        fraction: 0 for an optimum: a target stays while its upper bound reaches the highest lower
            bound. Otherwise the threshold is this fraction of the maximum, and members of M also
            stay while they are undecided.
        member: Whether each target is in M. (a,)
        out: The sums. (c,)
    """
    rows, width = covariance.shape
    step = np.empty(width)
    half = np.empty(width)
    s2 = np.empty(width)
    # Highest lower bound over the targets, per node.
    max_lower = np.full((len(nodes), width), -np.inf)
    max_upper = np.full((len(nodes), width), -np.inf)  # highest upper bound
    for sweep in range(2):  # the first finds the highest bounds, the second compares with them
        for j in range(rows):
            row = covariance[j]
            own = variance[j]
            centre = mean[j]
            for x in range(width):
                move = row[x] * scale[x]
                rest = max(own - move * move, 0.0)
                step[x] = move
                s2[x] = rest
                half[x] = root_beta * np.sqrt(rest)
            for q in range(len(nodes)):
                z = nodes[q]
                weight = weights[q]
                low = max_lower[q]
                high = max_upper[q]
                if sweep == 0:
                    for x in range(width):
                        low[x] = max(low[x], centre + z * step[x] - half[x])
                        high[x] = max(high[x], centre + z * step[x] + half[x])
                else:
                    inside = member[j]
                    for x in range(width):
                        moved = centre + z * step[x]
                        stays = moved + half[x] >= low[x]
                        if inside and fraction > 0.0:
                            stays |= (moved + half[x] >= fraction * low[x]) & (
                                moved - half[x] <= fraction * high[x]
                            )
                        out[x] += weight * max(share * s2[x], floor) if stays else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _highest_line(z, intercept, slope, rows):  # type: ignore[no-untyped-def]
    """Return the line among `rows` that is highest at z."""
    best = rows[0]
    highest = -np.inf
    for j in rows:
        value = intercept[j] + z * slope[j]
        if value > highest:
            highest = value
            best = j
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def _envelope(intercept, slope, rows, lines, vertices, heights):  # type: ignore[no-untyped-def]
    """Find the highest of some lines between -MAX_Z and MAX_Z (Eisner and Severance, 1976).

    Where the present line crosses the next one that is known to come, the highest line is looked
    for: it is one of the two, and the crossing is a vertex, or it belongs between them. Only lines
    above the first and the last line at their crossing are looked at.

    Args:
        intercept: Value at 0 of every line. (a,)
        slope: Slope of every line. (a,)
        rows: The numbers of the lines; overwritten. (a,)
        lines: Set to the highest lines from left to right; its end is a stack of those that come
            later. (a + 2,)
        vertices: Set to the left ends of their stretches, and MAX_Z. (a + 2,)
        heights: Set to the values there. (a + 2,)

    Returns:
        The number of vertices.
    """
    current = _highest_line(-MAX_Z, intercept, slope, rows)
    lines[0] = current
    vertices[0] = -MAX_Z
    heights[0] = intercept[current] - MAX_Z * slope[current]
    count = 1
    top = len(lines) - 1
    lines[top] = _highest_line(MAX_Z, intercept, slope, rows)
    active = rows
    while top < len(lines):
        ahead = lines[top]
        rise = slope[ahead] - slope[current]
        if rise <= 0.0:
            top += 1
            continue
        z = min(max((intercept[current] - intercept[ahead]) / rise, vertices[count - 1]), MAX_Z)
        height = intercept[ahead] + z * slope[ahead]
        if len(active) == len(rows):  # the first crossing
            kept = 0
            for j in rows:
                if intercept[j] + z * slope[j] > height:
                    rows[kept] = j
                    kept += 1
            active = rows[:kept]
        if len(active) > 0:
            between = _highest_line(z, intercept, slope, active)
            excess = intercept[between] + z * slope[between] - height
            if excess > ROUNDING * abs(height) and slope[current] < slope[between] < slope[ahead]:
                top -= 1
                lines[top] = between
                continue
        if z > vertices[count - 1]:
            vertices[count] = z
            heights[count] = height
            count += 1
        lines[count - 1] = ahead
        current = ahead
        top += 1
    if vertices[count - 1] < MAX_Z:
        vertices[count] = MAX_Z
        heights[count] = intercept[current] + MAX_Z * slope[current]
        count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _gap(vertex, intercept, slope, factor, vertices, heights):  # type: ignore[no-untyped-def]
    """Return how far `factor` times an envelope exceeds a line at a vertex; 0 for equal bounds."""
    height = factor * heights[vertex]
    move = slope * vertices[vertex]
    return height - (intercept + move) - ROUNDING * (abs(height) + abs(intercept) + abs(move))


@njit(cache=True, nogil=True, error_model="numpy")
def _crossing(above, below, intercept, slope, factor, vertices, heights):  # type: ignore[no-untyped-def]
    """Return where an envelope crosses a line, between a vertex above it and one not above it."""
    while abs(above - below) > 1:
        middle = (above + below) // 2
        if _gap(middle, intercept, slope, factor, vertices, heights) > 0.0:
            above = middle
        else:
            below = middle
    high = _gap(above, intercept, slope, factor, vertices, heights)
    low = _gap(below, intercept, slope, factor, vertices, heights)
    return vertices[above] + (vertices[below] - vertices[above]) * (high / (high - low))


@njit(cache=True, nogil=True, error_model="numpy")
def _reaching(intercept, slope, factor, count, vertices, heights):  # type: ignore[no-untyped-def]
    """Return the interval of z in which a line reaches `factor` times an envelope.

    Its ends are equal if the line reaches it nowhere.
    """
    first = 0
    last = count - 1
    # Find where the envelope comes closest to the line: its slope exceeds the line's from there on.
    while first < last:
        middle = (first + last) // 2
        rise = factor * (heights[middle + 1] - heights[middle]) - slope * (
            vertices[middle + 1] - vertices[middle]
        )
        if rise >= 0.0:
            last = middle
        else:
            first = middle + 1
    closest = first
    if _gap(closest, intercept, slope, factor, vertices, heights) > 0.0:
        return 0.0, 0.0
    left = -np.inf
    if _gap(0, intercept, slope, factor, vertices, heights) > 0.0:
        left = _crossing(0, closest, intercept, slope, factor, vertices, heights)
    right = np.inf
    if _gap(count - 1, intercept, slope, factor, vertices, heights) > 0.0:
        right = _crossing(count - 1, closest, intercept, slope, factor, vertices, heights)
    return left, right


@njit(cache=True, nogil=True, error_model="numpy")
def _probability(left, right):  # type: ignore[no-untyped-def]
    """Return the probability that a standard normal variable lies in an interval."""
    if right <= left:
        return 0.0
    root2 = np.sqrt(2.0)
    if left == -np.inf and right == np.inf:
        return 1.0
    if left > 0.0:  # in the upper tail: the difference of small numbers
        return 0.5 * (math.erfc(left / root2) - math.erfc(right / root2))
    return 0.5 * (math.erfc(-right / root2) - math.erfc(-left / root2))


@njit(cache=True, nogil=True, error_model="numpy")
def expected_bounds(  # type: ignore[no-untyped-def]
    covariance, scale, variance, mean, root_beta, share, floor, fraction, member, out
):
    """Add to out_x the sums of `anticipated_bounds`, averaged over a standard normal z exactly.

    Args:
        covariance: C_jx. (a, c)
        scale: 1 / d_x^(1/2). (c,)
        variance: sigma_j^2. (a,)
        mean: mu_j. (a,)
        root_beta: beta^(1/2).
        share: Factor of the variance.
        floor: Truncation.
        fraction: 0 for an optimum, otherwise the threshold as a fraction of the maximum.
        member: Whether each target is in M. (a,)
        out: The sums. (c,)
    """
    rows, width = covariance.shape
    columns = np.ascontiguousarray(covariance.T)
    slope = np.empty(rows)
    lower = np.empty(rows)
    upper = np.empty(rows)
    s2 = np.empty(rows)
    order = np.empty(rows, np.int64)
    lines = np.empty(rows + 2, np.int64)
    vertices = np.empty(rows + 2)
    max_lower = np.empty(rows + 2)  # highest lower bound at the vertices
    other_vertices = np.empty(rows + 2)
    max_upper = np.empty(rows + 2)  # highest upper bound at the other vertices
    stretch = np.zeros((rows, 2))  # interval of z in which a target has the highest lower bound
    for x in range(width):
        column = columns[x]
        for j in range(rows):
            move = column[j] * scale[x]
            rest = max(variance[j] - move * move, 0.0)
            half = root_beta * np.sqrt(rest)
            slope[j] = move
            s2[j] = rest
            lower[j] = mean[j] - half
            upper[j] = mean[j] + half
            order[j] = j
        others = 0
        if fraction > 0.0:
            others = _envelope(upper, slope, order, lines, other_vertices, max_upper)
            order[:] = np.arange(rows)
        count = _envelope(lower, slope, order, lines, vertices, max_lower)
        for i in range(count - 1):
            stretch[lines[i], 0] = -np.inf if i == 0 else vertices[i]
            stretch[lines[i], 1] = np.inf if i == count - 2 else vertices[i + 1]
        total = 0.0
        for j in range(rows):
            left, right = _reaching(upper[j], slope[j], 1.0, count, vertices, max_lower)
            # a target that is known exactly reaches it there only, up to rounding
            if stretch[j, 0] < stretch[j, 1]:
                left = min(left, stretch[j, 0]) if left < right else stretch[j, 0]
                right = max(right, stretch[j, 1])
                stretch[j] = 0.0
            stays = _probability(left, right)
            if fraction > 0.0 and member[j]:
                # Undecided: its upper bound reaches the threshold's lower one, and its lower bound
                # does not exceed the threshold's upper one. Its share in the possible
                # maximum is counted once.
                low, high = _reaching(upper[j], slope[j], fraction, count, vertices, max_lower)
                above, until = _reaching(
                    lower[j], slope[j], fraction, others, other_vertices, max_upper
                )
                stays += _probability(low, high)
                stays -= _probability(max(low, above), min(high, until))
                stays -= _probability(max(low, left), min(high, right))
                stays += _probability(max(low, left, above), min(high, right, until))
            total += stays * max(share * s2[j], floor)
        out[x] += total


@njit(cache=True, nogil=True, error_model="numpy")
def anticipated_level(  # type: ignore[no-untyped-def]
    covariance, scale, variance, mean, root_beta, share, floor, threshold, average, out
):
    """Add to out_x the sums of `anticipated_bounds` for an explicit threshold.

    A target stays while it is undecided.

    Args:
        covariance: C_jx. (a, c)
        scale: 1 / d_x^(1/2). (c,)
        variance: sigma_j^2. (a,)
        mean: mu_j. (a,)
        root_beta: beta^(1/2).
        share: Factor of the variance.
        floor: Truncation.
        threshold: h.
        average: Whether to average over the value of the measurement, in closed form, or to take
            its mean.
        out: The sums. (c,)
    """
    rows, width = covariance.shape
    root2 = np.sqrt(2.0)
    for j in range(rows):
        row = covariance[j]
        own = variance[j]
        gap = threshold - mean[j]
        for x in range(width):
            move = abs(row[x] * scale[x])
            rest = max(own - move * move, 0.0)
            half = root_beta * np.sqrt(rest)
            low = gap - half
            high = gap + half
            # Beyond, the cdf is 0 or 1.
            if average and move > 0.0 and min(abs(low), abs(high)) < 10.0 * move:
                stays = 0.5 * (math.erfc(low / (root2 * move)) - math.erfc(high / (root2 * move)))
            else:
                stays = 1.0 if low <= 0.0 <= high else 0.0
            out[x] += stays * max(share * rest, floor)


@njit(cache=True, nogil=True, error_model="numpy")
def anticipated_levels(  # type: ignore[no-untyped-def]
    covariance, scale, variance, mean, root_beta, share, floor, thresholds, average, out
):
    """Add to out_x the sums of `anticipated_level` for several thresholds.

    A target stays while one of them is undecided.

    The bounds of a target hold a threshold for an interval of its moved mean, one for each
    threshold, and all of them have the same length: those that overlap are counted once.

    Args:
        covariance: C_jx. (a, c)
        scale: 1 / d_x^(1/2). (c,)
        variance: sigma_j^2. (a,)
        mean: mu_j. (a,)
        root_beta: beta^(1/2).
        share: Factor of the variance.
        floor: Truncation.
        thresholds: The thresholds, ascending. (b,)
        average: Whether to average over the value of the measurement, in closed form, or to take
            its mean.
        out: The sums. (c,)
    """
    rows, width = covariance.shape
    root2 = np.sqrt(2.0)
    for j in range(rows):
        row = covariance[j]
        own = variance[j]
        for x in range(width):
            move = abs(row[x] * scale[x])
            rest = max(own - move * move, 0.0)
            half = root_beta * np.sqrt(rest)
            stays = 0.0
            reached = -np.inf
            for threshold in thresholds:
                gap = threshold - mean[j]
                low = max(gap - half, reached)
                high = gap + half
                if average and move > 0.0:
                    stays += 0.5 * (
                        math.erfc(low / (root2 * move)) - math.erfc(high / (root2 * move))
                    )
                elif low <= 0.0 <= high:
                    stays = 1.0
                reached = high
            out[x] += stays * max(share * rest, floor)
