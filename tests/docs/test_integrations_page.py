"""Examples of docs/integrations.md run as they are."""

import re
import warnings
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
LIBRARIES = ("botorch", "optuna", "geopandas", "xarray", "gest_api", "bluesky_adaptive")


def test_every_integration_has_an_example():
    assert len(BLOCKS) == 7


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split()[1].strip(","))
def test_the_examples_run(block):
    for library in LIBRARIES:
        if re.search(rf"^(# needs|import|from) {library}\b", block, flags=re.M):
            pytest.importorskip(library, reason=f"the example needs {library}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(block, "docs/integrations.md", "exec"), {})
