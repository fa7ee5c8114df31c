"""What is proven: the certificate that goes with a result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from truvar.actions import Actions
from truvar.confidence import Confidence, RKHSBeta, TheoremBeta
from truvar.loop import State
from truvar.regions import Goal, LevelSet

Regime = Literal["theorem", "heuristic", "learned"]


@dataclass(frozen=True)
class Certificate:
    """The statement that holds now, how far it can be from exact, and on what it rests."""

    statement: str
    epsilon: float  # a posteriori, from the bounds
    epoch_epsilon: float  # 4 (1 + slack) eta of the last epoch that was completed, in the user's units
    regime: Regime
    delta: float | None  # the probability that the statement fails, where there is a guarantee
    caveats: tuple[str, ...]

    def __str__(self) -> str:
        return self.statement

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def certify(
    goal: Goal, state: State, confidence: Confidence, actions: Actions, scale: float, learned: bool
) -> Certificate:
    """The certificate of a state. `scale` is the prior standard deviation; `learned` says that part of the model was
    fitted to the very measurements it judges."""
    epsilon = goal.epsilon(state.regions, state.lower, state.upper)
    delta: float | None = None
    caveats: list[str] = []
    regime: Regime = "heuristic"
    if learned:
        regime = "learned"
        caveats.append("kernel, mean or noise were learned from these very measurements: no guarantee carries over")
    elif isinstance(confidence.beta, TheoremBeta):
        regime, delta = "theorem", confidence.beta.delta
    if regime == "heuristic":
        caveats.append(
            f"beta = {state.epoch.beta:.3g} was chosen for speed, not from the theorem: the bounds need not all hold"
            if not isinstance(confidence.beta, RKHSBeta)
            else "beta is that of the start of the epoch; it is not proven to hold to the end of it"
        )
    if not goal.monotone:
        caveats.append("M may grow again (non-monotone)")
    if actions.travels:
        caveats.append("the cost depends on the last position: the paper's bound on the total cost does not apply")
    opening = f"With probability at least {1 - delta:g}" if delta is not None else "If the confidence bounds hold"
    completed = state.epoch.eta / confidence.r if state.epoch.index > 1 else float("inf")
    return Certificate(
        f"{opening}, {_claim(goal, state, epsilon)}",
        epsilon,
        4 * (1 + confidence.slack) * completed * scale,
        regime,
        delta,
        tuple(caveats),
    )


def _claim(goal: Goal, state: State, epsilon: float) -> str:
    m, above, below = (int(mask.sum()) for mask in vars(state.regions).values())
    if isinstance(goal, LevelSet):
        least, greatest = goal.thresholds(state.lower, state.upper)
        h = f"{least:.4g}" if least == greatest else f"the threshold (between {least:.4g} and {greatest:.4g})"
        rest = f"; the other {m} differ from it by at most {epsilon / 2:.4g}" if m else ""
        return f"{above} points are above {h} and {below} below{rest}."
    best = "maximum" if goal.sign > 0 else "minimum"
    points = "the one point left is" if m == 1 else f"every one of the {m} points left is within {epsilon:.4g} of"
    return f"{points} the {best}, and no other point can be it."
