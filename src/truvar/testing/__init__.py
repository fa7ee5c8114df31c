"""The laws that what is plugged in must keep: `check_policy` for decision rules, `check_event_log` for stores."""

from truvar.testing.event_log import check_event_log
from truvar.testing.policies import CHECKS, check_policy, served

__all__ = ["CHECKS", "check_event_log", "check_policy", "served"]
