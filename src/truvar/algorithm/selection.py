"""Algorithm 1, line 3, for a domain or a given context: from the candidates to the choice.

| step | function |
|---|---|
| candidates: what can be measured now | `candidates_of_choice` |
| initial design, before there is a fitted model | `initial_design`, `_explore` |
| policy: the highest score, in a box also of points that it proposes | `_choose_by_policy` |
| exploration, where the policy gains nothing but the study is not finished | `_explore` |
| refinement: search of the box around the choice | `_refine` |
| batches: another place than those of pending measurements | `prefer_other_place` |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar._numba.threads import blas_in_one_thread
from truvar._typing import Array, Index, Mask
from truvar.acquisition._along import AlongPolicy
from truvar.acquisition.base import Policy, PolicyContext, ProposalPolicy, StartingPolicy
from truvar.acquisition.mixed_search import best_in_domain
from truvar.algorithm import loop
from truvar.algorithm._contextual import search_slice, within_context
from truvar.algorithm._exploration import min_feasibility, remove_variance
from truvar.algorithm._initial_design import design_of_tasks
from truvar.algorithm.recommendation import best_observed, eligible_observations
from truvar.algorithm.repeats import prefer_other_place
from truvar.domain.action import Action
from truvar.domain.candidates import Candidates
from truvar.domain.given_context import ContextSlice
from truvar.domain.vehicles import Origin, as_departure

if TYPE_CHECKING:
    from truvar.algorithm.learner import ActiveLearner
    from truvar.models.surrogate import Surrogate

# of a point of a box that the budget does not allow; the search needs finite scores
_UNAFFORDABLE_SCORE = -1e100

Selection = tuple[Candidates, loop.Choice | None]
"""The candidate table and the choice from it; None if nothing is to be gained."""


@dataclass(frozen=True)
class Pool:
    """The candidates of one choice, with the noise in the units of the user.

    Attributes:
        table: The table, which the row of a choice refers to.
        rows: Rows that can be chosen; None: all.
        affordable: Rows that the budget allows, whether or not they can succeed; None: all.
    """

    table: Candidates
    rows: Index | None = None
    affordable: Index | None = None

    @property
    def choosable(self) -> Candidates:
        """The rows that can be chosen."""
        return _take(self.table, self.rows)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be chosen: no row is affordable, or no row can succeed."""
        table = self.choosable
        if not table.affordable.any():
            return True
        return table.feasibility is not None and not (table.feasibility > 0).any()


def choose(
    learner: ActiveLearner,
    last: Origin,
    pending: Sequence[Action],
    n_asked: int,
    given: ContextSlice | None = None,
) -> Selection:
    """Algorithm 1, line 3: choose the next measurement.

    Args:
        learner: The learner.
        last: The last position (d,), from which travel is paid; None before the first measurement.
            Or the departure of a vehicle.
        pending: The pending actions.
        n_asked: Number of suggestions made before, which seeds what the policy draws.
        given: The part of the domain that belongs to a given context; None: all of it.

    Returns:
        The candidate table and the choice from it; None if the policy sees nothing more to gain.
    """
    pool = candidates_of_choice(learner, last, given)
    selection = _choose_among(learner, last, pending, n_asked, given, pool)
    return prefer_other_place(
        learner,
        selection,
        lambda: policy_context(learner, n_asked),
        lambda table: _choose_among(
            learner, last, pending, n_asked, given, replace(pool, table=table)
        ),
    )


def _choose_among(
    learner: ActiveLearner,
    last: Origin,
    pending: Sequence[Action],
    n_asked: int,
    given: ContextSlice | None,
    pool: Pool,
) -> Selection:
    """Choose among the candidates of a pool."""
    if pool.is_empty:
        return pool.table, None
    context = policy_context(learner, n_asked, as_departure(last).speed)
    context = replace(context, min_feasibility=min_feasibility(learner, pool.choosable))
    everywhere = np.ones(len(learner.domain), bool)
    surrogate = learner.surrogate

    design = design_of_tasks(learner, last, pending)
    if design is not None or (not learner.is_fitted and surrogate.model is not None):
        return _explore(learner, context, everywhere, pool, design)
    if stops_at_sets(learner):
        return pool.table, None
    if surrogate.model is not None and _follows_complete_sets(learner):
        return _explore(learner, context, everywhere, pool)

    if given is not None and surrogate.fitted:
        context = within_context(context, given, _values_in_model(learner))
    proposed = None if given is not None else _proposals(learner, context, last)
    scored = pool if proposed is None else Pool(proposed)
    context, choice = _choose_by_policy(learner, context, scored, pending, last)
    if choice is None and _explores(learner, context, scored):
        targets = learner.state.targets if surrogate.model is None else everywhere
        return _explore(learner, context, targets, pool)
    if choice is None or proposed is not None:
        return scored.table, choice
    return _refine(learner, context, pool.table, choice, last, given)


