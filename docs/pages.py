"""The code of the pages: it is run as it stands, and what the pages show is what it printed and
drew.

    python docs/pages.py                        run every page
    python docs/pages.py --write [PAGE ...]     and renew the outputs and pictures in them

The blocks of a page run in order, in one namespace and one folder of their own, which has a copy of
`examples/`.

| in the page | what becomes of it |
|---|---|
| a `python` block | is run |
| a `sh` block | its lines `truvar ...` are run; others are checked by `shell_mistake` |
| a `toml` block whose first line is `# name.toml` | is written to that file |
| a `text` block right behind a block that ran | is what it printed: words exactly, numbers within their `tolerance` |
| `![...](.../images/NAME.png)` | is the file NAME.png that a block of the page drew, or one of `FROM_ELSEWHERE` |
| `<!-- not run: WHY -->` before a block | it is not run |
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
COUNT_TOLERANCE = (
    0.05  # share of the number of points that are stated to be above, below or undecided
)
SCORE_TOLERANCE = 0.02  # of F1 scores and their intervals
WRONG_TOLERANCE = 0.25  # share of the number of wrong points, which the rarest draws decide
SHARE_TOLERANCE = 1.5  # of the share of the points above, in percent
TOLERANCE = 0.001  # share of every other number; or a unit of the last decimal place that is shown
ROUNDING = 1e-12  # on top of a tolerance, which has no exact binary form
NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")
COUNTED = re.compile(
    r" (?:of \d+ (?:representer )?points (?:are|is) shown|most probable|(?:are |is )?undecided|above|below)\b"
)  # behind such a number
SCORED = re.compile(
    r"F1 (?:[\d.]+ \((?:[\d.]+ to )?)?$"
)  # before a score or an end of its interval
WRONG = re.compile(r" (?:of them )?(?:(?:are|is) )?wrong\b")  # behind a number of points
WRONG_ESTIMATE = re.compile(r"wrong=(?:[\d.]+ \((?:[\d.]+ to )?)?$")  # before one
SHARE = re.compile(r" (?:(?:and|to) \d+\.?\d* )?% (?:of all|lie)\b")  # behind a share of the points
FENCE = re.compile(
    r"^(?P<mark><!-- not run: (?P<why>.+?) -->\n+)?```(?P<kind>[a-z]*)[^\n]*\n(?P<code>.*?)^```$",
    re.M | re.S,
)
PICTURE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)]*images/(?P<name>[\w-]+\.png))\)")

ENDLESS = ("serve", "serve-aepsych")  # commands that are parsed, but not run

# Pictures that no block of a page draws, and the command that does.
FROM_ELSEWHERE = {
    "lake.png": "truvar run examples/bloom.toml --truth chlorophyll --report build/lake",
    "plan.png": "truvar bounds examples/lake.toml --epsilon 4 --delta 0.1 --plot docs/images/plan.png",
    "page.png": "python docs/screenshot.py",
    "slices.png": "python docs/pages.py --write docs/how-to/plots.md",
    "report.png": "python docs/report_pictures.py",
    "report-phone.png": "python docs/report_pictures.py",
    "live-map.png": "python docs/report_pictures.py",
    "averaging.png": "python docs/model_pictures.py",
    "power.png": "python docs/model_pictures.py",
    "unseen.png": "python docs/model_pictures.py",
    "calibration.png": "python -m benchmarks.calibration.figure build/calibration.jsonl docs/images/calibration.png",
    "page-dark.png": "python docs/screenshot.py",
    "page-phone.png": "python docs/screenshot.py",
    "page-phone-dark.png": "python docs/screenshot.py",
    "page-bands.png": "python docs/screenshot.py",
    "page-convergence.png": "python docs/screenshot.py",
    "page-slices.png": "python docs/screenshot.py",
    "page-importance.png": "python docs/screenshot.py",
    "page-model-check.png": "python docs/screenshot.py",
    "page-new.png": "python docs/screenshot.py",
    "page-region-phone.png": "python docs/screenshot.py",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str  # python, sh, toml, text, ...
    code: str
    line: int  # of the page, where the code begins
    span: tuple[int, int]  # of the code in the text of the page
    why_not: str | None  # it is not run


def pages() -> list[Path]:
    """All pages with code that readers are meant to run."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(text):
        begin, end = match.span("code")
        line = text.count("\n", 0, begin) + 1
        found.append(Block(match["kind"], match["code"], line, (begin, end), match["why"]))
    return found


