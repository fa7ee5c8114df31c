"""Algorithms 1 and 2 of the paper."""

from __future__ import annotations

from truvar._names import offer

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "_several": ("SeveralLearner",),
        "availability": ("place_of",),
        "continuation": ("continue_learner",),
        "covering": ("information_bound",),
        "learner": ("ActiveLearner",),
        "loop": ("Choice", "State", "begin", "choose", "choose_ahead", "update"),
        "recommendation": (
            "best_in_context",
            "best_observed",
            "best_point",
            "eligible_observations",
        ),
        "repeats": ("closed_reason",),
        "selection": ("in_model_units", "policy_context", "stops_at_sets"),
    },
)
