"""A check that nothing warns."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from truvar.exceptions import OutlierWarning


@contextmanager
def no_warnings() -> Iterator[None]:
    """Make an error of every warning, but for those about garbage of other tests that is
    collected meanwhile."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)
        yield


@contextmanager
def ignored_outliers() -> Iterator[None]:
    """Issue no warning about outliers within the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutlierWarning)
        yield
