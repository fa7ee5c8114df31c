"""Figures, folder reports and progress displays of every kind of study, at every stage."""

from __future__ import annotations

import io
import json
import re
import struct
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from tests.helpers.warning_checks import no_warnings

import truvar as tv
from truvar.exceptions import InvalidArgumentError, MissingDependencyError, OutputError
from truvar.report import Progress, plot_study, style, summary, write_report
from truvar.report._plot_data import PlotData, cell_edges
from truvar.report.formatting import column_label
from truvar.report.progress import progress_bar
from truvar.study.limits import RunLimits

# -- studies
# --------------------------------------------------------------------------------------------------


def kernel(*lengthscales: float) -> object:
    return ConstantKernel(1.0) * Matern(lengthscales, nu=2.5)


LINE = tv.Domain.grid(time_s=np.linspace(0, 10, 60))
PLANE = tv.Domain.grid(distance_m=np.linspace(0, 1000, 12), depth_m=np.linspace(-20, 0, 10))
DECADES = tv.Domain.grid(C=np.geomspace(1, 1e4, 9), alpha=np.linspace(0, 1, 6))
SPACE = tv.Domain.grid(
    C=np.geomspace(1, 1e4, 5), alpha=np.linspace(0, 1, 4), temp_C=np.linspace(100, 200, 3)
)
SCATTERED = tv.Domain.table(
    pd.DataFrame(np.random.default_rng(0).uniform(size=(70, 2)), columns=["u_km", "v_km"])
)
DIAGONAL = tv.Domain.table(pd.DataFrame({"u": np.arange(9.0), "v": np.arange(9.0)}))
ONE_ROW = tv.Domain.grid(u=np.linspace(0, 1, 9), v=[3.0])
SINGLE = tv.Domain.grid(u=[3.0], v=[1.0])
BOX = tv.Domain.box(u=(0, 1), v=(0, 1), representers=64)
GOALS = {
    "level set": tv.LevelSet(0.3),
    "implicit": tv.LevelSet(fraction_of_max=0.7),
    "maximum": tv.Maximize(),
    "minimum": tv.Minimize(),
}


def true_values(domain: tv.Domain) -> np.ndarray:
    unit = (domain.points - domain.bounds[:, 0]) / domain.extent
    return np.sin(5 * unit).sum(axis=1)


def new_study(domain: tv.Domain, goal: object, **settings: object) -> tv.Study:
    scales = 0.3 * domain.extent
    settings = {"kernel": kernel(*scales), "mean": 0.0, "noise": 0.01, "name": "trial", **settings}
    return tv.Study(domain, goal, **settings)


def advanced(study: tv.Study, steps: int) -> tv.Study:
    truth = true_values(study.domain)
    random = np.random.default_rng(0)

    def measure(point: dict[str, float], *options: object) -> float:
        value = truth[study.domain.nearest(study.domain.array(point))]
        return float(value + 0.1 * random.standard_normal())

    study.run(measure, steps=steps)
    return study


@pytest.fixture(autouse=True)
def _no_warnings():
    with no_warnings():
        yield


def png_of(study: tv.Study, truth: np.ndarray | None = None) -> bytes:
    file = io.BytesIO()
    study.plot(truth).savefig(file)
    return file.getvalue()


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])


# -- the figure
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
@pytest.mark.parametrize("domain", [LINE, PLANE, SPACE], ids=["1-d", "2-d", "3-d"])
def test_every_goal_in_every_dimension_is_drawn_without_a_warning(domain, goal):
    check_drawn(advanced(new_study(domain, goal), 8))


@pytest.mark.parametrize(
    ("domain", "goal"),
    [(LINE, "level set"), (PLANE, "implicit"), (SPACE, "maximum"), (PLANE, "minimum")],
)
def test_every_goal_is_drawn_before_the_first_measurement_without_a_warning(domain, goal):
    check_drawn(new_study(domain, GOALS[goal]))


def check_drawn(study: tv.Study) -> None:
    png = png_of(study, true_values(study.domain))
    assert size_of(png) == (1210, 682)
    assert len(png) > 10_000


@pytest.mark.parametrize(
    ("domain", "goal"),
    [
        (SCATTERED, "level set"),
        (DIAGONAL, "level set"),
        (ONE_ROW, "level set"),
        (SINGLE, "level set"),
        (SINGLE, "maximum"),
        (DECADES, "maximum"),
        (BOX, "level set"),
        (BOX, "maximum"),
    ],
)
def test_domains_of_every_shape_are_drawn(domain, goal):
    assert png_of(advanced(new_study(domain, GOALS[goal]), 4))


