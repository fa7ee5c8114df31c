"""Kernels given by name: the same numbers as scikit-learn's, without importing it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import truvar as tv
from truvar.models.kernels import (
    NamedKernel,
    check_kernel,
    check_named_kernel,
    covariance_function,
    prior_scale,
    stationary_form,
    to_sklearn,
)
from truvar.storage.serialization import deserialize, dump_json, serialize

POINTS = np.random.default_rng(0).random((7, 2))
DEFERRED = [
    RBF(0.3),
    RBF([0.1, 0.2]),
    Matern(np.array([0.1, 0.2]), nu=1.5),
    ConstantKernel(4.48) * Matern([245.0, 2.72], nu=2.5),
    ConstantKernel(0.1 + 0.2) * Matern(1 / 3, nu=0.5),
    ConstantKernel(2.0) * RBF(np.array([0.3])),
]
NOT_DEFERRED = [
    RBF(0.3, length_scale_bounds=(1e-3, 10.0)),
    ConstantKernel(0.5, "fixed") * RBF(0.3),
    Matern(0.3, nu=np.inf),
    Matern(0.3, nu=0.7),
    RBF(0.3) * ConstantKernel(2.0),
    RBF(0.3) + ConstantKernel(2.0) * Matern(0.3, nu=0.5),
]


def deferred(kernel: Any) -> Any:
    return deserialize(json.loads(dump_json(serialize(kernel))), deferred=True)


@pytest.mark.parametrize("kernel", DEFERRED, ids=str)
def test_a_stored_kernel_that_has_a_name_gives_the_same_bits_as_scikit_learns(kernel):
    read = deferred(kernel)
    assert isinstance(read, NamedKernel)
    assert np.array_equal(
        covariance_function(read)(POINTS, POINTS), covariance_function(kernel)(POINTS, POINTS)
    )
    assert np.array_equal(read.diag(POINTS), kernel.diag(POINTS))
    assert prior_scale(read, POINTS) == prior_scale(kernel, POINTS)
    one = stationary_form(read)
    other = stationary_form(kernel)
    assert (one.smoothness, one.variance) == (other.smoothness, other.variance)
    assert np.array_equal(one.lengthscales, other.lengthscales)


@pytest.mark.parametrize("kernel", DEFERRED, ids=str)
def test_a_named_kernel_becomes_the_scikit_learn_kernel_that_was_stored(kernel):
    read = deferred(kernel)
    assert type(to_sklearn(read)) is type(kernel)
    assert repr(read) == repr(kernel)
    assert serialize(read) == serialize(kernel)
    assert np.array_equal(read(POINTS), kernel(POINTS))


@pytest.mark.parametrize("kernel", NOT_DEFERRED, ids=str)
def test_a_kernel_that_has_no_name_is_read_as_scikit_learns(kernel):
    assert type(deferred(kernel)) is type(kernel)
    assert deferred(kernel) == kernel
    assert to_sklearn(kernel) is kernel


@pytest.mark.parametrize("scales", [[0.1, 0.2, 0.3], [1e-320, 1.0]])
def test_a_named_kernel_that_does_not_fit_the_domain_is_refused_as_scikit_learns(scales):
    named = check_named_kernel("matern52", scales)
    messages = []
    for kernel in (named, named.sklearn):
        with pytest.raises(ValueError, match="kernel") as caught, np.errstate(all="ignore"):
            check_kernel(kernel, POINTS, ["x", "y"])
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_study_with_a_named_kernel_does_not_import_scikit_learn(tmp_path):
    store = f"sqlite:///{tmp_path / 'study.db'}"
    domain = tv.Domain.grid(x=np.linspace(0, 1, 5))
    tv.Study(
        domain, tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.01, store=store, name="study"
    )
    code = (
        "import sys, truvar as tv\n"
        f"study = tv.load({store!r}, 'study')\n"
        "study.tell(study.ask(), 1.0)\n"
        "study.result()\n"
        "assert 'sklearn' not in sys.modules\n"
        "assert type(study.kernel).__name__ == 'RBF'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
