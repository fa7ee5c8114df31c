"""Decision rules: each is a score over the table of candidates."""

from collections.abc import Callable

from truvar.acquisition.analytic import EI, GCHK, PI, UCB, UCBPE, Random, Straddle, Variance
from truvar.acquisition.auto import Plus
from truvar.acquisition.bamsoo import BaMSOO
from truvar.acquisition.base import Policy, PolicyContext, Proposes, Top
from truvar.acquisition.entropy import ES, MES, MRS, PES, SUR
from truvar.acquisition.truvar import TruVaR
from truvar.exceptions import TruvarError

POLICIES: dict[str, Callable[..., Policy]] = {
    rule.__name__.lower(): rule
    for rule in (
        *(TruVaR, Plus, EI, PI, UCB, UCBPE, ES, PES, MRS, MES, BaMSOO),
        *(GCHK, Straddle, SUR, Variance, Random),
    )
}
DIVIDED = ("truvar", "plus")  # they divide by the cost as they are


def policy_named(policy: Policy | str) -> Policy:
    """The rule of that name with its default options, or the rule itself; "ei/cost" is `EI(per_cost=True)`."""
    if isinstance(policy, str):
        name, _, divided = policy.partition("/")
        if name not in POLICIES or divided not in ("", "cost"):
            known = ", ".join(POLICIES)
            raise TruvarError(f'the policy must be one of {known}, with "/cost" behind it or not, got {policy!r}')
        if not divided:
            return POLICIES[name]()
        if name in DIVIDED:
            raise TruvarError(f"{name} divides by the cost as it is; leave out /cost")
        return POLICIES[name](per_cost=True)
    if isinstance(policy, type) or not hasattr(policy, "score"):
        raise TruvarError(f"policy must be a rule such as TruVaR() or its name, got {policy!r}")
    return policy


__all__ = [
    "DIVIDED",
    "EI",
    "ES",
    "GCHK",
    "MES",
    "MRS",
    "PES",
    "PI",
    "POLICIES",
    "SUR",
    "UCB",
    "UCBPE",
    "BaMSOO",
    "Plus",
    "Policy",
    "PolicyContext",
    "Proposes",
    "Random",
    "Straddle",
    "Top",
    "TruVaR",
    "Variance",
    "policy_named",
]
