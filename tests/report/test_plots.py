"""Figures by name: every kind in one to ten dimensions, light and dark, and the numbers that
they show."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import InvalidArgumentError
from truvar.plot import KINDS
from truvar.problem.build import problem_from_dict
from truvar.report import style
from truvar.report._plot_convergence import best_so_far
from truvar.report._plot_data import PlotData
from truvar.report._plot_diagnostics import calibration
from truvar.report._slices import PosteriorSlices, chosen_columns, column_importance
from truvar.service._convergence import Convergence
from truvar.study.convergence import score_history


def bump(point: dict[str, Any]) -> float:
    """Return a peak in the middle that is narrower along the first column."""
    x = np.array(list(point.values()), dtype=float) - 0.5
    return float(5 * np.exp(-np.sum(x**2 * np.linspace(6, 1, len(x)))))


def new_study(dimensions: int, goal: Any = None, steps: int = 8, **options: Any) -> tv.Study:
    if dimensions == 1:
        domain = tv.Domain.grid(x=np.linspace(0, 1, 21))
    elif dimensions == 2:
        domain = tv.Domain.grid(x=np.linspace(0, 1, 9), y=np.linspace(0, 1, 7))
    else:
        domain = tv.Domain.box(
            **{f"x{k}": (0.0, 1.0) for k in range(1, dimensions + 1)}, representers=120
        )
    kernel = options.pop("kernel", RBF(np.linspace(0.3, 0.9, dimensions)))
    study = tv.Study(domain, goal or tv.Maximize(), kernel=kernel, mean=0.0, noise=0.01, **options)
    study.run(bump, steps=steps)
    if steps:
        study.ask()
    return study


@pytest.fixture(scope="module")
def studies() -> dict[int, tv.Study]:
    return {d: new_study(d, tv.LevelSet(2.5) if d == 2 else None) for d in (1, 2, 3, 6, 10)}


PANELS = {  # axes of each kind in 1, 2, 3, 6 and 10 dimensions, colour bars included
    "overview": (3, 5, 5, 8, 8),
    "map": (1, 3, 11, 27, 27),
    "slices": (1, 2, 3, 6, 12),
    "contours": (1, 6, 11, 27, 27),
    "convergence": (2, 2, 2, 2, 2),
    "importance": (1, 1, 1, 1, 1),
    "model_check": (2, 2, 2, 2, 2),
    "route": (1, 2, 1, 1, 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_in_one_to_ten_dimensions(
    kind: str, studies: dict[int, tv.Study]
) -> None:
    options = {"moments": 2} if kind == "convergence" else {}
    for study, expected in zip(studies.values(), PANELS[kind], strict=True):
        figure = study.plot(kind=kind, **options)
        assert len(figure.axes) == expected
        if study is not studies[6]:  # it is laid out as in ten dimensions
            figure.draw_without_rendering()


@pytest.mark.parametrize("kind", KINDS)
def test_a_dark_figure_has_light_text_on_a_dark_background(
    kind: str, studies: dict[int, tv.Study]
) -> None:
    from matplotlib.colors import to_hex
    from matplotlib.text import Text

    options = {"moments": 2} if kind == "convergence" else {}
    figure = studies[3].plot(kind=kind, theme="dark", **options)
    assert to_hex(figure.get_facecolor()).upper() == style.DARK_GROUND
    figure.draw_without_rendering()
    shown = [
        text for text in figure.findobj(Text) if text.get_text() and not text.get_path_effects()
    ]
    assert len(shown) > 3
    assert all(style._lighter(text.get_color()) is None for text in shown)


def test_figures_of_a_study_without_measurements_are_drawn() -> None:
    for dimensions in (1, 2, 3):
        study = new_study(dimensions, steps=0)
        for kind in KINDS:
            study.plot(kind=kind).draw_without_rendering()
        learned = tv.Study(study.domain, tv.LevelSet(1.0))
        for kind in KINDS:
            assert learned.plot(kind=kind).axes


def test_mixed_parameters_have_their_values_on_the_axes() -> None:
    domain = tv.Domain.box(
        lr=tv.Log(1e-6, 1e-1),
        depth=tv.Integer(1, 12),
        solver=tv.Categorical(["lbfgs", "saga"]),
        representers=100,
    )
    study = tv.Study(domain, tv.Minimize())
    rng = np.random.default_rng(0)
    for row in rng.choice(100, 8, replace=False):
        study.tell(domain.point(int(row)), float(rng.normal()))
    figure = study.plot(kind="slices")
    figure.draw_without_rendering()
    labels = [[text.get_text() for text in ax.get_xticklabels()] for ax in figure.axes[:3]]
    assert labels[0][0] == "1e-06"
    assert labels[1] == ["1", "4", "7", "9", "12"]
    assert labels[2] == ["lbfgs", "saga"]
    assert len(study.plot(kind="contours").axes) == 11


def test_an_unknown_kind_theme_backend_or_option_names_the_known_ones(
    studies: dict[int, tv.Study],
) -> None:
    study = studies[1]
    with pytest.raises(
        InvalidArgumentError, match="unknown kind of figure 'slice'; did you mean 'slices'"
    ):
        study.plot(kind="slice")
    with pytest.raises(InvalidArgumentError, match="theme"):
        study.plot(theme="night")
    with pytest.raises(InvalidArgumentError, match=r"got backend='plotly'; leave it out"):
        tv.plot.map(study, backend="plotly")
    with pytest.warns(
        DeprecationWarning, match=r"argument backend is deprecated.* in truvar 0.5.0"
    ):
        tv.plot.importance(study, backend="matplotlib")
    with pytest.raises(InvalidArgumentError, match="'importance' takes no 'at'"):
        study.plot(kind="importance", at={"x": 0.5})
    with pytest.raises(InvalidArgumentError, match="unknown column 'z'"):
        study.plot(kind="slices", columns=["z"])
    with pytest.raises(InvalidArgumentError, match="unknown axis 'time'"):
        study.plot(kind="convergence", against="time")


def test_a_slice_is_the_posterior_through_the_point(studies: dict[int, tv.Study]) -> None:
    study = studies[3]
    slices = PosteriorSlices.through(study, {"x1": 0.2, "x2": 0.4, "x3": 0.6})
    line = slices.line(1)
    points = [[0.2, x, 0.6] for x in line.x]
    mean, sd = study.predict(points)
    np.testing.assert_allclose(line.mean, mean)
    np.testing.assert_allclose(line.sd, sd)
    plane = slices.plane(0, 2)
    row = 5
    column = 20
    np.testing.assert_allclose(
        plane.mean[row, column],
        study.predict([[plane.x[column], 0.4, plane.y[row]]])[0][0],
        rtol=1e-10,
    )
    opacity = slices.opacity(np.array([[0.2, 0.9, 0.6], [1.0, 0.9, 0.0]]), [1])
    assert opacity[0] == 1.0
    assert opacity[1] < 0.2


def test_the_most_important_columns_are_chosen(studies: dict[int, tv.Study]) -> None:
    importance = column_importance(studies[6])
    assert importance.indices.total.shape == (6,)
    np.testing.assert_allclose(importance.lengthscales, np.linspace(0.3, 0.9, 6))
    chosen, note = chosen_columns(studies[6], None, 2)
    assert chosen == sorted(importance.order[:2].tolist())
    assert note == "the 2 most important of 6 parameters"
    assert chosen_columns(studies[6], ["x5", "x2"], 2) == ([4, 1], "")


def test_calibration_counts_the_measurements_inside_each_interval() -> None:
    z = np.array([0.1, -0.5, 1.0, -2.5, np.nan])
    levels, observed, low, high = calibration(z)
    half = {0.05: 0.0627, 0.99: 2.5758}
    assert observed[0] == np.mean(np.abs(z[:4]) <= half[0.05])
    assert observed[-1] == 1.0
    at_half = int(np.argmin(np.abs(levels - 0.5)))
    assert observed[at_half] == 0.5  # of 0.1, 0.5, 1.0 and 2.5 two are below 0.67
    assert (low <= levels).all()
    assert (high >= levels - 1e-12).all()


def test_the_score_of_earlier_moments_is_what_was_known_then() -> None:
    study = new_study(1, tv.LevelSet(2.5), steps=0)
    known: list[tuple[int, float, tv.Result]] = []
    for _ in range(6):
        suggestion = study.ask()
        study.tell(suggestion, bump(suggestion.point))
        known.append((study.steps, study.spent, study.result()))
    records = score_history(study, moments=6)
    assert [(record.steps, record.spent) for record in records] == [
        (steps, spent) for steps, spent, _ in known
    ]
    for record, (_, _, result) in zip(records, known, strict=True):
        assert record.score == result.expected_f1
    assert [record.steps for record in score_history(study, moments=3)] == [2, 4, 6]


def test_the_page_and_the_figure_have_the_same_curve_also_after_a_correction() -> None:
    study = new_study(1, tv.Maximize(), steps=0)
    for x in study.domain.points[::3, 0]:
        study.tell({"x": float(x)}, float(np.sin(5 * x)))
    study.correct(2, 0.3)
    study.withdraw(5)
    convergence = Convergence(studies=1)
    source = convergence.read(study)
    page = convergence.to_dict("curve", source)
    while not page["complete"]:  # one request computes for a few seconds
        page = convergence.to_dict("curve", source)
    assert page["scores"] == [score.to_dict() for score in score_history(study)]
    figure = study.plot(kind="convergence")
    drawn = figure.axes[1].lines[0].get_xdata().tolist()
    assert drawn == [row["steps"] for row in page["scores"]] == [1, 2, 3, 4, 5, 6]
    best = next(line for line in figure.axes[0].lines if line.get_label() == "best so far")
    assert best.get_ydata().tolist() == [row["best"] for row in page["best"]]


def test_the_best_so_far_follows_the_goal() -> None:
    study = new_study(1, tv.Minimize(), steps=0)
    for x, y in ((0.0, 3.0), (0.5, 4.0), (1.0, 2.0)):
        study.tell({"x": x}, y)
    assert best_so_far(PlotData.from_study(study)).tolist() == [3.0, 3.0, 2.0]


def test_convergence_is_drawn_against_cost_and_steps_where_they_differ() -> None:
    study = new_study(1, steps=0, cost=tv.Cost(base=1.0, travel={"x": 2.0}))
    study.run(bump, steps=4)
    figure = study.plot(kind="convergence", moments=2)
    assert [ax.get_xlabel() for ax in figure.axes[2:]] == ["cost spent", "measurements"]
    assert len(study.plot(kind="convergence", against="steps", moments=2).axes) == 2


def test_routes_of_vehicles_are_apart() -> None:
    study = new_study(2, steps=0, vehicles=["north", "south"])
    for who in ("north", "south", "north"):
        suggestion = study.ask(vehicle=who)
        study.tell(suggestion, bump(suggestion.point))
    figure = tv.plot.route(study)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "north: 2 measurements",
        "south: 1 measurements",
    ]
    assert tv.plot.route(study, columns=["x"]).axes[0].get_xlabel() == "measurement"


def test_a_comparison_of_policies_is_drawn() -> None:
    domain = tv.Domain.grid(x=np.linspace(0, 1, 12))
    truth = [bump(domain.point(row)) for row in range(12)]
    specification = {
        "name": "line",
        "domain": {"grid": {"x": [0, 1, 12]}},
        "goal": {"maximize": True},
        "model": {"kernel": "rbf", "lengthscales": [0.3], "variance": 1.0, "mean": 0.0},
        "noise": {"variance": 0.01},
    }
    problem = problem_from_dict(specification)
    result = tv.backtest(problem, np.array(truth), ["truvar", "random"], replicates=2, budget=5)
    figure = tv.plot.comparison(result, theme="dark")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "truvar",
        "random",
    ]


@pytest.fixture(scope="module")
def coupling() -> tv.Study:
    """A study of a laboratory, with long names of categories."""
    domain = tv.Domain.box(
        temperature_C=(20, 90),
        time_h=tv.Integer(1, 24),
        loading=tv.Log(1e-4, 1e-1),
        solvent=tv.Categorical(["acetonitrile", "dichloromethane", "tetrahydrofuran-water"]),
        representers=120,
    )
    study = tv.Study(domain, tv.Maximize(), quantity="yield", unit="%")
    rng = np.random.default_rng(0)
    for row in range(0, 120, 10):
        study.tell(domain.point(row), float(60 + rng.normal()))
    return study


def tick_boxes(ax: Any, letter: str) -> list[Any]:
    labels = ax.get_xticklabels() if letter == "x" else ax.get_yticklabels()
    return [label for label in labels if label.get_text() and label.get_visible()]


@pytest.mark.parametrize("kind", ["contours", "slices"])
def test_tick_labels_do_not_collide(kind: str, coupling: tv.Study) -> None:
    figure = coupling.plot(kind=kind)
    figure.draw_without_rendering()
    for ax in figure.axes:
        for letter in "xy":
            low, high = sorted(ax.get_xlim() if letter == "x" else ax.get_ylim())
            shown = [
                label
                for label in tick_boxes(ax, letter)
                if low <= label.get_position()[letter == "y"] <= high
            ]
            for one, other in itertools.pairwise(shown):
                if one.get_rotation() == 0:
                    assert not one.get_window_extent().overlaps(other.get_window_extent())
                else:  # parallel lines of text: their ends are further apart than a line is high
                    gap = other.get_window_extent().x1 - one.get_window_extent().x1
                    height = one.get_fontsize() * figure.dpi / 72
                    assert gap * np.sin(np.deg2rad(one.get_rotation())) > height
    texts = [label.get_text() for ax in figure.axes for label in ax.get_xticklabels()]
    assert "tetrahydrofuran…" in texts


def test_no_half_of_the_contours_is_empty(coupling: tv.Study) -> None:
    figure = coupling.plot(kind="contours")
    panels = figure.axes[:16]
    assert all(ax.axison and ax.has_data() for ax in panels)
    labels = [ax.get_ylabel() for ax in figure.axes[16:]]
    assert sorted(labels) == ["standard deviation of yield (%)", "yield (%)"]
    slices = PosteriorSlices.through(coupling)
    plane = slices.plane(0, 1)
    np.testing.assert_array_equal(plane.transposed.sd, plane.sd.T)
    assert plane.transposed.columns == (1, 0)


def test_importance_says_why_shares_do_not_add_up_and_no_text_is_covered(
    coupling: tv.Study,
) -> None:
    figure = coupling.plot(kind="importance")
    figure.draw_without_rendering()
    (ax,) = figure.axes
    legend = ax.get_legend().get_window_extent()
    for text in [*ax.texts, *ax.get_yticklabels(), figure._suptitle]:
        assert not legend.overlaps(text.get_window_extent())
    importance = column_importance(coupling)
    total = 100 * importance.indices.total.sum()
    note = " ".join(figure._supxlabel.get_text().split())
    assert f"so that the numbers add up to {total:.0f} %" in note
    shown = sum(float(text.get_text().split(" %")[0]) for text in ax.texts)
    assert shown == pytest.approx(total, abs=0.5 * len(ax.texts))
