"""Information that a measurement gives about the maximiser, estimated from draws of f, compiled.

| symbol | argument | shape |
|---|---|---|
| draws of f on the representer points, whitened: one per column | `normal` | (k, S) |
| standardised value of the measurement, z = w . e + rest * spare | `weights`, `rest`, `spare` | (m, k), (m,), (S,) |
| point that is the maximiser in each draw | `labels` | (S,) |
| draws starts_g to starts_{g+1}, which share a maximiser | `starts` | (groups,) |
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

MIN_VARIANCE = 1e-12  # share of the prior variance that counts as none
TABLE_LOW = -20.0  # first argument of the table of truncated normals
TABLE_HIGH = 8.0  # last argument
STEPS_PER_UNIT = 64.0


@njit(cache=True, nogil=True, error_model="numpy")
def _project(w, normal, z):  # type: ignore[no-untyped-def]
    """Add to z_s the sum over k of w_k normal_ks, four k at a time."""
    k = 0
    count = len(w)
    while k + 4 <= count:
        w0 = w[k]
        w1 = w[k + 1]
        w2 = w[k + 2]
        w3 = w[k + 3]
        n0 = normal[k]
        n1 = normal[k + 1]
        n2 = normal[k + 2]
        n3 = normal[k + 3]
        for s in range(len(z)):
            z[s] += (w0 * n0[s] + w1 * n1[s]) + (w2 * n2[s] + w3 * n3[s])
        k += 4
    while k < count:
        w0 = w[k]
        n0 = normal[k]
        for s in range(len(z)):
            z[s] += w0 * n0[s]
        k += 1


@njit(cache=True, nogil=True, error_model="numpy")
def cell_information(weights, rest, normal, spare, labels, edges, out):  # type: ignore[no-untyped-def]
    """Set out_x to the plug-in estimate of I(label; cell of z_x) in nats.

    Args:
        weights: w_x. (m, k)
        rest: Standard deviation of z_x that the draws leave open. (m,)
        normal: Whitened draws. (k, S)
        spare: Standard normal draws for the rest. (S,)
        labels: Maximiser of each draw. (S,)
        edges: Edges between the cells of z, ascending.
        out: The information. (m,)
    """
    draws = len(labels)
    cells = len(edges) + 1
    kinds = labels.max() + 1
    i_log_i = np.zeros(draws + 1)
    for i in range(1, draws + 1):
        i_log_i[i] = i * np.log(i)
    label_counts = np.zeros(kinds, np.int64)
    for s in range(draws):
        label_counts[labels[s]] += 1
    label_entropy = draws * np.log(draws)  # times the number of draws
    for r in range(kinds):
        label_entropy -= i_log_i[label_counts[r]]
    joint = np.empty(cells * kinds, np.int64)
    key = np.empty(draws, np.int32)
    z = np.empty(draws, np.float32)
    for x in range(len(out)):
        for s in range(draws):
            z[s] = rest[x] * spare[s]
        _project(weights[x], normal, z)
        for s in range(draws):
            key[s] = labels[s]
        for edge in edges:
            for s in range(draws):
                key[s] += kinds * (z[s] > edge)
        joint[:] = 0
        for s in range(draws):
            joint[key[s]] += 1
        # Minus the entropy of the label given the cell, times the number of draws.
        conditional = 0.0
        for q in range(cells):
            count = 0
            for r in range(q * kinds, (q + 1) * kinds):
                conditional += i_log_i[joint[r]]
                count += joint[r]
            conditional -= i_log_i[count]
        out[x] = max((label_entropy + conditional) / draws, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _truncation_share(alpha):  # type: ignore[no-untyped-def]
    """Return the share of variance that a standard normal loses if known to be below alpha."""
    hazard = np.sqrt(2 / np.pi) * np.exp(-0.5 * alpha * alpha) / math.erfc(-alpha / np.sqrt(2.0))
    return hazard * (hazard + alpha)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def log_variance(weights, rest, unseen, mean, scale, normal, best, starts, out):  # type: ignore[no-untyped-def]
    """Set out_x to E log Var(z_x | group).

    Of the variance 1 of z_x, the draws leave `rest` open, of which `unseen` is the candidate's own:
    that part is known to stay below the best value of the draw, which lies (best - mean) / scale
    above the candidate's mean, and is truncated as a normal variable.

    Args:
        weights: w_x. (m, k)
        rest: Variance of z_x that the draws leave open. (m,)
        unseen: Its part due to f at the candidate. (m,)
        mean: Posterior mean at the candidate. (m,)
        scale: Predictive standard deviation there. (m,)
        normal: Whitened draws, sorted by group. (k, S)
        best: Largest value of each draw. (S,)
        starts: First draw of each group. (groups,)
        out: The expected logarithms. (m,)
    """
    draws = len(best)
    groups = len(starts)
    z = np.empty(draws, np.float32)
    counts = np.zeros(groups)
    means = np.zeros(groups)  # of `best`, by group
    squares = np.zeros(groups)
    for g in range(groups):
        for s in range(starts[g], starts[g + 1] if g + 1 < groups else draws):
            counts[g] += 1
            means[g] += best[s]
            squares[g] += best[s] * best[s]
        means[g] /= counts[g]
    table = np.empty(int((TABLE_HIGH - TABLE_LOW) * STEPS_PER_UNIT) + 1)
    for i in range(len(table)):
        table[i] = _truncation_share(TABLE_LOW + i / STEPS_PER_UNIT)
    for x in range(len(out)):
        z[:] = 0.0
        _project(weights[x], normal, z)
        total = 0.0
        for g in range(groups):
            count = counts[g]
            z_mean = 0.0
            z_squares = 0.0
            products = 0.0
            for s in range(starts[g], starts[g + 1] if g + 1 < groups else draws):
                z_mean += z[s]
                z_squares += z[s] * z[s]
                products += z[s] * best[s]
            z_mean /= count
            ahead = (means[g] - mean[x]) / scale[x] - z_mean
            if count > 1:
                own = max(z_squares - count * z_mean * z_mean, 0.0) / (count - 1)
                others = (
                    (squares[g] - count * means[g] * means[g]) / (count - 1) / (scale[x] * scale[x])
                )
                lead = max(
                    own
                    + others
                    - 2 * (products - count * z_mean * means[g]) / (count - 1) / scale[x],
                    0.0,
                )
                left = own + rest[x]
            else:
                left = 1.0
                lead = 0.0
            if unseen[x] > 0:
                width = unseen[x] + lead
                alpha = min(max(ahead / np.sqrt(width), TABLE_LOW), TABLE_HIGH)
                position = (alpha - TABLE_LOW) * STEPS_PER_UNIT
                i = min(int(position), len(table) - 2)
                cut = table[i] + (position - i) * (table[i + 1] - table[i])
                left -= unseen[x] * unseen[x] * cut / width
            total += count * np.log(max(left, MIN_VARIANCE))
        out[x] = total / draws
