"""Figures of Plotly: the same names and data as those of matplotlib."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.test_plots import new_study

import truvar as tv
from truvar.plot import KINDS
from truvar.report import _matplotlib_figures as matplotlib_figures
from truvar.report import _plotly_figures as plotly_figures

plotly = pytest.importorskip("plotly.graph_objects")


def test_both_backends_have_the_same_figures() -> None:
    assert list(plotly_figures.FIGURES) == list(matplotlib_figures.FIGURES)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 6])
def test_every_kind_is_drawn(dimensions: int) -> None:
    study = new_study(dimensions, tv.LevelSet(2.5) if dimensions == 2 else None)
    for kind in KINDS:
        options = {"moments": 2} if kind == "convergence" else {}
        figure = study.plot(kind=kind, backend="plotly", theme="dark", **options)
        assert isinstance(figure, plotly.Figure)
        assert len(figure.data) > 0
        assert len(figure.to_json()) > 500


def test_a_study_without_measurements_is_drawn() -> None:
    for dimensions in (1, 2, 3):
        study = new_study(dimensions, steps=0)
        for kind in KINDS:
            assert isinstance(study.plot(kind=kind, backend="plotly"), plotly.Figure)


def test_a_map_shows_the_posterior_mean_and_the_measurements() -> None:
    study = new_study(2, tv.LevelSet(2.5))
    figure = tv.plot.map(study, backend="plotly")
    heat = figure.data[0]
    np.testing.assert_allclose(np.array(heat.z).T.ravel(), study.result().mean)
    measured = next(trace for trace in figure.data if trace.name == "measured")
    np.testing.assert_allclose(measured.x, study.measurements["x"])
    assert measured.text[0].startswith("1: ")