@pytest.mark.parametrize("domain", [LINE, PLANE, SPACE], ids=["1-d", "2-d", "3-d"])
def test_pending_suggestions_are_in_the_legend(domain):
    study = advanced(new_study(domain, tv.Maximize()), 3)
    study.ask(2)
    assert "suggested" in legend_texts(study)


@pytest.mark.parametrize("domain", [LINE, PLANE, SPACE], ids=["1-d", "2-d", "3-d"])
def test_the_best_point_is_marked_only_where_an_optimum_is_sought(domain):
    assert "recommended" in legend_texts(advanced(new_study(domain, tv.Minimize()), 3))
    assert "recommended" not in legend_texts(advanced(new_study(domain, tv.LevelSet(0.3)), 3))


def legend_texts(study: tv.Study, truth: np.ndarray | None = None) -> list[str]:
    figure = study.plot(truth)
    boxes = [axes.get_legend() for axes in figure.axes]
    boxes += [legend for part in figure.subfigs for legend in part.legends]
    return [text.get_text() for box in boxes if box is not None for text in box.get_texts()]


def test_a_finished_study_is_drawn():
    study = advanced(new_study(LINE, tv.LevelSet(5.0)), 60)
    assert study.finished
    assert png_of(study)


def test_noise_levels_and_tasks_are_drawn():
    levels = tv.NoiseLevels(variance=[1e-4, 0.1], cost=[5, 1])
    assert png_of(advanced(new_study(LINE, tv.LevelSet(0.3), noise=levels), 6))
    tasks = tv.Tasks([[1.0, 0.8], [0.8, 1.0]], ["target", "proxy"], cost=[5, 1])
    study = advanced(new_study(LINE, tv.LevelSet(0.3), tasks=tasks), 6)
    data = PlotData.from_study(study)
    assert np.isnan(data.values).tolist() == (study.measurements["task"] == "proxy").tolist()
    assert png_of(study)


def test_the_route_is_drawn_only_where_moving_costs_something():
    travel = tv.Cost(base=1, travel={"distance_m": 0.01})
    assert any(
        "route" in text
        for text in legend_texts(advanced(new_study(PLANE, tv.LevelSet(0.3), cost=travel), 4))
    )
    assert not any(
        "route" in text for text in legend_texts(advanced(new_study(PLANE, tv.LevelSet(0.3)), 4))
    )


def test_the_legend_counts_the_points_of_each_class():
    study = advanced(new_study(PLANE, tv.LevelSet(0.3)), 25)
    classes = study.result().classes
    texts = legend_texts(study)
    assert f"above 0.3: {classes.above.sum()}" in texts
    assert f"undecided: {classes.undecided.sum()}" in texts
    assert f"below 0.3: {classes.below.sum()}" in texts
    assert f"(each with at least 95 %; at most {classes.max_wrong} wrong)" in texts


def test_texts_of_a_map_do_not_overlap():
    study = advanced(new_study(PLANE, tv.LevelSet(0.3)), 25)
    study.ask(3)
    figure = study.plot(true_values(PLANE))
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts if text.get_visible()]
        for k, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:k])


def test_a_figure_leaves_no_global_state_behind():
    pyplot = sys.modules.get("matplotlib.pyplot")
    before = pyplot.get_fignums() if pyplot else None
    plot_study(new_study(LINE, tv.LevelSet(0.3)))
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert (pyplot.get_fignums() if pyplot else None) == before


def test_truth_of_the_wrong_length_is_refused():
    with pytest.raises(
        InvalidArgumentError, match=r"one value per point, shape \(60,\), got shape \(3,\)"
    ):
        plot_study(new_study(LINE, tv.LevelSet(0.3)), truth=[1, 2, 3])


def test_missing_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "truvar\[plot\]"'):
        plot_study(new_study(LINE, tv.LevelSet(0.3)))


# -- labels and scales
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "label"),
    [
        ("distance_m", "distance (m)"),
        ("total_chl_ugL", "total chl (µg/L)"),
        ("chl_mg_m3", "chl (mg/m³)"),
        ("temp_C", "temp (°C)"),
        ("C", "C"),
        ("m", "m"),
        ("learning_rate", "learning rate"),
        ("x", "x"),
    ],
)
def test_units_are_read_from_column_names(column, label):
    assert column_label(column) == label


@pytest.mark.parametrize(
    ("values", "geometric"),
    [
        (np.geomspace(1e-4, 1, 9), True),
        (np.linspace(0.01, 1, 100), False),
        (np.array([0.0, 1, 10, 100]), False),
        (np.array([-1.0, 1, 100]), False),
        (np.array([2.0]), False),
        (np.array([1e-4, 1e-3, 1e-2, 1e-1, 1.0] * 3), True),
    ],
)
def test_axes_over_decades_are_logarithmic(values, geometric):
    assert style.use_log_axis(values) is geometric


