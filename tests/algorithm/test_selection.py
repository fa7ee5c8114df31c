"""One pipeline chooses in a whole domain and in a context."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.domain.given_context import ContextSlice

DOMAIN = tv.Domain.grid(x=np.linspace(0, 1, 7), t=[0.0, 1.0])


def measured(policy: str, **settings: object) -> tv.Study:
    study = tv.Study(DOMAIN, tv.LevelSet(0.2), policy=policy, **({"noise": 1e-4} | settings))
    for row in (0, 5, 9):
        study.tell(DOMAIN.point(row), float(np.sin(3 * DOMAIN.points[row].sum())))
    return study


@pytest.mark.parametrize("policy", ["truvar", "auto", "plus", "straddle", "variance"])
@pytest.mark.parametrize(
    "settings", [{}, {"kernel": RBF(0.3), "mean": 0.0}], ids=["learned", "known"]
)
@pytest.mark.parametrize("fails", [False, True])
def test_a_context_that_holds_every_point_is_the_whole_domain(
    policy: str, settings: dict, fails: bool
) -> None:
    study = measured(policy, **settings)
    if fails:
        study.fail(study.ask())
    everything = ContextSlice(np.arange(len(DOMAIN)), None, np.inf, {1: 0.0}, DOMAIN)
    _, whole = study._learner.choose(None, [], 4)
    _, within = study._learner.choose(None, [], 4, everything)
    assert whole is not None
    assert within is not None
    assert (within.row, within.level) == (whole.row, whole.level)


def test_a_choice_in_a_context_is_the_best_of_its_rows() -> None:
    study = measured("truvar", kernel=RBF(0.3), mean=0.0)
    rows = np.flatnonzero(DOMAIN.points[:, 1] == 1.0)
    _, choice = study._learner.choose(None, [], 4, ContextSlice(rows, None, 0.0, {1: 1.0}, DOMAIN))
    assert choice is not None
    assert choice.row == rows[np.argmax(study.gains()[rows])]
