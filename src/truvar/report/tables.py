"""A report on disk: the figure, the measurements and the domain as CSV, and the whole summary as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.exceptions import TruvarError
from truvar.report.plots import plot_study

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from truvar.study.study import Study

DIGITS = "%.8g"


def write_report(study: Study, folder: str | Path, truth: ArrayLike | None = None) -> dict[str, Path]:
    """Write map.png, measurements.csv, points.csv and summary.json into the folder, which is made if need be."""
    folder = Path(folder)
    paths = {
        "map": folder / "map.png",
        "measurements": folder / "measurements.csv",
        "points": folder / "points.csv",
        "summary": folder / "summary.json",
    }
    make_folder(folder)
    try:
        study.measurements.to_csv(paths["measurements"], index=False, float_format=DIGITS)
        study.result().to_frame().to_csv(paths["points"], index=False, float_format=DIGITS)
        paths["summary"].write_text(to_json(summary(study, truth)) + "\n", encoding="utf-8")
        plot_study(study, truth).savefig(paths["map"])
    except OSError as error:
        raise TruvarError(f"the report cannot be written: {error}; give another folder") from None
    return paths


def make_folder(folder: Path) -> None:
    """The folder of a report, or why it cannot be had: asked before a long run, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TruvarError(f"the folder {folder} cannot be made ({error.strerror}); give another one") from None


def summary(study: Study, truth: ArrayLike | None = None) -> dict[str, Any]:
    """What the study is, where it stands, and F1 or regret where the true values on the domain are known."""
    result = study.result()
    answer: dict[str, Any] = {
        "name": study.name,
        "settings": {
            "points": len(study.domain),
            "columns": list(study.domain.columns),
            "goal": _described(study.goal),
            "kernel": str(study.kernel),
            "policy": _described(study.policy),
            "seed": study.seed,
        },
        "epoch": asdict(study.epoch),
        "result": result.to_dict(),
        "pending": [suggestion.to_dict() for suggestion in study.pending],
    }
    if truth is not None:
        level_set = study.goal.level_set
        answer["truth"] = {"f1": result.f1(truth)} if level_set else {"regret": result.regret(truth)}
    return answer


def to_json(data: Any) -> str:
    """JSON that every reader takes: what is not finite becomes null."""
    return json.dumps(replace_nonfinite(data), indent=2, allow_nan=False)


def replace_nonfinite(data: Any) -> Any:
    """The same with null for what is not finite, keys as text."""
    if isinstance(data, dict):
        return {str(key): replace_nonfinite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [replace_nonfinite(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data


def _described(setting: Any) -> Any:
    """A goal or policy as its kind and options."""
    if not is_dataclass(setting) or isinstance(setting, type):
        return str(setting)
    options = {
        name: value if isinstance(value, bool | int | float | str | None) else str(value)
        for name, value in vars(setting).items()
        if not name.startswith("_")
    }
    return {"kind": type(setting).__name__, **options}
