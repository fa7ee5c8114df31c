"""Columns that are no coordinates as they stand are handled, or refused with what to write
instead."""

from __future__ import annotations

from datetime import time
from decimal import Decimal
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.helpers.warning_checks import no_warnings

import truvar as tv
from truvar.exceptions import InvalidArgumentError, InvalidDomainError
from truvar.tabular.tables import as_table, parse_table


def points_of(table: object, **how: object) -> list[list[float]]:
    return tv.Domain.table(table, **how).points.tolist()  # type: ignore[arg-type]


# -- files
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2,3,\n4,5,6,\n", "line 2: expected 2 values, got 4; fix the line"),
        ("x,x\n1,2\n3,4\n", "column 'x' is duplicated"),
        (
            "x y\n1 2\n3 4\n",
            r"got spaces in the line 'x y'; replace them, or .*pd.read_csv\(path, sep='\\\\s\+'\)",
        ),
        ("x:y\n1:2\n3:4\n", "got colons in the line 'x:y'"),
        (
            "# made by hand\nx,y\n1,2\n",
            "remove the comments before the line that names the columns",
        ),
    ],
)
def test_a_file_whose_cells_cannot_be_told_apart_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        parse_table(text)


def test_a_single_column_of_words_or_times_is_not_taken_for_several() -> None:
    assert parse_table("kind of soil\nred clay here\nfine sand here\n").shape == (2, 1)
    assert parse_table("time\n12:30\n12:45\n").shape == (2, 1)


def test_a_delimiter_at_the_end_of_some_lines_shifts_nothing() -> None:
    assert parse_table("x,y\n1,2\n3,4,\n").to_dict("list") == {"x": [1, 3], "y": [2, 4]}


def test_columns_that_pandas_shifted_are_refused_with_the_remedy() -> None:
    shifted = pd.read_csv(
        StringIO("x,y,z\n1,2,3,\n4,5,6,\n")
    )  # takes the first column for the index
    with pytest.raises(
        InvalidDomainError, match=r"none in any row of column 'z'; .*index_col=False"
    ):
        tv.Domain.table(shifted)


def test_columns_that_pandas_may_have_shifted_are_warned_of_with_the_remedy() -> None:
    text = "x,y,z\n1,2,3,\n4,5,6,\n"
    shifted = pd.read_csv(StringIO(text))
    with pytest.warns(
        UserWarning, match=r"column 'z' is empty, and .* \(1, 4, ...\); .*index_col=False"
    ):
        tv.Domain.table(shifted, columns=["x", "y"])
    right = pd.read_csv(StringIO(text), index_col=False)
    with no_warnings():
        assert points_of(right, columns=["x", "y"]) == [[1, 2], [4, 5]]
        assert points_of(right.assign(value=np.nan), columns=["x", "y"]) == [[1, 2], [4, 5]]
        labelled = right.assign(value=np.nan).set_axis(pd.Index(["a", "b"], name="station"))
        assert points_of(labelled, columns=["x", "y"]) == [[1, 2], [4, 5]]


def test_another_encoding_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes("größe,y\n1,2\n".encode("cp1252"))
    with pytest.raises(
        InvalidDomainError, match="must be UTF-8 text, got another encoding; save it as CSV UTF-8"
    ):
        tv.Domain.table(tmp_path / "table.csv")


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_the_index_that_to_csv_wrote_names_the_rows_of_a_file(
    delimiter: str, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"x": [1.5, 2.5], "y": [3.0, 4.0]}, index=["north", "south"])
    frame.to_csv(tmp_path / "table.csv", sep=delimiter)
    domain = tv.Domain.table(tmp_path / "table.csv")
    assert domain.columns == ("x", "y")
    assert domain.label(1) == "south"
    assert tv.Domain.table(str(tmp_path / "table.csv"), columns=["x"]).label(0) == "north"
    result = tv.Study(domain, tv.Maximize(), noise=0.1).result().to_frame()
    assert result.index.equals(frame.index)
    assert not [name for name in result.columns if name in ("", "Unnamed: 0")]


def test_the_index_that_to_csv_wrote_names_the_rows_of_a_problem_file(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.5, 2.5]}, index=["north", "south"]).to_csv(tmp_path / "table.csv")
    (tmp_path / "lake.toml").write_text('[domain]\ntable = "table.csv"\n[goal]\nmaximize = true\n')
    domain = tv.load_problem(tmp_path / "lake.toml").domain
    assert domain.columns == ("x",)
    assert domain.label(1) == "south"


