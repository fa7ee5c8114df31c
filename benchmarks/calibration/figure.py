"""Draw how often statements are true, and how much they leave open, of a file of runs.

    python -m benchmarks.calibration.figure build/calibration.jsonl docs/images/calibration.png

On the left: the share of statements that are true over the probability that they state; on the
line they are calibrated, below it they promise too much. On the right: that share at 95 % over
the share of the points that are left undecided after 60 measurements; the best is at the top left.
Needs matplotlib.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration.problems import OWN_DRAWS, PROBLEMS, RIGHT, WRONG
from benchmarks.calibration.runs import Run, read
from benchmarks.calibration.score import LEVELS
from truvar.report import style

TOLERANCE = {"level set": "0.01", "optimum": "0"}
TITLES = {"level set": "level sets, at most 1 % wrong", "optimum": "optima"}
AT = 60  # measurements, of the shares that are left undecided
COLORS = {
    "truvar": "#1F5F8B",
    "release": "#9DC3DD",
    "plain": "#D9A441",
    "scikit-learn": "#B5543C",
    "BoTorch": "#7A6A9B",
}
LABELS = {"release": "release 0.2.0", "plain": "averaged Matern-5/2"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration.figure",
        description="Draw how often statements are true, and how much they leave open.",
    )
    parser.add_argument("runs", type=Path, help="file of runs")
    parser.add_argument("picture", type=Path, help="file of the picture")
    given = parser.parse_args(arguments)
    draw(list(read(given.runs).values()), given.picture)
    return 0


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw a row of two panels for each goal, with nothing known, and write the picture."""
    import matplotlib.pyplot as plt

    goals = [goal for goal in TITLES if any(run.key.goal == goal for run in runs)]
    figure, axes = plt.subplots(
        len(goals), 2, figsize=(9, 3.4 * len(goals)), squeeze=False, layout="constrained"
    )
    for row, goal in zip(axes, goals, strict=True):
        own = [run for run in runs if run.key.goal == goal and _is_unknown(run)]
        for model in COLORS:
            if any(model in run.checks for run in own):
                _draw_model(row, own, goal, model)
        row[0].plot([0.45, 1], [0.45, 1], color=style.INK, lw=0.8, ls=":")
        row[0].set(xlabel="stated probability", ylabel="share true", title=TITLES[goal])
        row[0].set(xlim=(0.45, 1.02), ylim=(0.25, 1.02))
        row[1].axhline(0.95, color=style.INK, lw=0.8, ls=":")
        row[1].set(xlabel=f"undecided after {AT} measurements", ylabel="share true at 95 %")
        row[1].set(xlim=(0, 1), ylim=(0.25, 1.02), title=TITLES[goal])
    axes[0, 1].legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, loc="lower right")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_model(row: Any, runs: Sequence[Run], goal: str, model: str) -> None:
    tolerance = TOLERANCE[goal]
    checks = [check for run in runs for check in run.checks.get(model, {}).values()]
    true = [np.mean([check[f"{tolerance} {level:g}"][0] for check in checks]) for level in LEVELS]
    label = LABELS.get(model, model)
    row[0].plot(LEVELS, true, "o-", color=COLORS[model], ms=4, lw=1.5, label=label)
    late = [run.checks[model][str(AT)] for run in runs if str(AT) in run.checks.get(model, {})]
    undecided = float(np.mean([check[f"{tolerance} 0.95"][1] for check in late]))
    at_95 = float(np.mean([check[f"{tolerance} 0.95"][0] for check in checks]))
    row[1].plot([undecided], [at_95], "o", color=COLORS[model], ms=8)


def _is_unknown(run: Run) -> bool:
    """Return whether nothing was known of the problem, and it was no draw of the model itself."""
    return PROBLEMS[run.key.problem].family not in (RIGHT, WRONG, OWN_DRAWS)


if __name__ == "__main__":
    sys.exit(main())
