"""docs/paper-map.md leads from the paper to the code and its tests, and leads nowhere that does not
exist.

A row of its tables reads: paper item | symbols | tests. Symbols are dotted names in backticks
(`truvar.module.name`), tests are pytest's names in backticks (`tests/file.py::test_name`); a cell
may hold several. Equation numbers are those of the paper, counted through its main text and its
supplement.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "paper-map.md"

# What the paper says and the code does: (label in the source of the paper, item in the map). An
# item enters this list in the change that implements it.
MODEL = (
    ("sec:algorithm", "sec. 2 heteroscedastic noise"),
    ("sec:algorithm", "sec. 2 pointwise cost"),
    ("sec:algorithm", "sec. 2 kernel normalised to k(x, x) = 1"),
    ("eq:mu_update", "eq. (1) posterior mean"),
    ("eq:sigma_update", "eq. (2) posterior variance"),
    ("sec:algorithm", "sec. 2 look-ahead variance"),
)
ALGORITHM = (
    ("alg:truvar", "alg. 1 line 1 first epoch, M = D"),
    ("alg:truvar", "alg. 1 line 2 one choice after another"),
    ("eq:acq", "eq. (3) acquisition"),
    ("alg:truvar", "alg. 1 line 3 choice of the next point"),
    ("alg:truvar", "alg. 1 line 4 observation and update"),
    ("alg:truvar", "alg. 1 line 5 end of an epoch"),
    ("alg:truvar", "alg. 1 line 6 next epoch"),
    ("alg:updates", "alg. 2 line 1 posterior and bounds"),
    ("eq:confidence_bounds", "eq. (4) confidence bounds"),
    ("alg:updates", "alg. 2 line 2 update of the sets"),
    ("eq:Mt_opt", "eq. (5) potential maximisers"),
    ("eq:Mt_lvl", "eq. (6) unclassified points"),
    ("eq:Lt", "eq. (7) points above and below"),
)
SETTINGS = (
    ("def:eps_acc", "def. 3.1 epsilon-accuracy"),
    ("def:eps_acc", "def. 3.1 cumulative cost"),
    ("eq:beta_i", "eq. (14) beta of the theorem"),
    ("thm:choose_noise", "sec. 3.2 choosing the noise and cost"),
    ("sec:numerical", "sec. 4 beta = a log(|D| t^2)"),
    ("sec:numerical", "sec. 4 parameter choices"),
    ("sec:numerical", "sec. 4 classification by posterior mean"),
    ("sec:numerical", "sec. 4 F1-score"),
    ("sec:numerical", "sec. 4 hyperparameters from a second data set"),
    ("sec:numerical", "sec. 4 cost that depends on the last point"),
    ("sec:numerical", "sec. 4 reported point"),
    ("sec:numerical", "sec. 4 hyperparameters learned online"),
    ("sec:numerical", "sec. 4 simple regret"),
    ("sec:contributions", "sec. 1 multi-task scenarios"),
)
VARIATIONS = (
    ("sec:algorithm", "sec. 2 non-Bayesian settings"),
    ("sec:variations", "supp. A non-monotonic M"),
    ("sec:variations", "supp. A selection within M"),
    ("sec:variations", "supp. A top points by GP-UCB or EI"),
    ("sec:variations", "supp. A pure variance reduction"),
    ("sec:variations", "supp. A implicit threshold"),
    ("sec:variations", "supp. A anticipating M, measurement at its mean"),
    ("sec:variations", "supp. A anticipating M, averaged over the measurement"),
    ("sec:variations", "supp. A continuous domains"),
    ("sec:variations", "supp. A batch setting"),
)
BASELINES = (
    ("unlabelled", "supp. B GCHK"),
    ("sec:numerical", "sec. 4 beta^(1/2) = 3 of GCHK"),
    ("unlabelled", "supp. B straddle heuristic"),
    ("unlabelled", "supp. B maximum variance"),
    ("unlabelled", "supp. B expected improvement"),
    ("unlabelled", "supp. B GP-UCB"),
    ("sec:numerical", "sec. 4 beta of GP-UCB divided by five"),
    ("unlabelled", "supp. B entropy search"),
    ("unlabelled", "supp. B minimum regret search"),
)
COMPUTATION = (
    ("unlabelled", "eq. (18) reduction of the variance"),
    ("eq:var_eq", "eq. (19) variance of the candidate"),
    ("eq:cov_eq", "eq. (20) covariance with the candidate"),
    ("unlabelled", "supp. B selection by DIRECT"),
)
THEORY = (
    ("eq:Mbar_opt", "eq. (9) points still open after an epoch"),
    ("eq:C*", "eq. (11) least cost of covering"),
    ("unlabelled", "eq. (12) submodularity of the variance reduction"),
    ("eq:Ci_bound", "eq. (13) cost of an epoch"),
    ("eq:C_eps", "eq. (15) cost of epsilon-accuracy"),
    ("eq:gamma_def", "eq. (16) information gain"),
    ("eq:improved", "eq. (17) improved noise dependence"),
    ("thm:choose_noise", "cor. 3.2 choosing the noise"),
    ("lem:conf_bounds", "supp. C lemma of Srinivas et al."),
    ("eq:g_t", "eq. (22) truncated reduction of a set"),
    ("eq:gtmax2", "eq. (24) excess variance"),
    ("eq:greedy_bound", "eq. (25) greedy gain per cost"),
    ("eq:simplified", "eq. (37) simplified corollary"),
)
EXPERIMENTS = (
    ("fig:toy", "fig. 1 illustration"),
    ("fig:lake_time", "fig. 2 (a) lake, unit cost"),
    ("fig:lake_cost", "fig. 2 (b) lake, varying cost, with (d)-(f)"),
    ("fig:choose_noise", "fig. 2 (c) three noise levels"),
    ("fig:median_bo", "fig. 3 (a) synthetic functions, median"),
    ("fig:mean_bo", "fig. 3 (b) synthetic functions, outlier-adjusted mean"),
    ("fig:svm", "fig. 3 (c) SVM on grid"),
    ("fig:noise_hist", "fig. 4 cost spent on each noise level"),
    ("fig:gtmax", "fig. 5 illustration of the excess variance"),
)
ITEMS = (
    *MODEL,
    *ALGORITHM,
    *SETTINGS,
    *VARIATIONS,
    *BASELINES,
    *COMPUTATION,
    *EXPERIMENTS,
    *THEORY,
)


RULE = re.compile(r"\|[\s:|]*-[\s:|-]*\|")  # the line under the head of a table
QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    line: int
    item: str
    symbols: tuple[str, ...]
    tests: tuple[str, ...]


def rows(markdown: str) -> Iterator[Row]:
    """The rows of all tables, heads and rules left out."""
    lines = markdown.splitlines()
    for number, line in enumerate(lines, start=1):
        is_head = any(RULE.fullmatch(next_line) for next_line in lines[number : number + 1])
        if not line.startswith("|") or RULE.fullmatch(line) or is_head:
            continue
        # A bar inside a cell, as in |D|, is written \|.
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 3:
            raise ValueError(f"line {number}: three cells expected, {len(cells)} found: {line}")
        item, symbols, tests = cells
        yield Row(number, item, tuple(QUOTED.findall(symbols)), tuple(QUOTED.findall(tests)))


def exists_in_code(symbol: str) -> bool:
    """Whether a dotted name leads through modules, then attributes or dataclass fields, to
    something."""
    parts = symbol.split(".")
    found = None
    for cut in range(len(parts), 0, -1):
        module = ".".join(parts[:cut])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
                raise  # the module is there, but something it needs is not
        else:
            break
    if found is None:
        return False
    for name in parts[cut:]:
        if name in getattr(found, "__dataclass_fields__", {}):
            return name == parts[-1]
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


def exists_in_tests(test: str, root: Path = ROOT) -> bool:
    """Whether `tests/file.py::test_name` (or `::TestClass::test_name`) is a function of that
    file."""
    path, *names = test.split("::")
    if not names or not (root / path).is_file() or not names[-1].startswith("test"):
        return False
    body = ast.parse((root / path).read_text(encoding="utf-8")).body
    for name in names:
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.name == name
        ]
        if not found:
            return False
        body = found[0].body
    return isinstance(found[0], ast.FunctionDef | ast.AsyncFunctionDef)


@pytest.fixture(scope="module")
def paper_map() -> list[Row]:
    return list(rows(MAP.read_text(encoding="utf-8")))


def test_every_item_of_the_paper_is_in_the_map(paper_map):
    missing = [
        f"{item} ({label})" for label, item in ITEMS if item not in {row.item for row in paper_map}
    ]
    assert not missing


def test_no_item_stands_in_the_map_twice(paper_map):
    items = [row.item for row in paper_map]
    assert sorted(items) == sorted(set(items))


def test_every_item_of_the_map_has_a_symbol_and_a_test(paper_map):
    assert not [
        f"line {row.line}: {row.item}" for row in paper_map if not row.symbols or not row.tests
    ]


def test_every_symbol_of_the_map_exists(paper_map):
    wrong = [
        f"line {row.line}: {symbol}"
        for row in paper_map
        for symbol in row.symbols
        if not symbol.startswith("truvar.") or not exists_in_code(symbol)
    ]
    assert not wrong


def test_every_test_of_the_map_exists(paper_map):
    wrong = [
        f"line {row.line}: {test}"
        for row in paper_map
        for test in row.tests
        if not exists_in_tests(test)
    ]
    assert not wrong


def test_every_equation_that_the_code_names_is_in_the_map(paper_map):
    mapped = {
        int(number) for row in paper_map for number in re.findall(r"eq\. \((\d+)\)", row.item)
    }
    unmapped = [
        f"{path.relative_to(ROOT)}: eq. ({number})"
        for path in sorted((ROOT / "src" / "truvar").rglob("*.py"))
        for number in re.findall(r"\beqs?\.? \((\d+)\)", path.read_text(encoding="utf-8"))
        if int(number) not in mapped
    ]
    assert not unmapped


# The readers themselves.


def test_rows_are_read_from_tables_only():
    table = r"""
