"""`truvar bounds`: what an accuracy costs."""

from __future__ import annotations

import argparse
from pathlib import Path

from truvar.cli._common import Command, positive
from truvar.exceptions import TruvarError


def _bounds_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("problem", metavar="PROBLEM.toml", help="the problem file")
    sub.add_argument("--epsilon", type=positive(float), required=True, help="the accuracy asked for")
    sub.add_argument("--delta", type=positive(float), default=0.1, help="the risk taken (default: 0.1)")
    sub.add_argument("--runs", type=int, default=20, metavar="N", help="draws of f to simulate; 0: none (default: 20)")
    sub.add_argument("--budget", type=positive(float), metavar="COST", help="end a simulated run before more is spent")
    sub.add_argument("--steps", type=positive(int), default=300, help="... or after this many measurements (300)")
    sub.add_argument("--theorem", action="store_true", help="simulate with the theorem's beta, not the problem's own")
    sub.add_argument("--plot", metavar="FILE", type=Path, help="draw expected epsilon against cost")
    sub.add_argument("--json", action="store_true", help="print all of it as JSON")
    sub.add_argument("--quiet", action="store_true", help="no progress display")


def _bounds(arguments: argparse.Namespace) -> int:
    """What an accuracy costs, by theory and by simulation of the prior."""
    from dataclasses import replace

    from truvar.acquisition import TruVaR
    from truvar.acquisition.confidence import TheoremBeta
    from truvar.problem import load_problem
    from truvar.report.plan_summary import SLACK, bounds_summary, bounds_text, plot_plan
    from truvar.report.progress import progress_bar
    from truvar.report.tables import to_json
    from truvar.theory import simulate

    if arguments.plot and arguments.runs < 1:
        raise TruvarError(f"--plot draws the simulation, but --runs was {arguments.runs}; give at least 1")
    problem = load_problem(arguments.problem, check=False)  # the study below is the check
    study, given = problem.study(), {}
    study.theory_setting()  # a model that is learned is refused now, not after the simulation
    if arguments.theorem:
        if not isinstance(study.policy, TruVaR):
            raise TruvarError(
                f"--theorem is about the policy truvar, but the problem's is {study.policy!r}; leave it out"
            )
        slack = study.policy.slack or SLACK
        given["policy"] = replace(study.policy, beta=TheoremBeta(arguments.delta), slack=slack)
        study = problem.study(**given)
    plan = None
    if arguments.runs > 0:
        budget = arguments.budget or float("inf")
        plan = simulate(
            lambda number: problem.study(seed=number, **given),
            arguments.epsilon, runs=arguments.runs, budget=budget, steps=arguments.steps,
            progress=None if arguments.quiet else progress_bar("simulated runs"),
        )  # fmt: skip
    said = bounds_summary(study, arguments.epsilon, arguments.delta, plan)
    if arguments.plot and plan is not None:
        plot_plan(plan, said["theorem"]["cost"]).savefig(arguments.plot)
    print(to_json(said) if arguments.json else bounds_text(said))
    if arguments.plot and not arguments.json:
        print(f"picture: {arguments.plot}")
    return 0


BOUNDS = Command(
    "bounds",
    "what an accuracy costs, by theory and by simulation of the prior",
    "truvar bounds examples/lake.toml --epsilon 2 --delta 0.1 --plot plan.png",
    _bounds_arguments,
    _bounds,
)
