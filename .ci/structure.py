"""Measure sizes of classes, modules and functions, and imports that hide a cycle.

    python .ci/structure.py                 print the figures of src beside others; fail beyond
    `LIMITS` python .ci/structure.py --list          and name what counts python .ci/structure.py
    PACKAGE_FOLDER  print the figures of another package, with which `ANCHORS` was made

| figure | meaning |
|---|---|
| code tokens | tokens without comments, docstrings and line ends, in thousands |
| classes > 25, > 30 methods | distinct names that a class body defines as functions |
| largest class | number of its methods |
| modules > 700 lines | without those of `DECLARATIONS` |
| functions > 50 lines | share in percent |
| complexity > 20 | functions with more than 20 branches (McCabe) |
| hidden cycles | imports inside a function of a module that imports the importing one, directly or indirectly |
| tests of mode | conditions in `models/` on what is learned: about `MODES`, or `isinstance` of a model |
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "truvar"
DECLARATIONS = ("problem/schema.py",)  # declares fields, and nothing else
MODES = frozenset(
    {"family", "learns_noise", "learns_tasks", "_learns_task_noise", "model", "ensemble", "tasks"}
)

# Most that src may have of each. They only ever go down: a change that lowers a figure lowers its
# limit too.
LIMITS = {
    "classes > 30 methods": 1,
    "largest class": 35,
    "modules > 700 lines": 0,
    "complexity > 20": 0,
    "hidden cycles": 0,
    "tests of mode": 10,
}

# Measured with this script on the wheels of the package index, tests left out.
COLUMNS = ("code tokens", "classes > 25 methods", *LIMITS, "functions > 50 lines")
ANCHORS = {
    name: dict(zip(COLUMNS, numbers, strict=True))
    for name, numbers in {
        "tinygp 0.3.1": (19, 0, 0, 15, 1, 1, 1, 0, 1),
        "BayBE 0.15.0": (86, 3, 2, 34, 5, 3, 27, 0, 2.8),
        "Trieste 4.6.1": (107, 1, 1, 31, 12, 5, 0, 26, 3),
        "BoTorch 0.18.1": (260, 1, 0, 26, 27, 12, 5, 7, 6),
        "Optuna 5.0.0": (169, 7, 3, 48, 8, 9, 0, 0, 3.7),
        "Ax 1.3.1": (408, 11, 8, 84, 38, 37, 3, 0, 9.4),
    }.items()
}

BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.comprehension,
    ast.match_case,
)


@dataclass
class Figures:
    """The figures of a package, and the names behind them."""

    values: dict[str, float] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, figure: str, name: str) -> None:
        """Count one more."""
        self.names.setdefault(figure, []).append(name)
        self.values[figure] = self.values.get(figure, 0) + 1


def measure(folder: Path) -> Figures:
    """Return the figures of a package."""
    found = Figures(dict.fromkeys(COLUMNS, 0.0))
    trees = {}
    tokens = 0
    n_functions = 0
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder).as_posix()
        if "/tests/" in f"/{relative}" or "/test/" in f"/{relative}":
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        trees[relative] = tree
        tokens += code_tokens(text, tree)
        if text.count("\n") > 700 and relative not in DECLARATIONS:
            found.add("modules > 700 lines", f"{relative} ({text.count(chr(10))})")
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                _measure_class(found, relative, node)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                n_functions += 1
                _measure_function(found, relative, node)
        if relative.startswith("models/"):
            for line in mode_tests(tree):
                found.add("tests of mode", f"{relative}:{line}")
    for name in hidden_cycles(folder.name, trees):
        found.add("hidden cycles", name)
    found.values["code tokens"] = round(tokens / 1000)
    found.values["functions > 50 lines"] = round(
        100 * found.values["functions > 50 lines"] / max(n_functions, 1), 1
    )
    return found


def _measure_class(found: Figures, relative: str, node: ast.ClassDef) -> None:
    methods = {
        each.name for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    name = f"{relative}:{node.name} ({len(methods)})"
    for limit in (25, 30):
        if len(methods) > limit:
            found.add(f"classes > {limit} methods", name)
    found.values["largest class"] = max(found.values["largest class"], len(methods))


def _measure_function(
    found: Figures, relative: str, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> None:
    name = f"{relative}:{node.lineno} {node.name}"
    lines = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
    if ast.get_docstring(node) is not None:
        lines = (node.end_lineno or node.lineno) - (node.body[0].end_lineno or 0)
    if lines > 50:
        found.add("functions > 50 lines", name)
    if complexity(node) > 20:
        found.add("complexity > 20", f"{name} ({complexity(node)})")


def complexity(function: ast.AST) -> int:
    """Return McCabe's complexity of a function, without that of functions within it."""
    total = 1
    for node in own_nodes(function):
        total += isinstance(node, BRANCHES)
        if isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
    return total


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions and classes within it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield child
        yield from own_nodes(child)