def test_the_saved_index_in_a_dataframe_is_no_coordinate_unless_it_is_named() -> None:
    frame = pd.read_csv(StringIO(",x\n7,1\n9,2\n"))
    domain = tv.Domain.table(frame)
    assert domain.columns == ("x",)
    assert [domain.label(0), domain.label(1)] == [0, 1]  # frame.loc[label] is the row
    assert tv.Domain.table(frame, columns=["Unnamed: 0", "x"]).columns == ("Unnamed: 0", "x")


def test_another_column_without_a_name_is_refused_unless_it_is_empty() -> None:
    with pytest.raises(
        InvalidDomainError, match="every column must have a name, but column 2 has none"
    ):
        tv.Domain.table(pd.read_csv(StringIO("x,,y\n1,2,3\n4,5,6\n")))
    assert tv.Domain.table(pd.read_csv(StringIO("x,y,\n1,2,\n3,4,\n"))).columns == ("x", "y")


@pytest.mark.parametrize("values", [["1 m", "2 m"], ["10%", "2.5 %", "+3%"], ["5,5°C", "-2°C"]])
def test_numbers_with_a_unit_are_categories_with_a_warning(values: list[str]) -> None:
    frame = pd.DataFrame({"x": values})
    with pytest.warns(
        UserWarning,
        match=rf"column 'x' holds numbers with a unit, such as '{values[0]}'.*without an order",
    ):
        tv.Domain.table(frame)
    with no_warnings():
        tv.Domain.table(frame.astype("category"))


@pytest.mark.parametrize(
    "values", [["a1", "a2"], ["1 m", "2 s"], ["2026-01-01", "2026-01-02"], ["12:30", "12:45"]]
)
def test_other_texts_are_no_numbers_with_a_unit(values: list[str]) -> None:
    with no_warnings():
        assert len(tv.Domain.table(pd.DataFrame({"x": values}))) == 2


# -- types
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [1 + 2j, 2.0],
            "complex numbers such as .*; give the real and the imaginary part as two columns",
        ),
        ([[1], [2]], r"list objects such as '\[1\]'; write it as numbers, or as one text per row"),
        ([time(1), time(2)], "time objects such as '01:00:00'"),
        (pd.interval_range(0, 2), "Interval objects"),
        (["1+2j", "3"], "complex numbers such as '1\\+2j'"),
        (["1 + 2i", "3i"], "complex numbers"),
        (pd.to_timedelta([1, 2], unit="D"), r"durations such as .*frame\['x'\] / pd.Timedelta"),
        (pd.period_range("2024", periods=2, freq="D"), r"periods such as .*to_timestamp\(\)"),
        (
            ["01/02/2024", "13/02/2024"],
            r"the day or the month may come first; write them as .*pd.to_datetime",
        ),
    ],
)
def test_types_that_no_coordinate_has_are_refused_with_the_remedy(
    values: object, message: str
) -> None:
    with pytest.raises(InvalidDomainError, match=message):
        tv.Domain.table(pd.DataFrame({"x": values}))


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.5"), Decimal("2.5")],
        ["1.5", "2.5"],
        pd.Series([1.5, 2.5], dtype=object),
        pd.array([1.5, 2.5], dtype="Float64"),
    ],
)
def test_numbers_of_other_types_are_numbers_also_in_a_stored_study(values: object) -> None:
    domain = tv.Domain.table(pd.DataFrame({"x": values}))
    assert domain.points.tolist() == [[1.5], [2.5]]
    copy = tv.Study.from_json(tv.Study(domain, tv.Maximize(), noise=0.1).to_json())
    assert copy.domain.points.tolist() == [[1.5], [2.5]]


def test_texts_that_resemble_dates_or_numbers_stay_categories() -> None:
    for values in (["64-17-5", "50-00-0"], ["1.2.3", "1.2.4"], ["pi", "xi"]):
        assert tv.Domain.table(pd.DataFrame({"x": values})).point(0) == {"x": values[0]}


def test_dates_are_coordinates_with_or_without_a_time_zone() -> None:
    for zone in (None, "UTC", "Europe/Zurich"):
        days = pd.date_range("2024-03-12", periods=3, tz=zone)
        assert np.diff(tv.Domain.table(pd.DataFrame({"day": days})).points[:, 0]).tolist() == [
            1.0,
            1.0,
        ]


