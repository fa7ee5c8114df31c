"""Problem files: goal, domain, model, noise, cost and policy, as a TOML file or a dict.

`load_problem(path).study()` makes the study. Names are imported on first use:
`truvar.problem.schema` imports no numerical library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truvar._names import offer

if TYPE_CHECKING:
    from truvar.problem.build import Problem as Problem
    from truvar.problem.build import load_problem as load_problem
    from truvar.problem.build import problem_from_dict as problem_from_dict

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "build": ("Problem", "build_kernel", "load_problem", "problem_from_dict", "read_toml"),
        "messages": ("TABLE", "TEXT", "request_message", "rule_error"),
        "parameters": ("grid_size",),
        "schema": (
            "ModelSpec",
            "NonNegative",
            "NonNegativeCount",
            "Number",
            "ProblemSpec",
            "REPRESENTERS",
            "SECTIONS",
            "StrictModel",
            "Text",
            "parse_spec",
            "problem_json_schema",
            "text_or_table",
        ),
        "template": ("MAX_COORDINATES", "ProblemAnswers", "problem_template"),
    },
)
