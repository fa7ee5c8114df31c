"""Figures of a study as the contents of a file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from truvar.study.study import Study


def map_picture(study: Study, file_format: str) -> bytes:
    """Return the map of a study as PNG, SVG or PDF.

    Args:
        study: The study, which is not changed.
        file_format: "png", "svg" or "pdf".

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    from truvar.report.figures import draw  # with it the figures, which a server seldom needs

    file = io.BytesIO()
    draw("map", study, "light", {}).savefig(file, format=file_format)
    return file.getvalue()
