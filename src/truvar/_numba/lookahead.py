"""The inner loops of the rules that look ahead, compiled, each with its NumPy twin (`..._twin`) beside it.

A measurement's surprise is z = w . e + rest * spare, where e are the whitened draws of f: `normal` holds one draw per
column. Labels say which point wins each draw.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import log_ndtr

Single = NDArray[np.float32]
Array = NDArray[np.float64]
Index = NDArray[np.intp]

TINY = 1e-12  # of the variance: as good as none
LOW, HIGH, FINE = -20.0, 8.0, 64.0  # range and steps per unit of a table of truncated normals
FAINT = 1e-3  # shares of variance below this remove doubt in proportion


@njit(cache=True, nogil=True, error_model="numpy")
def _project(w, normal, z):  # type: ignore[no-untyped-def]
    """z_s += sum over k of w_k normal_ks, four k at a time."""
    k, count = 0, len(w)
    while k + 4 <= count:
        a, b, c, d = w[k], w[k + 1], w[k + 2], w[k + 3]
        p, q, r, t = normal[k], normal[k + 1], normal[k + 2], normal[k + 3]
        for s in range(len(z)):
            z[s] += (a * p[s] + b * q[s]) + (c * r[s] + d * t[s])
        k += 4
    while k < count:
        a, p = w[k], normal[k]
        for s in range(len(z)):
            z[s] += a * p[s]
        k += 1


@njit(cache=True, nogil=True, error_model="numpy")
def cell_information(weights, rest, normal, spare, labels, edges, out):  # type: ignore[no-untyped-def]
    """out_x = I(label; cell of z_x) in nats, the plug-in estimate. weights (m, k), rest (m,), normal (k, S)."""
    draws, cells, kinds = len(labels), len(edges) + 1, labels.max() + 1
    log = np.zeros(draws + 1)  # i log(i)
    for i in range(1, draws + 1):
        log[i] = i * np.log(i)
    alone = np.zeros(kinds, np.int64)
    for s in range(draws):
        alone[labels[s]] += 1
    apart = draws * np.log(draws)
    for r in range(kinds):
        apart -= log[alone[r]]
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
        together = 0.0
        for q in range(cells):
            count = 0
            for r in range(q * kinds, (q + 1) * kinds):
                together += log[joint[r]]
                count += joint[r]
            together -= log[count]
        out[x] = max((apart + together) / draws, 0.0)


def cell_information_twin(
    weights: Single, rest: Single, normal: Single, spare: Single, labels: Index, edges: Single, out: Array
) -> None:
    """H(label) + H(cell) - H(label, cell)."""

    def entropy(keys: Index) -> float:
        share = np.bincount(keys) / len(keys)
        return -float((share[share > 0] * np.log(share[share > 0])).sum())

    for x, z in enumerate(weights @ normal + np.outer(rest, spare)):
        cell = np.searchsorted(edges, z, side="left")  # how many edges lie below
        out[x] = max(entropy(labels) + entropy(cell) - entropy(labels * (len(edges) + 1) + cell), 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _cut(alpha):  # type: ignore[no-untyped-def]
    """The share of its variance that a standard normal loses when it is known to lie below alpha."""
    hazard = np.sqrt(2 / np.pi) * np.exp(-0.5 * alpha * alpha) / math.erfc(-alpha / np.sqrt(2.0))
    return hazard * (hazard + alpha)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def log_variance(weights, rest, unseen, mean, scale, normal, best, starts, out):  # type: ignore[no-untyped-def]
    """out_x = E log Var(z_x | group), the groups being the draws starts_g to starts_{g+1}.

    Of the variance 1 of z, the draws leave `rest` open, of which `unseen` is the candidate's own: that part is known to
    stay below `best` of the draw, which lies (best - mean) / scale above the candidate's mean, and is cut as a normal.
    """
    draws, groups = len(best), len(starts)
    z = np.empty(draws, np.float32)
    counts, means, squares = np.zeros(groups), np.zeros(groups), np.zeros(groups)  # of `best`, by group
    for g in range(groups):
        for s in range(starts[g], starts[g + 1] if g + 1 < groups else draws):
            counts[g] += 1
            means[g] += best[s]
            squares[g] += best[s] * best[s]
        means[g] /= counts[g]
    cuts = np.empty(int((HIGH - LOW) * FINE) + 1)
    for i in range(len(cuts)):
        cuts[i] = _cut(LOW + i / FINE)
    for x in range(len(out)):
        z[:] = 0.0
        _project(weights[x], normal, z)
        total = 0.0
        for g in range(groups):
            count = counts[g]
            one, two, mixed = 0.0, 0.0, 0.0
            for s in range(starts[g], starts[g + 1] if g + 1 < groups else draws):
                one += z[s]
                two += z[s] * z[s]
                mixed += z[s] * best[s]
            one /= count
            ahead = (means[g] - mean[x]) / scale[x] - one
            if count > 1:
                own = max(two - count * one * one, 0.0) / (count - 1)
                others = (squares[g] - count * means[g] * means[g]) / (count - 1) / (scale[x] * scale[x])
                lead = max(own + others - 2 * (mixed - count * one * means[g]) / (count - 1) / scale[x], 0.0)
                left = own + rest[x]
            else:
                left, lead = 1.0, 0.0
            if unseen[x] > 0:
                width = unseen[x] + lead
                alpha = min(max(ahead / np.sqrt(width), LOW), HIGH)
                place = (alpha - LOW) * FINE
                i = min(int(place), len(cuts) - 2)
                cut = cuts[i] + (place - i) * (cuts[i + 1] - cuts[i])
                left -= unseen[x] * unseen[x] * cut / width
            total += count * np.log(max(left, TINY))
        out[x] = total / draws


def log_variance_twin(
    weights: Single,
    rest: Array,
    unseen: Array,
    mean: Array,
    scale: Array,
    normal: Single,
    best: Array,
    starts: Index,
    out: Array,
) -> None:
    """The same, group by group."""
    z = weights @ normal  # (m, S)
    above = (best - mean[:, None]) / scale[:, None]
    out[:] = 0.0
    for members in np.split(np.arange(len(best)), starts[1:]):
        several = len(members) > 1
        left = z[:, members].var(axis=1, ddof=1) + rest if several else np.ones(len(out))
        lead = (above - z)[:, members]
        width = unseen + (lead.var(axis=1, ddof=1) if several else 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = np.clip(lead.mean(axis=1) / np.sqrt(width), LOW, HIGH)
            hazard = np.exp(-0.5 * alpha**2 - log_ndtr(alpha)) / np.sqrt(2 * np.pi)
            cut = np.where(unseen > 0, unseen**2 * hazard * (hazard + alpha) / width, 0.0)
        out += len(members) / len(best) * np.log(np.maximum(left - cut, TINY))


@njit(cache=True, nogil=True, error_model="numpy")
def doubt_removed(step, square, variance, worth, nodes, weights, out):  # type: ignore[no-untyped-def]
    """out_x = sum over j of worth_j times p (1 - p) at j before, minus its mean after, a measurement that explains the
    share rho = step_jx^2 / variance_j of the variance there.

    With square = ((mu - h) / sigma)^2, this is 1 / (2 pi) times the integral of exp(-square / (1 + sin(t))) over
    0 < t < arcsin(rho). Nodes and weights are those of an integral from 0 to 1.
    """
    out[:] = 0.0
    for j in range(len(step)):
        part = worth[j] / (2 * np.pi)
        faint = part * np.exp(-square[j])
        for x in range(len(out)):
            rho = min(step[j, x] * step[j, x] / variance[j], 1.0)
            if rho < FAINT:
                out[x] += faint * rho
                continue
            end, total = np.arcsin(rho), 0.0
            for i in range(len(nodes)):
                total += weights[i] * np.exp(-square[j] / (1 + np.sin(end * nodes[i])))
            out[x] += part * end * total


def doubt_removed_twin(
    step: Array, square: Array, variance: Array, worth: Array, nodes: Array, weights: Array, out: Array
) -> None:
    """The same, without the short cut for faint shares."""
    end = np.arcsin(np.minimum(step**2 / variance[:, None], 1.0))
    total = np.exp(-square[:, None, None] / (1 + np.sin(end[:, :, None] * nodes))) @ weights
    out[:] = worth @ (end * total) / (2 * np.pi)
