"""Reports of a study: figures, tables and JSON in a folder, an HTML page, terminal output and progress displays.

Drawing needs matplotlib (`pip install "truvar[plot]"`), which is imported only where something is
drawn.
"""

from __future__ import annotations

from truvar._names import offer
from truvar.report._plot_diagnostics import plot_model_check as plot_model_check
from truvar.report._plots import plot_study as plot_study
from truvar.report._representation import study_html as study_html
from truvar.report._representation import study_text as study_text
from truvar.report._workbook import save_workbook as save_workbook
from truvar.report.progress import Progress as Progress
from truvar.report.progress import is_interactive as is_interactive
from truvar.report.tables import summary as summary
from truvar.report.tables import write_report as write_report

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "backtest_plot": ("COLOURS", "draw_curves", "finish_axes", "plot_backtest", "plot_curves"),
        "figures": ("draw",),
        "formatting": ("column_label", "format_question", "format_true_score"),
        "goal_views": ("view_of",),
        "html_report": ("render_html_report", "write_html_report", "write_report_at"),
        "limit_progress": ("score_goal",),
        "plan_summary": ("SLACK", "bounds_summary", "bounds_text", "plot_plan"),
        "pictures": ("map_picture",),
        "point_files": ("points_csv", "points_geojson", "save_points"),
        "problem_summary": ("problem_rows", "problem_warnings"),
        "progress": ("progress_bar",),
        "status": (
            "BOUNDS_TITLE",
            "describe_best",
            "describe_best_observed",
            "describe_bounds",
            "describe_infeasible",
            "describe_vehicle",
            "progress_texts",
            "status_data",
            "status_text",
        ),
        "style": (
            "INK",
            "LEVEL_SET",
            "THEMES",
            "VALUES",
            "import_matplotlib",
            "new_figure",
            "use_log_axis",
        ),
        "suggestion_card": ("suggestion_data",),
        "tables": ("describe_report", "is_html", "make_folder", "replace_nonfinite", "to_json"),
        "terminal": ("TerminalStyle", "is_terminal"),
        "waypoints": (
            "MEDIA_TYPES",
            "WRITERS",
            "check_waypoints",
            "save_waypoints",
            "waypoint_text",
        ),
    },
    defined=(
        "Progress",
        "is_interactive",
        "plot_model_check",
        "plot_study",
        "save_workbook",
        "study_html",
        "study_text",
        "summary",
        "write_report",
    ),
)