def code_tokens(text: str, tree: ast.Module) -> int:
    """Return the number of tokens without comments, docstrings and line ends."""
    ignored = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    }
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        node.body[0].lineno
        for node in ast.walk(tree)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
    }
    count = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and token.start[0] in docstrings
        count += token.type not in ignored and not is_docstring
    return count


def mode_tests(tree: ast.Module) -> list[int]:
    """Return the lines of conditions about which parts of a model are learned."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            tested = list(ast.walk(node.test))
            attributes = {each.attr for each in tested if isinstance(each, ast.Attribute)}
            classes = {each.id for each in tested if isinstance(each, ast.Name)}
            is_model = "isinstance" in classes and any(name.endswith("Model") for name in classes)
            if attributes & MODES or is_model:
                lines.append(node.lineno)
    return lines


def hidden_cycles(package: str, trees: dict[str, ast.Module]) -> list[str]:
    """Return the imports inside functions of modules that import the importing one."""
    modules = {_module_name(package, relative): tree for relative, tree in trees.items()}
    outer = {
        name: set(_imported(name, tree, modules, inner=False)) for name, tree in modules.items()
    }
    found = []
    for name, tree in modules.items():
        for target in sorted(set(_imported(name, tree, modules, inner=True)) - outer[name]):
            if name in _reachable(target, outer):
                found.append(f"{name} -> {target}")
    return found


def _module_name(package: str, relative: str) -> str:
    parts = [package, *relative.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(
    name: str, tree: ast.Module, modules: dict[str, ast.Module], *, inner: bool
) -> Iterator[str]:
    """Yield the modules of the package that a module imports, inside of functions or outside."""
    inside: set[int] = set()
    checked_only: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside.update(id(each) for each in ast.walk(node))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            checked_only.update(id(each) for each in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in checked_only or (id(node) in inside) != inner:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                if below in modules:
                    yield below
                elif node.module in modules and node.module != name:
                    yield node.module


def _reachable(start: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(imports.get(module, ()))
    return found


def main() -> int:
    """Print the figures; return 1 if src is beyond a limit."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    figures = measure(Path(arguments[0]) if arguments else SOURCE)
    anchors = {} if arguments else ANCHORS
    print(f"{'':24s}{'here':>8s}{'limit':>8s}" + "".join(f"{name:>16s}" for name in anchors))
    beyond = 0
    for figure in COLUMNS:
        limit = None if arguments else LIMITS.get(figure)
        too_much = limit is not None and figures.values[figure] > limit
        beyond += too_much
        shown = "" if limit is None else f"{limit:g}"
        row = f"{figure:24s}{figures.values[figure]:8g}{shown:>8s}"
        row += "".join(f"{numbers.get(figure, float('nan')):16g}" for numbers in anchors.values())
        print(row + ("   beyond the limit" if too_much else ""))
        if too_much or "--list" in sys.argv:
            print("".join(f"    {name}\n" for name in figures.names.get(figure, [])), end="")
    return int(beyond > 0)


if __name__ == "__main__":
    sys.exit(main())
