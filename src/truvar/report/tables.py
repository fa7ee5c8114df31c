"""A report in a folder: the figure, the measurements and the domain as CSV, and the summary as JSON."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, is_dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.exceptions import OutputError
from truvar.report._plots import plot_study

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from truvar.study.result import Result
    from truvar.study.study import Study

_CSV_FORMAT = "%.8g"  # of floating-point numbers


def write_report(
    study: Study, folder: str | Path, truth: ArrayLike | None = None
) -> dict[str, Path]:
    """Write map.png, measurements.csv, points.csv and summary.json.

    Args:
        study: The study, which is not changed.
        folder: Where to write; it is created if it does not exist.
        truth: True values on the domain, if they are known.

    Returns:
        The paths by "map", "measurements", "points" and "summary".

    Raises:
        OutputError: If a file cannot be written.
        InvalidArgumentError: If `truth` does not have one finite value per point.
    """
    folder = Path(folder)
    paths = {
        "map": folder / "map.png",
        "measurements": folder / "measurements.csv",
        "points": folder / "points.csv",
        "summary": folder / "summary.json",
    }
    make_folder(folder)
    result = study.result()
    try:
        study.measurements.to_csv(paths["measurements"], index=False, float_format=_CSV_FORMAT)
        named = study.domain.has_row_names
        result.to_frame().to_csv(
            paths["points"],
            index=named,
            index_label="label" if named else None,
            float_format=_CSV_FORMAT,
        )
        paths["summary"].write_text(to_json(summary(study, truth, result)) + "\n", encoding="utf-8")
        plot_study(study, truth, result).savefig(paths["map"])
    except OSError as error:
        raise OutputError(f"cannot write the report: {error}; give another folder") from None
    return paths


def is_html(path: Path) -> bool:
    """Return whether a path is that of an HTML file, and not of a folder."""
    return path.suffix.lower() in (".html", ".htm")


def describe_report(paths: dict[str, Path]) -> str:
    """Return what was written, in words: the file, or the folder and its files."""
    if len(paths) == 1:
        return str(paths["report"])
    folder = paths["report"].parent
    return f"{folder}{os.sep} (folder with {', '.join(path.name for path in paths.values())})"


def make_folder(folder: Path) -> None:
    """Create the folder of a report if it does not exist; call it before a long run, not after it.

    Raises:
        OutputError: If it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot create the folder {folder} ({error.strerror}); give another one"
        ) from None


def summary(
    study: Study, truth: ArrayLike | None = None, result: Result | None = None
) -> dict[str, Any]:
    """Return settings, result and pending suggestions of a study for JSON.

    Args:
        study: The study, which is not changed.
        truth: True values on the domain; if given, F1 or regret is included.
        result: Its present result, if the caller has it.
    """
    if result is None:
        result = study.result()
    data: dict[str, Any] = {
        "name": study.name,
        "settings": {
            "points": len(study.domain),
            "columns": list(study.domain.columns),
            "goal": _describe(study.goal),
            "kernel": str(study.kernel),
            "transform": {"log": study.transform.log, "power": study.transform.power},
            "policy": _describe(study.policy),
            "seed": study.seed,
        },
        "epoch": asdict(study.epoch),
        "result": result.to_dict(),
        "pending": [suggestion.to_dict() for suggestion in study.pending],
    }
    if study.outcome is not None:
        data["settings"]["outcome"] = _describe(study.outcome)
    if truth is not None:
        data["truth"] = {study.goal.score.key: result.score(truth)}
    return data


def to_json(data: Any) -> str:
    """Return strict JSON: infinities and NaN, which JSON does not have, become null."""
    return json.dumps(replace_nonfinite(data), indent=2, allow_nan=False)


def replace_nonfinite(data: Any) -> Any:
    """Return the data with None for infinities and NaN, and text for the keys of dictionaries."""
    if isinstance(data, dict):
        return {str(key): replace_nonfinite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [replace_nonfinite(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data


def _describe(setting: Any) -> Any:
    """Return a goal or policy as its class name and options."""
    if not is_dataclass(setting) or isinstance(setting, type):
        return str(setting)
    options = {
        name: value if isinstance(value, bool | int | float | str | None) else str(value)
        for name, value in vars(setting).items()
        if not name.startswith("_")
    }
    return {"kind": type(setting).__name__, **options}
