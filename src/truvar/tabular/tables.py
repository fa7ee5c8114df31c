"""Tables from files and from other libraries as pandas DataFrames.

CSV files are read with the delimiter, decimal sign and thousands separators that they have
(`truvar.tabular.delimited`), Excel workbooks with openpyxl. Tables of polars, pyarrow and others
come through narwhals, or through the dataframe interchange protocol where it is not installed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truvar.exceptions import (
    InvalidArgumentError,
    InvalidDomainError,
    MissingDependencyError,
    import_optional,
)
from truvar.messages import unknown_name
from truvar.tabular.column_types import is_saved_index
from truvar.tabular.delimited import (
    DelimitedText,
    check_delimiter,
    from_rows,
    has_repeated_names,
    is_missing,
    is_plain,
    read_cells,
)

if TYPE_CHECKING:
    import pandas as pd

_LONGEST_REPR = 200  # characters of something else than a table that a message repeats
_EXCEL_SUFFIXES = (".xlsx", ".xlsm")
_NETCDF_SUFFIXES = (".nc", ".nc4", ".cdf")
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # Excel's "Unicode text" begins with one of them


def as_table(table: Any) -> pd.DataFrame:
    """Return a table as a DataFrame: one of another library is converted, a file is read.

    Args:
        table: A DataFrame, a table of another library, a dictionary of arrays, or the path of a CSV
            file or an Excel workbook.

    Raises:
        InvalidDomainError: If it is none of these, or the file cannot be read.
        MissingDependencyError: If a library that is needed for it is not installed.
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    if isinstance(table, (str, Path)):
        return read_table(table)
    converted = _from_other_library(table)
    if converted is not None:
        return converted
    converted = _from_python(table)
    if converted is not None:
        return converted
    if hasattr(table, "collect"):
        raise InvalidDomainError(
            f"a table must be in memory, got a {type(table).__name__}; give table.collect()"
        )
    raise InvalidDomainError(
        "a table must be a DataFrame or the path of a CSV file, or a dictionary of its columns, "
        "got "
        f"{repr(table)[:_LONGEST_REPR]}; convert an array with pd.DataFrame(array, columns=[...])"
    )


def _from_python(table: Any) -> pd.DataFrame | None:
    """Return a dictionary, a list of rows, a structured array or a Series as a DataFrame.

    Returns:
        The table; None if it is none of these.

    Raises:
        InvalidDomainError: If the columns have different lengths.
    """
    import numpy as np  # the command line imports this module, and numpy only where it is needed
    import pandas as pd

    if isinstance(table, pd.Series):
        return table.to_frame("x" if table.name is None else str(table.name))
    if isinstance(table, np.ndarray) and table.dtype.names is not None:
        return pd.DataFrame({name: table[name] for name in table.dtype.names})
    if (
        isinstance(table, (list, tuple))
        and table
        and all(isinstance(row, Mapping) for row in table)
    ):
        return pd.DataFrame([dict(row) for row in table])
    if not isinstance(table, Mapping):
        return None
    columns = {str(name): np.asarray(column) for name, column in table.items()}
    shapes = {name: column.shape for name, column in columns.items()}
    if any(len(shape) != 1 for shape in shapes.values()) or len(set(shapes.values())) > 1:
        described = ", ".join(f"{name}: {shape}" for name, shape in shapes.items())
        raise InvalidDomainError(
            f"the columns of a table must be lists of one length, got the shapes {described}; give "
            "one value per row"
        )
    return pd.DataFrame({name: _plain_column(column) for name, column in columns.items()})


def _plain_column(column: Any) -> Any:
    """Return an array with NumPy's text as Python objects, which pandas reads correctly."""
    return column.astype(object) if column.dtype.kind in "US" else column


def _from_other_library(table: Any) -> pd.DataFrame | None:
    """Return a table of another library as a DataFrame; None if it is no table.

    Raises:
        MissingDependencyError: If it is a table that only narwhals converts, and narwhals is not
            installed.
    """
    import pandas as pd

    if (
        _library(table) == "pyarrow"
        and hasattr(table, "__arrow_c_array__")
        and hasattr(table, "schema")
    ):
        table = import_optional("pyarrow", "a record batch", "frames").Table.from_batches([table])
    is_table = hasattr(table, "__dataframe__") or hasattr(table, "__arrow_c_stream__")
    if not is_table:
        return None
    try:
        narwhals = import_optional("narwhals", f"a table of {_library(table)}", "frames")
    except MissingDependencyError:
        if not hasattr(table, "__dataframe__"):
            raise
        with (
            warnings.catch_warnings()
        ):  # the protocol is to be replaced, which is not the user's concern
            warnings.simplefilter("ignore", category=FutureWarning)
            return pd.api.interchange.from_dataframe(table)
    try:
        frame = narwhals.from_native(table, eager_only=True)
    except TypeError:
        return None
    columns = {}
    for name in frame.columns:
        column = frame[name]
        columns[name] = (
            column.to_numpy() if column.dtype.is_numeric() else pd.Series(column.to_list())
        )
    return pd.DataFrame(columns)


def _library(table: Any) -> str:
    return type(table).__module__.partition(".")[0]


# -- files
# --------------------------------------------------------------------------------------------------


def is_excel(path: str | Path) -> bool:
    """Return whether a path has the suffix of an Excel workbook."""
    return str(path).lower().endswith(_EXCEL_SUFFIXES)


