"""The budget that an accuracy needs, by theory and by simulation of the prior, as data, text and figure."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from truvar._numba.threads import blas_in_one_thread
from truvar.acquisition.confidence import lemma_beta
from truvar.report.formatting import format_number
from truvar.report.style import INK, new_figure
from truvar.theory import (
    DERIVED,
    PAPER,
    InformationGain,
    Plan,
    TheorySetting,
    choose_noise,
    improved,
    level_gains,
    simplified,
    submodularity,
    theorem,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from truvar.study.study import Study

STEPS = (1, 10, 100, 1000)  # numbers of measurements for which beta and gamma_T are listed
SLACK = 0.1  # for a problem without one, since the theorem needs a positive slack
BANDS = (
    (0.1, 0.9, 0.16),
    (0.25, 0.75, 0.3),
)  # low quantile, high quantile and opacity of the bands of the runs
_SAME = 1e-9  # relative difference up to which the ends of a range count as equal
_BLUE = "#1F4E79"  # the simulation
_RED = "#B2182B"  # the accuracy asked for and the theorem


@blas_in_one_thread()  # the products are small, and more threads would only wait for each other
def bounds_summary(
    study: Study, epsilon: float, delta: float, plan: Plan | None = None
) -> dict[str, Any]:
    """Return what the theory says about reaching an accuracy, and the simulation beside it, for JSON.

    Args:
        study: The study, without measurements.
        epsilon: The accuracy to reach.
        delta: Probability with which the bounds may fail.
        plan: Simulated runs, if there are any.
    """
    setting = study.theory_setting()
    if setting.slack <= 0:
        setting = replace(setting, slack=SLACK)
    bound = theorem(setting, epsilon, delta)
    first_beta = bound.epochs[0].beta if bound.epochs else 1.0
    noisy = bool((setting.noise > 0).all())
    gain = InformationGain(setting) if noisy else None
    gamma = None if gain is None else [asdict(gain.at(t)) for t in STEPS]
    simulation = None if plan is None else plan.to_dict()
    certificate = study.result().certificate
    return {
        "name": study.name,
        "points": setting.points,
        "actions": setting.actions,
        "prior_variance": setting.scale**2,
        "noise": [
            float(setting.noise.min()) * setting.scale**2,
            float(setting.noise.max()) * setting.scale**2,
        ],
        "cost": [setting.min_cost, setting.max_cost],
        "epsilon": epsilon,
        "delta": delta,
        "slack": setting.slack,
        "eta": setting.eta,
        "r": setting.r,
        "beta": {
            "own": study.epoch.beta,
            "lemma": {str(t): lemma_beta(setting.points, t, delta) for t in STEPS},
        },
        "gamma": gamma,
        "theorem": {"cost": bound.cost, "epochs": [asdict(epoch) for epoch in bound.epochs]},
        "corollaries": _corollaries(setting, epsilon, delta, gain),
        "submodularity": _submodularity(setting, first_beta),
        "outside": list(certificate.cost_void),
        "regime": certificate.regime,
        "simulation": simulation,
    }


def _submodularity(setting: TheorySetting, beta: float) -> dict[str, Any]:
    diagnostic = submodularity(setting, tau=setting.eta**2 / beta)
    return {**asdict(diagnostic), "share": diagnostic.share, "words": str(diagnostic)}


def _corollaries(
    setting: TheorySetting, epsilon: float, delta: float, gain: InformationGain | None
) -> dict[str, Any]:
    """Return the corollaries that apply, with the constants as derived and as printed in the paper."""
    levels = setting.levels
    if gain is None or not levels:
        return {}
    if len(levels) > 1:
        gains = level_gains(setting)
        derived = choose_noise(setting, epsilon, delta, DERIVED, gains)[0]
        printed = choose_noise(setting, epsilon, delta, PAPER, gains)[0]
        return {"choice of noise (Corollary 3.2)": {**asdict(derived), "as_printed": printed.cost}}
    corollaries = {}
    for name, corollary in {
        "simplified (supp. D)": simplified,
        "improved (Corollary 3.1)": improved,
    }.items():
        derived = corollary(setting, epsilon, delta, gain=gain)
        printed = corollary(setting, epsilon, delta, PAPER, gain)
        corollaries[name] = {**asdict(derived), "as_printed": printed.cost}
    return corollaries


def bounds_text(summary: dict[str, Any]) -> str:
    """Return the data of `bounds_summary` as text.

    Args:
        summary: What `bounds_summary` returned.
    """
    noise = _range(*summary["noise"])
    cost = _range(*summary["cost"])
    beta = summary["beta"]
    lemma = ", ".join(f"{value:.3g} at t = {t}" for t, value in beta["lemma"].items())
    lines = [
        f"{summary['name']}: {summary['points']} points, prior variance "
        f"{summary['prior_variance']:.4g}, "
        f"noise {noise}, cost {cost}",
        f"required: epsilon {summary['epsilon']:g} with probability {1 - summary['delta']:g} "
        f"(eta {summary['eta']:g}, r {summary['r']:g}, slack {summary['slack']:g})",
        "",
        f"beta      of this problem at t = 1: {beta['own']:.3g}; required by Lemma 5.1 of Srinivas "
        f"et al.: {lemma}",
    ]
    if summary["gamma"] is not None:
        gammas = [
            f"{_range(gain['greedy'], gain['upper'])} at T = {gain['steps']}"
            for gain in summary["gamma"]
        ]
        lines.append(f"gamma_T   {', '.join(gammas)}")
    lines += [
        "",
        "Theorem 3.1, with all points in place of M",
        "  epoch      eta     beta         C*      C_(i)      total",
    ]
    for epoch in summary["theorem"]["epochs"]:
        lines.append(
            f"  {epoch['index']:5d} {epoch['eta']:8.3g} {epoch['beta']:8.3g} "
            f"{epoch['cover']:10.4g} "
            f"{epoch['cost']:10.4g} {epoch['total']:10.4g}"
        )
    lines.append(f"  C_epsilon = {summary['theorem']['cost']:.4g}")
    lines += [
        f"  but {reason}: the bound does not apply to this problem" for reason in summary["outside"]
    ]
    for name, corollary in summary["corollaries"].items():
        level = f", noise level {corollary['level']}" if "choice" in name else ""
        lines.append(
            f"{name}: cost {corollary['cost']:.4g} ({corollary['steps']:.4g} measurements{level}); "
            f"{corollary['as_printed']:.4g} with the constants as printed"
        )
    lines += ["", f"Assumption 3.1: {summary['submodularity']['words']}"]
    if summary["simulation"] is not None:
        lines += ["", _simulation_text(summary)]
    return "\n".join(lines)


def _simulation_text(summary: dict[str, Any]) -> str:
    runs = summary["simulation"]
    text = (
        f"simulation: {runs['reached']} of {runs['runs']} functions drawn from the prior reached "
        "epsilon "
        f"{summary['epsilon']:g}"
    )
    if runs["median_cost"] is not None:
        text += f", half of all by a cost of {runs['median_cost']:.4g}"
    if runs["cost_of_90_percent"] is not None:
        text += f", 90 % by {runs['cost_of_90_percent']:.4g}"
    text += f"; expected epsilon at the end: {runs['curve']['mean_epsilon'][-1]:.3g}"
    if summary["regime"] in ("heuristic", "learned"):
        text += "\n  (epsilon from bounds with the problem's own beta, which is smaller than the lemma requires)"
    return text


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if abs(high - low) <= _SAME * abs(high) else f"{low:.4g} to {high:.4g}"


def plot_plan(plan: Plan, theory: float | None = None) -> Figure:
    """Return a matplotlib Figure of the expected epsilon against the cost, with the spread of the runs.

    Args:
        plan: The simulated runs.
        theory: Cost by Theorem 3.1, if it applies.
    """
    figure: Figure = new_figure(7.2, 4.4, dpi=110)
    ax = figure.subplots()
    for low, high, opacity in BANDS:
        label = f"{int(100 * (high - low))} % of the runs"
        lower = plan.quantile(low)
        upper = plan.quantile(high)
        ax.fill_between(plan.cost, lower, upper, color="#44779A", alpha=opacity, lw=0, label=label)
    ax.plot(
        plan.cost,
        plan.mean,
        color=_BLUE,
        lw=1.8,
        label=f"mean of {len(plan.paths)} draws from the prior",
    )
    ax.axhline(plan.epsilon, color=_RED, lw=1, ls=":", label=f"ε = {format_number(plan.epsilon)}")
    median = plan.budget(0.5)
    if median is not None:
        ax.axvline(
            median, color=INK, lw=1, ls="--", label=f"half of the runs: {format_number(median)}"
        )
    if theory is not None and isfinite(theory):
        label = f"Theorem 3.1: {format_number(theory)}"
        if theory <= 3 * plan.cost[-1]:
            ax.axvline(theory, color=_RED, lw=1.4, label=label)
        else:  # far to the right: named, not drawn to scale
            ax.text(
                0.99,
                0.02,
                f"{label} →",
                ha="right",
                va="bottom",
                color=_RED,
                transform=ax.transAxes,
            )
    if (plan.paths > 0).all():
        ax.set_yscale("log")
    ax.set_xlabel("cost")
    ax.set_ylabel("accuracy ε")
    ax.legend(frameon=False, fontsize=8)
    return figure
