"""A report as one HTML file that needs nothing else: pictures inside, no script, every word of the user's escaped."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable
from html import escape
from importlib.resources import files
from math import isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.exceptions import TruvarError
from truvar.report import style
from truvar.report.formatting import column_label, format_number
from truvar.report.plot_1d import draw_curve
from truvar.report.plot_2d import draw_mean, draw_regions
from truvar.report.plot_data import PlotData
from truvar.report.plot_parallel import draw_parallel
from truvar.report.plots import draw_classes, draw_epsilon
from truvar.report.status import describe_budget, describe_goal, describe_policy
from truvar.report.suggestion_card import what, why

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from truvar.study.study import Study

WIDE, FLAT = (6.4, 3.5), (6.4, 2.7)  # inches; small enough that the letters can be read on a telephone
# What others may do with the page: show its own pictures and style, and nothing else.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def write_html_report(study: Study, path: str | Path, truth: ArrayLike | None = None) -> Path:
    """Writes the report to a file."""
    path = Path(path)
    try:
        path.write_text(render_html_report(study, truth), encoding="utf-8")
    except OSError as error:
        raise TruvarError(f"the report {path} cannot be written ({error.strerror}); give another path") from None
    return path


def render_html_report(study: Study, truth: ArrayLike | None = None) -> str:
    """The report; `truth`: the true values on the domain, if they are known."""
    view = PlotData.from_study(study, truth)
    name = escape(study.name or "study")
    parts = [
        f"<h1>{name}</h1><p class='question'>{escape(describe_goal(study.goal))}</p>",
        _tiles(study, view),
        _certificate(view),
        _pictures(view),
        _pending(study),
        _measurements(study, view),
        _log(study),
        _settings(study),
    ]
    body = "\n".join(part for part in parts if part)
    css = files("truvar.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{name}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<style>\n{css}</style></head>\n<body><main>\n{body}\n"
        "<footer>made with truvar</footer></main></body></html>\n"
    )


# -- what is known -----------------------------------------------------------------------------------------------------


def _tiles(study: Study, view: PlotData) -> str:
    result, budget = view.result, study.limits.get("budget")
    spent = format_number(result.spent)
    left = "spent" if budget is None else f"spent of {format_number(budget)}"
    tiles = [
        (str(result.steps), f"measurement{'s' * (result.steps != 1)}"),
        (spent, f"cost {left}"),
        (f"{result.epsilon:.3g}" if isfinite(result.epsilon) else "?", "accuracy ε"),
        (str(int(result.potential.sum())), f"of {len(view.domain)} points still open"),
    ]
    if not study.goal.level_set and result.steps and isfinite(result.epsilon):
        tiles.insert(3, (f"{result.best.mean:.4g}", f"best so far (± {result.best.sd:.2g})"))
    shown = "".join(
        f"<div class='tile'><b>{escape(number)}</b><span>{escape(what)}</span></div>" for number, what in tiles
    )
    kinds = {"above": "above", "open": "open", "below": "below"} if study.goal.level_set else {"open": "among"}
    bar, keys = "", ""
    for kind, mask, text in view.classes():
        css = kinds.get(kind, "out")
        bar += f"<i class='{css}' style='width:{100 * float(mask.mean()):.3f}%'></i>"
        keys += f"<li><i class='{css}'></i>{escape(text)}</li>"
    return (
        f"<div class='tiles'>{shown}</div><section><div class='bar'>{bar}</div><ul class='keys'>{keys}</ul></section>"
    )


def _certificate(view: PlotData) -> str:
    certificate = view.result.certificate
    holds = " holds" if certificate.regime in ("theorem", "outside") else ""
    more = [
        f"<p class='soft'>{title}: {escape('; '.join(said))}.</p>"
        for title, said in (("It assumes that", certificate.assumes), ("Beware", certificate.caveats))
        if said
    ]
    return (
        f"<section><h2>What is settled</h2><p class='statement'>{escape(certificate.statement)}</p>"
        f"<p><span class='regime{holds}'>{certificate.regime}</span> {escape(certificate.because)}.</p>"
        f"{''.join(more)}{_reason(view)}</section>"
    )


def _reason(view: PlotData) -> str:
    return f"<p>{escape(view.result.reason[:1].upper() + view.result.reason[1:])}.</p>" if view.result.reason else ""


# -- pictures ----------------------------------------------------------------------------------------------------------


def _pictures(view: PlotData) -> str:
    route = "Posterior mean, and the route" if view.travels else "Posterior mean, and where was measured"
    match len(view.domain.columns):
        case 1:
            drawn = [(draw_curve, WIDE, "What is believed along the axis, and what is settled")]
        case 2:
            drawn = [(draw_mean, WIDE, route), (draw_regions, WIDE, "What is settled, and what is open")]
        case _:
            drawn = [(draw_parallel, WIDE, "Every point is a line across the columns")]
    drawn += (
        []
        if len(view.history) == 0
        else [
            (_draw_epsilon, FLAT, "Accuracy ε against the cost spent"),
            (draw_classes, FLAT, "Share of the points in each class against the cost spent"),
        ]
    )
    shown = "".join(
        f"<figure><img alt='{escape(text, quote=True)}' src='{_svg(draw, view, size)}'>"
        f"<figcaption>{escape(text)}</figcaption></figure>"
        for draw, size, text in drawn
    )
    return f"<div class='pictures'>{shown}</div>"


def _draw_epsilon(ax: Any, view: PlotData) -> None:
    draw_epsilon(ax, view)
    ax.set_xlabel("cost spent")


def _svg(draw: Callable[[Any, PlotData], None], view: PlotData, size: tuple[float, float]) -> str:
    """A drawing as a data URI."""
    with style.plain_text():
        figure = style.import_matplotlib("figure").Figure(figsize=size, dpi=150, layout="constrained")
        draw(figure.subplots(), view)
        for ax in figure.axes:
            ax.set_title("", loc="left")  # the caption says it
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode("ascii")


# -- tables ------------------------------------------------------------------------------------------------------------


def _table(heads: list[str], rows: Iterable[list[Any]], words: frozenset[str] = frozenset()) -> str:
    kinds = [" class='words'" if head in words else "" for head in heads]
    head = "".join(f"<th{kind}>{escape(text)}</th>" for kind, text in zip(kinds, heads, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{escape(str(cell))}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _pending(study: Study) -> str:
    cards = "".join(
        f"<article><b>{s.id}</b><div><b>{escape(what(s))}</b> for {format_number(s.cost)}, ± {sqrt(s.noise):.3g}"
        f"<br><span class='soft'>{escape(why(study, s))}</span></div></article>"
        for s in study.pending
    )
    return f"<section><h2>To be measured</h2>{cards}</section>" if cards else ""


def _measurements(study: Study, view: PlotData) -> str:
    told = study.measurements
    if len(told) == 0:
        return "<section><h2>Measurements</h2><p class='soft'>None so far.</p></section>"
    d = len(view.domain.columns)
    told.columns = list(range(told.shape[1]))  # by place: a coordinate may be called "value"
    level, task, noise, cost, spent, value = range(2 + d, 8 + d)
    heads = ["id", *(column_label(name) for name in view.domain.columns)]
    aside = [(k, name) for k, name in ((level, "level"), (task, "task")) if told[k].notna().any()]
    heads += [*(name for _, name in aside), "value", "±", "cost", "spent"]
    rows = [
        [
            row[0],
            *(f"{row[2 + k]:.6g}" for k in range(d)),
            *(row[k] for k, _ in aside),
            f"{row[value]:.6g}",
            f"{sqrt(row[noise]):.3g}",
            format_number(row[cost]),
            format_number(row[spent]),
        ]
        for row in told.itertuples(index=False, name=None)
    ]
    return f"<section><h2>Measurements</h2>{_table(heads, rows)}</section>"


def _log(study: Study) -> str:
    """Remarks, corrections and what was taken back."""
    events = study.events
    events = events[events["kind"].isin(["noted", "corrected", "withdrawn", "expired"])]
    rows = [
        [f"{time:%Y-%m-%d %H:%M} UTC", who, _event(kind, details)]
        for _, time, who, kind, details in events.itertuples(index=False, name=None)
    ]
    if not rows:
        return ""
    return f"<section><h2>EventLog</h2>{_table(['time', 'who', 'what'], rows, frozenset({'who', 'what'}))}</section>"


def _event(kind: str, details: dict[str, Any]) -> str:
    if kind == "noted":
        return str(details["text"])
    return f"{details['id']} {kind}" + (f" to {details['y']:.6g}" if kind == "corrected" else "")


def _settings(study: Study) -> str:
    columns = ", ".join(
        f"{name} from {low:.6g} to {high:.6g}"
        for name, (low, high) in zip(study.domain.columns, study.domain.bounds, strict=True)
    )
    facts = [
        ("domain", f"{len(study.domain)} points: {columns}"),
        ("kernel", str(study.kernel)),
        ("rule", describe_policy(study.policy)),
        ("engine", study.engine),
        ("epoch", f"{study.epoch.index}, η = {study.epoch.eta:.3g}, β = {study.epoch.beta:.4g}"),
        ("cost", describe_budget(study)),
        ("seed", str(study.seed)),
    ]
    shown = "".join(f"<dt>{what}</dt><dd>{escape(text)}</dd>" for what, text in facts)
    return f"<section><h2>Settings</h2><dl>{shown}</dl></section>"
