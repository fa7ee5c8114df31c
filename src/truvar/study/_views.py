"""What is read off the fold of a study's events: suggestions, the table of measurements, the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from truvar.algorithm.covering import information_bound
from truvar.domain.action import Action
from truvar.inference.certificate import CertificateInputs, certify
from truvar.study._state import StudyState
from truvar.study.result import Best, Result
from truvar.study.suggestion import Suggestion

if TYPE_CHECKING:
    import pandas as pd

MEASUREMENT = ("id", "index", "level", "task", "noise", "cost", "spent", "value")


def suggestion(study_state: StudyState, action: Action) -> Suggestion:
    """The action as users see it."""
    domain, tasks = study_state.config.domain, study_state.config.prior.tasks
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


def measurements(study_state: StudyState) -> pd.DataFrame:
    """One row per value told, in order."""
    import pandas as pd

    domain, rows, spent = study_state.config.domain, [], 0.0
    for action, y in study_state.learner.observations:
        spent += action.cost
        given = suggestion(study_state, action)
        how = (given.level, given.task, given.noise, given.cost, spent, y)
        rows.append((given.id, given.index, *given.point.values(), *how))
    names = [f"{name}_" if name in domain.columns else name for name in MEASUREMENT]
    frame = pd.DataFrame(rows, columns=[*names[:2], *domain.columns, *names[2:]])
    return frame.astype({names[1]: "Int64", names[2]: "Int64"})


def result(study_state: StudyState, reason: str | None) -> Result:
    """Where the study stands; `reason`: why it ended, if it did."""
    config, learner = study_state.config, study_state.learner
    domain, n = config.domain, len(config.domain)
    state, posterior = learner.state, learner.posterior
    index, point, mean, sd = learner.best_point()
    certificate = certify(
        CertificateInputs(
            domain=domain,
            goal=config.goal,
            state=state,
            policy=config.policy,
            actions=learner.actions,
            scale=posterior.scale,
            learned=learner.surrogate.is_learned,
            betas=study_state.betas,
            information=lambda steps: information_bound(posterior, steps, learner.actions.candidates(None)),
            tolerance=float(getattr(learner.engine, "tolerance", 0.0)),
            epsilon=learner.epsilon,
        )
    )
    return Result(
        domain=domain,
        goal=config.goal,
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
        spent=learner.spent,
        steps=len(learner.observations),
        reason=reason,
        measured=tuple(a.site for a, _ in learner.observations if a.task == 0 and a.site is not None),
    )
