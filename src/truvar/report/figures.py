"""Figures of a study or a backtest by name."""

from __future__ import annotations

from typing import Any

from truvar.report import style
from truvar.report._plot_convergence import plot_convergence
from truvar.report._plot_diagnostics import plot_model_check
from truvar.report._plot_importance import plot_importance
from truvar.report._plot_route import plot_route
from truvar.report._plot_slices import plot_contours, plot_slices
from truvar.report._plots import plot_map, plot_study
from truvar.report.backtest_plot import plot_backtest

FIGURES: dict[str, Any] = {
    "overview": plot_study,
    "map": plot_map,
    "slices": plot_slices,
    "contours": plot_contours,
    "convergence": plot_convergence,
    "importance": plot_importance,
    "model_check": plot_model_check,
    "route": plot_route,
    "comparison": plot_backtest,
}


def draw(kind: str, subject: Any, theme: str, options: dict[str, Any]) -> Any:
    """Return a figure of a study or backtest.

    Args:
        kind: A key of `FIGURES`.
        subject: The study, or the backtest.
        theme: "light" or "dark".
        options: Arguments of the function that draws.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    with style.literal_text():
        return style.apply_theme(FIGURES[kind](subject, **options), theme)
