"""Noise given as a standard deviation: the same studies as with its square."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import truvar as tv
from truvar.cli import main
from truvar.exceptions import InvalidMeasurementError

TABLE = tv.Domain.table(
    pd.DataFrame({"x": np.linspace(0, 1, 12), "plusminus": np.linspace(0.1, 0.4, 12)}), ["x"]
)
PROBLEM = """
name = "pond"
[domain]
grid = {x = [0, 1, 9]}
[goal]
maximize = true
[noise]
"""


@pytest.mark.parametrize(
    "noise_sd",
    [0.2, "plusminus", np.full(12, 0.3), lambda points: 0.1 + points[:, 0], 0, np.float32(0.5)],
    ids=["number", "column", "array", "function", "exact", "numpy"],
)
def test_a_standard_deviation_is_squared(noise_sd: Any, tmp_path: Path) -> None:
    expected = noise_sd(TABLE.points) if callable(noise_sd) else noise_sd
    expected = TABLE.column("plusminus") if isinstance(noise_sd, str) else expected
    study = tv.Study(TABLE, tv.Maximize(), noise_sd=noise_sd)
    assert study.candidates().noise[:, 0] == pytest.approx(np.full(12, 1.0) * expected**2)
    stored = tv.Study(
        TABLE, tv.Maximize(), noise_sd=noise_sd, store=f"sqlite:///{tmp_path}/a.db", name="a"
    )
    assert stored.candidates().noise.tolist() == study.candidates().noise.tolist()


def test_a_value_is_told_with_its_standard_deviation() -> None:
    study = tv.Study(TABLE, tv.Maximize(), noise_sd=0.1)
    id_ = study.tell(TABLE.point(3), 1.0, noise_sd=0.5)
    assert study.measurement_records()[0].noise == 0.25
    study.correct(id_, 1.1, noise_sd=0.3)
    assert study.measurement_records()[0].noise == pytest.approx(0.09)
    version = study.version
    for options in ({"noise_sd": -1}, {"noise_sd": "wide"}, {"noise_sd": 0.1, "noise": 0.01}):
        with pytest.raises(InvalidMeasurementError, match="noise"):
            study.tell(TABLE.point(4), 1.0, **options)
    assert study.version == version


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_sd": 0.1, "noise": 0.01}, "a standard deviation or a variance, got both"),
        ({"noise_sd": -0.1}, "noise_sd must be"),
        ({"noise_sd": "nowhere"}, "nowhere"),
        ({"noise_sd": [0.1, 0.2]}, "noise_sd"),
        ({"noise_sd": tv.NoiseLevels([0.1], [1])}, "got noise levels"),
    ],
)
def test_mistakes_get_one_message(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tv.TruvarError, match=message):
        tv.Study(TABLE, tv.Maximize(), **options)


def test_a_problem_file_has_a_standard_deviation(tmp_path: Path) -> None:
    path = tmp_path / "pond.toml"
    path.write_text(f"{PROBLEM}sd = 0.2\n")
    problem = tv.load_problem(path)
    assert problem.study().candidates().noise == pytest.approx(0.04)
    assert problem.study(noise=0.5).candidates().noise == pytest.approx(0.5)
    path.write_text(f"{PROBLEM}sd = 0.2\nvariance = 0.04\n")
    with pytest.raises(tv.TruvarError, match="sd"):
        tv.load_problem(path)
    path.write_text(f"{PROBLEM}sd = -0.2\n")
    with pytest.raises(tv.TruvarError, match="sd"):
        tv.load_problem(path)


def test_the_command_line_takes_standard_deviations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pond.toml").write_text(f"{PROBLEM}sd = 0.2\n")
    assert main(["new", "pond.toml"]) == 0
    assert "± 0.2" in capsys.readouterr().out
    assert main(["tell", "x=0.5", "1.5", "--noise-sd", "0.3"]) == 0
    Path("more.csv").write_text("x,value,noise_sd\n0.25,1.2,0.4\n")
    assert main(["tell", "--csv", "more.csv"]) == 0
    study = tv.load("sqlite:///pond.db", "pond")
    assert [record.noise for record in study.measurement_records()] == pytest.approx([0.09, 0.16])
    assert main(["tell", "x=0", "1.5", "--noise-sd", "0.3", "--noise", "0.1"]) != 0
    assert "got both" in capsys.readouterr().err


def test_requests_take_standard_deviations(served: Any) -> None:
    api, _ = served
    api.create("ponds", f"{PROBLEM}sd = 0.2\n")
    api.post("/studies/ponds/tell", {"point": {"x": 0.5}, "y": 1.0, "noise_sd": 0.5})
    (row,) = api.get("/studies/ponds/measurements")["measurements"]
    assert row["noise"] == 0.25
    body = {"point": {"x": 0.5}, "y": 1.0, "noise_sd": 0.5, "noise": 0.1}
    api.post("/studies/ponds/tell", body, status=422)
    remote = tv.connect(api.url, "ponds")
    remote.tell({"x": 0.25}, 1.0, noise_sd=0.1)
    assert remote.measurement_records()[-1].noise == pytest.approx(0.01)