Some | prose.

| paper | code | tests |
|:---|---|---:|
| eq. (3) acquisition | `truvar.a.b`, `truvar.c` | `tests/test_a.py::test_b` |
| beta = log(\|D\|) | | |
"""
    assert list(rows(table)) == [
        Row(6, "eq. (3) acquisition", ("truvar.a.b", "truvar.c"), ("tests/test_a.py::test_b",)),
        Row(7, "beta = log(|D|)", (), ()),
    ]


def test_a_row_of_two_cells_is_refused():
    with pytest.raises(ValueError, match="line 1: three cells expected, 2 found"):
        list(rows("| one | two |"))


def test_symbols_are_looked_up_in_the_code():
    assert exists_in_code("json.decoder.JSONDecoder.decode")
    assert exists_in_code(f"{__name__}.Row.item")  # a dataclass field without default
    assert not exists_in_code("json.decoder.JSONDecoder.nothing")
    assert not exists_in_code("json.nothing.decode")
    assert not exists_in_code("no_such_module.name")


def test_tests_are_looked_up_in_their_files(tmp_path):
    (tmp_path / "test_a.py").write_text(
        "def test_b(): ...\nclass TestC:\n    def test_d(self): ...\n"
    )
    assert exists_in_tests("test_a.py::test_b", tmp_path)
    assert exists_in_tests("test_a.py::TestC::test_d", tmp_path)
    assert not exists_in_tests("test_a.py::test_d", tmp_path)
    assert not exists_in_tests("test_a.py::TestC", tmp_path)
    assert not exists_in_tests("test_a.py", tmp_path)
    assert not exists_in_tests("test_z.py::test_b", tmp_path)
