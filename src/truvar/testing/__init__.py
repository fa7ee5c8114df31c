"""Contract suites for extensions: `check_policy` for policies, `check_event_log` for stores."""

from truvar.testing._event_log import check_event_log
from truvar.testing._policies import CHECKS, check_policy, supported_goals

__all__ = ["CHECKS", "check_event_log", "check_policy", "supported_goals"]
