"""A table of hyperparameters to tune on: the validation errors of 1400 support vector machines.

The *SVM on grid* of the paper has 25 x 14 x 4 settings of a structured SVM (Snoek, Larochelle,
Adams 2012), and its table is not part of this package. This one is our own and has the same shape:
an SVM with a Gaussian kernel on scikit-learn's handwritten digits, with noise added to make the
task hard. It has 25 values of C, 14 of gamma and 4 of the solver's tolerance, with the error on
held-out images and the seconds of processor time of the fit.

    python -m truvar.paper.svm src/truvar/paper/svm.csv
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

_Data = tuple[Any, Any, Any, Any]
_TABLE: Final = Path(__file__).with_name("svm.csv")
_DATA_VARIABLE: Final = "TRUVAR_DATA"  # environment variable with the folder of measured data sets
_PAPERS_TABLE: Final = "svm_on_grid.csv"  # the paper's own table, in that folder
COLUMNS: Final = ("log10_C", "log10_gamma", "log10_tolerance")
VALUE: Final = "validation_error"
COST: Final = "fit_s"

GRID: Final = (np.linspace(-0.8, 1.6, 25), np.linspace(-5.0, -3.05, 14), np.linspace(-3.0, 0.0, 4))
_N_TRAIN: Final = 400  # images to fit on; the others are held out
_NOISE_SD: Final = 6.0  # of the noise on pixels with values from 0 to 16
_SEED: Final = 20161205  # of the noise and of the order of the images
_REPEATS: Final = 3  # fits per setting; the shortest time counts


def _digits() -> _Data:
    """Return images and labels to fit on, then images and labels to validate on."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    random = np.random.RandomState(_SEED)  # NumPy guarantees this stream
    order = random.permutation(len(images))
    images = (images + _NOISE_SD * random.standard_normal(images.shape))[order]
    labels = labels[order]
    return images[:_N_TRAIN], labels[:_N_TRAIN], images[_N_TRAIN:], labels[_N_TRAIN:]


def _evaluate(setting: Sequence[float], data: _Data) -> tuple[float, float]:
    """Fit and validate an SVM.

    Args:
        setting: Logarithms to base 10 of C, gamma and the tolerance.
        data: Images and labels, from `_digits`.

    Returns:
        The validation error, and the seconds of processor time of the fit.
    """
    from sklearn.svm import SVC

    seconds = []
    for _ in range(_REPEATS):
        machine = SVC(C=10 ** setting[0], gamma=10 ** setting[1], tol=10 ** setting[2])
        started = time.process_time()
        machine.fit(data[0], data[1])
        seconds.append(time.process_time() - started)
    return 1.0 - float(machine.score(data[2], data[3])), min(seconds)


def _compute() -> pd.DataFrame:
    """Compute the whole table, which takes about two minutes."""
    data = _digits()
    rows = [
        (*setting, *_evaluate(setting, data))
        for setting in product(*(axis.tolist() for axis in GRID))
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, VALUE, COST])


def table() -> pd.DataFrame:
    """Return the table that comes with the package."""
    return pd.read_csv(_TABLE)


def papers_table() -> Path | None:
    """Return the path of the paper's own table, or None if TRUVAR_DATA does not lead to it."""
    folder = os.environ.get(_DATA_VARIABLE)
    if not folder:
        return None
    path = Path(folder) / _PAPERS_TABLE
    return path if path.is_file() else None


if __name__ == "__main__":
    _compute().round(6).to_csv(sys.argv[1], index=False, lineterminator="\n")
