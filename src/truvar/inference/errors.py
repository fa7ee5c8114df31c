"""Errors of the classes of points, counted in joint draws of f.

| symbol | here | shape |
|---|---|---|
| c(x), the probability of the class of x | `ClassErrors.certainty` | (n,) |
| whether the class of the j-th drawn point is wrong in draw s | `ClassErrors.bits`, packed | (r, S) |
| W_k(s), the number wrong among the k most probable points in draw s | `ClassErrors.counts` | (S,) |

Points are shown in descending order of c, so that what is shown is the k most probable points for some k.
The order comes from the closed form of c, or from other draws, and never from the draws that errors
are counted in: those would count too few.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from truvar._typing import Array, Index, Mask

_ROW_BLOCK = 512  # drawn points whose errors are counted together, which bounds the memory


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """Errors of the classes in joint draws, the most probable point first.

    Attributes:
        certainty: Probability of the class of each point. (n,)
        relevant: Points that are not certain marginally. (n,)
        rows: Rows of those that were drawn, in descending order of certainty. (r,)
        bits: Whether their class is wrong in each draw, eight draws to a byte. (r, ceil(S / 8))
        n_draws: Number of draws, S.
        neglected: Probability that the class of any of the other points is wrong, at most.
    """

    certainty: Array
    relevant: Mask
    rows: Index
    bits: np.ndarray[Any, np.dtype[np.uint8]]
    n_draws: int
    neglected: float

    @staticmethod
    def of(
        certainty: Array, error: Array, relevant: Index, rows: Index, wrong: Mask
    ) -> ClassErrors:
        """Return the errors that were drawn.

        Args:
            certainty: Probability of the class of each point. (n,)
            error: Probability that the class of a point is wrong, at most. (n,)
            relevant: Rows that are not certain marginally.
            rows: Those of them that were drawn. (r,)
            wrong: Whether the class of a drawn row is wrong, by draw. (r, S)
        """
        is_relevant = np.zeros(len(certainty), bool)
        is_relevant[relevant] = True
        order = np.argsort(-certainty[rows], kind="stable")
        return ClassErrors(
            certainty=certainty,
            relevant=is_relevant,
            rows=rows[order],
            bits=np.packbits(wrong[order], axis=1),
            n_draws=wrong.shape[1],
            neglected=float(error[~is_relevant].sum()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the errors for JSON, without `certainty`: Boolean arrays as compressed text."""
        return {
            "relevant": _to_text(np.packbits(self.relevant)),
            "rows": self.rows.tolist(),
            "bits": _to_text(self.bits),
            "n_draws": self.n_draws,
            "neglected": self.neglected,
        }

    @staticmethod
    def from_dict(form: Mapping[str, Any], certainty: Array) -> ClassErrors:
        """Return the errors that `to_dict` has written, with the certainty of every point."""
        rows = np.array(form["rows"], dtype=np.intp)
        relevant = np.unpackbits(_from_text(form["relevant"]), count=len(certainty)).astype(bool)
        bits = _from_text(form["bits"]).reshape(len(rows), -(-form["n_draws"] // 8))
        return ClassErrors(
            certainty, relevant, rows, bits, form["n_draws"], float(form["neglected"])
        )

    def _unpacked(self, begin: int, end: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return whether the class of drawn points is wrong, by draw, as 0 and 1: (end - begin, S)."""
        return np.unpackbits(self.bits[begin:end], axis=1, count=self.n_draws)

    def counts(self, min_certainty: float) -> Array:
        """Return the number wrong among the points of at least that certainty in every draw, (S,).

        If only some of the points were drawn, those shown stand for all that are shown.
        """
        n_shown = int((self.certainty[self.rows] >= min_certainty).sum())
        total = np.zeros(self.n_draws)
        for begin in range(0, n_shown, _ROW_BLOCK):
            total += self._unpacked(begin, min(begin + _ROW_BLOCK, n_shown)).sum(axis=0)
        if n_shown == 0:
            return total
        n_relevant = int((self.relevant & (self.certainty >= min_certainty)).sum())
        return np.asarray(total * (n_relevant / n_shown))

    def bounds(self, min_certainty: float, confidence: float) -> tuple[float, float, float]:
        """Return the mean number wrong among the points of at least that certainty, and bounds on it.

        Args:
            min_certainty: Certainty from which on points are shown.
            confidence: Probability with which each of the two bounds holds.

        Returns:
            The mean, the lower bound and the upper bound. The mean lies between them; it can be
            larger than the smallest number that is not exceeded with that probability, where errors
            are rare and come together.
        """
        counts = np.sort(self.counts(min_certainty))
        mean = float(counts.mean())
        # One draw more that exceeds the bound, as draws cannot show certainty.
        allowed = (1.0 - confidence - self.neglected) * (self.n_draws + 1) - 1.0
        n_shown = int((self.certainty >= min_certainty).sum())
        high = float(n_shown)
        if allowed >= 0:
            high = float(counts[max(self.n_draws - 1 - int(allowed + 1e-9), 0)])
        low = float(counts[min(int((1.0 - confidence) * self.n_draws), self.n_draws - 1)])
        return mean, min(low, mean), max(float(ceil(high - 1e-9)), mean)

    def shown_with_tolerance(self, confidence: float, tolerance: float) -> Mask:
        """Return the largest set of which at most a share is wrong with a probability, (n,).

        It is the k most probable points for the largest k whose number wrong exceeds `tolerance` k in a
        share 1 - `confidence` of the draws at most.

        Args:
            confidence: The probability.
            tolerance: The share of the points shown that may be wrong, >= 0.
        """
        certain = ~self.relevant
        shown = certain & (self.certainty - self.neglected >= confidence)
        n_certain = int(certain.sum())
        n_failing = self._failing_draws(n_certain, tolerance)
        joint = 1.0 - (n_failing + 1) / (self.n_draws + 1) - self.neglected
        # Points of equal certainty are shown together or not at all.
        ordered = self.certainty[self.rows]
        is_last = np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]
        enough = np.flatnonzero((joint >= confidence) & is_last)
        if len(enough):
            shown = certain | (self.relevant & (self.certainty >= ordered[enough[-1]]))
        return np.asarray(shown)

    def _failing_draws(self, n_certain: int, tolerance: float) -> Index:
        """Return in how many draws too many of the points up to each drawn one are wrong, (r,)."""
        r = len(self.rows)
        ascending = np.sort(self.certainty[self.relevant])
        n_relevant = len(ascending) - np.searchsorted(ascending, self.certainty[self.rows])
        failing = np.zeros(r, dtype=np.intp)
        wrong = np.zeros(self.n_draws, dtype=np.int32)
        for begin in range(0, r, _ROW_BLOCK):
            end = min(begin + _ROW_BLOCK, r)
            total = wrong + np.cumsum(self._unpacked(begin, end), axis=0, dtype=np.int32)
            stands_for = n_relevant[begin:end] / np.arange(begin + 1, end + 1)
            allowed = tolerance * (n_certain + n_relevant[begin:end]) / stands_for
            failing[begin:end] = (total > allowed[:, None] * (1.0 + 1e-12)).sum(axis=1)
            wrong = total[-1]
        return failing


def _to_text(array: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
    return base64.b64encode(zlib.compress(array.tobytes(), level=1)).decode("ascii")


def _from_text(text: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
