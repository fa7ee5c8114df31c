"""Measure sizes of classes, modules and functions, and imports that hide a cycle.

    python .ci/structure.py                 print the figures of src; fail beyond `LIMITS`
    python .ci/structure.py --list          and name what counts
    python .ci/structure.py PACKAGE_FOLDER  print those of another package, as for `ANCHORS`

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
| public names | functions and classes without an underscore, in modules without one |
| of these unused | those, and constants, that no other module, document, benchmark or example uses |
| not offered | names that a package imports from another whose `__init__` does not list them |
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "truvar"
DECLARATIONS = ("problem/schema.py",)  # declares fields, and nothing else
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs", "examples", "benchmarks")
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
    "public names": 860,
    "of these unused": 100,
    "not offered": 4,
}

COLUMNS = ("code tokens", "classes > 25 methods", *LIMITS, "functions > 50 lines")

# Measured with this script on the wheels of the package index, tests left out.
ANCHOR_COLUMNS = (
    "code tokens",
    "classes > 25 methods",
    "classes > 30 methods",
    "largest class",
    "modules > 700 lines",
    "complexity > 20",
    "hidden cycles",
    "tests of mode",
    "functions > 50 lines",
)
ANCHORS = {
    name: dict(zip(ANCHOR_COLUMNS, numbers, strict=True))
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
    for name in not_offered(folder.name, trees):
        found.add("not offered", name)
    public = public_names(folder.name, trees)
    found.values["public names"] = sum(name.is_definition for name in public)
    if folder == SOURCE:
        used = names_in_documents({_module_name(folder.name, relative) for relative in trees})
        for name in public:
            if not (name.is_used or name.name in used.get(name.module, ())):
                found.add("of these unused", f"{name.module}.{name.name}")
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


@dataclass(frozen=True)
class PublicName:
    """A name without an underscore at the top level of a module without one."""

    module: str
    name: str
    is_definition: bool  # a function or class; otherwise a constant
    is_used: bool  # by another module, or in the annotations of the module's public functions


def public_names(package: str, trees: dict[str, ast.Module]) -> list[PublicName]:
    """Return the public names of a package."""
    modules = {_module_name(package, relative): tree for relative, tree in trees.items()}
    used: dict[str, set[str]] = {}
    for importing, tree in modules.items():
        for module, name in used_names(tree, modules.keys()):
            if module != importing:
                used.setdefault(module, set()).add(name)
    dynamic = {name for tree in modules.values() for name in dynamic_names(tree)}
    found = []
    for module, tree in modules.items():
        if any(part.startswith("_") for part in module.split(".")):
            continue
        needed = used.get(module, set()) | annotations(tree)
        for name, is_definition in top_level_names(tree):
            if not name.startswith("_"):
                is_used = name in needed or name in dynamic
                is_used |= name.endswith(("Error", "Warning"))  # for callers to catch
                found.append(PublicName(module, name, is_definition, is_used))
    return found


def not_offered(package: str, trees: dict[str, ast.Module]) -> list[str]:
    """Return the names that packages import from others, but which these do not list.

    A name is listed if its text, or that of its module, is in the `__init__` of the package, or in
    the table of public names.
    """
    modules = {_module_name(package, relative): tree for relative, tree in trees.items()}
    public = set(texts(modules.get(f"{package}._names", ast.Module([], []))))
    folders = {module.split(".")[1] for module in modules if module.count(".") > 1}
    found = set()
    for folder in sorted(folder for folder in folders if not folder.startswith("_")):
        whole = f"{package}.{folder}"
        listed = public.union(texts(modules[whole]))
        for importing, tree in modules.items():
            if f"{importing}.".startswith(f"{whole}."):
                continue
            for module, name in used_names(tree, modules.keys()):
                last = module.rpartition(".")[2]
                is_module = f"{module}.{name}" in modules or f"{whole}.{name}" in modules
                if f"{module}.".startswith(f"{whole}.") and not (
                    is_module or name == "*" or listed & {name, last}
                ):
                    found.add(f"{module}.{name}, imported by {importing}")
    return sorted(found)


def texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def dynamic_names(tree: ast.Module) -> Iterator[str]:
    """Yield names that are looked up at run time: texts, and attributes of imported modules."""
    yield from texts(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and "import_module(" in ast.unparse(node.value):
            yield node.attr


def top_level_names(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield the names that a module defines, and whether each is a function or class.

    Names in lower case that are no functions are modules that are imported conditionally.
    """
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, True
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for each in targets if isinstance(each, ast.Name)]
            yield from ((name, False) for name in names if name != name.lower())


def used_names(tree: ast.Module, modules: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield module and name of everything that a module imports, or uses by `module.name`."""
    aliases = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.module, alias.name
                if f"{node.module}.{alias.name}" in modules:
                    aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            module = aliases.get(ast.unparse(node.value))
            if module is not None:
                yield module, node.attr


def annotations(tree: ast.Module) -> set[str]:
    """Return the names in the annotations of a module's public functions, methods and fields."""
    found: set[str] = set()
    waiting = [node for node in tree.body if not getattr(node, "name", "_").startswith("_")]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef):
            waiting.extend(node.body)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            parts = [node.returns, *(argument.annotation for argument in every)]
        else:
            parts = [getattr(node, "annotation", None)]
        for part in parts:
            if part is not None:
                found.update(re.findall(r"\w+", ast.unparse(part)))
    return found


def names_in_documents(modules: Collection[str]) -> dict[str, set[str]]:
    """Return module -> names that documents, benchmarks and examples import or mention."""
    found: dict[str, set[str]] = {}
    imported = re.compile(r"from (truvar[\w.]*) import (\([\w, \n]+\)|[\w, ]+)")
    mentioned = re.compile(r"(truvar(?:\.\w+)+)\.(\w+)")
    for path in (file for name in DOCUMENTS for file in _files(ROOT / name)):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            for module, name in used_names(ast.parse(text), modules):
                found.setdefault(module, set()).add(name)
        for module, names in imported.findall(text):
            found.setdefault(module, set()).update(re.findall(r"\w+", names))
        for module, name in mentioned.findall(text):
            found.setdefault(module, set()).add(name)
    return found


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*") if file.suffix in (".md", ".py", ".ipynb")]


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
