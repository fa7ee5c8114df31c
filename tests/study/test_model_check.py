"""A model that the measurements contradict is named as such wherever a result is shown."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Kernel
from tests.helpers.theory_settings import THEOREM

import truvar as tv
from truvar.report import summary
from truvar.report._plot_data import PlotData
from truvar.report.status import status_text
from truvar.report.tables import to_json
from truvar.report.terminal import TerminalStyle

GRID = tv.Domain.grid(x=np.linspace(0, 1, 12), y=np.linspace(0, 1, 12))
NOISE = 0.01
PREFIX = "The measurements contradict the model: "


def draw(kernel: Kernel, seed: int) -> np.ndarray:
    covariance = kernel(GRID.points) + 1e-9 * np.eye(len(GRID))
    return np.linalg.cholesky(covariance) @ np.random.default_rng(seed).standard_normal(len(GRID))


def measured(
    truth: float, model: float, t: int = 40, *, scale: float = 1.0, **settings: object
) -> tv.Study:
    """Return a study of a draw from scale^2 RBF(truth) by RBF(model), measured t times at random
    points."""
    f = scale * draw(RBF(truth), seed=1)
    rng = np.random.default_rng(2)
    given = {
        "policy": THEOREM,
        "goal": tv.LevelSet(0.5),
        "name": "<field>",
        "mean": 0.0,
        **settings,
    }
    study = tv.Study(GRID, given.pop("goal"), kernel=RBF(model), noise=NOISE, **given)
    for index in rng.integers(len(GRID), size=t):
        study.tell(GRID.point(int(index)), float(f[index] + np.sqrt(NOISE) * rng.standard_normal()))
    return study


@pytest.fixture(scope="module")
def contradicted() -> tv.Study:
    return measured(truth=0.2, model=0.6)


def test_the_certificate_of_a_right_model_stays_as_it_is() -> None:
    result = measured(truth=0.2, model=0.2).result()
    assert result.model_check.ok
    assert len(result.model_check.z_scores) == 40
    assert result.certificate.regime == "theorem"
    assert result.certificate.bounds_statement.startswith("With probability at least 0.9, ")


def test_the_certificate_of_a_contradicted_kernel_says_so_and_gives_no_probability(
    contradicted: tv.Study,
) -> None:
    result = contradicted.result()
    check = result.model_check
    certificate = result.certificate
    assert not check.ok
    assert check.failure == "overconfident"
    assert certificate.statement.startswith(f"{PREFIX}{check.finding}. ")
    assert "each with a probability of at least 95 %, given the model" in certificate.statement
    assert certificate.bounds_statement.startswith("If the confidence bounds hold, f is ")
    assert certificate.regime == "heuristic"
    assert certificate.delta is None
    assert certificate.epoch_ends_by is None
    assert certificate.because.startswith(
        "the measurements contradict the model, so that no probability can be given"
    )


def test_a_model_that_is_too_cautious_is_a_caveat() -> None:
    result = measured(truth=0.6, model=0.2, scale=0.3).result()
    assert result.model_check.failure == "cautious"
    assert result.certificate.regime == "theorem"
    assert any(
        "check of the model failed: the squared errors" in caveat
        for caveat in result.certificate.caveats
    )


def test_a_learned_model_keeps_its_regime_and_says_that_a_value_is_wrong() -> None:
    study = measured(truth=0.3, model=0.3, mean=None)
    study.correct(7, 25.0)
    result = study.result()
    assert result.model_check.failure == "outlier"
    assert result.certificate.regime == "learned"
    assert result.certificate.statement.startswith(f"{PREFIX}measurement 7 lies ")
    study.withdraw(7)
    assert study.result().model_check.ok


@pytest.mark.parametrize(("norm", "regime"), [(3.0, "heuristic"), (1000.0, "outside")])
def test_a_bounded_norm_is_contradicted_by_a_larger_misfit_only(norm: float, regime: str) -> None:
    policy = tv.TruVaR(beta=tv.RKHSBeta(norm, 0.1))
    certificate = measured(truth=0.2, model=0.6, policy=policy).result().certificate
    contradicted = certificate.statement.startswith(PREFIX)
    assert contradicted == (norm == 3.0)
    assert (certificate.regime == "heuristic") == contradicted
    assert (
        any("check of the model failed" in caveat for caveat in certificate.caveats) != contradicted
    )


def test_before_the_first_fit_there_is_nothing_to_check() -> None:
    study = tv.Study(GRID, tv.Maximize(), kernel=tv.Learned("rbf", n_initial=8), noise=0.01)
    for k in range(6):
        study.tell(GRID.point(k), 100.0 * k)
    check = study.result().model_check
    assert check.ok
    assert check.message == "The model is not learned yet, so that there is nothing to check."


@pytest.mark.parametrize("t", [0, 1, 4])
@pytest.mark.parametrize("mean", [0.0, None])
def test_few_measurements_pass(t: int, mean: float | None) -> None:
    study = measured(truth=0.2, model=0.6, t=t, mean=mean)
    check = study.result().model_check
    assert check.ok
    assert check.message.startswith("Too few measurements to check the model")
    json.loads(to_json(summary(study)))
    study.plot_model_check()


def test_replicates_are_left_out_one_by_one() -> None:
    study = tv.Study(GRID, tv.Maximize(), kernel=RBF(0.3), mean=0.0, noise=0.01)
    values = [0.9, 1.1, 1.0, 0.95, 1.0]
    for value in values:
        study.tell(GRID.point(5), value)
    check = study.result().model_check
    rest = np.array(values[:4])
    expected = rest.sum() / (4 + 0.01)  # prior variance 1
    assert check.means[4] == pytest.approx(expected)


# -- where it is shown
# -------------------------------------------------------------------------------------------------


def test_the_status_repeats_a_failed_check(contradicted: tv.Study) -> None:
    check = contradicted.result().model_check
    text = " ".join(status_text(contradicted, TerminalStyle(width=100)).split())
    assert f"model check failed: {check.message}" in text
    shown = json.loads(to_json(summary(contradicted)))["result"]["model_check"]
    assert (shown["ok"], shown["message"], shown["coverage"]) == (
        False,
        check.message,
        check.coverage,
    )
    right = measured(truth=0.2, model=0.2)
    assert "model check" not in status_text(right, TerminalStyle(width=100))


def test_the_report_shows_the_check_and_its_figure(contradicted: tv.Study) -> None:
    from truvar.report.html_report import render_html_report

    page = render_html_report(contradicted)
    assert "<b>Model check failed.</b>" in page
    assert contradicted.result().model_check.message in page
    assert "Model check: each measurement against what the others predict" in page
    passed = render_html_report(measured(truth=0.2, model=0.2))
    assert "Model check: The measurements agree with the model" in passed
    few = render_html_report(measured(truth=0.2, model=0.2, t=3))
    assert "each measurement against what the others predict" not in few


def test_the_figure_names_the_measurements_that_contradict_the_model(
    contradicted: tv.Study,
) -> None:
    figure = contradicted.plot_model_check()
    ax = figure.axes[0]
    check = contradicted.result().model_check
    named = {text.get_text() for text in ax.texts}
    outlying = [str(check.ids[i]) for i in np.argsort(-np.abs(check.z_scores)) if check.outlying[i]]
    assert named == set(outlying[:12])
    assert ax.get_xlabel() == "measured value"
    assert "failed" in figure.get_suptitle()
    low, high = ax.get_xlim()
    assert low < check.values.min()
    assert check.values.max() < high


def test_the_figure_of_a_transformed_model_says_so_or_is_transformed_back(
    contradicted: tv.Study,
) -> None:
    from truvar.report import style
    from truvar.report._plot_diagnostics import draw_model_check

    data = PlotData.from_study(contradicted)
    data.values[:] = np.exp(data.values)  # as if the model had taken logarithms
    ax = style.new_figure(5, 4).subplots()
    draw_model_check(ax, data)
    assert ax.get_xlabel() == "measured value (in the model's units)"
    ax = style.new_figure(5, 4).subplots()
    draw_model_check(ax, data, inverse=np.exp)
    assert ax.get_xlabel() == "measured value"
    assert ax.get_ylim()[1] >= data.values.max()


@pytest.mark.slow
def test_right_models_seldom_fail_where_a_policy_chooses_the_points() -> None:
    """At most 3 % fail; with 400 runs of a check of level 2 % the share exceeds 4.5 % with a
    probability of 0.1 %."""
    failed = 0
    for seed in range(400):
        f = draw(RBF(0.2), seed)
        noise = np.random.default_rng([seed, 1])
        study = tv.Study(
            GRID, tv.LevelSet(0.5), kernel=RBF(0.2), mean=0.0, noise=NOISE, policy="truvar"
        )
        for _ in range(25):
            s = study.ask()
            study.tell(s, float(f[s.index] + 0.1 * noise.standard_normal()))
        failed += not study.result().model_check.ok
    assert failed / 400 <= 0.045
