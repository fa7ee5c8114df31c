"""Studies of mixed domains: valid suggestions, replay, the user's values everywhere, and answers
on a log scale."""

from __future__ import annotations

import numpy as np
import pytest
from tests.domain.test_parameters import random_domain

import truvar as tv
from truvar.acquisition.mixed_search import best_in_domain, climb
from truvar.report.html_report import render_html_report
from truvar.study.measurements_io import parse_csv, parse_words, tell_all


def mixed_box(representers: int = 120):
    return tv.Domain.box(
        lr=tv.Log(1e-6, 1e-1),
        depth=tv.Integer(1, 12),
        solver=["lbfgs", "saga", "sag"],
        shrink=tv.Boolean(),
        batch=tv.Ordinal([16, 32, 64]),
        x=(0, 1),
        representers=representers,
    )


def response(point):
    """A function of the user's values with its highest value, 0, at lr 10^-3.3, depth 7, saga,
    shrink, 32, x 0.3."""
    return (
        -((np.log10(point["lr"]) + 3.3) ** 2)
        - 0.05 * (point["depth"] - 7) ** 2
        + {"lbfgs": -1.0, "saga": 0.0, "sag": -0.5}[point["solver"]]
        - 0.3 * (not point["shrink"])
        - 0.2 * abs(point["batch"] - 32) / 32
        - 2.0 * (point["x"] - 0.3) ** 2
    )


def value_of(domain, point):
    """Return a smooth function of any domain's coordinates."""
    x = (domain.array(point) - domain.bounds[:, 0]) / domain.extent
    return float(np.sin(3 * x).sum())


def check_valid(domain, point):
    """Check that a point is one that the user can measure."""
    _, x = domain.locate(point)
    assert (np.abs(domain.snap(x[None, :])[0] - x) <= 1e-9 * domain.extent).all()


def run_random(seed: int, count: int, replay: bool) -> int:
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    policy = ["auto", "truvar", "ei", "ucb", "random"][seed % 5]
    study = tv.Study(domain, tv.Maximize(), noise=1e-4, policy=policy, seed=seed)
    made = 0
    for _ in range(count):
        try:
            suggestion = study.ask()
        except tv.Finished:
            break
        check_valid(domain, suggestion.point)
        made += 1
        study.tell(suggestion, value_of(domain, suggestion.point) + 0.01 * rng.standard_normal())
    if replay:
        resumed = tv.Study.from_json(study.to_json())
        assert resumed.domain.parameters == domain.parameters
        assert resumed.result().mean.tolist() == study.result().mean.tolist()
        assert _next(resumed) == _next(study)
    return made


def _next(study):
    try:
        return study.ask()
    except tv.Finished as end:
        return str(end)


@pytest.mark.parametrize("seed", range(8))
def test_random_mixed_domains_get_valid_suggestions_and_resume_exactly(seed):
    assert run_random(seed, 9, replay=True) > 0


@pytest.mark.slow
def test_ten_thousand_suggestions_are_valid():
    made = 0
    seed = 1000
    while made < 10_000:
        made += run_random(seed, 40, replay=seed % 10 == 0)
        seed += 1
    assert made >= 10_000


def test_a_mixed_optimum_is_found():
    study = tv.Study(mixed_box(60), tv.Maximize(), noise=1e-6)
    best = -np.inf
    for _ in range(30):
        suggestion = study.ask()
        check_valid(study.domain, suggestion.point)
        value = response(suggestion.point)
        best = max(best, value)
        study.tell(suggestion, value)
    assert best > -0.2


def test_a_learning_rate_is_answered_on_its_scale():
    def loss(point):
        return (np.log10(point["lr"]) + 4.2) ** 2 + 0.1

    def ratio(domain):
        study = tv.Study(domain, tv.Minimize(), noise=1e-6)
        study.run(loss, steps=12)
        return abs(np.log10(study.result().best.point["lr"]) + 4.2)

    assert ratio(tv.Domain.box(lr=tv.Log(1e-6, 1e-1))) < np.log10(1.3)
    assert ratio(tv.Domain.box(lr=(1e-6, 1e-1))) > np.log10(3.0)


def test_the_values_of_the_user_are_told_and_shown():
    study = tv.Study(mixed_box(), tv.Maximize())
    point = {"lr": 1e-3, "depth": 3, "solver": "saga", "shrink": True, "batch": 64, "x": 0.25}
    study.tell(point, 1.5)
    assert study.measurement_records()[0].point == point
    assert study.result().best_observed.point == point
    row = study.measurements.iloc[0]
    assert (row["solver"], row["shrink"], row["lr"]) == ("saga", True, 1e-3)
    frame = study.result().to_frame()
    assert set(frame["solver"]) == {"lbfgs", "saga", "sag"}
    assert frame["lr"].between(1e-6, 1e-1).all()
    told = study.events.iloc[-1]["details"]
    assert told["point"] == point