def pictures(text: str) -> list[str]:
    """The names of the pictures of a page."""
    return [match["name"] for match in PICTURE.finditer(text)]


# -- running
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """Results of running a page: the output for each of its `text` blocks, and the folder with
    its figures."""

    outputs: list[tuple[Block, str]]
    folder: Path


class PageError(Exception):
    """A block that does not do what the page says, with its place."""


def run(page: Path, folder: Path) -> Ran:
    """Runs the page in the folder. The output of a block is kept for the `text` block behind it."""
    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs: list[tuple[Block, str]] = []
    printed: str | None = None
    with contextlib.chdir(folder):
        for block in blocks(text):
            place = f"{page.relative_to(ROOT)}:{block.line}"
            if block.kind == "text":
                if printed is not None:
                    outputs.append((block, printed))
                printed = None
            else:
                printed = None if block.why_not else _run_block(block, place, names)
    return Ran(outputs, folder)


def _run_block(block: Block, place: str, names: dict[str, Any]) -> str | None:
    """Run a block and return its output; None if it is not of a kind that is run."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            if block.kind == "python":
                lines = "\n" * (block.line - 1)  # so that a traceback names the line of the page
                exec(compile(lines + block.code, place.split(":")[0], "exec"), names)
            elif block.kind == "sh":
                for line in commands(block.code):
                    _run_command(line, place)
            elif block.kind == "toml" and (match := re.match(r"# ([\w.-]+\.toml)\n", block.code)):
                Path(match[1]).write_text(block.code, encoding="utf-8")
            else:
                return None
    except PageError:
        raise
    except Exception:
        raise PageError(f"{place}: the block does not run\n{traceback.format_exc()}") from None
    return out.getvalue()


def commands(code: str) -> list[str]:
    """The lines of a shell block, continued ones joined, comments left out."""
    joined = re.sub(r"\\\n\s*", " ", code)
    return [
        line.strip()
        for line in joined.splitlines()
        if line.strip() and not line.strip().startswith("#")
    ]


def _run_command(line: str, place: str) -> None:
    words = shlex.split(line, comments=True)
    mistake = shell_mistake(words)
    if mistake is not None:
        raise PageError(f"{place}: `{line}`: {mistake}")
    if words[0] != "truvar":
        return
    from truvar.cli import main, parser

    if words[1] in ENDLESS:
        parser().parse_args(words[1:])
        return

    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            code = main(words[1:])
        except SystemExit as end:  # --help, or wrong usage
            code = int(end.code or 0)
    if code != 0:
        raise PageError(f"{place}: `{line}` ended with {code}: {errors.getvalue().strip()}")


def shell_mistake(words: list[str]) -> str | None:
    """Return the mistake in a command that is not run here: targets, extras and modules must
    exist."""
    match words:
        case ["truvar", *_]:
            return None
        case ["git", "clone", _, _] | ["cd", _] | [".", ".venv/bin/activate"]:
            return None
        case ["make", target, *_]:
            targets = re.findall(
                r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M
            )
            return None if target in targets else f"there is no target {target}"
        case ["pip", "install", what]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
                "project"
            ]
            extras = re.findall(r"[a-z]+", what.removeprefix("truvar").removeprefix("."))
            unknown = set(extras) - set(project["optional-dependencies"])
            return f"there is no extra {', '.join(unknown)}" if unknown else None
        case ["python" | "python3", "-m", module, *_]:
            return None if importlib.util.find_spec(module) else f"there is no module {module}"
        case ["python", script, *_]:
            return None if (ROOT / script).is_file() else f"there is no file {script}"
    return (
        "it is of no kind that can be run or checked; write <!-- not run: WHY --> before the block"
    )


# -- what is shown
# --------------------------------------------------------------------------------------------------


def same_output(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed: the same words, numbers within their `tolerance`;
    `...` is anything."""
    pieces = [" ".join(piece.split()) for piece in shown.split("...")]
    pattern = ".*?".join(_words_and_numbers(piece) for piece in pieces)
    match = re.fullmatch(pattern, " ".join(printed.split()), re.S)
    if match is None:
        return False
    expected = [(piece, number) for piece in pieces for number in NUMBER.finditer(piece)]
    return all(
        abs(_value(number[0]) - _value(found)) <= tolerance(piece, number)
        for (piece, number), found in zip(expected, match.groups(), strict=True)
    )


