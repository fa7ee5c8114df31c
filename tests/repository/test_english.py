"""Pages and the page of the service are free of the idioms that the style check lists."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check_style() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_style", ROOT / ".ci" / "check_style.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_has_an_idiom(check_style: ModuleType) -> None:
    assert list(check_style.idioms_of(ROOT)) == []


def test_idioms_are_found_by_line_and_as_whole_words(
    check_style: ModuleType, tmp_path: Path
) -> None:
    text = "Decided at once.\nThe dearth of data; an ideal.\nAll the same, and by itself."
    found = [(line, message.split(":")[0]) for line, message in check_style.idioms(text)]
    assert found == [(1, "'at once'"), (3, "'All the same'"), (3, "'by itself'")]
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    (tmp_path / "docs" / "how-to" / "page.md").write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "how-to" / "page.toml").write_text(text, encoding="utf-8")
    assert len(list(check_style.idioms_of(tmp_path))) == 3
