"""Coordinates are shown with as many digits as tell points apart, and few more."""

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.domain.rounding import shown_numbers
from truvar.report.formatting import format_shown
from truvar.study.measurements_io import parse_words, tell_all


def table(**columns):
    return tv.Domain.table(pd.DataFrame(columns), columns=list(columns))


def lake(count=25):
    lon, lat = np.meshgrid(np.linspace(8.5, 9.5, count), np.linspace(47.0, 47.5, count))
    return table(lon=np.round(lon.ravel(), 6), lat=np.round(lat.ravel(), 6))


@pytest.mark.parametrize(
    ("domain", "point", "text"),
    [
        (lake(), {"lon": 8.541667, "lat": 47.020833}, "lon 8.5417, lat 47.0208"),
        (lake(), {"lon": 8.5, "lat": 47.5}, "lon 8.5, lat 47.5"),
        (tv.Domain.grid(x=np.linspace(0, 1, 25)), {"x": 1 / 3}, "x 0.3333"),
        (tv.Domain.grid(x=np.linspace(0, 3, 25)), {"x": 0.125}, "x 0.125"),
        (tv.Domain.grid(x=np.arange(0, 1, 0.1)), {"x": 0.1 + 0.2}, "x 0.3"),
        (table(x=[0.123456, 7.0, 1000.0]), {"x": 0.123456}, "x 0.123456"),  # as it was given
        (table(east=456789.1234 + 0.5 * np.arange(30)), {"east": 456789.1234}, "east 456789.123"),
        (table(east=3500000.25 + 1e5 * np.arange(30)), {"east": 3600000.25}, "east 3600000"),
        (
            tv.Domain.box(x=(0, 1), y=(-1000, 1000)),
            {"x": 0.123456789, "y": -0.000001},
            "x 0.1235, y 0",
        ),
        (
            tv.Domain.box(lr=tv.Log(1e-6, 1e-1), n=tv.Integer(1, 9)),
            {"lr": 1.23456789e-5, "n": 3},
            "lr 1.2346e-05, n 3",
        ),
        (
            tv.Domain.box(s=["a", "b"], x=tv.Range(0, 1, step=0.125)),
            {"s": "a", "x": 0.125},
            "s a, x 0.125",
        ),
    ],
)
def test_digits_follow_the_distance_of_the_points(domain, point, text):
    assert format_shown(domain, point) == text


def test_points_that_are_close_to_each_other_are_shown_differently():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 1, (2, 400))
    x[1] = x[0] + 1e-9
    y[1] = y[0]
    shown = shown_numbers(table(x=x, y=y))
    assert len(np.unique(shown, axis=0)) == 400
    spread = shown_numbers(table(x=x[1:], y=y[1:]))
    assert max(len(f"{value:.15g}") for value in spread.ravel()) <= 6  # such as 0.1234


def test_a_point_can_be_told_as_it_is_shown_and_other_points_of_a_grid_are_not_moved():
    domain = tv.Domain.grid(x=np.linspace(0, 1, 25), y=np.linspace(0, 1, 25))
    study = tv.Study(domain, tv.Maximize(), noise=0.1)
    shown = domain.shown(domain.point(29))
    assert shown != domain.point(29)
    words = [f"{name}={value!r}" for name, value in shown.items()]
    tell_all(study, parse_words([*words, "1.5"], domain))
    tell_all(study, parse_words(["x=0.04172", "y=0.1667", "1.5"], domain))
    assert study.measurements["index"].tolist()[0] == 29
    assert study.measurements["x"].tolist()[1] == 0.04172
