"""Tables as people have them: other libraries, delimiters, decimal signs, units, marks, missing
and repeated rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.exceptions import InvalidArgumentError, InvalidDomainError
from truvar.tabular.delimited import (
    NumberFormat,
    _find_delimiter,
    _find_number_format,
    find_column,
    read_cells,
)
from truvar.tabular.tables import as_table, parse_table, read_table


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x,y\n1,2.5\n3,4\n", [[1.0, 2.5], [3.0, 4.0]]),
        ("x;y\n1;2,5\n3;4\n", [[1.0, 2.5], [3.0, 4.0]]),
        ("x;y\n1.234,5;2,5\n-3;4\n", [[1234.5, 2.5], [-3.0, 4.0]]),
        ("x;y\n1'234.5;2.5\n3;4\n", [[1234.5, 2.5], [3.0, 4.0]]),
        ("x;y\n1 234,5;2,5\n3;4e3\n", [[1234.5, 2.5], [3.0, 4000.0]]),
        ('x,y\n"1,234.5",2.5\n3,4\n', [[1234.5, 2.5], [3.0, 4.0]]),
        ('x,y\n"1,5","2,5"\n3,4\n', [[1.5, 2.5], [3.0, 4.0]]),
        ("x\ty\n1\t2,5\n3\t4\n", [[1.0, 2.5], [3.0, 4.0]]),
        (
            "x;y\n12,345;2\n3;4\n",
            [[12.345, 2.0], [3.0, 4.0]],
        ),  # a semicolon goes with decimal commas
        (
            "x;y\n12,345;2.5\n3;4\n",
            [[12345.0, 2.5], [3.0, 4.0]],
        ),  # 2.5 shows that the comma is not a decimal sign
        ("x,y,\n1,2.5,\n3,4,\n", [[1.0, 2.5], [3.0, 4.0]]),
        (
            "x,y\n1,2.5,\n3,4,\n",
            [[1.0, 2.5], [3.0, 4.0]],
        ),  # a trailing comma must not shift the columns
        ("\ufeffx, y\n1, 2.5\n\n3, 4\n", [[1.0, 2.5], [3.0, 4.0]]),
    ],
)
def test_numbers_of_a_file_are_read_whatever_its_signs(
    text: str, expected: list[list[float]], tmp_path: Path
) -> None:
    frame = read_table(written(tmp_path / "table.csv", text))
    assert list(frame.columns) == ["x", "y"]
    np.testing.assert_array_equal(frame.to_numpy(float), expected)


def test_utf_16_of_excel_is_read(tmp_path: Path) -> None:
    frame = read_table(written(tmp_path / "table.txt", "µ;y\n1,5;2\n".encode("utf-16")))
    assert frame.to_dict("list") == {"µ": [1.5], "y": [2]}


@pytest.mark.parametrize("text", ["x;y\n1,5;2.5\n", "x;y\n1,234;1.234\n", 'x,y\n"1,5",2.5\n'])
def test_mixed_decimal_signs_are_refused_with_the_lines(text: str, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidDomainError,
        match=r"one decimal sign, got '1,\d+' \(line 2\) and '\d\.\d+' \(line 2\)",
    ):
        read_table(written(tmp_path / "table.csv", text))


def test_a_row_with_too_many_cells_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidDomainError, match="line 3"):
        read_table(written(tmp_path / "table.csv", "x,y\n1,2\n1,2,5\n"))
    with pytest.raises(InvalidDomainError, match="line 2: expected 2 values, got 3"):
        read_table(written(tmp_path / "table.csv", "x,y\n1,2,5\n1,2,5\n"))


def test_dates_are_not_numbers_in_a_file_with_thousands_points() -> None:
    frame = parse_table("day;x\n12.03.2024;1.234,5\n13.03.2024;2\n")
    assert frame["day"].tolist() == ["12.03.2024", "13.03.2024"]
    assert frame["x"].tolist() == [1234.5, 2.0]


@pytest.mark.parametrize("decimal", [".", ","])
def test_number_formats_agree_with_a_naive_reading(decimal: str) -> None:
    rng = np.random.default_rng(0)
    for value in rng.normal(0, 10.0 ** rng.integers(-3, 7, 200)).round(3):
        grouped = f"{value:,.3f}"
        if decimal == ",":
            grouped = grouped.translate(str.maketrans(",.", ".,"))
        assert NumberFormat(decimal, thousands=True).parse(grouped) == float(f"{value:.3f}")
        # The format of a file with this number and one that settles the sign is found.
        settled = "0.5" if decimal == "." else "0,5"
        assert _find_number_format([(2, [grouped, settled])], ";").decimal == decimal


@pytest.mark.parametrize("text", ["1.5", "1.234.5", "x", "", "1,2,3"])
def test_texts_that_are_no_numbers_with_a_decimal_comma_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        NumberFormat(",", thousands=False).parse(text)


def test_delimiter_of_a_header_with_quotes() -> None:
    assert _find_delimiter('"a, b";c\n1;2\n') == ";"
    assert read_cells('"a, b";c\n1;2\n').header == ["a, b", "c"]


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="the file is empty"):
        read_cells(" \n")


@pytest.mark.parametrize("header", ["depth (m)", "Depth [m]", "depth_m", "DEPTH (m) "])
def test_units_in_headers_are_understood(header: str) -> None:
    assert find_column([header, "x"], "depth_m") == header


def test_a_unit_that_several_columns_could_have_is_not_guessed() -> None:
    assert find_column(["depth (m)", "depth (ft)"], "depth") is None
    assert find_column(["depth (m)", "depth (ft)"], "depth_ft") == "depth (ft)"


def test_coordinates_and_other_columns_are_found_by_their_names_without_units(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "lake.csv", "distance (m);depth (m);time (min)\n0;-1,5;10\n5;-2;20\n")
    domain = tv.Domain.table(path, columns=["distance_m", "depth"])
    assert domain.columns == ("distance_m", "depth")
    assert domain.points.tolist() == [[0.0, -1.5], [5.0, -2.0]]
    assert domain.column("time").tolist() == [10, 20]
    study = tv.Study(domain, tv.Maximize(), cost="time", noise=0.1)
    copy = tv.Study.from_json(study.to_json())
    assert copy.domain.column("time").tolist() == [10, 20]
    assert copy.domain.columns == domain.columns


def test_incomplete_rows_are_refused_with_all_their_numbers_or_dropped() -> None:
    frame = pd.DataFrame(
        {"x": [1.0, None, 3.0, None], "y": [1.0, 2.0, 3.0, 4.0]}, index=list("abcd")
    )
    with pytest.raises(
        InvalidDomainError, match=r"nan in row 1, column 'x' \(2 incomplete rows: 1, 3\)"
    ):
        tv.Domain.table(frame)
    domain = tv.Domain.table(frame, missing="drop")
    assert domain.points.tolist() == [[1.0, 1.0], [3.0, 3.0]]
    assert [domain.label(0), domain.label(1)] == ["a", "c"]


def test_the_rows_that_satisfy_a_constraint_keep_their_labels_and_context() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]}, index=list("abc"))
    domain = tv.Domain.table(frame, constraints="x >= 2", context=["y"])
    assert [domain.label(0), domain.label(1)] == ["b", "c"]
    study = tv.Study(domain, tv.Maximize(), noise=0.1)
    copy = tv.Study.from_json(study.to_json()).domain
    assert [copy.label(0), copy.label(1)] == ["b", "c"]
    assert copy.context == ("y",)
    assert copy.points.tolist() == [[2.0, 2.0], [3.0, 3.0]]


def test_repeated_points_are_refused_with_their_rows_or_dropped() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 1.0, 1.0], "y": [1.0, 2.0, 1.0, 1.0]})
    with pytest.raises(
        InvalidDomainError, match=r"rows 0 and 2 are both .*, and 1 more row repeats others"
    ):
        tv.Domain.table(frame)
    domain = tv.Domain.table(frame, duplicates="drop")
    assert domain.points.tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_an_unknown_way_to_handle_rows_is_refused() -> None:
    with pytest.raises(InvalidDomainError, match="missing must be 'refuse' or 'drop', got 'fill'"):
        tv.Domain.table(pd.DataFrame({"x": [1.0]}), missing="fill")  # type: ignore[arg-type]


def test_a_workbook_is_read_as_it_was_written(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="needs truvar[excel]")
    frame = pd.DataFrame({"name": ["a", "b"], "x": [1.5, 2.0], "n": [1, 2]})
    frame.to_excel(tmp_path / "table.xlsx", index=False)
    again = read_table(tmp_path / "table.xlsx")
    assert again["name"].tolist() == ["a", "b"]
    assert again[["x", "n"]].to_numpy(float).tolist() == [[1.5, 1.0], [2.0, 2.0]]
    domain = tv.Domain.table(str(tmp_path / "table.xlsx"), columns=["x", "n"], label="name")
    assert domain.label(1) == "b"


def test_a_file_that_is_no_workbook_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="needs truvar[excel]")
    with pytest.raises(InvalidDomainError, match="not an Excel workbook"):
        read_table(written(tmp_path / "table.xlsx", "x,y\n1,2\n"))
    with pytest.raises(InvalidDomainError, match="there is no file"):
        read_table(tmp_path / "none.xlsx")


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries_are_accepted(library: str) -> None:
    module = pytest.importorskip(library)
    pytest.importorskip("narwhals", reason="needs truvar[frames]")
    make = module.DataFrame if library == "polars" else module.table
    table = make({"x": [1, 2, None], "name": ["a", None, "c"], "y": [0.5, 1.5, 2.5]})
    frame = as_table(table)
    assert frame["y"].tolist() == [0.5, 1.5, 2.5]
    assert frame["x"].isna().tolist() == [False, False, True]
    domain = tv.Domain.table(table, columns=["x", "y"], missing="drop")
    assert domain.points.tolist() == [[1.0, 0.5], [2.0, 1.5]]


def test_the_interchange_protocol_is_used_without_narwhals(monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)
    frame = as_table(pyarrow.table({"x": [1.0, 2.0]}))
    assert frame["x"].tolist() == [1.0, 2.0]


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(InvalidDomainError, match="a table must be a DataFrame or the path"):
        as_table(np.zeros((2, 2)))


def test_numbers_are_read_to_the_last_digit() -> None:
    numbers = np.random.default_rng(0).random(200)
    text = "x\n" + "\n".join(repr(float(number)) for number in numbers)
    assert parse_table(text)["x"].tolist() == numbers.tolist()
