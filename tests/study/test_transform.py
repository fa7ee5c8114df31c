"""`Study(transform=...)`: the shorthand for the field of `Learned`, and what it is refused with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.exceptions import InvalidMeasurementError, InvalidModelError
from truvar.report.html_report import render_html_report
from truvar.report.status import status_data, status_text
from truvar.report.terminal import TerminalStyle
from truvar.storage.serialization import serialize

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 41))


def latency(point: dict[str, float]) -> float:
    return float(np.exp(6 * np.sin(3 * point["x"])))


@pytest.mark.parametrize("transform", ["auto", "log", "none"])
def test_it_is_the_field_of_the_learned_kernel(transform: str) -> None:
    studies = [
        tv.Study(DOMAIN, tv.Minimize(), transform=transform),
        tv.Study(DOMAIN, tv.Minimize(), kernel="matern52", transform=transform),
        tv.Study(DOMAIN, tv.Minimize(), kernel=tv.Learned(transform=transform)),
        tv.Study(DOMAIN, tv.Minimize(), kernel=tv.Learned(transform="log"), transform=transform),
    ]
    created = [serialize(study.events["details"].iloc[0]) for study in studies]
    assert created[1:] == created[:-1]


def test_logarithms_are_shown_and_results_are_in_the_units_of_the_values() -> None:
    study = tv.Study(DOMAIN, tv.Minimize(), transform="log", name="latency")
    study.run(latency, steps=12)
    assert study.transform.log
    assert study.result().best_observed.value == study.measurements["value"].min()
    assert study.result().mean.min() > 0
    assert "values are modelled as their logarithms" in " ".join(
        status_text(study, TerminalStyle()).split()
    )
    assert "values are modelled as their logarithms" in render_html_report(study)
    assert status_data(study)["settings"]["transform"] == {"log": True, "power": 1.0}


def test_a_study_without_transform_does_not_mention_one() -> None:
    study = tv.Study(DOMAIN, tv.Minimize(), transform="none", name="latency")
    study.run(latency, steps=12)
    assert "modelled as" not in status_text(study, TerminalStyle())
    assert "modelled as" not in render_html_report(study)


def test_a_value_without_logarithm_is_refused() -> None:
    study = tv.Study(DOMAIN, tv.Minimize(), transform="log")
    with pytest.raises(InvalidMeasurementError, match="give a value > 0"):
        study.tell({"x": 0.5}, -1.0)
    assert study.steps == 0


@pytest.mark.parametrize(
    ("goal", "settings", "message"),
    [
        (tv.Maximize(), {"kernel": RBF(0.3), "noise": 0.1}, "leave out the kernel to learn it"),
        (tv.LevelSet(fraction_of_max=0.8), {}, "fraction_of_max=0.8"),
        (tv.LevelSet(-1.0), {}, "must be > 0 to have a logarithm"),
        (tv.Maximize(), {"kernel": tv.Learned(marginalise=False)}, "marginalise=False"),
    ],
)
def test_it_is_refused_where_it_cannot_be_used(
    goal: object, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidModelError, match=message):
        tv.Study(DOMAIN, goal, transform="log", **settings)


def test_an_unknown_transform_is_refused() -> None:
    with pytest.raises(
        InvalidModelError, match="unknown transform 'ln'; expected one of auto, log, none"
    ):
        tv.Study(DOMAIN, tv.Maximize(), transform="ln")


def test_a_table_is_not_fitted_as_logarithms() -> None:
    study = tv.Study(DOMAIN, tv.Minimize(), transform="log")
    table = pd.DataFrame({"x": [0.0, 0.5, 1.0], "latency": [1.0, 20.0, 3.0]})
    with pytest.raises(InvalidModelError, match="give logarithms as values"):
        study.fit(table)