def tolerance(text: str, number: re.Match[str]) -> float:
    """Return by how much a number in a text may differ on another processor.

    A learned model decides a few points more or less where hyperparameters differ in their last
    bits, and its scores are estimates from random draws. Everything else must agree: a digit that
    does not is not to be printed.
    """
    value = abs(_value(number[0]))
    if COUNTED.match(text, number.end()):
        return max(1.0, COUNT_TOLERANCE * value)
    before = text[: number.start()]
    if SCORED.search(before):
        return SCORE_TOLERANCE + ROUNDING
    if WRONG.match(text, number.end()) or WRONG_ESTIMATE.search(before):
        return max(2.0, WRONG_TOLERANCE * value)
    if SHARE.match(text, number.end()):
        return SHARE_TOLERANCE
    mantissa, _, exponent = number[0].lower().partition("e")
    _, point, decimals = mantissa.partition(".")
    last_place = 10.0 ** (int(exponent or 0) - len(decimals)) if point else 0.0
    return max(last_place, TOLERANCE * value) + ROUNDING


def _words_and_numbers(piece: str) -> str:
    """Return a pattern for the words of a text, with a group for each of its numbers."""
    words = [re.escape(each) for each in NUMBER.split(piece)]
    # Atomic: each number can be split in one way only, or a text that differs takes for ever.
    return f"((?>{NUMBER.pattern}))".join(words)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def check(page: Path, ran: Ran) -> None:
    """Raises where a page shows something else than its blocks printed or drew."""
    for block, printed in ran.outputs:
        if not same_output(block.code, printed):
            place = f"{page.relative_to(ROOT)}:{block.line}"
            raise PageError(
                f"{place}: the page shows\n{block.code}\nbut the block before it printed\n{printed}"
            )
    for name in pictures(page.read_text(encoding="utf-8")):
        if not (ran.folder / name).is_file() and name not in FROM_ELSEWHERE:
            raise PageError(f"{page.relative_to(ROOT)}: nothing on the page draws {name}")


def write(page: Path, ran: Ran) -> None:
    """Renews the outputs that no longer hold, and the pictures."""
    text = page.read_text(encoding="utf-8")
    for block, printed in reversed(ran.outputs):
        if not same_output(block.code, printed):
            begin, end = block.span
            text = text[:begin] + printed.rstrip() + "\n" + text[end:]
    page.write_text(text, encoding="utf-8")
    for name in pictures(text):
        if (ran.folder / name).is_file():
            shutil.copy(ran.folder / name, DOCS / "images" / name)


@contextlib.contextmanager
def quiet_terminal() -> Iterator[None]:
    """Fix the width of tables on every terminal, and open no windows."""
    before = dict(os.environ)
    os.environ.update(COLUMNS="100", MPLBACKEND="Agg", NO_COLOR="1")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the code of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, help="(default: all)")
    parser.add_argument(
        "--write", action="store_true", help="renew the outputs and pictures in the pages"
    )
    arguments = parser.parse_args()
    failed = 0
    for page in [path.resolve() for path in arguments.pages] or pages():
        with tempfile.TemporaryDirectory() as folder, quiet_terminal():
            try:
                ran = run(page, Path(folder))
                (write if arguments.write else check)(page, ran)
            except PageError as error:
                failed += 1
                print(error, file=sys.stderr)
            else:
                print(f"{page.relative_to(ROOT)}: {len(ran.outputs)} outputs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
