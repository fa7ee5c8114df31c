"""The example notebook runs from top to bottom, and is stored without outputs."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first.ipynb"


def test_the_notebook_runs_and_answers(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install truvar[test]")
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install truvar[test]")
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install truvar[notebook]")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    printed = "".join(output.get("text", "") for cell in code for output in cell.outputs)
    assert "reached 0.9" in printed
    assert "each with a probability of at least 95 %" in printed
    images = [
        output["data"]["image/png"]
        for cell in code
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert [base64.b64decode(image)[:4] for image in images] == [b"\x89PNG"]
