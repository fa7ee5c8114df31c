"""Policies: each scores the table of candidates, and the highest score is measured next.

All names are imported on first use, so that `truvar.acquisition.registry` stays cheap to import.
"""
# ruff: noqa: F403

from __future__ import annotations

from typing import TYPE_CHECKING

from truvar._names import POLICY_MODULES, offer
from truvar.acquisition.registry import policy_classes as policy_classes
from truvar.acquisition.registry import policy_named as policy_named

if TYPE_CHECKING:  # for type checkers and editors, which cannot read the table
    from truvar.acquisition.analytic import *
    from truvar.acquisition.bamsoo import *
    from truvar.acquisition.base import BasePolicy as BasePolicy
    from truvar.acquisition.base import Policy as Policy
    from truvar.acquisition.base import PolicyContext as PolicyContext
    from truvar.acquisition.base import ProposalPolicy as ProposalPolicy
    from truvar.acquisition.base import StartingPolicy as StartingPolicy
    from truvar.acquisition.entropy import *
    from truvar.acquisition.information import *
    from truvar.acquisition.plus import *
    from truvar.acquisition.sampling import *
    from truvar.acquisition.truvar import *
    from truvar.acquisition.weighted import *

_MODULES = {
    **POLICY_MODULES,
    "BasePolicy": "truvar.acquisition.base",
    "Policy": "truvar.acquisition.base",
    "PolicyContext": "truvar.acquisition.base",
    "ProposalPolicy": "truvar.acquisition.base",
    "StartingPolicy": "truvar.acquisition.base",
    "TopK": "truvar.acquisition.truvar",
}
"""Names for users and for authors of policies."""

if not TYPE_CHECKING:  # a type checker that saw __getattr__ would accept any name
    __all__, __getattr__, __dir__ = offer(
        __name__,
        {
            "_along": ("AlongPolicy",),
            "_several": ("QuantityContext", "SeveralContext", "SumPolicy"),
            "analytic": ("exploration",),
            "base": ("LEVEL_SET",),
            "confidence": (
                "Confidence",
                "ConstantBeta",
                "Epoch",
                "EpochStart",
                "LogBeta",
                "RKHSBeta",
                "Schedule",
                "TheoremBeta",
                "bounds",
                "intersection",
                "lemma_beta",
                "rkhs_beta",
            ),
            "mixed_search": ("best_in_domain", "climb", "climbing"),
            "optimizer": ("best_in_box", "polish", "search_together"),
            "registry": ("DEFAULT_POLICY", "POLICY_NAMES", "has_cost_option", "policy_class"),
            "truncation": ("excess", "truncated_reduction"),
            "utils": ("expected_improvement",),
        },
        defined=("policy_classes", "policy_named"),
        elsewhere=_MODULES,
    )
