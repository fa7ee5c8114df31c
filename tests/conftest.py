"""Settings for all tests: no windows, no time limit per Hypothesis example, the same examples in every CI."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

IN_CI = bool(os.environ.get("CI"))

# The first example of a test may compile a kernel, so a deadline would measure Numba.
settings.register_profile("truvar", deadline=None, derandomize=IN_CI, print_blob=IN_CI)
settings.load_profile("truvar")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of measured data sets, which are not part of the repository."""
    folder = os.environ.get("TRUVAR_DATA")
    if not folder:
        pytest.skip("needs measured data: set TRUVAR_DATA to their folder")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"TRUVAR_DATA should name a folder, and {folder!r} is none; correct it or unset it")
    return path