def candidates_of_choice(learner: ActiveLearner, last: Origin, given: ContextSlice | None) -> Pool:
    """Return the measurements possible now: the table of the domain, or a context's part.

    In a box, a context has a separate table: the representers moved into it.
    """
    actions = learner.actions
    if given is None:
        return Pool(actions.candidates(last))
    if given.fixed is None:
        table = actions.candidates(last)
        # Of all tasks.
        within = np.isin(np.arange(len(table.points)) % len(learner.domain), given.rows)
    else:
        table = actions.candidates_at(given.place(learner.domain.points), last)
        within = np.ones(len(table.points), bool)
    affordable = np.flatnonzero(within & table.affordable)
    rows = affordable
    if table.feasibility is not None:
        rows = affordable[table.feasibility[affordable] > 0]
    return Pool(table, rows, affordable)


def policy_context(learner: ActiveLearner, n_asked: int, speed: float = 1.0) -> PolicyContext:
    """Return what a policy sees; `n_asked` seeds what it draws, `speed` is that of the vehicle."""
    state = learner.state
    surrogate = learner.surrogate
    excluded = learner.excluded
    best = best_observed(learner)
    best_y = None if best is None else _modelled_value(surrogate, *best)
    context = PolicyContext(
        engine=surrogate.engine,
        goal=learner.model_goal,
        regions=state.regions,
        targets=state.targets,
        lower=state.lower,
        upper=state.upper,
        epoch=state.epoch,
        best_y=best_y,
        seed=(learner.seed, n_asked),
        domain=learner.domain,
        queried_points=surrogate.posterior.points,
        actions=learner.actions,
        speed=speed,
        has_bounds=surrogate.fitted
        and (surrogate.mean is not None or len(surrogate.observations) > 0),
        ensemble=surrogate.ensemble,
        learned=surrogate.model is not None,
        excluded=excluded if excluded is None or excluded.any() else None,
    )
    return learner.whole_context(context, n_asked, speed)


def in_model_units(surrogate: Surrogate, table: Candidates) -> Candidates:
    """Return a table with the variances of the observation model, in the units of the model."""
    variances = surrogate.modelled_variances(table.noise, table.points, table.sites)
    return table if variances is table.noise else replace(table, noise=variances)


def stops_at_sets(learner: ActiveLearner) -> bool:
    """Return whether the policy has nothing to choose because its sets leave nothing to find out.

    A learned model explores instead, as the next fit may undo the sets.
    """
    return learner.surrogate.model is None and _follows_complete_sets(learner)


def _follows_complete_sets(learner: ActiveLearner) -> bool:
    return (
        bool(getattr(learner.policy, "follows_sets", False)) and learner.sets_complete is not None
    )


def _proposals(learner: ActiveLearner, context: PolicyContext, last: Origin) -> Candidates | None:
    """Return the measurable points of a box that the policy proposes; None if there are none."""
    if not learner.domain.continuous or not isinstance(learner.policy, ProposalPolicy):
        return None
    points = learner.policy.propose(context)
    points = points[learner.actions.allows(points)]
    if len(points) == 0:
        return None
    proposed = learner.actions.candidates_at(points, last)
    return proposed if proposed.max_feasibility > context.min_feasibility else None


def _choose_by_policy(
    learner: ActiveLearner,
    context: PolicyContext,
    pool: Pool,
    pending: Sequence[Action],
    last: Origin,
) -> tuple[PolicyContext, loop.Choice | None]:
    """Choose the candidate with the highest score, in a later epoch if this one has no gain.

    A later epoch counts where pending measurements leave nothing to gain, and where an optimum is
    looked for in every context, as the epoch is that of all contexts.

    Returns:
        The context, with the eta of that epoch, and the choice.
    """
    table = _take(in_model_units(learner.surrogate, pool.table), pool.rows)
    policy = _counting_legs(learner, learner.scoring(learner.policy), last)
    choice = loop.choose(context, policy, table)
    if choice is None and (pending or learner.looks_in_contexts):
        context, choice = loop.choose_ahead(context, policy, table)
    return context, _in_table(choice, pool.rows)


