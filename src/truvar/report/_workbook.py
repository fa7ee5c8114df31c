"""A study as an Excel workbook: measurements, pending suggestions, all points, and the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.exceptions import InvalidArgumentError, OutputError, import_optional
from truvar.report.formatting import describe_columns
from truvar.report.point_files import labelled_points
from truvar.report.status import describe_policy
from truvar.tabular.csv_cells import quoted_frame

if TYPE_CHECKING:
    import pandas as pd

    from truvar.study.base import BaseStudy
    from truvar.study.explanation import Explanation
    from truvar.study.result import Result

_SUFFIXES = (".xlsx", ".xlsm")
MAX_ROWS = 1_048_575  # of a sheet, without its first row
_MAX_EXPLAINED = 50  # suggestions whose expected values are computed
_MAX_WIDTH = 60  # characters, of a column
_SAMPLED_ROWS = 200  # rows that the width of a column is measured on


def save_workbook(study: BaseStudy, path: str | Path) -> Path:
    """Write a study to an Excel workbook with a sheet per kind of content.

    The first sheet has the measurements, so that the file can be imported again.

    Args:
        study: The study, which is not changed.
        path: A file that ends in .xlsx.

    Returns:
        The path.

    Raises:
        InvalidArgumentError: If the suffix is another one.
        MissingDependencyError: If openpyxl is not installed.
        OutputError: If the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidArgumentError(
            f"a workbook ends in {' or '.join(_SUFFIXES)}, got {str(path)!r}; give such a name"
        )
    import_optional("openpyxl", "an Excel workbook", "excel")
    import pandas as pd

    result = study.result()
    points = labelled_points(result)
    sheets = {
        "measurements": study.measurements,
        "suggestions": _suggestions(study),
        "points": points.head(MAX_ROWS),
        "settings": _settings(study, result, len(points)),
    }
    if study.failures:
        sheets["failures"] = _failures(study)
    try:
        with pd.ExcelWriter(path, engine="openpyxl") as writer:
            for name, frame in sheets.items():
                frame = quoted_frame(_plain_cells(frame))
                frame.to_excel(writer, sheet_name=name, index=False)
                _format_sheet(writer.sheets[name], frame)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{path} cannot be written ({reason}); give another path") from None
    return path


def _suggestions(study: BaseStudy) -> pd.DataFrame:
    """Return the pending suggestions with expected value, reason and an empty column of values."""
    import pandas as pd

    from truvar.study._frames import suggestion_frame

    pending = study.pending
    columns = study.domain.columns
    heading = {
        name: f"{name}_" if name in columns else name
        for name in ("id", "label", "cost", "expected", "expected_sd", "why", "value")
    }
    if not pending:
        return pd.DataFrame(columns=[heading["id"], *columns, heading["cost"], heading["value"]])
    frame = suggestion_frame(pending, study.domain).reset_index(drop=True)
    if study.domain.has_row_names:
        frame.insert(1, heading["label"], [str(each.label) for each in pending])
    explained = [study.explain(each) for each in pending[:_MAX_EXPLAINED]]
    missing: list[Any] = [None] * (len(pending) - len(explained))
    for name in study.goal.parts or (None,):
        part = "" if name is None else f"_{name}"
        expected = [_expected(each, name) for each in explained]
        frame[f"{heading['expected']}{part}"] = [*(mean for mean, _ in expected), *missing]
        frame[f"{heading['expected_sd']}{part}"] = [*(sd for _, sd in expected), *missing]
    frame[heading["why"]] = [*(each.why for each in explained), *missing]
    for name in study.goal.parts or ("value",):
        frame[f"{name}_" if name in columns else name] = None
    return frame


def _expected(explained: Explanation, quantity: str | None) -> tuple[float | None, float | None]:
    """Return mean and standard deviation of what a suggestion is to give, of a quantity if it has several."""
    if explained.lookahead is None:
        return None, None
    if quantity is None:
        return explained.mean, explained.sd
    return explained.values.get(quantity, (None, None))


def _failures(study: BaseStudy) -> pd.DataFrame:
    """Return the measurements that failed, with a column for each coordinate."""
    import pandas as pd

    columns = study.domain.columns
    place = ["id", "index", *(["label"] if study.domain.has_row_names else [])]
    attempt = ["level", "task", "cost", "reason", "vehicle"]
    rows = []
    for failure in study.failures:
        before = [getattr(failure, name) for name in place]
        after = [getattr(failure, name) for name in attempt]
        rows.append([*before, *(failure.point[name] for name in columns), *after])
    headings = [
        [f"{name}_" if name in columns else name for name in names] for names in (place, attempt)
    ]
    return pd.DataFrame(rows, columns=[*headings[0], *columns, *headings[1]])


def _settings(study: BaseStudy, result: Result, n_points: int) -> pd.DataFrame:
    """Return settings and answer as a table of names and texts."""
    import pandas as pd

    from truvar import __version__

    local: Any = study  # a study on a server has a kernel too, that of a copy
    rows = [
        ("study", study.name or ""),
        ("question", study.quantity.in_question(study.goal)),
        ("answer", result.certificate.statement),
        ("quantity", study.quantity.name or ""),
        ("unit", study.quantity.unit or ""),
        ("columns", describe_columns(study.domain)),
        ("points", str(n_points)),
        ("model", str(local.kernel)),
        ("policy", describe_policy(study.policy)),
        ("seed", str(study.seed)),
        ("limits", ", ".join(f"{name} {value:g}" for name, value in study.limits.items())),
        ("measurements", str(study.steps)),
        ("failed", str(result.n_failed)),
        ("excluded points", str(result.n_excluded)),
        ("outliers left out", ", ".join(map(str, result.outliers))),
        ("spent", f"{study.spent:.10g}"),
        ("truvar", __version__),
    ]
    if n_points > MAX_ROWS:
        note = f"the first {MAX_ROWS}; truvar export --points writes all of them"
        rows.append(("points in this file", note))
    return pd.DataFrame(rows, columns=["setting", "value"])


def _plain_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose cells a workbook can hold: times with a zone become text."""
    import pandas as pd

    changed = frame.copy()
    for name in changed.columns:
        column = changed[name]
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            changed[name] = column.map(lambda time: time.isoformat())
        elif column.dtype.kind == "O":
            changed[name] = column.map(_plain_cell)
    return changed


def _plain_cell(cell: Any) -> Any:
    if getattr(cell, "tzinfo", None) is not None:
        return cell.isoformat()
    if isinstance(cell, dict | list | tuple):
        return str(cell)
    return cell


def _format_sheet(sheet: Any, frame: pd.DataFrame) -> None:
    """Keep the first row in view and make columns as wide as their texts."""
    sheet.freeze_panes = "A2"
    for position, name in enumerate(frame.columns):
        texts = [str(name), *(str(cell) for cell in frame.iloc[:_SAMPLED_ROWS, position])]
        width = min(max(map(len, texts)) + 2, _MAX_WIDTH)
        letters = sheet.cell(1, position + 1).column_letter
        sheet.column_dimensions[letters].width = width
