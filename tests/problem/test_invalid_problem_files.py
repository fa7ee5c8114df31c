"""Every mistake in a problem file is reported in one line that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.invalid_input import DATA, refused

import truvar as tv

DOMAIN = "[domain]\ngrid = {x = [0, 1, 5]}\n"
GOAL = "[goal]\nmaximize = true\n"
NOISE = "[noise]\nvariance = 0.1\n"
GOOD = DOMAIN + GOAL + NOISE
FILES: dict[str, tuple[str, list[str]]] = {
    "malformed": ("[domain\n", ["not valid TOML", "line 1", "correct"]),
    "nothing": ("", ["[goal] needs exactly one of level_set", "none of them"]),
    "no domain": (GOAL, ["[domain] needs exactly one of table, grid, box", "none of them"]),
    "no goal": (DOMAIN, ["[goal] needs exactly one of level_set", "none of them"]),
    "key": ("nmae = 'lake'\n" + GOOD, ["'nmae'", "did you mean 'name'?"]),
    "section": (GOOD + "[polcy]\nname = 'truvar'\n", ["'polcy'", "did you mean 'policy'?"]),
    "key of [domain]": (
        "[domain]\ngird = {x = [0, 1, 5]}\n" + GOAL,
        ["'gird'", "[domain]", "did you mean 'grid'?"],
    ),
    "key of [goal]": (
        DOMAIN + "[goal]\nlevelset = 1\n",
        ["'levelset'", "did you mean 'level_set'?"],
    ),
    "key of [model]": (
        GOOD + "[model]\nlengthscale = 1\n",
        ["'lengthscale'", "did you mean 'lengthscales'?"],
    ),
    "key of [noise]": (
        DOMAIN + GOAL + "[noise]\nsigma = 1\n",
        ["'sigma'", "sd, variance, column, levels"],
    ),
    "key of [cost]": (GOOD + "[cost]\nbse = 1\n", ["'bse'", "did you mean 'base'?"]),
    "key of [policy]": (
        GOOD + "[policy]\nname = 'truvar'\netaa = 1\n",
        ["'etaa'", "did you mean 'eta'?"],
    ),
    "key of no policy": (
        GOOD + "[policy]\nstop = 3\n",
        ["[policy]", "'stop'", "did you mean 'stops'?"],
    ),
    "key of another policy": (
        GOOD + "[policy]\nslack = 0.1\n",
        ["the default policy auto has no key 'slack'", "belongs to truvar", 'name = "truvar"'],
    ),
    "key of [run]": (GOOD + "[run]\nbudgt = 1\n", ["'budgt'", "did you mean 'budget'?"]),
    "key of among": (GOOD + "[policy]\namong = {tip = 3}\n", ["'tip'", "did you mean 'top'?"]),
    "two domains": (
        "[domain]\ngrid = {x = [0, 1, 5]}\nbox = {x = [0, 1]}\n" + GOAL,
        ["grid and box", "leave out"],
    ),
    "two goals": (
        DOMAIN + "[goal]\nmaximize = true\nlevel_set = 1\n",
        ["level_set and maximize", "leave out"],
    ),
    "two noises": (
        DOMAIN + GOAL + "[noise]\nvariance = 1\ncolumn = 'x'\n",
        ["variance and column", "leave out"],
    ),
    "two costs": (
        GOOD + "[cost]\nbase = 1\ncolumn = 'x'\n",
        ["either base or column", "leave out"],
    ),
    "columns of a grid": (
        DOMAIN + "columns = ['x']\n" + GOAL,
        ["columns belongs to a table", "leave out"],
    ),
    "representers of a grid": (
        DOMAIN + "representers = 9\n" + GOAL,
        ["representers belongs to a box", "leave out"],
    ),
    "known and refitted": (
        GOOD + "[model]\nlengthscales = 1\nrefit_every = 2\n",
        ["refit_every", "leave out one"],
    ),
    "known and transformed": (
        GOOD + "[model]\nlengthscales = 1\ntransform = 'log'\n",
        ["transform", "leave out one"],
    ),
    "known and averaged": (
        GOOD + "[model]\nlengthscales = 1\nmarginalise = true\n",
        ["marginalise", "leave out one"],
    ),
    "exact, but nothing given": (
        GOOD + "[model]\nexact = true\n",
        ["exact is for a given kernel", "give them"],
    ),
    "exact, but no flag": (
        GOOD + "[model]\nlengthscales = 1\nexact = 'yes'\n",
        ["exact", "'yes'"],
    ),
    "known and initial": (
        GOOD + "[model]\nlengthscales = 1\ninitial = 8\n",
        ["initial", "leave out one"],
    ),
    "training and initial": (
        GOOD + "[model]\ntraining = 'data.csv'\nvalue = 'v'\ninitial = 8\n",
        ["initial is for a model learned from the measurements", "leave out one"],
    ),
    "unknown transform": (
        GOOD + "[model]\ntransform = 'logit'\n",
        ["'logit'", "'auto', 'log' or 'none'"],
    ),
    "an initial design of one": (GOOD + "[model]\ninitial = 1\n", [">= 2", "1"]),
    "plug-in and logarithms": (
        GOOD + "[model]\nmarginalise = false\ntransform = 'log'\n",
        ["[model]", "marginalise", "leave out one"],
    ),
    "plug-in and initial": (
        GOOD + "[model]\nmarginalise = false\ninitial = 8\n",
        ["[model]", "no initial design", "leave out one"],
    ),
    "share of the maximum of logarithms": (
        DOMAIN + "[goal]\nfraction_of_max = 0.8\n[model]\ntransform = 'log'\n",
        ["fraction_of_max=0.8", "leave out the transform"],
    ),
    "known and learned noise": (
        GOOD + "[model]\nlengthscales = 1\nlearn_noise = true\n",
        ["learn_noise", "leave out"],
    ),
    "noise given and learned": (
        GOOD + "[model]\nlearn_noise = true\n",
        ["to be learned", "0.1", "leave out one"],
    ),
    "noise neither": (
        DOMAIN + GOAL + "[model]\nlearn_noise = false\n",
        ["learn_noise = false", "no [noise]"],
    ),
    "no noise of a known kernel": (
        DOMAIN + GOAL + "[model]\nlengthscales = 1\nlearn_noise = false\n",
        ["learn_noise = false", "known noise", "no [noise]"],
    ),
    "variance alone": (
        GOOD + "[model]\nvariance = 2.0\n",
        ["needs lengthscales", "got variance = 2 alone"],
    ),
    "value alone": (GOOD + "[model]\nvalue = 'v'\n", ["value = 'v'", "give training"]),
    "domain as a number": ("domain = 3\n" + GOAL, ["[domain] must be a table of keys", "3"]),
    "goal as text": ("goal = 'max'\n" + DOMAIN, ["[goal] must be a table of keys", "'max'"]),
    "axis of two": (
        "[domain]\ngrid = {x = [0, 1]}\n" + GOAL,
        ["[low, high, number of points]", "[0, 1]"],
    ),
    "axis in words": (
        "[domain]\ngrid = {x = ['a', 1, 4]}\n" + GOAL,
        ["[domain] grid.x", "number of points", "'a'"],
    ),
    "grid as text": (
        "[domain]\ngrid = 'fine'\n" + GOAL,
        ["[domain] grid", "{x = [0, 1, 50]}", "'fine'"],
    ),
    "interval as a number": ("[domain]\nbox = {x = 1}\n" + GOAL, ["x must be [low, high]", "1"]),
    "representers in words": (
        "[domain]\nbox = {x = [0, 1]}\nrepresenters = 'many'\n" + GOAL,
        ["'many'"],
    ),
    "missing table": (
        "[domain]\ntable = 'nowhere.csv'\n" + GOAL,
        ["nowhere.csv", "check the path"],
    ),
    "broken table": (
        "[domain]\ntable = 'broken.csv'\n" + GOAL,
        ["broken.csv", "not a readable CSV", "line 3"],
    ),
    "table as a number": ("[domain]\ntable = 3\n" + GOAL, ["[domain] table", "3"]),
    "unknown column": (
        "[domain]\ntable = 'data.csv'\ncolumns = ['depth']\n" + GOAL,
        ["'depth'", "x, v, w"],
    ),
    "columns as text": (
        "[domain]\ntable = 'data.csv'\ncolumns = 'x'\n" + GOAL,
        ["list of column names", "'x'"],
    ),
    "threshold that is true": (DOMAIN + "[goal]\nlevel_set = true\n", ["level_set", "true"]),
    "threshold as text": (DOMAIN + "[goal]\nlevel_set = '7'\n", ["level_set", "'7'"]),
    "NaN threshold": (DOMAIN + "[goal]\nlevel_set = nan\n", ["level_set", "nan"]),
    "fraction above 1": (DOMAIN + "[goal]\nfraction_of_max = 2\n", ["fraction_of_max", "2"]),
    "maximum that is false": (DOMAIN + "[goal]\nmaximize = false\n", ["must be true", "false"]),
    "monotone in words": (
        DOMAIN + "[goal]\nmaximize = true\nmonotone = 'no'\n",
        ["true or false", "'no'"],
    ),
    "unknown kernel": (GOOD + "[model]\nkernel = 'cubic'\n", ["'cubic'", "matern52"]),
    "kernel as a list": (GOOD + "[model]\nkernel = ['rbf']\n", ["[model] kernel", "['rbf']"]),
    "length-scales in words": (
        GOOD + "[model]\nlengthscales = ['long']\n",
        ["[model] lengthscales", "'long'"],
    ),
    "too many length-scales": (GOOD + "[model]\nlengthscales = [1, 2]\n", ["1 number", "got 2"]),
    "no length-scales": (GOOD + "[model]\nlengthscales = []\n", ["1 number", "got 0"]),
    "negative length-scale": (GOOD + "[model]\nlengthscales = [-1]\n", ["> 0", "-1"]),
    "variance in words": (
        GOOD + "[model]\nlengthscales = 1\nvariance = 'v'\n",
        ["[model] variance", "'v'"],
    ),
    "negative variance": (GOOD + "[model]\nlengthscales = 1\nvariance = -1\n", ["variance", "-1"]),
    "mean in words": (GOOD + "[model]\nlengthscales = 1\nmean = 'low'\n", ["mean", "'low'"]),
    "refit never": (GOOD + "[model]\nrefit_every = 0\n", [">= 1", "0"]),
    "learn noise in words": (
        DOMAIN + GOAL + "[model]\nlearn_noise = 'no'\n",
        ["true or false", "'no'"],
    ),
    "missing training": (
        GOOD + "[model]\ntraining = 'nowhere.csv'\n",
        ["nowhere.csv", "check the path"],
    ),
    "training as a number": (GOOD + "[model]\ntraining = 3\n", ["[model] training", "3"]),
    "training of two values": (GOOD + "[model]\ntraining = 'data.csv'\n", ["v, w", "value=..."]),
    "training of no such value": (
        GOOD + "[model]\ntraining = 'data.csv'\nvalue = 'u'\n",
        ["'u'", "x, v, w"],
    ),
    "a mistake beside training": (
        GOOD + "[model]\ntraining = 'data.csv'\nvalue = 'v'\n[policy]\nname = 'truvar'\nr = 2\n",
        ["r must lie between 0 and 1", "2"],
    ),
    "noise in words": (DOMAIN + GOAL + "[noise]\nvariance = 'x'\n", ["[noise] variance", "'x'"]),
    "negative noise": (DOMAIN + GOAL + "[noise]\nvariance = -1\n", ["noise", "-1"]),
    "noise of no column": (
        DOMAIN + GOAL + "[noise]\ncolumn = 'depth'\n",
        ["unknown column 'depth'", "expected one of x"],
    ),
    "column as a number": (DOMAIN + GOAL + "[noise]\ncolumn = 0.5\n", ["[noise] column", "0.5"]),
    "levels as a number": (
        DOMAIN + GOAL + "[noise]\nlevels = 3\n",
        ["[noise] levels", "{variance = 1e-3, cost = 10}"],
    ),
    "level without cost": (
        DOMAIN + GOAL + "[noise]\nlevels = [{variance = 1}]\n",
        ["its variance and cost"],
    ),
    "level with more": (
        DOMAIN + GOAL + "[noise]\nlevels = [{variance = 1, cost = 2, sd = 1}]\n",
        ["its variance and cost", "sd = 1"],
    ),
    "no levels": (DOMAIN + GOAL + "[noise]\nlevels = []\n", ["must be a list such as", "[]"]),
    "zero cost": (GOOD + "[cost]\nbase = 0\n", ["more than 0", "positive base"]),
    "travel without base": (GOOD + "[cost]\ntravel = {x = 1}\n", ["more than 0", "positive base"]),
    "cost in words": (GOOD + "[cost]\nbase = 'x'\n", ["[cost] base", "'x'"]),
    "cost column as a number": (GOOD + "[cost]\ncolumn = 2\n", ["[cost] column", "2"]),
    "travel along no column": (
        GOOD + "[cost]\nbase = 1\ntravel = {z = 1}\n",
        ["unknown column 'z'", "expected one of x"],
    ),
    "travel as a number": (GOOD + "[cost]\nbase = 1\ntravel = 1\n", ["travel", "rates by column"]),
    "unknown policy": (
        GOOD + "[policy]\nname = 'truver'\n",
        ["'truver'", "did you mean 'truvar'?"],
    ),
    "policy as a list": (GOOD + "[policy]\nname = ['truvar']\n", ["[policy] name", "['truvar']"]),
    "eta in words": (GOOD + "[policy]\nname = 'truvar'\neta = 'small'\n", ["eta", "'small'"]),
    "negative beta": (GOOD + "[policy]\nbeta = -1\n", ["[policy] beta", "> 0", "-1"]),
    "beta that is true": (GOOD + "[policy]\nbeta = true\n", ["[policy] beta", "true"]),
    "unknown beta": (GOOD + "[policy]\nbeta = {lag = 1}\n", ["{log = 1.0}", "{lag = 1}"]),
    "top of nothing": (GOOD + "[policy]\namong = {by = 'ei'}\n", ["among.top", "missing"]),
    "top in words": (GOOD + "[policy]\namong = {top = 'few'}\n", ["among.top", "'few'"]),
    "start outside": ("start = {x = 9}\n" + GOOD, ["{'x': 9.0}", "nearest", "{'x': 1.0}"]),
    "start behind the last": ("start = 5\n" + GOOD, ["an index below 5", "5"]),
    "seed in words": ("seed = 'lucky'\n" + GOOD, ["seed", "'lucky'"]),
    "name as a number": ("name = 3\n" + GOOD, ["name must be text", "3"]),
    "key of [tasks]": (
        GOOD + "[tasks]\nnaems = ['f', 'g']\n",
        ["'naems'", "did you mean 'names'?"],
    ),
    "tasks without names": (
        GOOD + "[tasks]\ncost = [2, 1]\n",
        ["[tasks] needs names", "the target first"],
    ),
    "noise of tasks in words": (
        GOOD + "[tasks]\nnames = ['f', 'g']\nnoise = ['low', 1]\n",
        ["[tasks] noise", "'low'"],
    ),
    "noise of tasks by level without levels": (
        GOOD + "[tasks]\nnames = ['f', 'g']\nnoise = [[0.1, 0.2], [0.1, 0.2]]\n",
        ["2 variances for 'f'", "no noise levels"],
    ),
    "one task": (GOOD + "[tasks]\nnames = ['f']\ncovariance = [[1]]\n", ["[tasks] names", "['f']"]),
    "covariance of too many tasks": (
        GOOD + "[tasks]\nnames = ['f', 'g']\ncovariance = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]\n",
        ["[tasks]", "2 x 2"],
    ),
    "negative budget": (GOOD + "[run]\nbudget = -1\n", ["budget", "-1"]),
    "half steps": (GOOD + "[run]\nsteps = 2.5\n", ["steps", "2.5"]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_problem_file_with_a_mistake_is_refused_when_it_is_loaded(
    name: str, tmp_path: Path
) -> None:
    text, parts = FILES[name]
    DATA[["x", "v", "w"]].to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n3,4,5\n")
    (tmp_path / "problem.toml").write_text(text)
    refused(lambda: tv.load_problem(tmp_path / "problem.toml"), *parts)


def test_the_good_problem_file_of_these_tests_is_good(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").write_text(GOOD)
    assert len(tv.load_problem(tmp_path / "problem.toml").domain) == 5


def test_a_problem_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    refused(lambda: tv.load_problem(tmp_path / "nowhere.toml"), "nowhere.toml", "check the path")
    refused(lambda: tv.load_problem(tmp_path), str(tmp_path), "is a folder")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff'")
    refused(lambda: tv.load_problem(tmp_path / "latin.toml"), "latin.toml", "not valid TOML")
