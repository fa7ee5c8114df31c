"""Studies in a database: what is stored is what was done, and a study that is loaded goes on as if never left."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import truvar as tv

LAKE = tv.Domain.grid(x=np.linspace(0, 1, 12), y=np.linspace(0, 2, 10))
KNOWN = {"kernel": ConstantKernel(2.0) * Matern([0.3, 0.5], nu=2.5), "mean": 0.0, "noise": 0.01}
TRAVEL = tv.Cost(base=1.0, travel={"x": 0.5}, magnitude={"y": 0.1})


def field(point: dict[str, float]) -> float:
    return float(np.sin(5 * point["x"]) + point["y"] / 2)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'lake.db'}"


def test_a_study_loaded_before_every_step_goes_as_one_in_memory(url: str) -> None:
    stored = tv.Study(LAKE, tv.LevelSet(0.5), **KNOWN, cost=TRAVEL, store=url, name="lake")
    memory = tv.Study(LAKE, tv.LevelSet(0.5), **KNOWN, cost=TRAVEL)
    for _ in range(6):
        suggestion = stored.ask()
        assert suggestion == memory.ask()
        stored = tv.load(url, "lake")
        stored.tell(suggestion.id, field(suggestion.point))
        memory.tell(suggestion.id, field(suggestion.point))
    assert tv.load(url, "lake").ask(3) == memory.ask(3)
    assert stored.measurements.equals(memory.measurements)


def test_an_existing_name_is_refused_with_the_remedy(url: str) -> None:
    tv.Study(LAKE, tv.Maximize(), **KNOWN, store=url, name="lake")
    with pytest.raises(tv.TruvarError, match=r"study 'lake' already; go on with it by tv.load\(url, 'lake'\)"):
        tv.Study(LAKE, tv.Maximize(), **KNOWN, store=url, name="lake")
