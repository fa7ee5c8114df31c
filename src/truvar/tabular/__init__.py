"""Tables as people have them: files, tables of other libraries, and types of columns."""

from __future__ import annotations

from truvar._names import offer

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "column_types": (
            "SAVED_INDEX",
            "default_coordinates",
            "empty_column",
            "file_label",
            "usable_columns",
            "warn_of_shifted_columns",
            "with_text_names",
        ),
        "csv_cells": ("measurements_csv", "quoted_frame", "unquote_cell"),
        "delimited": (
            "DelimitedText",
            "NumberFormat",
            "find_column",
            "from_rows",
            "is_missing",
            "read_cells",
        ),
        "labels": ("RowLabels", "label_key", "label_text", "label_to_json"),
        "numbers": ("as_integer", "parse_integer", "parse_number"),
        "tables": (
            "as_table",
            "decode",
            "excel_rows",
            "is_excel",
            "is_netcdf",
            "parse_table",
            "read_table",
            "row_names",
        ),
    },
)