def test_cell_edges_lie_halfway_between_the_values():
    assert cell_edges(np.array([0.0, 1.0, 3.0]), geometric=False).tolist() == [-0.5, 0.5, 2.0, 4.0]
    assert cell_edges(np.array([1.0, 100.0]), geometric=True) == pytest.approx([0.1, 10, 1000])
    assert cell_edges(np.array([2.0]), geometric=False).tolist() == [1.5, 2.5]


# -- the report
# --------------------------------------------------------------------------------------------------


def test_a_folder_report_has_all_files_and_they_agree_with_the_study(tmp_path: Path):
    study = advanced(new_study(PLANE, tv.LevelSet(0.3)), 12)
    truth = true_values(PLANE)
    paths = write_report(study, tmp_path / "deep" / "down", truth)
    assert {name: path.name for name, path in paths.items()} == {
        "map": "map.png",
        "measurements": "measurements.csv",
        "points": "points.csv",
        "summary": "summary.json",
    }
    measured = pd.read_csv(paths["measurements"])
    points = pd.read_csv(paths["points"])
    data = json.loads(paths["summary"].read_text())
    result = study.result()
    assert measured["value"].to_numpy() == pytest.approx(
        study.measurements["value"].to_numpy(), rel=1e-6
    )
    assert data["result"]["steps"] == len(measured) == 12
    assert data["result"]["spent"] == pytest.approx(measured["spent"].iloc[-1])
    assert data["truth"]["f1"] == pytest.approx(result.f1(truth))
    counts = points["class"].value_counts()
    for name in ("above", "below", "undecided"):
        assert counts.get(name, 0) == data["result"]["classified"][name]
    assert size_of(paths["map"].read_bytes()) == (1210, 682)


def test_a_report_replaces_an_older_one(tmp_path: Path):
    study = new_study(LINE, tv.Maximize())
    write_report(study, tmp_path)
    write_report(advanced(study, 5), tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text())["result"]["steps"] == 5


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_the_summary_of_a_study_without_measurements_is_strict_json(goal, tmp_path: Path):
    write_report(new_study(LINE, goal), tmp_path, true_values(LINE))
    data = json.loads(
        (tmp_path / "summary.json").read_text(), parse_constant=lambda name: pytest.fail(name)
    )
    assert data["result"]["steps"] == 0
    assert data["settings"]["goal"]["kind"] == type(goal).__name__


def test_the_summary_has_settings_certificate_and_pending_suggestions():
    study = new_study(LINE, tv.Maximize(), seed=3, policy=tv.TruVaR(eta=0.5))
    suggestion = study.ask()
    data = summary(study)
    assert data["name"] == "trial"
    assert data["settings"]["seed"] == 3
    assert data["settings"]["policy"] | {"kind": "TruVaR", "eta": 0.5} == data["settings"]["policy"]
    assert data["result"]["certificate"]["statement"] == str(study.result().certificate)
    assert [pending["id"] for pending in data["pending"]] == [suggestion.id]
    assert "truth" not in data


def test_the_error_names_a_folder_that_cannot_be_created(tmp_path: Path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OutputError, match="taken"):
        write_report(new_study(LINE, tv.Maximize()), tmp_path / "taken")


# -- progress
# --------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class BrokenPipe(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def progress_output(
    stream: io.StringIO, measurements: int, goal: object = GOALS["level set"], **options: object
) -> str:
    study = new_study(LINE, goal)
    with Progress(study, stream=stream, **options) as show:
        for _ in range(measurements):
            suggestion = study.ask()
            study.tell(suggestion, float(true_values(LINE)[suggestion.index]))
            show(study)
    return stream.getvalue()


def test_without_a_terminal_there_is_a_line_every_ten_measurements_and_at_the_end():
    lines = progress_output(io.StringIO(), 23).splitlines()
    assert [int(line.split()[1]) for line in lines] == [10, 20, 23]
    assert "\x1b" not in "".join(lines)


def test_the_last_state_is_not_shown_twice():
    assert len(progress_output(io.StringIO(), 20).splitlines()) == 2


def test_progress_shows_limits_and_with_the_truth_f1_or_regret():
    truth = true_values(LINE)
    (line,) = progress_output(io.StringIO(), 7, truth=truth, budget=50, steps=90).splitlines()
    assert re.search(
        r"expected F1 [01]\.\d+ \([01]\.\d+ to [01]\.\d+\)  true F1 [01]\.\d{3}$", line
    )
    assert "7/90" in line
    assert "/50" in line
    (line,) = progress_output(io.StringIO(), 7, goal=tv.Maximize(), truth=truth).splitlines()
    assert "expected regret" in line
    assert "true regret" in line
    assert "F1" not in line


