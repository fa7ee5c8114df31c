"""Statements, certificate and end of a study of an optimum with constraints on other quantities.

In each joint draw of all quantities, the optimum is the best of the points that satisfy every
requirement. A recommended point that does not satisfy them counts as infinitely far from it in
intervals and bounds; the mean is that of the draws in which it does satisfy them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from truvar._typing import Array, Index
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.domain import Domain
from truvar.domain.labels import place_in_words
from truvar.inference._goals import GIVEN, MIN_PROBABILITY, GoalInference
from truvar.inference._optimum import (
    EQUAL_VALUE_SDS,
    MAX_DRAWN_POINTS,
    N_DRAWS,
    POTENTIAL_REACH,
    promise,
    ruled_out_confidence,
)
from truvar.inference._region import lacks_values, several
from truvar.inference._several import SeveralSource
from truvar.inference.certificate_text import optimum_claim, optimum_sentence
from truvar.inference.inputs import CertificateInputs, StatementInputs, unknown_statements
from truvar.inference.statements import CONFIDENCE, UNKNOWN_REGRET, Estimate, JointStatements

_IMPOSSIBLE = 1e-6  # probability of satisfying the requirements below which a point is left out
_MAX_CANDIDATES = 64  # points that may be the optimum: with more the study is not examined further


@dataclass(frozen=True, eq=False)
class ConstrainedStatements(JointStatements):
    """Everything that is stated about an optimum with constraints, given the model.

    Attributes:
        feasible: Probability that each point satisfies all requirements. (n,)
        feasible_probability: Probability that the recommended point does.
        exists_probability: Probability that any point does.
    """

    feasible: Array = field(default_factory=lambda: np.zeros(0))
    feasible_probability: float = nan
    exists_probability: float = nan

    @property
    def is_known(self) -> bool:
        """Whether there is a model to state anything with."""
        return isfinite(self.exists_probability)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates for JSON, without the arrays."""
        form = super().to_dict()
        for name in ("feasible_probability", "exists_probability", "regret_bound"):
            value = getattr(self, name)
            form[name] = value if value is not None and isfinite(value) else None
        return form


class _ConstrainedInference(GoalInference):
    def statements(self, inputs: StatementInputs) -> JointStatements:
        return _statements(several(inputs))

    def sentence(
        self, statements: JointStatements, domain: Domain, best: Mapping[str, float]
    ) -> str:
        regret = statements.expected_regret
        if not isinstance(statements, ConstrainedStatements) or regret is None:
            return optimum_sentence(statements, domain, best)
        if not isfinite(regret.mean):
            return (
                f"The recommended point {place_in_words(domain, best)} satisfies all constraints "
                f"in none of {N_DRAWS} draws of the model."
            )
        given = "given the model"
        if statements.exists_probability < CONFIDENCE:
            given = f"{given} and that some point satisfies all constraints"
        text = optimum_sentence(statements, domain, best, given)
        if not isfinite(regret.high):
            text = f"{text.removesuffix('.')} if it satisfies all constraints."
        share = f"{100 * statements.feasible_probability:.3g} %"
        text = f"{text} It satisfies all constraints with {share} probability."
        if statements.exists_probability < CONFIDENCE:
            text = f"{text} {_existence(statements)}"
        return text

    def further(self, statements: JointStatements, domain: Domain) -> tuple[str, ...]:
        if not isinstance(statements, ConstrainedStatements) or not statements.is_known:
            return ()
        return (_existence(statements),)

    def claim(self, inputs: CertificateInputs, accurate_to: float) -> str:
        n_undecided = int(inputs.state.regions.potential.sum())
        if n_undecided == 0:
            return "no point satisfies all constraints."
        if isfinite(inputs.epsilon):
            return optimum_claim(inputs, accurate_to)
        return (
            f"all points that satisfy the constraints are among the {n_undecided} undecided ones "
            "(M), and none of them is certain to."
        )

    def certainty(
        self, inputs: StatementInputs, means: Array, variances: Array, weights: Array
    ) -> Array:
        """Return 1: causes of undecided points are sought in studies of one quantity."""
        return np.ones(means.shape[1])

    def is_clearly_open(self, learner: ActiveLearner) -> bool:
        return lacks_values(learner)

    def may_be_decided(self, inputs: StatementInputs) -> bool:
        source = several(inputs)
        return len(_potential(source, source.together())) <= _MAX_CANDIDATES

    def decided(self, statements: JointStatements) -> str | None:
        if (statements.optimal_probability or 0.0) < MIN_PROBABILITY:
            return None
        return f"no point that satisfies the constraints is better than the recommended one {GIVEN}"

    def decode(self, statements: JointStatements, form: Mapping[str, Any]) -> JointStatements:
        """Return the statements with those about the constraints."""
        own: dict[str, Any] = {
            name: nan if form[name] is None else form[name]
            for name in ("feasible_probability", "exists_probability")
        }
        bound = form["regret_bound"]
        fields = {**vars(statements), "regret_bound": inf if bound is None else bound}
        return ConstrainedStatements(**fields, **own, feasible=np.array(form["feasible"]))


