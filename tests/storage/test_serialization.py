"""Whatever a study is made of is written down as JSON and read back exactly."""

import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.gaussian_process import kernels
from tests.helpers.problems import KINDS

import truvar as tv
from truvar.acquisition import policy_classes
from truvar.exceptions import SerializationError
from truvar.storage.serialization import deserialize, dump_json, serialize


def reread(value: Any) -> Any:
    return deserialize(json.loads(dump_json(serialize(value))))


def assert_equal(one: Any, other: Any) -> None:
    """The same type and the same value, down to the bits of floats and the arrays inside."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, float):
        assert np.float64(one).tobytes() == np.float64(other).tobytes()
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_equal(a, b)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        assert_equal(list(one.values()), list(other.values()))
    elif isinstance(one, kernels.Kernel):
        assert_equal(one.get_params(deep=False), other.get_params(deep=False))
    elif is_dataclass(one):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.just("kind"), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_plain_values(value: Any) -> None:
    assert_equal(reread(value), value)


@given(arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 3)), elements=st.floats(allow_nan=False)))
def test_arrays_keep_every_bit(array: np.ndarray) -> None:
    assert_equal(reread(array), array)


@pytest.mark.parametrize("name", policy_classes())
def test_every_rule_with_its_options(name: str) -> None:
    rule = policy_classes()[name](beta=tv.RKHSBeta(2.0, 0.1, horizon=50))
    assert_equal(reread(rule), rule)
    assert_equal(reread(policy_classes()[name]()), policy_classes()[name]())


KERNELS = [
    kernels.RBF(0.3),
    kernels.RBF([0.1, 0.2], length_scale_bounds=(1e-3, 10.0)),
    kernels.Matern(np.array([0.1, 0.2]), nu=np.inf),
    kernels.ConstantKernel(0.1 + 0.2, "fixed") * kernels.Matern(1 / 3, nu=0.5),
    kernels.RBF(1.0) + kernels.RationalQuadratic(0.3, 0.7) ** 2,
    kernels.ExpSineSquared(1.0, 2.0) * kernels.DotProduct(0.5),
    kernels.PairwiseKernel(gamma=0.5, metric="laplacian"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_kernel_of_scikit_learn_with_its_hyperparameters(kernel: kernels.Kernel) -> None:
    points = np.random.default_rng(1).random((4, 2))
    again = reread(kernel)
    assert_equal(again, kernel)
    assert np.array_equal(again(points), kernel(points))


@pytest.mark.parametrize("name", KINDS)
def test_every_domain(name: str) -> None:
    domain = KINDS[name].domain
    again = reread(domain)
    assert again.columns == domain.columns
    assert again.continuous == domain.continuous
    assert_equal(again.points, domain.points)
    assert_equal(again.bounds, domain.bounds)
    assert_equal(again.axes, domain.axes)
    assert (again.frame is None) == (domain.frame is None)
    if domain.frame is not None:
        pd.testing.assert_frame_equal(again.frame, domain.frame, check_dtype=False, check_exact=True)


def test_a_table_keeps_its_other_columns() -> None:
    frame = pd.DataFrame(
        {
            "x": [1, 2, 3],
            "gap": [0.5, np.nan, np.inf],
            "when": pd.to_datetime(["2026-05-01", "2026-05-02", None]),
            "who": ["Ada", None, "Grace"],
            "kind": [True, False, True],
        }
    )
    again = reread(tv.Domain.table(frame, ["x"])).frame
    assert again["x"].tolist() == [1, 2, 3]
    assert again["gap"].tolist()[::2] == [0.5, np.inf]
    assert np.isnan(again["gap"][1])
    assert again["when"].tolist() == ["2026-05-01 00:00:00", "2026-05-02 00:00:00", None]
    assert again["who"].tolist() == ["Ada", None, "Grace"]
    assert again["kind"].tolist() == [True, False, True]


@pytest.mark.parametrize("value", [len, lambda x: x, object(), {1, 2}, 1j, type("Own", (kernels.RBF,), {})()])
def test_what_cannot_be_written_down_is_named(value: Any) -> None:
    with pytest.raises(SerializationError, match=r"noise \(here\) cannot be stored.*leave out store"):
        serialize({"here": value}, "noise")


def test_a_class_of_another_version_is_named() -> None:
    with pytest.raises(SerializationError, match=r"unknown class 'Popen'.*update truvar"):
        deserialize({"kind": "Popen", "args": "ls"})