def _counting_legs(learner: ActiveLearner, policy: Policy, last: Origin) -> Policy:
    """Return the policy; if values are sampled en route, one that counts what legs pass.

    The gains of a policy that does not divide by the cost do not add up.
    """
    position = as_departure(last).position
    bins = learner.actions.bins
    if bins is None or policy.signed or not policy.per_cost or not isinstance(position, np.ndarray):
        return policy
    counting: Any = AlongPolicy(policy, bins, position)
    return counting  # type: ignore[no-any-return]


def _explores(learner: ActiveLearner, context: PolicyContext, pool: Pool) -> bool:
    """Return whether to explore where a policy gains nothing.

    A learned model does, as it may be wrong, and a policy that says so. Others do if what they gain
    by cannot be measured.
    """
    if learner.surrogate.model is not None or getattr(learner.policy, "explores", False):
        return True
    if pool.table.feasibility is None:
        return False
    table = _take(in_model_units(learner.surrogate, pool.table), pool.affordable)
    policy = learner.scoring(learner.policy)
    return loop.choose(context, policy, replace(table, feasibility=None)) is not None


def _explore(
    learner: ActiveLearner,
    context: PolicyContext,
    targets: Mask,
    pool: Pool,
    design: Index | None = None,
) -> Selection:
    """Choose the candidate that removes most variance from the targets per unit cost.

    With all points as targets this is the initial design of a learned model, and what to do when a
    fit to flat data sees nothing to gain.

    Args:
        learner: The learner.
        context: The view of a policy.
        targets: Points whose variance counts. (n,)
        pool: The candidates.
        design: Rows of the domain's table to choose among, as far as they can be chosen; None: all.
    """
    table = pool.table
    modelled = in_model_units(learner.surrogate, table)
    if design is not None and table.sites is not None:
        rows = design if pool.rows is None else np.intersect1d(design, pool.rows)
        if table.affordable[rows].any():
            choice = remove_variance(learner, context, targets, modelled.take(rows))
            if choice is not None or table.feasibility is None:
                return table, _in_table(choice, rows)
    choice = remove_variance(learner, context, targets, _take(modelled, pool.rows))
    return table, _in_table(choice, pool.rows)


def _refine(
    learner: ActiveLearner,
    context: PolicyContext,
    table: Candidates,
    choice: loop.Choice,
    last: Origin,
    given: ContextSlice | None,
) -> Selection:
    """Search a box, or the part with the given context, for the point with the highest score.

    A choice from a finite domain, or among the rows that a policy allows, stays.
    """
    policy = learner.scoring(learner.policy)
    surrogate = learner.surrogate
    if not learner.domain.continuous or policy.candidate_rows(context, table) is not None:
        return table, choice

    def score(points: Array) -> Array:
        candidates = learner.actions.candidates_at(points, last)
        candidates = in_model_units(surrogate, candidates).likely(context.min_feasibility)
        gains = policy.score(context, candidates)
        scores = loop.comparable_scores(context, policy, candidates, gains)
        scores = np.where(
            np.isfinite(candidates.cost), scores, _UNAFFORDABLE_SCORE if policy.signed else 0.0
        )
        return np.asarray(scores.reshape(-1, len(points), candidates.n_levels).max(axis=(0, 2)))

    starts = table.points[choice.row, : len(learner.domain.columns)][None, :]
    further = (
        policy.starts(context) if given is None and isinstance(policy, StartingPolicy) else None
    )
    if further is not None:
        starts = np.vstack([starts, further])
    # Many small solves one after the other: more threads would wait for each other.
    with blas_in_one_thread():
        point = (
            best_in_domain(score, learner.domain, starts)
            if given is None
            else search_slice(score, given, starts)
        )
    refined = learner.actions.candidates_at(point[None, :], last)
    if not refined.affordable.any():
        return table, choice
    return refined, loop.choose(context, policy, in_model_units(surrogate, refined))


def _values_in_model(learner: ActiveLearner) -> list[tuple[Action, float]]:
    """Return `eligible_observations` with their values in the units of the model."""
    surrogate = learner.surrogate
    return [
        (action, _modelled_value(surrogate, action, y))
        for action, y in eligible_observations(learner)
    ]


def _modelled_value(surrogate: Surrogate, action: Action, y: float) -> float:
    """Return a measured value in the units of the model; for an outcome, the mean of f there."""
    if surrogate.outcome is None:
        return float(surrogate.transform.forward(y))
    return float(surrogate.predict_modelled(action.point[None, :])[0][0])


def _take(table: Candidates, rows: Index | None) -> Candidates:
    return table if rows is None else table.take(rows)


def _in_table(choice: loop.Choice | None, rows: Index | None) -> loop.Choice | None:
    """Return a choice from some rows as one from the whole table."""
    if choice is None or rows is None:
        return choice
    return replace(choice, row=int(rows[choice.row]))