def _existence(statements: ConstrainedStatements) -> str:
    """Return with which probability the constraints can be satisfied at all."""
    share = f"{100 * statements.exists_probability:.3g} %"
    return f"Some point satisfies all constraints with {share} probability."


def _potential(source: SeveralSource, together: Array) -> Index:
    """Return the rows that can be the best of those that satisfy everything."""
    signed = source.goal.sign * source.means
    reach = POTENTIAL_REACH * np.sqrt(source.variances)
    possible = together > _IMPOSSIBLE
    certain = together >= 1.0 - _IMPOSSIBLE
    if source.excluded is not None:
        possible &= ~source.excluded
        certain &= ~source.excluded
    lowest = np.full((len(signed), 1), -np.inf)
    if certain.any():
        lowest = (signed - reach)[:, certain].max(axis=1, keepdims=True)
    return np.flatnonzero(possible & ((signed + reach) >= lowest).any(axis=0))


def _statements(source: SeveralSource) -> JointStatements:
    n = source.n
    together = source.together()
    if not source.fitted:
        unknown = unknown_statements(source, np.full(n, 1.0 / n), None, UNKNOWN_REGRET)
        return ConstrainedStatements(**vars(unknown), feasible=together)
    sign = source.goal.sign
    lead = next(iter(source.parts))
    relevant = _potential(source, together)
    rows = relevant
    if len(rows) > MAX_DRAWN_POINTS:
        best_first = np.argsort(-together[rows] * np.exp(promise(source)[rows]), kind="stable")
        rows = np.sort(rows[best_first[:MAX_DRAWN_POINTS]])
    points = np.vstack([source.best[None, :], source.sites[rows]])
    values = sign * source.draw(lead, points, N_DRAWS)  # signed: high is good
    inside = source.held(points, N_DRAWS)
    feasible = np.where(inside, values, -np.inf)
    # The recommended point is its own row, which an excluded one must not win by.
    highest = feasible[1:].max(axis=0, initial=-np.inf)
    highest = np.maximum(highest, feasible[0])
    exists = np.isfinite(highest)
    inverse = source.transform.inverse
    recommended = inverse(sign * values[0])
    optimum = inverse(sign * np.where(exists, highest, values[0]))
    regret = np.maximum(sign * (optimum - recommended), 0.0)
    counted = np.where(inside[0], regret, inf)
    among = feasible[1:, np.isfinite(feasible[1:].max(axis=0, initial=-np.inf))]
    probability = np.zeros(n)
    decided = np.zeros(n)
    if among.shape[1] > 1:
        winner = rows[among.argmax(axis=0)]
        probability = np.bincount(winner, minlength=n) / inside.shape[1]
        decided = ruled_out_confidence(winner, np.log(together + 1e-300) + promise(source))
    lower, upper = source.interval()
    is_best = inside[0] & (highest - values[0] <= EQUAL_VALUE_SDS * source.scale)
    low, high = np.quantile(counted, [0.025, 0.975], method="higher")
    mean = float(regret[inside[0]].mean()) if inside[0].any() else inf
    return ConstrainedStatements(
        goal=source.goal,
        probability=probability,
        decided_confidence=decided,
        reported=None,
        lower=lower,
        upper=upper,
        expected_f1=None,
        expected_regret=Estimate(mean, min(float(low), mean), max(float(high), mean)),
        optimal_probability=float(is_best.mean()),
        expected_misclassified=None,
        n_drawn=len(rows),
        n_relevant=len(relevant),
        recommended_value=Estimate.of(recommended),
        regret_bound=max(float(np.quantile(counted, CONFIDENCE, method="higher")), mean),
        feasible=together,
        feasible_probability=float(inside[0].mean()),
        exists_probability=float(exists.mean()),
    )


INFERENCE = _ConstrainedInference()
