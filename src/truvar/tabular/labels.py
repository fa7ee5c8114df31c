"""Labels of the rows of a user's table: the index of a DataFrame, or a column of names.

| name | meaning |
|---|---|
| index | position of a row in the domain, 0 to n - 1 |
| label | name of that row in the user's table: `frame.loc[label]` is the row |

pandas is imported only where it is needed, as a stored study opens without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from truvar.exceptions import SerializationError

if TYPE_CHECKING:
    import pandas as pd

# Types of an index that are restored. A type that names a size may take memory at will.
_RESTORABLE_DTYPE = re.compile(
    r"u?int(8|16|32|64)|float(16|32|64)|bool|str|string(\[\w+\])?|(datetime|timedelta)64\[[^\[\]]+\]"
)
_JSON_TYPES = (str, int, float, bool, type(None))  # types of labels that JSON has


@dataclass(frozen=True, eq=False)
class RowLabels:
    """Labels of the rows of a table, by position.

    Attributes:
        values: The labels; a `range` for rows that are numbered.
        names: Names of the index, one per level.
        dtype: Type of the index as pandas names it; None: that of the values.
        levels: Labels of each level of an index of several levels; `values` has their tuples. Empty
            for one level.
    """

    values: Sequence[Any]
    names: tuple[Any, ...] = (None,)
    dtype: str | None = None
    levels: tuple[RowLabels, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Any:
        return self.values[row]

    @property
    def are_positions(self) -> bool:
        """Whether every label is the position of its row, so that it says nothing more."""
        return isinstance(self.values, range) and self.values == range(len(self.values))

    def take(self, rows: Iterable[int]) -> RowLabels:
        """Return the labels of some rows."""
        return RowLabels.of(self.index.take(list(rows)))

    @cached_property
    def index(self) -> pd.Index:
        """The labels as a pandas index."""
        import pandas as pd

        if self.levels:
            levels: pd.Index = pd.MultiIndex.from_arrays(
                [level.index for level in self.levels], names=self.names
            )
            return levels
        values: Any = self.values
        index: pd.Index
        if isinstance(values, range):
            return pd.RangeIndex(values.start, values.stop, values.step, name=self.names[0])
        try:
            index = pd.Index(values, dtype=self.dtype, name=self.names[0])
        except (TypeError, ValueError):  # a type that this version of pandas does not know
            index = pd.Index(values, name=self.names[0])
        return index

    @staticmethod
    def of(index: pd.Index) -> RowLabels:
        """Return the labels of a pandas index."""
        import pandas as pd

        names = tuple(index.names)
        if isinstance(index, pd.RangeIndex):
            return RowLabels(range(index.start, index.stop, index.step), names)
        if isinstance(index, pd.MultiIndex):
            levels = tuple(RowLabels.of(index.get_level_values(k)) for k in range(index.nlevels))
            return RowLabels(
                list(zip(*(level.values for level in levels), strict=True)), names, levels=levels
            )
        return RowLabels(index.tolist(), names, str(index.dtype))

    # -- storage
    # ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the labels for storage: JSON values, with times and other types as text."""
        names = [_plain(name) for name in self.names]
        if self.levels:
            return {"names": names, "levels": [level.to_dict() for level in self.levels]}
        if isinstance(self.values, range):
            return {
                "names": names,
                "range": [self.values.start, self.values.stop, self.values.step],
            }
        dtype = self.dtype
        if dtype is not None and not _is_restorable(dtype):
            dtype = None
        return {"names": names, "dtype": dtype, "values": [_plain(value) for value in self.values]}

    @staticmethod
    def from_dict(stored: Mapping[str, Any], count: int) -> RowLabels:
        """Return the labels that `to_dict` returned.

        Args:
            stored: The labels as JSON values.
            count: Number of rows of the table.

        Raises:
            SerializationError: If there is not one label per row.
        """
        names = tuple(stored["names"])
        if "levels" in stored:
            levels = tuple(RowLabels.from_dict(level, count) for level in stored["levels"])
            return RowLabels(
                list(zip(*(level.values for level in levels), strict=True)), names, levels=levels
            )
        values: Sequence[Any] = range(*stored["range"]) if "range" in stored else stored["values"]
        if len(values) != count:
            raise SerializationError(
                f"a table of {count} rows must have {count} labels, got {len(values)}; fix them"
            )
        if isinstance(values, range):
            return RowLabels(values, names)
        dtype = stored["dtype"]
        if dtype is not None and not _is_restorable(dtype):
            dtype = None
        if dtype is not None and dtype.startswith(("datetime64", "timedelta64")):
            import pandas as pd

            values = pd.Index(values, dtype=dtype).tolist()
        return RowLabels(values, names, dtype)


def label_text(label: Any) -> str:
    """Return a label as text, for cards and tables."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def label_to_json(label: Any) -> Any:
    """Return a label as a JSON value: a list for several levels, text for other types."""
    if isinstance(label, tuple):
        return [_plain(part) for part in label]
    return _plain(label)


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):  # dates and times
        return value.isoformat()
    return value if isinstance(value, _JSON_TYPES) else str(value)


def _is_restorable(dtype: str) -> bool:
    """Return whether an index of that type is rebuilt from JSON values."""
    return _RESTORABLE_DTYPE.fullmatch(dtype) is not None


def label_key(label: Any) -> str:
    """Return a label as text by which it is found again: a spreadsheet may write 107 as 107.0."""
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if is_whole else label)
