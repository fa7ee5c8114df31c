"""Check the rules of style that ruff has no rule for.

- A docstring opens with an imperative or a noun phrase, not with "What", "Where", "How", "As" or
  "The same".
- A statement has at most one conditional expression.
- No tuple assignment of unrelated values (`a, b = x, y`); swapping is allowed.
- None of the words in `WORDS`, which are metaphors or have a conventional synonym.
- No idiom of `IDIOMS` in the documentation and on the page of the service.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OPENERS = re.compile(r"(What|Where|How|As|The same|Whose|That|Those)\b")
WORDS = {
    "mend": "fix",
    "mended": "fixed",
    "stands twice": "duplicated",
    "means nothing here": "unknown",
    "heard out": "drained",
    "door": "interface",
    "seam": "protocol",
    "twin": "reference",
    "anew": "again",
    "dear": "expensive",
    "dearer": "more expensive",
    "dearest": "most expensive",
    "ledger": "state",
    "journal": "event log",
    "spelled": "serialized",
    "house style": "style",
    "rooms": "packages",
    "rival": "baseline",
    "rivals": "baselines",
    "doubt": "ambiguity, or undecided",
    "doubts": "warnings",
    "belief": "surrogate",
    "beliefs": "surrogates",
    "contender": "tie, or candidate",
    "contenders": "ties, or candidates",
    "desk": "sessions",
    "intake": "measurements_io",
}
IDIOMS = {
    "all the same": "anyway",
    "anew": "again",
    "at once": "immediately, or jointly",
    "by itself": "alone, or marginally",
    "by themselves": "separately",
    "dear": "expensive",
    "gross error": "outlier",
    "of one's own": "custom",
    "way back": "return leg",
}
IDIOM = re.compile(rf"\b({'|'.join(IDIOMS)})\b", re.IGNORECASE)
PATTERN = "|".join(map(re.escape, sorted(WORDS, key=len, reverse=True)))
FORBIDDEN = re.compile(
    rf"(?<![a-z])({PATTERN})(?![a-z])", re.IGNORECASE
)  # also as a part of a name_like_this
ALLOWED = re.compile(
    r'journal_mode|journal mode|"journal"', re.IGNORECASE
)  # SQLite's own name; a stored study
TEXTS = ("README.md", "docs", "examples", "src/truvar/service/static")
TEXT_SUFFIXES = (".md", ".js", ".html", ".ipynb")
PATHS = ("src", "benchmarks", "tests", "docs", "examples", ".ci/release_check.py")


def main() -> int:
    """Print what breaks a rule; return 1 if anything does."""
    paths = [Path(argument) for argument in sys.argv[1:]] or [ROOT / path for path in PATHS]
    found = 0
    for path in sorted(
        file
        for folder in paths
        for file in ([folder] if folder.is_file() else folder.rglob("*.py"))
    ):
        for line, message in problems(path.read_text(encoding="utf-8")):
            print(f"{path}:{line}: {message}")
            found += 1
    if not sys.argv[1:]:
        for path, line, message in idioms_of(ROOT):
            print(f"{path}:{line}: {message}")
            found += 1
    print(f"{found} style problems" if found else "style: ok")
    return int(found > 0)


def idioms_of(root: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and message of every idiom in the texts of a checkout."""
    for name in TEXTS:
        files = [root / name, *sorted((root / name).rglob("*"))]
        for path in files:
            if path.suffix in TEXT_SUFFIXES and path.is_file():
                for line, message in idioms(path.read_text(encoding="utf-8")):
                    yield path, line, message


def idioms(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the message of every idiom of a text."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in IDIOM.finditer(line):
            yield number, f"{match[0]!r}: use {IDIOMS[match[0].lower()]!r}"


def problems(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the message of everything that breaks a rule."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            if OPENERS.match(text):
                yield getattr(node, "lineno", 1), f"docstring opens with {text.split()[0]!r}"
        if isinstance(node, ast.stmt):
            count = sum(isinstance(part, ast.IfExp) for part in _own_expressions(node))
            if count > 1:
                yield node.lineno, f"{count} conditional expressions in one statement"
        if isinstance(node, ast.Assign) and _assigns_unrelated(node):
            yield node.lineno, "tuple assignment of unrelated values"
    for number, text in enumerate(source.splitlines(), 1):
        for match in FORBIDDEN.finditer(ALLOWED.sub("", text)):
            yield number, f"{match[0]!r}: use {WORDS[match[0].lower()]!r}"


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Walk the expressions of a statement, without nested statements and functions."""
    pending: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)
    ]
    while pending:
        node = pending.pop()
        yield node
        pending += [
            child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)
        ]


def _assigns_unrelated(node: ast.Assign) -> bool:
    target = node.targets[0]
    if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    left = {ast.unparse(part) for part in target.elts}
    right = {ast.unparse(part) for part in node.value.elts}
    return left != right


if __name__ == "__main__":
    sys.exit(main())