def is_netcdf(path: str | Path) -> bool:
    """Return whether a path has the suffix of a NetCDF file."""
    return str(path).lower().endswith(_NETCDF_SUFFIXES)


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a CSV file, or the first sheet of an Excel workbook.

    Raises:
        InvalidDomainError: If there is no such file, or it cannot be read.
        MissingDependencyError: If it is a workbook and openpyxl is not installed.
    """
    if is_netcdf(path) and Path(path).exists():
        raise InvalidDomainError(
            f"{path} is a NetCDF file, not a table; give Domain.from_xarray({str(path)!r})"
        )
    try:
        if is_excel(path):
            header, *rows = excel_rows(path)
            return _to_frame(from_rows(header[1], rows))
        return parse_table(decode(Path(path).read_bytes()))
    except FileNotFoundError:
        raise InvalidDomainError(f"there is no file {path}; check the path") from None
    except OSError as error:
        raise InvalidDomainError(
            f"{path} cannot be read ({error.strerror}); give the path of a CSV file"
        ) from None
    except UnicodeDecodeError:
        raise InvalidDomainError(
            f"{path} must be UTF-8 text, got another encoding; save it as CSV UTF-8, or read it "
            "with "
            "pd.read_csv(path, encoding='cp1252')"
        ) from None
    except (ValueError, InvalidArgumentError) as error:
        raise InvalidDomainError(
            f"{path} is not a readable CSV file ({error}); check its contents"
        ) from None


def decode(content: bytes) -> str:
    """Return the text of a file: UTF-8, or UTF-16 with a byte order mark.

    Raises:
        UnicodeDecodeError: If it is neither.
    """
    return content.decode("utf-16" if content.startswith(_UTF_16_MARKS) else "utf-8-sig")


def parse_table(text: str) -> pd.DataFrame:
    """Return the table that a CSV text holds.

    Raises:
        ValueError: If it is not a table.
        InvalidArgumentError: If a row has too many cells, or its numbers are mixed; the message
            names the line.
    """
    import pandas as pd

    check_delimiter(text)
    if not is_plain(text) or has_repeated_names(text):
        return _to_frame(read_cells(text))
    with warnings.catch_warnings():
        # A row with more cells than the header has names: pandas would take its first cell for a
        # label.
        warnings.simplefilter("error", category=pd.errors.ParserWarning)
        # Before pandas 3 many numbers are off in the last digit without `float_precision`, which is
        # deprecated since.
        warnings.simplefilter("ignore", category=DeprecationWarning)
        content = StringIO(text.lstrip("\ufeff"))
        try:
            frame = pd.read_csv(
                content, index_col=False, skipinitialspace=True, float_precision="round_trip"
            )
        except (pd.errors.ParserWarning, pd.errors.ParserError):
            return _to_frame(read_cells(text))
    frame.columns = frame.columns.str.strip()
    unnamed = [
        name for name in frame.columns if name.startswith("Unnamed: ") and frame[name].isna().all()
    ]
    return frame.drop(columns=unnamed)


def excel_rows(path: str | Path) -> list[tuple[int, list[str]]]:
    """Return the non-empty rows of a workbook's first sheet: number and cells as text.

    Raises:
        MissingDependencyError: If openpyxl is not installed.
        ValueError: If the file is not a workbook, or its first sheet is empty.
    """
    openpyxl = import_optional("openpyxl", "an Excel workbook", "excel")
    if not Path(path).is_file():
        raise FileNotFoundError(path)
    try:
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # a damaged archive fails in many ways
        raise ValueError(f"it is not an Excel workbook: {error}") from None
    try:
        rows = list(enumerate(workbook.worksheets[0].iter_rows(values_only=True), 1))
    finally:
        workbook.close()
    texts = [(number, [_cell_text(cell) for cell in cells]) for number, cells in rows]
    found = [(number, cells) for number, cells in texts if any(cells)]
    if not found:
        raise ValueError("its first sheet is empty")
    return found


def _cell_text(cell: Any) -> str:
    if cell is None:
        return ""
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell).strip()


def _to_frame(content: DelimitedText) -> pd.DataFrame:
    """Return cells as a table: a column of numbers if every cell that is not missing is one."""
    import pandas as pd

    for name in content.header:
        if content.header.count(name) > 1:
            raise InvalidArgumentError(f"column {name!r} is duplicated; rename one of the two")
    for line, cells in content.rows:
        if len(cells) != len(content.header):
            remedy = "fix the line"
            if content.header[0].startswith("#"):
                remedy = "remove the comments before the line that names the columns"
            raise InvalidArgumentError(
                f"line {line}: expected {len(content.header)} values, got {len(cells)}; {remedy}"
            )
    columns: dict[str, Any] = {}
    for k, name in enumerate(content.header):
        cells = [row[k] for _, row in content.rows]
        try:
            numbers = [
                float("nan") if is_missing(cell) else content.numbers.parse(cell) for cell in cells
            ]
        except ValueError:
            columns[name] = pd.Series([None if cell == "" else cell for cell in cells])
            continue
        column = pd.Series(numbers, dtype=float)
        whole = bool(column.notna().all()) and all(cell.lstrip("+-").isdecimal() for cell in cells)
        columns[name] = column.astype(int) if whole else column
    return pd.DataFrame(columns)


def row_names(frame: pd.DataFrame, label: str | None) -> pd.Index:
    """Return the column that names the rows of a table, or by default its index.

    Raises:
        InvalidDomainError: If there is no such column.
    """
    import pandas as pd

    if label is None:
        return frame.index
    if label not in frame.columns:
        raise InvalidDomainError(f"label: {unknown_name('column', label, frame.columns)}")
    index: pd.Index = pd.Index(frame[label], name=None if is_saved_index(label) else label)
    return index
