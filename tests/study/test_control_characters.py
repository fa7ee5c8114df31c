"""Control characters and changes of the direction of text: refused in names, written out in
reasons, notes, authors."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar._representation import has_control_characters, visible
from truvar.cli import main
from truvar.exceptions import InvalidArgumentError
from truvar.report.html_report import write_report_at

CONTROLS = [
    "\x1b[31mred",
    "a\nb",
    "a\tb",
    "bell\x07",
    "c1\x9b2J",
    "rtl\u202etxt.exe",
    "isolate\u2067x",
    "l\u2028ine",
]
KNOWN = {"kernel": RBF(0.3), "mean": 0.0, "noise": 1e-4}
TEXTS = st.text(st.characters() | st.sampled_from("\x1b\x00\u202e\u2066\n\t\x9b\u2029"))


@given(TEXTS)
@settings(max_examples=200)
def test_a_visible_text_has_no_control_characters_but_line_breaks_and_tabs(text):
    shown = visible(text)
    for character in "\n\r\t":
        shown = shown.replace(character, "")
    assert not has_control_characters(shown)
    assert visible(visible(text)) == visible(text)
    if not has_control_characters(text):
        assert visible(text) == text


@pytest.mark.parametrize("name", CONTROLS)
def test_names_with_control_characters_are_refused(name, tmp_path):
    grid = tv.Domain.grid(x=[0.0, 0.5, 1.0])
    makers = [
        lambda: tv.Domain.grid(**{name: [0, 1]}),
        lambda: tv.Domain.box(**{name: (0, 1)}),
        lambda: tv.Domain.mixture(name, "b"),
        lambda: tv.Domain.table(pd.DataFrame({name: [0.0, 1.0]})),
        lambda: tv.Study(
            grid, tv.Maximize(), **KNOWN, store=f"sqlite:///{tmp_path}/a.db", name=name
        ),
        lambda: tv.Study(
            grid, tv.Maximize(), **KNOWN, tasks=tv.Tasks([[1, 0.5], [0.5, 1]], ["target", name])
        ),
        lambda: tv.Study(grid, tv.Maximize(), **KNOWN, vehicles={name: tv.Vehicle()}),
    ]
    for make in makers:
        with pytest.raises(InvalidArgumentError, match="control characters") as refused:
            make()
        assert not has_control_characters(str(refused.value))


def test_names_in_any_script_are_accepted():
    for name in ("Tiefe (m)", "عمق", "深さ", "می\u200cروم", "\u200fעומק", "👩\u200d🔬"):
        assert tv.Domain.grid(**{name: [0, 1]}).columns == (name,)


@pytest.mark.parametrize("text", CONTROLS)
def test_reasons_notes_and_authors_are_written_out(text, tmp_path):
    store = f"sqlite:///{tmp_path}/a.db"
    domain = tv.Domain.grid(x=np.linspace(0, 1, 9))
    study = tv.Study(domain, tv.Maximize(), **KNOWN, store=store, name="a", author=text)
    study.exclude({"x": 0.0}, reason=text)
    study.exclude({"x": 0.0}, reason=text)  # is the same one
    study.fail({"x": 0.25}, reason=text)
    study.withdraw(study.ask(), reason=text)
    study.note(text)
    events = tv.load(store, "a").events
    assert events["kind"].tolist().count("excluded") == 2
    recorded = json.dumps(events["details"].tolist(), ensure_ascii=False, default=str) + " ".join(
        events["who"]
    )
    assert not has_control_characters(recorded.replace("\n", "").replace("\t", ""))
    assert visible(text) in events["who"].tolist()


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_of_an_earlier_release_open_and_are_written_out_where_they_are_shown(
    tmp_path, capsys
):
    name = "rtl\u202etxt\x1b[31m"
    study = tv.Study(tv.Domain.grid(x=np.linspace(0, 1, 9)), tv.Maximize(), **KNOWN)
    study.tell({"x": 0.5}, 1.0)
    study.exclude({"x": 0.0}, reason="REASON")
    text = study.to_json().replace(
        '"x"', json.dumps(name, ensure_ascii=False)[:-1].replace("\x1b", "\\u001b") + '"'
    )
    old = tv.Study.from_json(text.replace("REASON", "\\u202eREASON"))
    assert old.domain.columns == (name,)
    for shown in (old.domain._repr_html_(), old._repr_html_(), old.result()._repr_html_()):
        assert not has_control_characters(shown.replace("\n", ""))
    written = write_report_at(old, tmp_path / "report.html")["report"].read_text(encoding="utf-8")
    assert "\u202e" not in written
    assert "\x1b" not in written
    file = tmp_path / "old.json"
    file.write_text(old.to_json(), encoding="utf-8")
    store = str(tmp_path / "old.db")
    assert main(["import", str(file), store, "--name", "old"]) == 0
    for command in (
        ["status", store],
        ["ask", store],
        ["exclude", store, "nothing"],
        ["exclude", store, "1"],
    ):
        main(command)
    output = "".join(capsys.readouterr())
    assert "\u202e" not in output
    assert "\x1b" not in output
