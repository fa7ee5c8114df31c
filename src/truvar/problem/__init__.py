"""Problem files: what to find, where, with which model, noise, cost and policy, as a TOML file or a dict.

`load_problem(path).study()` makes the study. Names are imported on first use:
`truvar.problem.schema` imports no numerical library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truvar.problem.build import Problem, load_problem, problem_from_dict

__all__ = ["Problem", "load_problem", "problem_from_dict"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from truvar.problem import build

    return getattr(build, name)