# -- names and containers
# ----------------------------------------------------------------------------------------------


def test_names_that_are_numbers_become_text() -> None:
    frame = pd.DataFrame(np.arange(6.0).reshape(3, 2))
    assert tv.Domain.table(frame).columns == ("0", "1")
    assert tv.Domain.table(frame, columns=[1]).columns == ("1",)  # type: ignore[list-item]


def test_names_of_several_levels_are_refused() -> None:
    names = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    with pytest.raises(InvalidDomainError, match="a column must have one name"):
        tv.Domain.table(pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=names))


def test_arrays_by_name_rows_by_name_and_structured_arrays_are_tables() -> None:
    expected = [[1.0, 3.0], [2.0, 4.0]]
    assert points_of({"x": np.array([1.0, 2.0]), "y": [3, 4]}) == expected
    assert points_of([{"x": 1.0, "y": 3}, {"x": 2.0, "y": 4}]) == expected
    assert points_of(np.array([(1, 3.0), (2, 4.0)], dtype=[("x", int), ("y", float)])) == expected
    assert points_of(pd.Series([1.0, 2.0], name="x")) == [[1.0], [2.0]]
    assert tv.Domain.table({"kind": np.array(["a", "b"])}).point(1) == {"kind": "b"}


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(
        InvalidDomainError, match=r"lists of one length, got the shapes x: \(2,\), y: \(3,\)"
    ):
        as_table({"x": [1, 2], "y": [1, 2, 3]})


def test_lazy_tables_and_record_batches() -> None:
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("narwhals", reason="needs truvar[frames]")
    with pytest.raises(InvalidDomainError, match=r"got a LazyFrame; give table.collect\(\)"):
        tv.Domain.table(polars.DataFrame({"x": [1.0]}).lazy())
    assert points_of(pyarrow.record_batch({"x": [1.0, 2.0]})) == [[1.0], [2.0]]
    assert points_of(polars.DataFrame({"x": ["1.5", "2.5"]}).cast(polars.Decimal(10, 2))) == [
        [1.5],
        [2.5],
    ]


@pytest.mark.parametrize("codes", [[3, 1, 2, 1], ["3", "1", "2", "1"], [3.5, 1.0, 2.0, 1.0]])
def test_numbers_of_type_category_are_categories(codes) -> None:
    column = pd.Series(codes, dtype="category")
    domain = tv.Domain.table(pd.DataFrame({"x": range(4), "solvent": column}))
    assert domain.parameters[1] == tv.Categorical(sorted(set(codes)))
    assert [domain.point(row)["solvent"] for row in range(4)] == codes
    study = tv.Study(domain, tv.Maximize(), noise_sd=0.1)
    study.tell({"x": 1, "solvent": codes[1]}, 0.5)
    copy = tv.Study.from_json(study.to_json())
    assert copy.measurement_records()[0].point == {"x": 1, "solvent": codes[1]}


def test_a_table_with_codes_of_type_category_can_be_extended() -> None:
    column = pd.Series([1, 2, 1], dtype="category")
    study = tv.Study(
        tv.Domain.table(pd.DataFrame({"x": range(3), "solvent": column})), tv.Maximize()
    )
    study.extend(pd.DataFrame({"x": [7], "solvent": pd.Series([2], dtype="category")}))
    copy = tv.Study.from_json(study.to_json())
    assert copy.domain.point(3) == {"x": 7, "solvent": 2}


def test_numbers_of_an_ordered_category_stay_numbers() -> None:
    column = pd.Series(pd.Categorical([1, 2, 4], ordered=True))
    assert points_of(pd.DataFrame({"x": column})) == [[1], [2], [4]]


@pytest.mark.parametrize("values", [["0,5", "1,25"], [" 0,5 ", "2"], ["-,5", "1,5e3"]])
def test_numbers_with_a_decimal_comma_are_categories_with_a_warning(values: list[str]) -> None:
    frame = pd.DataFrame({"x": values})
    with pytest.warns(UserWarning, match=r"decimal comma as text, such as .*decimal=','"):
        tv.Domain.table(frame)
    with no_warnings():
        tv.Domain.table(frame.astype("category"))


@pytest.mark.parametrize("values", [["1,2,3", "1,3,5"], ["A1,5", "A2,5"], ["1,5"]])
def test_other_texts_with_commas_are_no_numbers(values: list[str]) -> None:
    with no_warnings():
        tv.Domain.table(pd.DataFrame({"x": values}))
