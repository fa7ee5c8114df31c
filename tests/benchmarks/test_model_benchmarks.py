"""The benchmarks of outliers and of unequal noise run, and count what they say."""

import numpy as np
import pytest
from benchmarks.outliers import Alarms, clean_instance, is_found, main, study_alarms
from benchmarks.scratch.problems import cases

from benchmarks import heteroscedastic


def test_the_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["--only", "false", "--problems", "lognormal", "--starts", "1", "--steps", "8"]) == 0
    )
    assert "| lognormal | 0 (0) | 0 (0) |" in capsys.readouterr().out
    assert heteroscedastic.main(["--fields", "1", "--sizes", "12"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(heteroscedastic.KINDS)


def test_a_wrong_value_counts_as_found_and_a_right_one_as_a_false_alarm() -> None:
    assert is_found(1, 2.0, 60, 0) == (True, 0)
    assert is_found(1, 0.0, 30, 0) == (False, 0)
    outlier = next(case for case in cases() if case.name == "outlier").instance(0)
    alarms = study_alarms(outlier, 6, chosen=False)
    assert isinstance(alarms, Alarms)
    assert alarms.ids <= {6}
    assert not study_alarms(clean_instance("branin", 0), 8, chosen=True).ids


@pytest.mark.slow
def test_right_values_are_rarely_left_out() -> None:
    """Fewer than 1 % of the fits to clean draws, fronts and peaks leave out a value: at most 3
    of 360."""
    wrong = 0
    for start in range(60):
        for dimension in (1, 2):
            wrong += any(is_found(dimension, 0.0, 60, start))
        for name in ("front-set", "bumps", "ackley2", "lognormal"):
            instance = clean_instance(name, start)
            wrong += bool(fit_at_random(instance, 60, start))
    assert wrong <= 3


def fit_at_random(instance, t: int, start: int) -> tuple[int, ...]:
    """Return what a fit to measurements at random candidates leaves out."""
    from truvar.models._learned import FitData, fit_ensemble

    rows = np.random.default_rng([5, start]).choice(len(instance.domain), t, replace=False)
    values = np.array([instance.measure(row, number) for number, row in enumerate(rows, 1)])
    domain = instance.domain
    direction = 0 if instance.goal.has_thresholds else instance.goal.sign
    data = FitData(
        domain.points[rows], values, None, domain.extent, domain.spacing, direction=direction
    )
    return fit_ensemble("matern52", data, None, start).outliers