def test_a_csv_file_and_words_have_the_values_of_the_user():
    study = tv.Study(mixed_box(), tv.Maximize())
    words = ["lr=0.001", "depth=3", "solver=saga", "shrink=false", "batch=64", "x=0.25", "1.5"]
    tell_all(study, parse_words(words, study.domain))
    tell_all(study, [*parse_words([str(study.ask().id), "2.5"], study.domain)])
    text = study.measurements.to_csv(index=False)
    other = tv.Study(mixed_box(), tv.Maximize())
    tell_all(other, parse_csv(text, other))
    assert [r.point for r in other.measurement_records()] == [
        r.point for r in study.measurement_records()
    ]
    with pytest.raises(tv.TruvarError, match="unknown value 'sage'; did you mean 'sag'"):
        tell_all(study, parse_csv(text.replace("saga", "sage"), other))


def test_a_search_tries_every_combination():
    domain = mixed_box()
    target = domain.array(
        {"lr": 3e-3, "depth": 11, "solver": "sag", "shrink": True, "batch": 16, "x": 0.9}
    )

    def score(points):
        difference = (points - target) / domain.extent
        for k in domain.categorical:
            difference[:, k] = 2.0 * (difference[:, k] != 0)
        return -np.abs(difference).sum(axis=1)

    found = best_in_domain(score, domain, domain.points[0])
    assert (found[list(domain.discrete)] == target[list(domain.discrete)]).all()
    assert np.allclose(found, target, atol=1e-3)
    assert score(climb(score, domain, domain.points[5])[None])[0] >= score(domain.points[5:6])[0]


@pytest.mark.parametrize("tasks", [None, tv.Tasks(names=["a", "b"], cost=[3, 1])])
def test_studies_of_categories_take_tasks_and_stores(tasks, tmp_path):
    domain = tv.Domain.grid(x=np.linspace(0, 1, 6), kind=["a", "b", "c"])
    store = f"sqlite:///{tmp_path}/s.db"
    study = tv.Study(domain, tv.LevelSet(0.5), tasks=tasks, store=store, name="mixed")
    for _ in range(12):
        suggestion = study.ask()
        study.tell(
            suggestion,
            suggestion.point["x"] + {"a": 0.0, "b": 0.3, "c": -0.3}[suggestion.point["kind"]],
        )
    again = tv.load(store, "mixed")
    assert again.result().mean.tolist() == study.result().mean.tolist()
    assert again.gains().tolist() == study.gains().tolist()


@pytest.mark.parametrize(
    "domain",
    [
        tv.Domain.box(lr=tv.Log(1e-6, 1e-1), representers=30),
        tv.Domain.grid(lr=tv.Log(1e-6, 1e-1, count=6), kind=["a", "b", "c"]),
        tv.Domain.box(lr=tv.Log(1e-6, 1e-1), kind=["a", "b"], x=(0, 1), representers=40),
    ],
    ids=["curve", "map", "slices"],
)
def test_figures_and_reports_have_the_values_of_the_user(domain):
    pytest.importorskip("matplotlib")
    study = tv.Study(domain, tv.Maximize(), kernel="matern52", noise=0.01)
    for row in (0, len(domain) // 2, len(domain) - 1):
        study.tell(domain.point(row), float(row))
    study.ask()
    texts = [
        text.get_text()
        for axes in study.plot().axes
        for text in [*axes.get_xticklabels(), *axes.get_yticklabels()]
    ]
    assert "0.001" in texts
    if "kind" in domain.columns:
        assert {"a", "b"} <= set(texts)
    html = render_html_report(study)
    assert "lr: 1e-06 to 0.1 on a log scale" in html


def test_a_dataset_has_the_values_of_the_user():
    pytest.importorskip("xarray")
    domain = tv.Domain.grid(lr=tv.Log(1e-3, 1e-1, count=3), kind=["a", "b"])
    study = tv.Study(domain, tv.Maximize(), kernel="matern52", noise=0.01)
    study.tell({"lr": 0.01, "kind": "b"}, 1.0)
    dataset = study.result().to_xarray()
    assert dataset["lr"].values.tolist() == [0.001, 0.01, 0.1]
    assert dataset["kind"].values.tolist() == ["a", "b"]
    row = domain.locate({"lr": 0.01, "kind": "b"})[0]
    assert float(dataset["mean"].sel(lr=0.01, kind="b")) == study.result().mean[row]
