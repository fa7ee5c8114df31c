"""Reports of a study: figures, tables and JSON in a folder, an HTML page, terminal output and progress displays.

Drawing needs matplotlib (`pip install "truvar[plot]"`), which is imported only where something is
drawn.
"""

from __future__ import annotations

from truvar.report._plot_diagnostics import plot_model_check
from truvar.report._plots import plot_study
from truvar.report._representation import study_html, study_text
from truvar.report.progress import Progress, is_interactive
from truvar.report.tables import summary, write_report

__all__ = [
    "Progress",
    "is_interactive",
    "plot_model_check",
    "plot_study",
    "study_html",
    "study_text",
    "summary",
    "write_report",
]
