"""Problem files: what to look for, where, with which model, noise, cost and policy, as a TOML file or a dict."""

from truvar.problem.build import KEYS, Problem, _schedule, load_problem, problem_from_dict

__all__ = ["KEYS", "Problem", "_schedule", "load_problem", "problem_from_dict"]
