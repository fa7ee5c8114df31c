"""What budget an accuracy needs, in tables and a picture: by theory, and by simulation of the prior."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from truvar._numba.threads import blas_in_one_thread
from truvar.acquisition.confidence import lemma_beta
from truvar.report import style
from truvar.report.formatting import format_number
from truvar.report.style import INK
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

TIMES = (1, 10, 100, 1000)  # at which beta and gamma_T are told
SLACK = 0.1  # where the problem has none: the theorem needs some


@blas_in_one_thread()  # small products, one after another: threads would only wait for each other
def bounds_summary(study: Study, epsilon: float, delta: float, plan: Plan | None = None) -> dict[str, Any]:
    """All that the theory says about reaching epsilon with probability 1 - delta, and the simulation beside it."""
    setting = study.theory_setting()
    if setting.slack <= 0:
        setting = replace(setting, slack=SLACK)
    bound = theorem(setting, epsilon, delta)
    noisy = bool((setting.noise > 0).all())
    gain = InformationGain(setting) if noisy else None
    certificate = study.result().certificate
    return {
        "name": study.name,
        "points": setting.points,
        "actions": setting.actions,
        "prior_variance": setting.scale**2,
        "noise": [float(setting.noise.min()) * setting.scale**2, float(setting.noise.max()) * setting.scale**2],
        "cost": [setting.cheapest, setting.dearest],
        "epsilon": epsilon,
        "delta": delta,
        "slack": setting.slack,
        "eta": setting.eta,
        "r": setting.r,
        "beta": {
            "own": study.epoch.beta,
            "lemma": {str(t): lemma_beta(setting.points, t, delta) for t in TIMES},
        },
        "gamma": None if gain is None else [asdict(gain.at(t)) for t in TIMES],
        "theorem": {"cost": bound.cost, "epochs": [asdict(epoch) for epoch in bound.epochs]},
        "corollaries": _corollaries(setting, epsilon, delta, gain),
        "submodularity": _submodularity(setting, bound.epochs[0].beta if bound.epochs else 1.0),
        "outside": list(certificate.cost_void),
        "regime": certificate.regime,
        "simulation": None if plan is None else plan.to_dict(),
    }


def _submodularity(setting: TheorySetting, beta: float) -> dict[str, Any]:
    found = submodularity(setting, tau=setting.eta**2 / beta)
    return {**asdict(found), "share": found.share, "words": str(found)}


def _corollaries(setting: TheorySetting, epsilon: float, delta: float, gain: InformationGain | None) -> dict[str, Any]:
    """Those that apply, with derived and with printed constants."""
    levels = setting.levels
    if gain is None or not levels:
        return {}
    if len(levels) > 1:
        gains = level_gains(setting)
        best, printed = (choose_noise(setting, epsilon, delta, which, gains)[0] for which in (DERIVED, PAPER))
        return {"choice of noise (Corollary 3.2)": {**asdict(best), "as_printed": printed.cost}}
    found = {}
    for name, corollary in {"simplified (supp. D)": simplified, "improved (Corollary 3.1)": improved}.items():
        mended = corollary(setting, epsilon, delta, gain=gain)
        found[name] = {**asdict(mended), "as_printed": corollary(setting, epsilon, delta, PAPER, gain).cost}
    return found


def bounds_text(said: dict[str, Any]) -> str:
    """The summary for people to read."""
    noise, cost = (_range(*said[key]) for key in ("noise", "cost"))
    lines = [
        f"{said['name']}: {said['points']} points, prior variance {said['prior_variance']:.4g}, noise {noise}, "
        f"cost {cost}",
        f"asked for: epsilon {said['epsilon']:g} with probability {1 - said['delta']:g} "
        f"(eta {said['eta']:g}, r {said['r']:g}, slack {said['slack']:g})",
        "",
        "beta      the problem's own at t = 1: "
        + f"{said['beta']['own']:.3g}; Lemma 5.1 of Srinivas et al. asks for "
        + ", ".join(f"{beta:.3g} at t = {t}" for t, beta in said["beta"]["lemma"].items()),
    ]
    if said["gamma"] is not None:
        between = ", ".join(f"{_range(gain['greedy'], gain['upper'])} at T = {gain['steps']}" for gain in said["gamma"])
        lines.append(f"gamma_T   {between}")
    lines += ["", "Theorem 3.1, M bounded by all points", "  epoch      eta     beta         C*      C_(i)      total"]
    lines += [
        f"  {epoch['index']:5d} {epoch['eta']:8.3g} {epoch['beta']:8.3g} {epoch['cover']:10.4g} {epoch['cost']:10.4g} "
        f"{epoch['total']:10.4g}"
        for epoch in said["theorem"]["epochs"]
    ]
    lines.append(f"  C_epsilon = {said['theorem']['cost']:.4g}")
    lines += [f"  but {reason}: the bound does not apply to this problem" for reason in said["outside"]]
    for name, found in said["corollaries"].items():
        level = f", noise level {found['level']}" if "choice" in name else ""
        lines.append(
            f"{name}: cost {found['cost']:.4g} ({found['steps']:.4g} measurements{level}); "
            f"{found['as_printed']:.4g} with the constants as printed"
        )
    lines += ["", f"Assumption 3.1: {said['submodularity']['words']}"]
    if said["simulation"] is not None:
        lines += ["", _simulation_text(said)]
    return "\n".join(lines)


def _simulation_text(said: dict[str, Any]) -> str:
    found = said["simulation"]
    text = f"simulation: {found['reached']} of {found['runs']} draws from the prior got to epsilon {said['epsilon']:g}"
    if found["median_cost"] is not None:
        text += f", half of all by a cost of {found['median_cost']:.4g}"
    if found["cost_of_90_percent"] is not None:
        text += f", 90 % by {found['cost_of_90_percent']:.4g}"
    text += f"; expected epsilon when they ended: {found['curve']['mean_epsilon'][-1]:.3g}"
    if said["regime"] in ("heuristic", "learned"):
        text += "\n  (epsilon from bounds with the problem's own beta, which is smaller than the lemma asks for)"
    return text


def _range(low: float, high: float) -> str:
    return f"{low:.4g}" if abs(high - low) <= 1e-9 * abs(high) else f"{low:.4g} to {high:.4g}"


def plot_plan(plan: Plan, theory: float | None = None) -> Figure:
    """Expected epsilon against cost, with the range of the runs, the accuracy asked for, and the theorem's cost."""
    figure: Figure = style.import_matplotlib("figure").Figure(figsize=(7.2, 4.4), dpi=110, layout="constrained")
    style.import_matplotlib("backends.backend_agg").FigureCanvasAgg(figure)
    ax = figure.subplots()
    for low, high, shade in ((0.1, 0.9, 0.16), (0.25, 0.75, 0.3)):
        words = f"{int(100 * (high - low))} % of the runs"
        ax.fill_between(
            plan.cost, plan.quantile(low), plan.quantile(high), color="#44779A", alpha=shade, lw=0, label=words
        )
    ax.plot(plan.cost, plan.mean, color="#1F4E79", lw=1.8, label=f"mean of {len(plan.paths)} draws from the prior")
    ax.axhline(plan.epsilon, color="#B2182B", lw=1, ls=":", label=f"ε = {format_number(plan.epsilon)}")
    half = plan.budget(0.5)
    if half is not None:
        ax.axvline(half, color=INK, lw=1, ls="--", label=f"half of the runs: {format_number(half)}")
    if theory is not None and isfinite(theory):
        words = f"Theorem 3.1: {format_number(theory)}"
        if theory <= 3 * plan.cost[-1]:
            ax.axvline(theory, color="#B2182B", lw=1.4, label=words)
        else:  # far to the right: said, not drawn to scale
            ax.text(0.99, 0.02, f"{words} →", ha="right", va="bottom", color="#B2182B", transform=ax.transAxes)
    if (plan.paths > 0).all():
        ax.set_yscale("log")
    ax.set_xlabel("cost")
    ax.set_ylabel("accuracy ε")
    ax.legend(frameon=False, fontsize=8)
    return figure
