"""The command line as people use it: in a terminal, in a pipe, with mistakes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from tests.helpers.terminal import in_terminal

from truvar import __version__, load_problem
from truvar.__main__ import LONG_COMMANDS
from truvar.backtest import Simulator
from truvar.cli import COMMANDS, INTERRUPTED, main, parse_arguments

LAKE = Path(__file__).parents[2] / "examples" / "lake.toml"

HILL = """
name = "hill"
[domain]
table = "hill.csv"
columns = ["x_m"]
[goal]
level_set = 0.5
[model]
kernel = "matern52"
lengthscales = [1.0]
mean = 0.0
[noise]
variance = 0.01
[run]
steps = 12
"""


@pytest.fixture
def hill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A small problem in an empty folder, which is where the command runs."""
    monkeypatch.chdir(tmp_path)
    x = np.linspace(0, 6, 40)
    table = {
        "x_m": x,
        "height": np.sin(x),
        "noise_var": 0.01,
        "gap": np.where(x > 3, np.nan, x),
        "word": "a",
    }
    pd.DataFrame(table).to_csv("hill.csv", index=False)

    def write(text: str = HILL) -> Path:
        Path("hill.toml").write_text(text)
        return Path("hill.toml")

    return write


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without figures: to draw them takes most of the time of a short run, and other
    tests look at them."""
    monkeypatch.setattr("truvar.report.tables.plot_study", lambda *_: Figure())
    monkeypatch.setattr(
        "truvar.report.html_report.write_html_report",
        lambda study, path, truth=None, theorem=False: path,
    )


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "truvar", *map(str, arguments)]


def command_without_figures(*arguments: str | Path) -> list[str]:
    code = (
        "import sys; from matplotlib.figure import Figure; from truvar.__main__ import main; "
        "from truvar.report import html_report, tables; tables.plot_study = lambda *_: Figure(); "
        "html_report.write_html_report = lambda study, path, truth=None, theorem=False: path; sys.exit(main())"
    )
    return [sys.executable, "-c", code, *map(str, arguments)]


# -- truvar run
# --------------------------------------------------------------------------------------------------


def test_run_writes_a_report_and_prints_its_path(hill, capsys):
    assert main(["run", str(hill()), "--truth", "height"]) == 0
    captured = capsys.readouterr()
    assert "hill: 12 measurements; stopped: step limit (12) reached; cost 12\n" in captured.out
    assert re.search(r"F1 against height +[01]\.\d{3}", captured.out)
    assert (
        "report: hill-report/ (folder with map.png, measurements.csv, points.csv, summary.json, "
        "report.html)" in (captured.out)
    )
    for name in ("map.png", "measurements.csv", "points.csv", "summary.json", "report.html"):
        assert Path("hill-report", name).stat().st_size > 0
    assert [line.split()[1] for line in captured.err.splitlines()] == ["10/12", "12/12"]


@pytest.mark.usefixtures("without_figures")
def test_the_theorem_is_printed_on_request_and_the_report_comes_last(hill, capsys):
    assert main(["run", str(hill()), "--truth", "height", "--quiet"]) == 0
    plain = capsys.readouterr().out
    assert "Lemma" not in plain
    assert "regime" not in plain
    assert plain.splitlines()[-1].startswith("report: ")
    assert main(["run", str(hill()), "--truth", "height", "--quiet", "--theorem"]) == 0
    with_theorem = capsys.readouterr().out
    assert re.search(r"regime +\w+: .*Lemma 5\.1", with_theorem, re.S)
    assert with_theorem.splitlines()[-1].startswith("report: ")


def test_json_is_the_summary_with_the_paths(hill, capsys):
    assert main(["run", str(hill()), "--truth", "height", "--json", "--report", "out/here"]) == 0
    said = json.loads(capsys.readouterr().out)
    paths = said.pop("report")
    assert said == json.loads(Path(paths["summary"]).read_text())
    assert set(paths) == {"map", "measurements", "points", "summary", "report"}
    assert all(Path(path).parent == Path("out/here") for path in paths.values())
    measured = pd.read_csv(paths["measurements"])
    assert said["result"]["steps"] == len(measured) == 12
    assert said["result"]["spent"] == measured["cost"].sum()
    assert 0 <= said["truth"]["f1"] <= 1


def test_an_optimum_is_reported_with_its_regret(hill, capsys):
    problem = hill(HILL.replace("level_set = 0.5", "maximize = true"))
    assert main(["run", str(problem), "--truth", "height", "--quiet"]) == 0
    captured = capsys.readouterr()
    assert re.search(r"best so far +[01]\.\d+ at x_m 1\.\d+ \(measurement \d+\)\n", captured.out)
    assert re.search(r"recommended +x_m 1\.\d+, estimated value", captured.out)
    assert re.search(r"regret against height +0(\.\d+)?\n", captured.out)
    assert captured.err == ""


@pytest.mark.usefixtures("without_figures")
def test_options_go_before_the_limits_of_the_file(hill, capsys):
    assert main(["run", str(hill()), "--truth", "height", "--steps", "3", "--quiet"]) == 0
    assert "step limit (3) reached" in capsys.readouterr().out
    assert main(["run", str(hill()), "--truth", "height", "--budget", "5.5", "--quiet"]) == 0
    assert "hill: 5 measurements; stopped: " in capsys.readouterr().out
    assert main(["run", str(hill()), "--truth", "height", "--epsilon", "100", "--quiet"]) == 0
    assert "hill: 1 measurement" in capsys.readouterr().out


@pytest.mark.usefixtures("without_figures")
def test_limits_on_the_answer_are_options_and_keys_of_the_file(hill, capsys):
    problem = hill(HILL.replace("steps = 12", "steps = 60"))
    assert main(["run", str(problem), "--truth", "height", "--f1", "0.8", "--quiet"]) == 0
    assert re.search(
        r"stopped: expected F1 0\.\d+ \(0\.\d+ to [01]\.?\d*\) reached 0\.8;",
        capsys.readouterr().out,
    )
    problem = hill(HILL.replace("steps = 12", "f1 = 0.7"))
    assert main(["run", str(problem), "--truth", "height"]) == 0
    captured = capsys.readouterr()
    assert "reached 0.7; cost" in captured.out
    assert ", goal 0.7" in captured.err
    search = hill(
        HILL.replace("level_set = 0.5", "maximize = true").replace("steps = 12", "steps = 60")
    )
    assert (
        main(["run", str(search), "--truth", "height", "--improvement-per-cost", "0.2", "--quiet"])
        == 0
    )
    assert "stopped: no measurement is worth its cost: " in capsys.readouterr().out
    assert main(["run", str(search), "--truth", "height", "--regret", "0.5", "--quiet"]) == 0
    assert "reached 0.5; cost" in capsys.readouterr().out
    assert main(["run", str(search), "--truth", "height", "--f1", "0.9", "--quiet"]) == 1
    assert "the limit f1 needs a level set" in capsys.readouterr().err


def test_the_options_of_the_command_line_are_the_limits_of_a_study():
    from truvar.cli import _common
    from truvar.study.limits import LIMITS

    assert _common.LIMITS == LIMITS


@pytest.mark.usefixtures("without_figures")
def test_without_any_limit_a_run_says_that_it_ended_at_the_default(hill, capsys):
    problem = hill(HILL.replace("[run]\nsteps = 12\n", ""))
    assert main(["run", str(problem), "--truth", "height", "--quiet"]) == 0
    assert "reached 0.95 (the default, as no limit was given)" in capsys.readouterr().out


@pytest.mark.usefixtures("without_figures")
def test_a_seed_gives_the_same_measurements_and_another_gives_others(hill):
    def measured(seed: int) -> str:
        arguments = [
            "--truth",
            "height",
            "--quiet",
            "--seed",
            str(seed),
            "--report",
            f"seed-{seed}",
        ]
        assert main(["run", str(hill()), *arguments]) == 0
        return Path(f"seed-{seed}", "measurements.csv").read_text()

    first = measured(1)
    assert first == measured(1)
    assert first != measured(2)


def test_the_noise_of_the_answers_is_that_of_the_problem(hill):
    """200 residuals of standard deviation 0.1: their own is off by 0.02 less than once in 10,000
    seeds."""
    problem = load_problem(hill())
    study = problem.study()
    table = Simulator(problem.domain.column("height"), noisy=True, seed=(0,))
    study.run(lambda _: table.measure(study.pending[-1], study.steps), steps=200)
    measured = study.measurements
    assert len(measured) == 200
    assert (measured["value"] - np.sin(measured["x_m"])).std() == pytest.approx(0.1, abs=0.02)


@pytest.mark.usefixtures("without_figures")
def test_a_learned_noise_takes_the_table_as_it_is(hill):
    problem = hill(
        HILL.replace("[noise]\nvariance = 0.01", "").replace("lengthscales = [1.0]\n", "")
    )
    assert main(["run", str(problem), "--truth", "height", "--quiet", "--steps", "6"]) == 0
    measured = pd.read_csv("hill-report/measurements.csv")
    assert measured["value"].to_numpy() == pytest.approx(
        np.sin(measured["x_m"].to_numpy()), abs=1e-6
    )


@pytest.mark.usefixtures("without_figures")
def test_noise_levels_answer_with_their_own_noise(hill):
    levels = "levels = [{variance = 0.0, cost = 5}, {variance = 0.04, cost = 1}]"
    assert (
        main(
            [
                "run",
                str(hill(HILL.replace("variance = 0.01", levels))),
                "--truth",
                "height",
                "--quiet",
            ]
        )
        == 0
    )
    measured = pd.read_csv("hill-report/measurements.csv")
    exact = measured[measured["level"] == 0]
    assert exact["value"].to_numpy() == pytest.approx(np.sin(exact["x_m"].to_numpy()), abs=1e-6)
    assert set(measured["noise"]) <= {0.0, 0.04}


# -- mistakes
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "arguments", "message"),
    [
        (None, ["missing.toml", "--truth", "height"], "missing.toml"),
        (HILL + "[", ["hill.toml", "--truth", "height"], "not valid TOML"),
        (
            HILL.replace("level_set", "levelset"),
            ["hill.toml", "--truth", "height"],
            "did you mean 'level_set'",
        ),
        (HILL.replace("hill.csv", "hills.csv"), ["hill.toml", "--truth", "height"], "hills.csv"),
        (HILL, ["hill.toml", "--truth", "hight"], "unknown column 'hight'; did you mean 'height'?"),
        (HILL, ["hill.toml", "--truth", "x_m"], "must not be a coordinate"),
        (HILL, ["hill.toml", "--truth", "gap"], "row 20"),
        (HILL, ["hill.toml", "--truth", "word"], "'word' must contain numbers"),
        (HILL, ["hill.toml", "--truth", "height", "--policy", "coin"], "'coin'"),
        (
            HILL,
            ["hill.toml", "--truth", "height", "--report", "hill.csv"],
            "cannot create the folder hill.csv",
        ),
        (HILL, [".", "--truth", "height"], "is a folder"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_1(hill, capsys, problem, arguments, message):
    if problem is not None:
        hill(problem)
    assert main(["run", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("truvar: ")
    assert message in line


def test_a_grid_has_no_column_that_could_answer(hill, capsys):
    problem = hill(
        HILL.replace('table = "hill.csv"\ncolumns = ["x_m"]', "grid = {x_m = [0, 6, 40]}")
    )
    assert main(["run", str(problem), "--truth", "height"]) == 1
    assert "unknown column 'height'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["dance"],
        ["run"],
        ["run", "hill.toml"],
        ["run", "hill.toml", "--truth", "height", "--steps", "0"],
        ["run", "hill.toml", "--truth", "height", "--steps", "2.5"],
        ["run", "hill.toml", "--truth", "height", "--budget", "nan"],
        ["run", "hill.toml", "--truth", "height", "--epsilon", "small"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: truvar" in capsys.readouterr().err


def test_missing_matplotlib_is_told_before_the_run(hill):
    Path("matplotlib.py").write_text("raise ImportError('No module named matplotlib')")
    path = os.pathsep.join([".", os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command("run", hill(), "--truth", "height"),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert 'pip install "truvar[plot]"' in done.stderr
    assert len(done.stderr.splitlines()) == 1


# -- help
# --------------------------------------------------------------------------------------------------


def test_without_a_command_the_help_is_shown(capsys):
    shown = []
    for arguments in ([], ["help"]):
        assert main(arguments) == 0
        shown.append(capsys.readouterr().out)
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert shown == [capsys.readouterr().out] * 2
    assert all(command.name in shown[0] for command in COMMANDS)


def test_help_explains_one_command(capsys):
    for command in COMMANDS:
        assert main(["help", command.name]) == 0
        shown = capsys.readouterr().out
        with pytest.raises(SystemExit):
            main([command.name, "--help"])
        assert shown == capsys.readouterr().out


def test_help_suggests_the_name_of_an_unknown_command(capsys):
    assert main(["help", "stauts"]) == 1
    assert capsys.readouterr().err == "truvar: unknown command 'stauts'; did you mean 'status'?\n"


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["--version"], ["help", "ask"], ["dance"], ["ask", "-n", "0"]]
)
def test_help_and_usage_errors_load_no_numerical_library(arguments):
    code = f"""if True:
        import contextlib, sys
        from truvar.cli import main
        with contextlib.suppress(SystemExit):
            main({arguments!r})
        heavy = ("numpy", "scipy", "sklearn", "pandas", "numba", "sqlalchemy", "pydantic", "jinja2", "tqdm", "shtab")
        assert not [name for name in heavy if name in sys.modules]
    """
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_completion_loads_no_numerical_library():
    code = "import sys, truvar.cli; truvar.cli.main(['completion', 'bash']); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["tell", "3", "-1e-3"], "words", ["3", "-1e-3"]),
        (["tell", "3", "-.5", "--cost", "-2E5"], "cost", -2e5),
        (["tell", "-5", "x=-1e3", "-7"], "words", ["-5", "x=-1e3", "-7"]),
        (["note", "--", "-3", "degrees", "--json"], "words", ["-3", "degrees", "--json"]),
        (["note", "-3 degrees"], "words", ["-3 degrees"]),
        (["new", "a.toml", "--seed", "-1"], "seed", -1),
        (["new", "a.toml", "--name", "-1e3"], "name", "-1e3"),
    ],
)
def test_a_negative_number_is_a_value_and_not_an_option(words, name, value):
    assert getattr(parse_arguments(words), name) == value


# -- as a process
# --------------------------------------------------------------------------------------------------


def test_version_and_help():
    version = subprocess.run(command("--version"), capture_output=True, text=True, check=True)
    assert version.stdout == f"truvar {__version__}\n"
    helped = subprocess.run(command("run", "--help"), capture_output=True, text=True, check=True)
    assert "truvar run examples/lake.toml --truth chlorophyll" in " ".join(helped.stdout.split())


def test_a_reader_that_leaves_early_is_no_error(hill):
    with subprocess.Popen(
        command("run", hill(), "--truth", "height", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        error = process.stderr.read().decode()
    assert "Traceback" not in error
    assert "Exception" not in error
    assert Path("hill-report", "summary.json").exists()


def test_a_closed_stderr_does_not_end_the_run(hill):
    with subprocess.Popen(
        command_without_figures("run", hill(), "--truth", "height"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stderr.close()
        out = process.stdout.read()
    assert process.returncode == 0
    assert "report: " in out


def test_in_a_terminal_one_coloured_line_is_written_over(hill):
    words = command_without_figures("run", hill(), "--truth", "height")
    code, out, sent = in_terminal(words, columns=140, piped=True)
    assert code == 0
    assert "\x1b" not in out
    assert sent.count("\n") == 1
    last = sent.split("\r\x1b[K")[-1]
    assert "\x1b[38;5;" in last
    assert "measurement 12/12" in last
    assert "F1" in last


def test_in_a_narrow_terminal_without_colour_nothing_wraps(hill):
    words = command_without_figures("run", hill(), "--truth", "height")
    _, _, sent = in_terminal(words, columns=42, piped=True, NO_COLOR="1")
    states = sent.strip().split("\r\x1b[K")[1:]
    assert states
    assert all(len(state) < 42 and "\x1b" not in state for state in states)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_reports_what_was_done(tmp_path: Path):
    arguments = command(
        "run", LAKE, "--truth", "chlorophyll", "--budget", "1e9", "--report", tmp_path, "--json"
    )
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert "measurement   10" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
    assert process.returncode == INTERRUPTED == 130
    assert "Traceback" not in error
    said = json.loads(out)
    assert said["result"]["steps"] == len(pd.read_csv(tmp_path / "measurements.csv")) >= 10
    assert (tmp_path / "map.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_lake_is_mapped_within_a_minute(tmp_path: Path):
    start = time.monotonic()
    done = subprocess.run(
        command("run", LAKE, "--truth", "chlorophyll", "--report", tmp_path, "--json"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert time.monotonic() - start < 60
    said = json.loads(done.stdout)
    assert said["truth"]["f1"] >= 0.95
    assert said["result"]["spent"] <= 12_000


# -- truvar backtest
# -------------------------------------------------------------------------------------------


def test_backtest_prints_a_table_and_writes_its_results(tmp_path: Path, capsys) -> None:
    problem = tmp_path / "sine.toml"
    xs = np.linspace(0, 6, 25)
    pd.DataFrame({"x_m": xs, "truth": np.sin(xs)}).to_csv(tmp_path / "sine.csv", index=False)
    problem.write_text(
        'name = "sine"\n[domain]\ntable = "sine.csv"\ncolumns = ["x_m"]\n[goal]\nlevel_set = 0.5\n'
        '[model]\nkernel = "rbf"\nlengthscales = [1.0]\nmean = 0.0\n[noise]\nvariance = 0.01\n'
    )
    out = tmp_path / "out"
    words = [
        "backtest",
        str(problem),
        "--truth",
        "truth",
        "--out",
        str(out),
        "--replicates",
        "3",
        "--budget",
        "8",
    ]
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "F1 at 100%" in done.stdout
    assert "runs: 100%" in done.stderr
    assert " 3/3 " in done.stderr
    assert {path.name for path in out.iterdir()} == {
        "curves.png",
        "curves.csv",
        "summary.csv",
        "summary.json",
        "runs",
    }
    assert len(pd.read_csv(out / "curves.csv")) == 3 * 8
    assert main([*words, "--json", "--quiet"]) == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == json.loads((out / "summary.json").read_text())
    assert again.err == ""
    assert main([*words, "--policies", "nonsense"]) == 1
    (wrong,) = capsys.readouterr().err.splitlines()
    assert "nonsense" in wrong


# -- the entry point
# --------------------------------------------------------------------------------------------------


def test_the_installed_command_and_python_m_run_the_same_function():
    scripts = tomllib.loads((LAKE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]["scripts"]
    assert scripts == {"truvar": "truvar.__main__:main"}
    code = "import sys; sys.argv = ['truvar', 'ask', 'nowhere.db']; from truvar.__main__ import main; sys.exit(main())"
    installed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    module = subprocess.run(
        command("ask", "nowhere.db"), capture_output=True, text=True, check=False
    )
    assert (installed.returncode, installed.stdout, installed.stderr) == (1, "", module.stderr)
    assert (module.returncode, module.stdout) == (1, "")
    assert "nowhere.db" in module.stderr


@pytest.mark.parametrize(
    ("name", "is_long"), [("status", False), ("--version", False), ("run", True), ("serve", True)]
)
def test_only_short_commands_collect_garbage_rarely(name, is_long):
    code = (
        "import gc, sys; before = gc.get_threshold(); import truvar.cli, truvar.__main__; "
        "truvar.cli.main = lambda: 0; "
        f"sys.argv = ['truvar', {name!r}]; truvar.__main__.main(); print(gc.get_threshold() == "
        "before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(is_long)]


def test_the_long_commands_exist():
    assert {each.name for each in COMMANDS} >= LONG_COMMANDS
