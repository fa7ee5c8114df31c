"""The laws that what is plugged in must keep: `check_policy` for decision rules, `check_journal` for stores."""

from truvar.testing.event_log import check_journal
from truvar.testing.policies import CHECKS, check_policy, served

__all__ = ["CHECKS", "check_journal", "check_policy", "served"]
