"""All parts of a study are serialized to JSON and deserialized without loss."""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
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
from truvar._names import RENAMED, STORED_MODULES
from truvar.acquisition import policy_classes
from truvar.exceptions import DamagedStudyError, SerializationError
from truvar.storage.serialization import (
    _RENAMED_FIELDS,
    deserialize,
    dump_json,
    serialize,
    study_from_json,
)

# One object of every class that release 0.1.0 could store, as it wrote it.
OBJECTS_0_1_0: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "objects-0.1.0.json").read_text(encoding="utf-8")
)


def round_trip(value: Any) -> Any:
    return deserialize(json.loads(dump_json(serialize(value))))


def assert_equal(one: Any, other: Any) -> None:
    """Compare types and values, including the bits of floats and the arrays inside."""
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


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
)  # others are refused
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXTS | st.just("kind"), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_plain_values_are_unchanged(value: Any) -> None:
    assert_equal(round_trip(value), value)


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 3)),
        elements=st.floats(allow_nan=False),
    )
)
def test_arrays_keep_every_bit(array: np.ndarray) -> None:
    assert_equal(round_trip(array), array)


@pytest.mark.parametrize("name", policy_classes())
def test_every_policy_keeps_its_options(name: str) -> None:
    policy = policy_classes()[name](beta=tv.RKHSBeta(2.0, 0.1, horizon=50))
    assert_equal(round_trip(policy), policy)
    assert_equal(round_trip(policy_classes()[name]()), policy_classes()[name]())


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
def test_every_kernel_of_scikit_learn_keeps_its_hyperparameters(kernel: kernels.Kernel) -> None:
    points = np.random.default_rng(1).random((4, 2))
    again = round_trip(kernel)
    assert_equal(again, kernel)
    assert np.array_equal(again(points), kernel(points))
    serialized = serialize(kernel)
    assert serialize(deserialize(serialized, deferred=True)) == serialized


@pytest.mark.parametrize("name", KINDS)
def test_every_domain_is_unchanged(name: str) -> None:
    domain = KINDS[name].domain
    again = round_trip(domain)
    assert again.columns == domain.columns
    assert again.continuous == domain.continuous
    assert_equal(again.points, domain.points)
    assert_equal(again.bounds, domain.bounds)
    assert_equal(again.axes, domain.axes)
    assert (again.frame is None) == (domain.frame is None)
    if domain.frame is not None:
        pd.testing.assert_frame_equal(
            again.frame, domain.frame, check_dtype=False, check_exact=True
        )


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
    again = round_trip(tv.Domain.table(frame, ["x"])).frame
    assert again["x"].tolist() == [1, 2, 3]
    assert again["gap"].tolist()[::2] == [0.5, np.inf]
    assert np.isnan(again["gap"][1])
    assert again["when"].equals(frame["when"])
    assert again["who"].tolist() == ["Ada", None, "Grace"]
    assert again["kind"].tolist() == [True, False, True]


@pytest.mark.parametrize(
    "value", [len, lambda x: x, object(), {1, 2}, 1j, type("Own", (kernels.RBF,), {})()]
)
def test_a_value_that_cannot_be_stored_is_named(value: Any) -> None:
    with pytest.raises(
        SerializationError, match=r"noise \(here\) cannot be stored.*leave out store"
    ):
        serialize({"here": value}, "noise")


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(SerializationError, match=r"unknown class 'Popen'.*update truvar"):
        deserialize({"kind": "Popen", "args": "ls"})


@pytest.mark.parametrize("serialized", OBJECTS_0_1_0, ids=lambda serialized: serialized["kind"])
def test_an_object_stored_by_release_0_1_0_keeps_its_values(serialized: dict[str, Any]) -> None:
    """A renamed class needs a line in RENAMED, a renamed field one in _RENAMED_FIELDS."""
    name = RENAMED.get(serialized["kind"], serialized["kind"])
    value = deserialize(serialized)
    assert type(value).__name__ == name
    fields = _RENAMED_FIELDS.get(serialized["kind"], {})
    stored = {fields.get(key, key): part for key, part in serialized.items()}
    assert serialize(value).items() >= {**stored, "kind": name}.items()


def test_renamed_classes_do_not_hide_present_ones() -> None:
    for old, new in RENAMED.items():
        assert old not in STORED_MODULES
        assert new in STORED_MODULES


def test_a_policy_stored_without_its_later_options_keeps_what_it_did() -> None:
    stored = {"kind": "TruVaR", "beta": None, "eta": 0.5, "among": None, "anticipate": "average"}
    assert deserialize(stored) == tv.TruVaR(eta=0.5, anticipate="average", nodes=8, refine=False)
    assert deserialize({"kind": "Plus", "stops": 3}) == tv.Plus(stops=3, refine=False)
    assert deserialize(serialize(tv.TruVaR())) == tv.TruVaR()


def test_an_object_with_an_old_class_name_is_deserialized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RENAMED, "Highest", "Maximize")
    assert deserialize({"kind": "Highest", "monotone": False}) == tv.Maximize(monotone=False)
    assert serialize(tv.Maximize(monotone=False)) == {"kind": "Maximize", "monotone": False}


def test_json_that_is_not_a_study_and_damaged_studies_raise_different_exceptions() -> None:
    text = KINDS["at random"].study(name="lake").to_json()
    assert study_from_json(text)[0] == "lake"
    with pytest.raises(SerializationError, match="must be what"):
        study_from_json(text[:-20])
    with pytest.raises(SerializationError, match="study format must be 'truvar study 1'"):
        study_from_json(text.replace("truvar study 1", "truvar study 2"))
    with pytest.raises(SerializationError, match="unknown class 'Highest'"):
        study_from_json(text.replace('"kind":"LevelSet"', '"kind":"Highest"'))
    with pytest.raises(DamagedStudyError, match="event of the study 'lake' is damaged"):
        study_from_json(text.replace('"number":1', '"number":2'))
    with pytest.raises(DamagedStudyError, match="event of the study 'lake' is damaged"):
        study_from_json(text.replace('"kind":"created"', '"kind":"asked"'))
