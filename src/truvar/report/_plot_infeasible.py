"""Marks on a map for places that are excluded and measurements that failed."""

from __future__ import annotations

from typing import Any

import numpy as np

from truvar.report import style
from truvar.report._plot_data import PlotData
from truvar.report.style import INK

EXCLUDED = {"marker": "x", "color": INK, "linewidths": 0.7, "alpha": 0.55}
FAILED = {"marker": "X", "c": "white", "edgecolors": INK, "linewidths": 0.8}
FAILED_SIZE = 34.0  # square points
MIN_SIZE = 3.0  # square points, of the mark of an excluded point
MAX_SIZE = 22.0


def draw_infeasible(ax: Any, data: PlotData) -> list[Any]:
    """Mark excluded points and failed measurements on a map.

    Args:
        ax: The axes, over the first two columns of the domain.
        data: The data of the study.

    Returns:
        Handles for the legend; none if there is nothing to mark.
    """
    failed = np.array(
        [data.domain.array(failure.point)[:2] for failure in data.study.failures]
    ).reshape(-1, 2)
    line = style.import_matplotlib("lines").Line2D
    handles: list[Any] = []
    excluded = data.result.excluded
    if excluded is not None:
        points = data.domain.points[excluded][:, :2]
        points = points[~(points[:, None, :] == failed[None, :, :]).all(axis=2).any(axis=1)]
        if len(points):
            size = float(np.clip(2500 / len(data.domain), MIN_SIZE, MAX_SIZE))
            ax.scatter(*points.T, s=size, zorder=3, clip_on=False, **EXCLUDED)
            handles.append(
                line(
                    [], [], ls="", marker="x", ms=4, color=INK, mew=0.7, alpha=0.7, label="excluded"
                )
            )
    if len(failed):
        ax.scatter(*failed.T, s=FAILED_SIZE, zorder=4.5, clip_on=False, **FAILED)
        handles.append(
            line([], [], ls="", marker="X", ms=6, mfc="white", mec=INK, mew=0.8, label="failed")
        )
    return handles
