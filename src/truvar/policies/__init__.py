"""Decision rules: each is a score over the table of candidates."""

from truvar.errors import TruvarError
from truvar.policies.seam import Policy, Proposes, Scene, Top
from truvar.policies.truvar import TruVaR

POLICIES: dict[str, type[Policy]] = {"truvar": TruVaR}


def policy_named(policy: Policy | str) -> Policy:
    """The rule of that name with its default options, or the rule itself."""
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise TruvarError(f"the policy must be one of {', '.join(POLICIES)}, but it was {policy!r}")
        return POLICIES[policy]()
    if not hasattr(policy, "score"):
        raise TruvarError(f"policy must be a rule such as TruVaR() or its name, but it was {policy!r}")
    return policy


__all__ = ["POLICIES", "Policy", "Proposes", "Scene", "Top", "TruVaR", "policy_named"]
