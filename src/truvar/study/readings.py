"""`Reading` and `Reduced`: measurements that are more than a number.

A fly scan or a spectrum is a curve. `Reduced` makes the number, or the numbers by quantity, that a
study is told, and keeps the curve in a file whose name is recorded with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from truvar.exceptions import InvalidArgumentError, InvalidMeasurementError
from truvar.study._inputs import check_reference

_NAME_LENGTH = 24  # hexadecimal digits of the checksum that a file is named by


@dataclass(frozen=True)
class Reading:
    """A measurement with what belongs to it; a function that is given to `run` may return one.

    Attributes:
        value: The measured value; by quantity, if there are several; or raw data that `Reduced`
            reduces.
        cost: Cost that the measurement really had; None: the expected one.
        reference: Where its raw data are, such as a file or the id of a run.
        noise_sd: Standard deviation that the measurement really had, its ±; None: the expected one.

    Raises:
        InvalidMeasurementError: If the reference is not text.

    Example:
        >>> study.run(lambda point: tv.Reading(scan(point), reference="run 2417"), steps=20)
    """

    value: Any
    cost: float | None = None
    reference: str | None = None
    noise_sd: float | None = None

    def __post_init__(self) -> None:
        check_reference(self.reference)


@dataclass(frozen=True)
class Reduced:
    """A function that measures a curve, reduces it and returns a `Reading`.

    Attributes:
        measure: Function of the point. It returns an array, a dictionary of arrays, or a `Reading`
            of one of them.
        reduce: Function of the raw data. It returns the value of the study, a dictionary of values
            by quantity, or a `Reading` with value, cost or noise.
        folder: Where the raw data are kept, an `.npy` or `.npz` file per measurement that is named
            by its contents. The reference is its path. None: they are not kept, and the reference
            is that of the `Reading`, if any.

    Raises:
        InvalidArgumentError: If a function cannot be called.

    Example:
        >>> peak = tv.Reduced(spectrum, lambda counts: counts.max(), folder="raw")
        >>> study.run(peak, steps=20)
        >>> np.load(study.measurements["reference"].iloc[0])
    """

    measure: Callable[..., Any]
    reduce: Callable[[Any], Any]
    folder: str | Path | None = None

    def __post_init__(self) -> None:
        for name in ("measure", "reduce"):
            if not callable(getattr(self, name)):
                raise InvalidArgumentError(
                    f"{name} must be a function, got {getattr(self, name)!r}; give one"
                )

    def __call__(self, *arguments: Any) -> Reading:
        """Return the reduced measurement of a point.

        Args:
            *arguments: The arguments that `run` gives the function.

        Raises:
            InvalidMeasurementError: If raw data that are to be kept are not numbers.
        """
        raw = _as_reading(self.measure(*arguments))
        reference = raw.reference
        # The raw data are kept before they are reduced: a reduction that fails loses nothing.
        if self.folder is not None:
            reference = _save(raw.value, Path(self.folder))
        reading = _as_reading(self.reduce(raw.value))
        cost = raw.cost if reading.cost is None else reading.cost
        noise_sd = raw.noise_sd if reading.noise_sd is None else reading.noise_sd
        return Reading(reading.value, cost, reading.reference or reference, noise_sd)


def _as_reading(returned: Any) -> Reading:
    return returned if isinstance(returned, Reading) else Reading(returned)


def _as_array(raw: Any) -> np.ndarray[Any, Any]:
    """Return raw data as an array that needs no pickle to be read."""
    try:
        array = np.asarray(raw)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.dtype.hasobject:
        raise InvalidMeasurementError(
            f"raw data must be an array or a dictionary of arrays, got {repr(raw)[:60]}; return "
            "one, or leave out folder"
        )
    return array


def _save(raw: Any, folder: Path) -> str:
    """Write raw data into a folder; return the path of the file."""
    buffer = BytesIO()
    if isinstance(raw, Mapping):
        suffix = ".npz"
        arrays = {str(name): _as_array(part) for name, part in raw.items()}
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    else:
        suffix = ".npy"
        np.save(buffer, _as_array(raw))
    data = buffer.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256(data).hexdigest()[:_NAME_LENGTH]}{suffix}"
    if not path.exists():
        partial = path.with_suffix(f"{suffix}.part")
        partial.write_bytes(data)
        partial.replace(path)  # never half a file under its name
    return path.as_posix()
