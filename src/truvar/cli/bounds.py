"""`truvar bounds`: estimate the cost of reaching an accuracy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truvar.cli._common import Command, add_json, add_path, positive
from truvar.exceptions import InvalidArgumentError


def _bounds_arguments(sub: argparse.ArgumentParser) -> None:
    add_path(sub, "problem", metavar="PROBLEM.toml", help="the problem file")
    sub.add_argument("--epsilon", type=positive(float), required=True, help="accuracy to reach")
    sub.add_argument(
        "--delta", type=positive(float), default=0.1, help="probability of failure (default: 0.1)"
    )
    runs = "number of simulated functions, drawn from the prior; 0: none (default: 20)"
    sub.add_argument("--runs", type=int, default=20, metavar="N", help=runs)
    sub.add_argument(
        "--budget",
        type=positive(float),
        metavar="COST",
        help="total cost at which a simulation stops",
    )
    steps = "number of measurements after which a simulation stops (default: 300)"
    sub.add_argument("--steps", type=positive(int), default=300, help=steps)
    sub.add_argument(
        "--theorem", action="store_true", help="simulate with the theorem's beta, not the problem's"
    )
    add_path(
        sub, "--plot", metavar="FILE", type=Path, help="plot the expected epsilon against the cost"
    )
    add_json(sub, "the bounds")
    sub.add_argument("--quiet", action="store_true", help="no progress display")


def _bounds(arguments: argparse.Namespace) -> int:
    """Print the cost of reaching an accuracy by the theorem and by simulation of the prior."""
    from dataclasses import replace

    from truvar.acquisition import TruVaR
    from truvar.acquisition.confidence import TheoremBeta
    from truvar.acquisition.registry import DEFAULT_POLICY
    from truvar.problem import load_problem
    from truvar.report.plan_summary import SLACK, bounds_summary, bounds_text, plot_plan
    from truvar.report.progress import progress_bar
    from truvar.report.tables import to_json
    from truvar.theory import simulate

    if arguments.plot and arguments.runs < 1:
        raise InvalidArgumentError(
            f"--plot needs a simulation, got --runs {arguments.runs}; give at least 1"
        )
    problem = load_problem(arguments.problem, check=False)  # the study below is the check
    options: dict[str, Any] = {
        "vehicles": None
    }  # the theory is about one measurement after the other
    if not problem.spec.get("policy"):
        options["policy"] = TruVaR()  # the theory is about it, not about the default policy
    study = problem.study(**options)
    study.theory_setting()  # raises before the simulation if the model is learned
    if arguments.theorem:
        if not isinstance(study.policy, TruVaR):
            raise InvalidArgumentError(
                f"--theorem needs the policy truvar, but the problem's is {study.policy!r}; give "
                "[policy] name = "
                '"truvar", or leave out --theorem'
            )
        slack = study.policy.slack or SLACK
        options["policy"] = replace(study.policy, beta=TheoremBeta(arguments.delta), slack=slack)
        study = problem.study(**options)
    plan = None
    if arguments.runs > 0:
        budget = arguments.budget or float("inf")
        plan = simulate(
            lambda number: problem.study(seed=number, **options),
            arguments.epsilon,
            runs=arguments.runs,
            budget=budget,
            steps=arguments.steps,
            progress=None if arguments.quiet else progress_bar("simulated runs"),
        )
    data = bounds_summary(study, arguments.epsilon, arguments.delta, plan)
    data["policy"] = type(study.policy).__name__
    if arguments.plot and plan is not None:
        plot_plan(plan, data["theorem"]["cost"]).savefig(arguments.plot)
    print(to_json(data) if arguments.json else bounds_text(data))
    if not arguments.json and not problem.spec.get("policy"):
        print(
            "policy: truvar, which the theory is about; a study of this problem uses "
            f"{DEFAULT_POLICY} by default"
        )
    if arguments.plot and not arguments.json:
        print(f"plot: {arguments.plot}")
    return 0


BOUNDS = Command(
    "bounds",
    "estimate the cost of reaching an accuracy, by theory and by simulation of the prior",
    "truvar bounds examples/lake.toml --epsilon 2 --delta 0.1 --plot plan.png",
    _bounds_arguments,
    _bounds,
)
