"""What is read off the fold of a study's events: suggestions, the table of measurements, the result."""

from __future__ import annotations

import numpy as np
import pandas as pd

from truvar.acquisition.truncation import information_bound
from truvar.algorithm.learner import Action
from truvar.study._state import Ledger
from truvar.study.result import Best, Result, Suggestion
from truvar.theory import Grounds, certify

MEASUREMENT = ("id", "index", "level", "task", "noise", "cost", "spent", "value")


def suggestion(ledger: Ledger, action: Action) -> Suggestion:
    """The action as users see it."""
    domain, tasks = ledger.settings.domain, ledger.settings.prior.tasks
    return Suggestion(
        id=action.id,
        index=None if action.site is None else action.site % len(domain),
        point=domain.named(action.point[: len(domain.columns)]),
        level=action.level,
        task=None if tasks is None else tasks.names[action.task],
        noise=action.noise,
        cost=action.cost,
        gain=action.gain,
    )


def measurements(ledger: Ledger) -> pd.DataFrame:
    """One row per value told, in order."""
    domain, rows, spent = ledger.settings.domain, [], 0.0
    for action, y in ledger.belief.told:
        spent += action.cost
        given = suggestion(ledger, action)
        how = (given.level, given.task, given.noise, given.cost, spent, y)
        rows.append((given.id, given.index, *given.point.values(), *how))
    names = [f"{name}_" if name in domain.columns else name for name in MEASUREMENT]
    frame = pd.DataFrame(rows, columns=[*names[:2], *domain.columns, *names[2:]])
    return frame.astype({names[1]: "Int64", names[2]: "Int64"})


def result(ledger: Ledger, reason: str | None) -> Result:
    """Where the study stands; `reason`: why it ended, if it did."""
    settings, belief = ledger.settings, ledger.belief
    domain, n = settings.domain, len(settings.domain)
    state, posterior = belief.state, belief.posterior
    index, point, mean, sd = belief.best()
    certificate = certify(
        Grounds(
            domain=domain,
            goal=settings.goal,
            state=state,
            policy=settings.policy,
            actions=belief.actions,
            scale=posterior.scale,
            learned=belief.is_learned,
            betas=ledger.betas,
            information=lambda steps: information_bound(posterior, steps, belief.actions.candidates(None)),
            tolerance=float(getattr(belief.engine, "tolerance", 0.0)),
            epsilon=belief.epsilon,
        )
    )
    return Result(
        domain=domain,
        goal=settings.goal,
        potential=state.regions.potential,
        above=state.regions.above,
        below=state.regions.below,
        mean=posterior.mean[:n],
        sd=np.sqrt(posterior.variance[:n]),
        lower=state.lower,
        upper=state.upper,
        best=Best(index, domain.named(point), mean, sd),
        epsilon=certificate.epsilon,
        certificate=certificate,
        spent=belief.spent,
        steps=len(belief.told),
        reason=reason,
        measured=tuple(a.site for a, _ in belief.told if a.task == 0 and a.site is not None),
    )
