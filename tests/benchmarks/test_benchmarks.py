"""The benchmarks run, and the recipe they compare with computes what truvar computes."""

import json

import numpy as np
import pytest
from benchmarks.__main__ import main
from benchmarks.accuracy import reference
from benchmarks.cases import level_set, noise_levels, optimum, state_of
from benchmarks.measure import Row
from benchmarks.recipe import Fixed, Recipe, Tuned

import truvar as tv
from benchmarks import samplers, startup
from truvar.models.kernels import named_kernel
from truvar.models.posterior import Posterior


def test_only_the_rows_asked_for_are_measured(tmp_path, capsys):
    path = tmp_path / "bench.json"
    main(["--quick", "--only", "overhead", "--json", str(path)])
    names = [row["name"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    assert names[0] == "study-overhead"
    assert len(names) == 10
    assert "study-level-set-mean-estimated-ratio" in names
    assert names[-1] == "tell-calls"


def test_the_start_up_rows_are_compared_with_release_0_1_0(monkeypatch):
    """A command that takes as long as in 0.1.0, on a machine of any speed, has the ratio 1 and
    misses its target."""
    taken = {key: 3.0 * ratio for key, ratio in startup.RELEASE_0_1_0.items()} | {
        "reference": 3.0,
        "classes": 6.0,
    }
    taken["help"] /= 10
    monkeypatch.setattr(startup, "processor_times", lambda side, rounds: taken)
    monkeypatch.setattr(
        startup, "_first_suggestion", lambda side, rounds: Row("first-suggestion", "", 1.0)
    )
    rows = {row.name: row for row in startup.rows(quick=False)}
    assert rows["startup-help"].measured == pytest.approx(0.1)
    for key in ("version", "import", "ask", "tell", "status", "optuna"):
        assert rows[f"startup-{key}"].measured == pytest.approx(1.0)
    met = {name: row.met for name, row in rows.items() if row.target is not None}
    assert met.pop("startup-help") is True
    assert met.pop("startup-help-optuna") is True
    assert set(met.values()) == {False}
    del taken["optuna"]
    rows = {row.name: row for row in startup.rows(quick=False)}
    assert rows["startup-optuna"].measured is None
    assert rows["startup-help-optuna"].measured is None


@pytest.mark.parametrize(
    "case", [optimum(12, 6), level_set(12, 6), noise_levels(12, 4)], ids=lambda case: case.name
)
@pytest.mark.parametrize("recipe", [Recipe, Fixed, Tuned])
def test_the_recipe_gives_the_gains_and_the_mean_of_truvar(case, recipe):
    study = case.study()
    measure = case.measurer()
    other = recipe(case.recipe().prior)
    for _ in range(case.steps):
        if study.finished or study.exhausted:
            break
        suggestion = study.ask()
        study.tell(suggestion, measure(suggestion))
        measured, inputs = state_of(study, case.mean)
        mean, gains = other.gains(measured, inputs)
        np.testing.assert_allclose(
            gains.ravel(), study.gains(), rtol=1e-8, atol=1e-8 * study.gains().max() + 1e-12
        )
        np.testing.assert_allclose(case.mean + mean, study.result().mean, atol=1e-7)
    assert study.steps >= 3


def test_the_reference_of_the_accuracy_rows_agrees_with_the_posterior_on_an_easy_problem():
    axis = np.linspace(0, 1, 8)
    points = tv.Domain.grid(x=axis, y=axis).points
    where = np.array([0, 27, 63])
    values = np.array([0.3, -1.0, 2.0])
    posterior = Posterior(named_kernel("rbf", [0.2, 0.2]), points, 0.0)
    for site, y in zip(where, values, strict=True):
        posterior.add(points[site], 0.01, int(site))
        posterior.observe(y)
    mean, variance = reference(points, where, values, 0.2, 0.01)
    np.testing.assert_allclose(posterior.mean, mean.astype(float), atol=1e-14)
    np.testing.assert_allclose(posterior.variance, variance.astype(float), atol=1e-14)


def test_samplers_whose_library_is_missing_are_left_out(monkeypatch, capsys):
    pytest.importorskip("optuna", reason="needs truvar[optuna]")
    monkeypatch.setattr(samplers, "find_spec", lambda name: None)
    monkeypatch.setattr(
        "sys.argv",
        ["samplers", "--problems", "failing", "--methods", "GP,random", "--seeds", "1"],
    )
    samplers.main()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "GP is left out: torch is not installed"
    assert json.loads(second)["method"] == "random"