def test_progress_shows_the_goal_of_a_limit_on_the_answer():
    line = progress_output(io.StringIO(), 5, limits=RunLimits(f1=0.9, steps=30)).splitlines()[-1]
    assert re.search(r"expected F1 0\.\d+ \(0\.\d+ to [01]\.\d+\), goal 0\.9", line)
    assert "5/30" in line
    line = progress_output(
        io.StringIO(), 5, GOALS["maximum"], limits=RunLimits(relative_regret=0.01)
    ).splitlines()[-1]
    assert re.search(r"expected regret \S+ \(\S+ to \S+\), goal 0\.\d+", line)


def test_on_a_terminal_one_coloured_line_is_written_over(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("truvar.report.progress.REFRESH", 0.0)
    monkeypatch.setattr("truvar.report.progress.MAX_SHARE", 1.0)
    text = progress_output(Terminal(), 5)
    assert text.count("\r\x1b[K") == 5
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert "\x1b[38;5;" in text


def test_no_color_is_respected(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    text = progress_output(Terminal(), 5)
    assert "\r\x1b[K" in text
    assert "\x1b[38" not in text


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in progress_output(Terminal(), 5)


@pytest.mark.parametrize("columns", [20, 40, 70, 100, 200])
def test_the_line_is_never_wider_than_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    for state in progress_output(Terminal(), 5, truth=true_values(LINE)).split("\r\x1b[K"):
        assert len(state.rstrip("\n")) < columns


def test_a_stream_with_ascii_encoding_gets_ascii(monkeypatch):
    class Ascii(Terminal):
        encoding = "ascii"

    monkeypatch.setenv("TERM", "xterm")
    progress_output(Ascii(), 5).encode("ascii")


def test_a_display_that_cannot_be_written_does_not_end_the_run():
    closed = io.StringIO()
    closed.close()
    for stream in (BrokenPipe(), closed):
        study = new_study(LINE, tv.LevelSet(0.3))
        with Progress(study, stream=stream) as show:
            advanced(study, 11)
            show(study)
        assert study.steps == 11


def test_run_shows_progress_on_stderr(capsys):
    study = new_study(LINE, tv.LevelSet(0.3))
    study.run(lambda point: float(np.sin(point["time_s"])), steps=12, progress=True)
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 2


def test_the_progress_line_names_the_classes_in_words():
    (line,) = progress_output(io.StringIO(), 7).splitlines()
    assert re.search(r"undecided +\d+  above +\d+  below +\d+", line)
    (line,) = progress_output(io.StringIO(), 7, goal=tv.Maximize()).splitlines()
    assert "above" not in line


# -- progress bar
# --------------------------------------------------------------------------------------------------


def test_a_progress_bar_counts_up_to_the_total():
    stream = io.StringIO()
    show = progress_bar("runs", stream)
    for done in range(4):
        show(done, 3)
    assert stream.getvalue().endswith("\n")
    last = stream.getvalue().rstrip("\n").split("\r")[-1]
    assert last.startswith("runs: 100%")
    assert " 3/3 " in last


def test_a_progress_bar_that_cannot_be_written_does_not_end_the_work():
    closed = io.StringIO()
    closed.close()
    for stream in (BrokenPipe(), closed):
        show = progress_bar("runs", stream)
        for done in range(4):
            show(done, 3)


def test_excluded_and_failed_places_are_marked_on_the_maps():
    axis = np.linspace(0, 1, 8)
    study = tv.Study(tv.Domain.grid(x=axis, y=axis), tv.LevelSet(0.5), noise=1e-3)
    for _ in range(4):
        suggestion = study.ask()
        study.tell(suggestion, suggestion.point["x"])
    unmarked = {text.get_text() for ax in study.plot().axes for text in _legend_texts(ax)}
    assert not {"excluded", "failed"} & unmarked
    study.exclude({"x": (0.4, 0.6)}, reason="shipping lane")
    failed = study.ask()
    study.fail(failed, "no signal")
    figure = study.plot()
    maps = [
        ax
        for ax in figure.axes
        if {"excluded", "failed"} <= {text.get_text() for text in _legend_texts(ax)}
    ]
    assert len(maps) == 2
    for ax in maps:
        marks = {
            len(marked.get_offsets())
            for marked in ax.collections
            if marked.get_offsets() is not None
        }
        assert int(study.result().excluded.sum()) - 1 in marks
        offsets = [np.asarray(marked.get_offsets()).tolist() for marked in ax.collections]
        assert [[failed.point["x"], failed.point["y"]]] in offsets


def _legend_texts(ax):
    legend = ax.get_legend()
    return [] if legend is None else legend.get_texts()
