"""Notebooks: cards, figures, progress and the live map, executed by nbclient and drawn by a
browser."""

from __future__ import annotations

import base64
import io
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import InvalidArgumentError
from truvar.notebook import _IMPORT, _STATIC, _bundle, _code, _plane, _view

CELLS = [
    "import numpy as np, truvar as tv\n"
    "from sklearn.gaussian_process.kernels import RBF\n"
    "domain = tv.Domain.grid(x=np.linspace(0, 1, 20), y=np.linspace(0, 1, 15))\n"
    "study = tv.Study(domain, tv.LevelSet(0.5), kernel=RBF(0.3), mean=0.0, noise=0.01, "
    "name='pond')\n"
    "study",
    "live = tv.notebook.live_map(study)\nlive",
    "study.run(lambda p: float(np.sin(4 * p['x']) * p['y']), steps=6, progress=True, "
    "callbacks=[live])",
    "study.plot()",
    "study.ask()",
    "study.plot(kind='convergence')",
]


def new_study(dimensions: int) -> tv.Study:
    axes = {name: np.linspace(0, 1, 9) for name in "xyz"[:dimensions]}
    study = tv.Study(
        tv.Domain.grid(**axes), tv.LevelSet(0.5), kernel=RBF(0.3), mean=0.0, noise=0.01, name="pond"
    )
    study.run(lambda point: float(np.sin(4 * point["x"])), steps=6)
    study.ask()
    return study


def test_a_notebook_shows_cards_figures_progress_and_the_live_map(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("anywidget")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = [[output.get("data", {}) for output in cell.outputs] for cell in notebook.cells]
    assert "where is the value above 0.5?" in shown[0][0]["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in shown[1][0]
    progress, result = shown[2]
    assert "measurement 6/6" in progress["text/plain"]
    assert "truvar-progress" in progress["text/html"]
    assert "6 measurements, cost 6" in result["text/html"]
    png, _ = (
        base64.b64decode(the_image(cell.outputs)) for cell in (notebook.cells[3], notebook.cells[5])
    )
    assert struct.unpack(">II", png[16:24]) == (1210, 682)
    assert len(png) > 20_000
    assert "study.tell(7, VALUE)" in shown[4][0]["text/html"]
    states = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    views = [state["state"]["view"] for state in states.values() if "view" in state["state"]]
    assert json.loads(views[0])["result"]["steps"] == 6  # the map was redrawn by the run


def the_image(outputs: list[Any]) -> str:
    """Return the image of a cell, which must have one and no more."""
    (image,) = [
        output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    return image


def test_a_notebook_with_inline_figures_shows_the_plot_once(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        "%matplotlib inline",
        "import truvar as tv",
        "domain = tv.Domain.grid(x=[0, 0.25, 0.5, 0.75, 1], y=[0, 0.5, 1])\n"
        "study = tv.Study(domain, tv.Maximize())\n"
        "for _ in range(3):\n"
        "    suggestion = study.ask()\n"
        "    study.tell(suggestion, suggestion.point['x'] - suggestion.point['y'])",
        "study.plot()",
        "study.plot(kind='convergence')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    for cell in notebook.cells[-2:]:
        assert base64.b64decode(the_image(cell.outputs)).startswith(b"\x89PNG")


def test_a_figure_is_a_png_for_any_notebook() -> None:
    figure = new_study(1).plot(kind="map")
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_the_live_map_has_all_modules_that_it_needs_and_no_import() -> None:
    text = _bundle()
    assert "domainPlot" in text
    assert not any(line.startswith(("import ", "export ")) for line in text.splitlines())
    for path in _STATIC.glob("*.js"):  # every import of the page is of the form that is understood
        source = path.read_text()
        n_imports = sum(line.startswith("import ") for line in source.splitlines())
        assert len(_IMPORT.findall(source)) == n_imports, path.name


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="unknown theme 'night'"):
        tv.notebook.live_map(new_study(1), theme="night")


def test_the_widget_is_a_callback_that_redraws() -> None:
    pytest.importorskip("anywidget")
    study = new_study(2)
    live = tv.notebook.live_map(study, theme="dark")
    before = json.loads(live.view)
    study.run(lambda point: 0.5, steps=7, callbacks=[live])
    after = json.loads(live.view)
    assert (before["result"]["steps"], after["result"]["steps"]) == (6, 7)
    sent: list[Any] = []
    live.send = sent.append
    live._answer(None, {"id": 3, "path": "/studies/pond/slice?x=x&y=y&at=0.5&at=0.5"}, None)
    live._answer(None, {"id": 4, "path": "/studies/pond/slice?x=x&y=q&at=0.5&at=0.5"}, None)
    assert sent[0]["id"] == 3
    assert len(sent[0]["data"]["mean"]) == 48 * 48
    assert "error" in sent[1]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_live_map_is_drawn_in_a_browser(dimensions: int, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    image = pytest.importorskip("PIL.Image")
    study = new_study(dimensions)
    page_text = f"""<!doctype html><meta charset="utf-8"><body><div id="cell" style="width:800px"></div>
<script id="view" type="application/json">{_view(study).replace("<", "&lt;")}</script>
<script type="module">{_code().replace("export default", "const widget =")}
const listeners = {{}};
const model = {{
  get: (name) => (name === "theme" ? "dark" : document.getElementById("view").textContent),
  on: (name, call) => {{ listeners[name] = call; }}, off: () => {{}},
  send: async ({{ id, path }}) => listeners["msg:custom"]({{ id, data: JSON.parse(await window.plane(path)) }}),
}};
widget.render({{ model, el: document.getElementById("cell") }});
</script>"""
    path = tmp_path / "cell.html"
    path.write_text(page_text, encoding="utf-8")
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 840, "height": 700})
        mistakes: list[str] = []
        page.on("pageerror", lambda error: mistakes.append(str(error)))
        page.expose_function("plane", lambda request: json.dumps(_plane(study, request)))
        page.goto(path.as_uri())
        page.locator("#cell figure").first.wait_for()
        for _ in range(100):
            picture = image.open(io.BytesIO(page.screenshot(path=tmp_path / "map.png"))).convert(
                "RGB"
            )
            colours = picture.getcolors(maxcolors=1_000_000)
            if colours is not None and len(colours) > 60:
                break
            page.wait_for_timeout(100)
        assert mistakes == []
        assert "Mean" in page.locator("#cell figure").first.inner_text() or dimensions == 1
        browser.close()
    assert colours is not None
    assert len(colours) > 60  # a drawing, not an empty frame
