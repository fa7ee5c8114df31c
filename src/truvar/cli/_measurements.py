"""Measurements from files: options of commands that read them, and rows told before."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truvar.cli._common import read_text

if TYPE_CHECKING:
    from truvar.study.measurements_io import MeasurementInput
    from truvar.study.study import Study


@dataclass(frozen=True)
class MeasurementTable:
    """Measurements of a file.

    Attributes:
        new: Those to tell.
        repeated: Those that were told before and are left out.
    """

    new: list[MeasurementInput]
    repeated: list[MeasurementInput]

    @property
    def count(self) -> int:
        """Number of measurements in the file."""
        return len(self.new) + len(self.repeated)

    @property
    def repeated_lines(self) -> list[int]:
        """Lines of the file that are left out."""
        return [int(each.source.removeprefix("line ")) for each in self.repeated]

    @property
    def notice(self) -> str:
        """A sentence about what is left out; empty if nothing is."""
        if not self.repeated:
            return ""
        lines = ", ".join(map(str, self.repeated_lines[:10])) + ", ..." * (len(self.repeated) > 10)
        what = f"line {lines} was" if len(self.repeated) == 1 else f"lines {lines} were"
        return f"; {what} told before and left out (--again tells them as second measurements)"


def add_table_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of commands that read a file of measurements."""
    sub.add_argument(
        "--value",
        metavar="COLUMN",
        help='column of the measured values in the file (default: "value")',
    )
    sub.add_argument(
        "--again", action="store_true", help="tell rows of a file again that were told before"
    )


def read_measurements(path: str, study: Study, arguments: argparse.Namespace) -> MeasurementTable:
    """Read a CSV file, an Excel workbook or standard input.

    Args:
        path: The file; "-" is standard input.
        study: The study.
        arguments: The parsed arguments, with those of `add_table_options`.
    """
    from truvar.study.measurements_io import parse_csv, parse_workbook, skip_repeated, without_keys
    from truvar.tabular.tables import is_excel

    if is_excel(path):
        measurements = parse_workbook(path, study, arguments.value)
    else:
        measurements = parse_csv(read_text(path), study, arguments.value)
    if arguments.again:
        return MeasurementTable(without_keys(measurements), [])
    return MeasurementTable(*skip_repeated(study, measurements))
