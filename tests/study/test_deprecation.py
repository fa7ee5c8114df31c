"""Old names of public methods still work, and say which name to use instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.warning_checks import no_warnings

import truvar as tv
from truvar._deprecation import deprecated_alias
from truvar.problem import problem_from_dict
from truvar.storage.memory import InMemoryEventLog
from truvar.storage.serialization import deserialize, serialize
from truvar.study._local_views import LocalViews

SEED = 7


def a_study(event_log: InMemoryEventLog | None = None) -> tv.Study:
    domain = tv.Domain.grid(x=np.linspace(0, 1, 6))
    study = tv.Study(domain, tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.01, store=event_log)
    study.ask()
    return study


def completes(context: AbstractContextManager[None]) -> bool:
    with context:
        pass
    return True


CALLS: dict[str, tuple[str, Callable[[Callable[..., Any]], Any]]] = {
    "expects": ("predict_measurement", lambda method: method(1)),
    "imagine": ("sample_measurement", lambda method: method(1, np.random.default_rng(SEED))),
    "outlook": ("lookahead", lambda method: method(1)),
    "scene": ("policy_context", lambda method: method().epoch),
    "setting": ("theory_setting", lambda method: method().cost.tolist()),
    "together": ("transaction", lambda method: completes(method())),
}


@pytest.mark.parametrize("old", CALLS)
def test_an_old_method_name_warns_and_gives_the_same_answer(old: str) -> None:
    new, call = CALLS[old]
    study = a_study()
    wanted = call(getattr(study, new))
    with pytest.warns(
        DeprecationWarning,
        match=rf"Study\.{old} is deprecated .* 0\.4\.0; use Study\.{new} instead",
    ):
        assert call(getattr(study, old)) == wanted


@pytest.mark.parametrize(
    ("old", "new"),
    [("open", "undecided"), ("settled", "expected_decided"), ("removed", "variance_reduction")],
)
def test_an_old_field_of_a_lookahead_warns_and_has_the_same_value(old: str, new: str) -> None:
    study = a_study()
    ahead = study.lookahead(1)
    message = rf"Lookahead\.{old} is deprecated .* 0\.4\.0; use Lookahead\.{new} instead"
    with pytest.warns(DeprecationWarning, match=message) as caught:
        value = getattr(ahead, old)
    assert value == getattr(ahead, new)
    assert caught[0].filename == __file__
    assert old not in repr(ahead)


def test_the_old_name_of_a_class_method_warns_and_opens_the_same_study() -> None:
    event_log = InMemoryEventLog()
    study = a_study(event_log)
    with pytest.warns(
        DeprecationWarning,
        match=r"Study\.resumed is deprecated .*use Study\.from_event_log instead",
    ):
        again = tv.Study.resumed(event_log, "study")
    assert again.pending == study.pending


def test_the_warning_points_at_the_caller() -> None:
    study = a_study()
    with pytest.warns(DeprecationWarning, match="outlook") as caught:
        study.outlook(1)
    assert caught[0].filename == __file__


def test_looking_a_deprecated_name_up_does_not_warn() -> None:
    with no_warnings():
        assert callable(a_study().outlook)
        assert "outlook" in dict(inspect.getmembers(tv.Study))


def test_every_deprecated_name_of_a_study_is_tested() -> None:
    members = {**vars(LocalViews), **vars(tv.Study)}
    aliases = {name for name, value in members.items() if isinstance(value, deprecated_alias)}
    assert aliases == {*CALLS, "resumed"}


def test_the_old_name_of_top_k_warns_and_is_the_same_class() -> None:
    with pytest.warns(DeprecationWarning, match=r"truvar\.Top is deprecated .* use truvar\.TopK"):
        assert tv.Top is tv.TopK
    assert "Top" not in tv.__all__


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [("every", "refit_every", 5), ("least", "min_observations", 3), ("initial", "n_initial", 6)],
)
def test_an_old_field_of_learned_warns_and_sets_the_new_one(old: str, new: str, value: int) -> None:
    message = rf"Learned\({old}=\.\.\.\) is deprecated .* 0\.5\.0; use Learned\({new}=\.\.\.\) "
    with pytest.warns(DeprecationWarning, match=message) as caught:
        family = tv.Learned("rbf", **{old: value})
    assert caught[0].filename == __file__
    assert family == tv.Learned("rbf", **{new: value})
    with pytest.warns(DeprecationWarning, match=rf"use Learned\.{new} instead"):
        assert getattr(family, old) == value
    with pytest.raises(TypeError, match=f"both {new} and {old}"):
        tv.Learned(**{old: value, new: value})


def test_a_learned_kernel_that_was_stored_with_old_field_names_opens_silently() -> None:
    stored = {"kind": "Learned", "kernel": "rbf", "every": 5, "least": 3, "initial": 6}
    with no_warnings():
        family = deserialize({**stored, "marginalise": True})
    assert family == tv.Learned("rbf", refit_every=5, min_observations=3, n_initial=6)


def test_a_cost_takes_the_former_name_of_must_return() -> None:
    with pytest.warns(DeprecationWarning, match=r"use Cost\(must_return=\) instead"):
        cost = tv.Cost(travel={"x": 1.0}, start={"x": 0.0}, returns=True)  # type: ignore[call-arg]
    assert cost == tv.Cost(travel={"x": 1.0}, start={"x": 0.0}, must_return=True)
    with pytest.warns(DeprecationWarning, match=r"use Cost.must_return instead"):
        assert cost.returns
    with (
        pytest.warns(DeprecationWarning, match="must_return"),
        pytest.raises(TypeError, match="both returns and must_return"),
    ):
        tv.Cost(travel={"x": 1.0}, returns=True, must_return=True)  # type: ignore[call-arg]


def test_a_stored_cost_and_a_problem_may_have_the_former_name_of_must_return() -> None:
    cost = tv.Cost(base=1.0, travel={"x": 1.0}, start={"x": 0.0}, must_return=True)
    stored = serialize(cost)
    stored["returns"] = stored.pop("must_return")
    assert deserialize(stored) == cost
    problem = problem_from_dict(
        {
            "domain": {"grid": {"x": [0, 1, 5]}},
            "goal": {"maximize": True},
            "cost": {"base": 1.0, "travel": {"x": 1.0}, "start": {"x": 0.0}, "returns": True},
        }
    )
    study = problem.study()
    assert study.must_return
    with pytest.warns(DeprecationWarning, match=r"use Study.must_return instead"):
        assert study.returns
    status = study.vehicle_statuses[0]
    with pytest.warns(DeprecationWarning, match=r"use VehicleStatus.return_cost instead"):
        assert status.way_back == status.return_cost == 0.0
    assert status.to_dict()["way_back"] == status.to_dict()["return_cost"]


def test_the_old_name_of_a_vehicle_warns_and_means_the_same() -> None:
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.Maximize(), kernel=RBF(0.3), vehicles=["a", "b"]
    )
    with pytest.warns(
        DeprecationWarning, match=r"ask\(who=...\) .* use ask\(vehicle=...\)"
    ) as caught:
        suggestion = study.ask(who="b")
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"Suggestion\.who .* use Suggestion\.vehicle"):
        assert suggestion.who == suggestion.vehicle == "b"
    with pytest.warns(DeprecationWarning, match="tell"):
        study.tell({"x": 0.5}, 0.1, who="a")
    assert study.measurements["who"].tolist() == ["a"]
    with pytest.raises(TypeError, match="both"):
        study.ask(who="a", vehicle="b")


def test_the_old_name_of_an_author_warns_and_means_the_same() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"Study\(who=...\) .* use Study\(author=...\)"
    ) as caught:
        study = tv.Study(tv.Domain.grid(x=[0.0, 1.0]), tv.Maximize(), who="Ada")
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"Study\.who .* use Study\.author"):
        study.who = "Grace"
    with pytest.warns(DeprecationWarning, match=r"Study\.who .* use Study\.author"):
        assert study.who == study.author == "Grace"
    study.note("calm")
    assert study.events["who"].tolist() == ["Ada", "Grace"]


def test_a_warning_about_a_value_points_at_the_caller() -> None:
    study = tv.Study(
        tv.Domain.grid(x=[0.0, 0.5, 1.0]), tv.LevelSet(0.5), kernel=RBF(0.3), mean=0.0, noise=0.01
    )
    with pytest.warns(tv.exceptions.OutlierWarning) as caught:
        study.tell({"x": 0.5}, 700.0)
    assert caught[0].filename == __file__
