"""A laboratory in a notebook, from nothing to an Excel file, as a chemist would work.

The notebook is executed by nbclient, and its cards are drawn by a real browser. With
TRUVAR_WALK_PICTURES=FOLDER the pictures and the notebook are kept there.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.helpers.server import browser

CELLS = {
    "start": """
        import numpy as np
        import truvar as tv
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        domain = tv.Domain.grid(
            temperature_C=np.linspace(20, 90, 8),
            time_h=np.linspace(1, 12, 6),
            solvent=tv.Categorical(["acetonitrile", "dichloromethane", "tetrahydrofuran"]),
        )

        def open_study(**changed):
            settings = {"quantity": "yield", "unit": "%", "noise_sd": 0.5, **changed}
            return tv.Study(
                domain, tv.Maximize(), store="sqlite:///lab.db", name="coupling",
                if_exists="load", **settings,
            )

        study = open_study()
        study
    """,
    "measure": """
        bonus = {"acetonitrile": 0, "dichloromethane": 6, "tetrahydrofuran": -4}

        def measure(point):
            hill = ((point["temperature_C"] - 60) / 25) ** 2 + ((point["time_h"] - 7) / 4) ** 2
            noise = np.random.default_rng(int(point["temperature_C"] * 31 + point["time_h"])).normal()
            return round(60 + bonus[point["solvent"]] + 20 * np.exp(-hill) + 0.5 * noise, 1)
    """,
    "first batch": "batch = study.ask(6)\nbatch",
    "first values": "for s in batch:\n    study.tell(s, measure(s.point))",
    "second batch": "batch = study.ask(4)\nbatch",
    "why": "study.explain(batch[0])",
    "broken vial": """
        study.fail(batch[0], "broken vial")
        study.tell(batch[1], 412.0)
        for s in batch[2:]:
            study.tell(s, measure(s.point))
        study.exclude({"temperature_C": 90.0, "time_h": 12.0, "solvent": "dichloromethane"}, "unsafe")
        study
    """,
    "corrected": """
        study.correct(batch[1], measure(batch[1].point))
        for s in study.ask(4):
            study.tell(s, measure(s.point))
        study.result()
    """,
    "contours": "study.plot(kind='contours')",
    "importance": "study.plot(kind='importance')",
    "again": "study = open_study()\nprint(study.steps)",
    "other settings": """
        try:
            open_study(noise_sd=0.7)
        except tv.TruvarError as error:
            print(error)
    """,
    "fixed kernel": """
        ramp = tv.Domain.grid(time_h=np.linspace(0, 24, 49))
        tv.Study(ramp, tv.LevelSet(50), kernel=ConstantKernel(400) * RBF(6), mean=50)
    """,
    "learned kernel": """
        kinetics = tv.Study(
            ramp, tv.LevelSet(50), kernel=tv.Learned(kernel=ConstantKernel() * RBF() + RBF()),
        )
        kinetics.run(lambda point: 90 * (1 - np.exp(-point["time_h"] / 8)), steps=9)
        print(kinetics.kernel)
        kinetics.result()
    """,
    "export": "todo = study.ask(3)\nprint(study.to_excel('coupling.xlsx'))",
}
CARDS = ("start", "first batch", "second batch", "why", "broken vial", "corrected", "fixed kernel")


def unindented(text: str) -> str:
    lines = text.strip("\n").splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines).rstrip()


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory):
    """Execute the notebook; return its folder and the outputs of every cell by name."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    pytest.importorskip("openpyxl", reason="needs truvar[excel]")
    folder = tmp_path_factory.mktemp("lab")
    cells = [nbformat.v4.new_code_cell(unindented(text)) for text in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    nbformat.write(notebook, folder / "lab.ipynb")
    return folder, {name: cell.outputs for name, cell in zip(CELLS, cells, strict=True)}


def shown(outputs, kind: str) -> str:
    found = [each["data"][kind] for each in outputs if kind in each.get("data", {})]
    return found[-1] if found else ""


def printed(outputs, stream: str = "stdout") -> str:
    return "".join(each["text"] for each in outputs if each.get("name") == stream)


def test_a_batch_is_a_table_with_expected_values_and_reasons(walk):
    _, outputs = walk
    assert "spread out to learn a model from" in shown(outputs["first batch"], "text/html")
    table = shown(outputs["second batch"], "text/html")
    assert "expected value" in table
    assert "chance to be above" in table
    assert "points that the policy has not decided" in table
    assert shown(outputs["second batch"], "text/plain").startswith("4 suggestions")
    assert "why" in shown(outputs["why"], "text/html")


def test_the_mistake_is_named_and_not_the_best_so_far(walk):
    _, outputs = walk
    assert "412" in printed(outputs["broken vial"], "stderr")
    card = shown(outputs["broken vial"], "text/plain")
    assert "1 failed" in card
    assert "best so far  412" not in card
    assert "measurement 8 has 412, far beyond all others" in card


def test_no_value_before_it_was_called_a_mistake(walk):
    _, outputs = walk
    for name in ("first values", "corrected"):
        assert "Warning" not in printed(outputs[name], "stderr")


def test_the_result_counts_failures_and_exclusions(walk):
    _, outputs = walk
    card = shown(outputs["corrected"], "text/html")
    assert "failed" in card
    assert "1 measurement" in card
    assert "2 of 144 points" in card


def test_the_notebook_can_be_run_again(walk):
    _, outputs = walk
    assert printed(outputs["again"]).strip() == "13"
    message = printed(outputs["other settings"])
    assert "exists with other settings: noise (stored: 0.25, given: 0.4" in message
    assert message.count("\n") == 1


def test_kernels_are_said_to_be_fixed_or_learned(walk):
    _, outputs = walk
    assert "fixed as given" in shown(outputs["fixed kernel"], "text/html")
    assert "RBF(length_scale=" in printed(outputs["learned kernel"])


def test_the_workbook_has_all_sheets(walk):
    import pandas as pd

    folder, _ = walk
    sheets = pd.read_excel(folder / "coupling.xlsx", sheet_name=None)
    assert list(sheets) == ["measurements", "suggestions", "points", "settings", "failures"]
    assert len(sheets["measurements"]) == 13
    assert len(sheets["suggestions"]) == 3
    assert sheets["suggestions"]["expected"].notna().all()
    assert len(sheets["points"]) == 144


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cards_fit_the_page(walk, scheme, tmp_path):
    """No card is wider than a notebook, and pictures of all of them are made."""
    folder, outputs = walk
    keep = os.environ.get("TRUVAR_WALK_PICTURES")
    target = Path(keep) if keep else tmp_path
    target.mkdir(parents=True, exist_ok=True)
    colours = "#111;color:#ddd" if scheme == "dark" else "#fff;color:#111"
    parts = [f"<p>{shown(outputs[name], 'text/html')}</p>" for name in CARDS]
    for name in ("contours", "importance"):
        picture = shown(outputs[name], "image/png").replace("\n", "")
        assert len(picture) > 10_000
        parts.append(f"<p><img src='data:image/png;base64,{picture}' style='max-width:100%'></p>")
    file = tmp_path / "cards.html"
    body = f"<body style='font:14px sans-serif;background:{colours}'>{''.join(parts)}</body>"
    file.write_text(f"<meta charset='utf-8'>{body}", encoding="utf-8")
    with browser() as instance:
        page = instance.new_page(viewport={"width": 1100, "height": 700})
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 1100
        boxes = page.locator(".truvar-card")
        assert boxes.count() == len(CARDS)
        page.screenshot(path=target / f"notebook-{scheme}.png", full_page=True)
    if keep:
        shutil.copy(folder / "lab.ipynb", target)
