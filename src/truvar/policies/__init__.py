"""Decision rules: each is a score over the table of candidates."""

from truvar.errors import TruvarError
from truvar.policies.bamsoo import BaMSOO
from truvar.policies.information import ES, MES, MRS, PES, SUR
from truvar.policies.myopic import EI, GCHK, PI, UCB, UCBPE, Random, Straddle, Variance
from truvar.policies.seam import Policy, Proposes, Scene, Top
from truvar.policies.truvar import TruVaR

POLICIES: dict[str, type[Policy]] = {
    rule.__name__.lower(): rule
    for rule in (
        *(TruVaR, EI, PI, UCB, UCBPE, ES, PES, MRS, MES, BaMSOO),
        *(GCHK, Straddle, SUR, Variance, Random),
    )
}


def policy_named(policy: Policy | str) -> Policy:
    """The rule of that name with its default options, or the rule itself."""
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise TruvarError(f"the policy must be one of {', '.join(POLICIES)}, but it was {policy!r}")
        return POLICIES[policy]()
    if not hasattr(policy, "score"):
        raise TruvarError(f"policy must be a rule such as TruVaR() or its name, but it was {policy!r}")
    return policy


__all__ = [
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
    "Policy",
    "Proposes",
    "Random",
    "Scene",
    "Straddle",
    "Top",
    "TruVaR",
    "Variance",
    "policy_named",
]
