"""The Python of docs/service.md runs as it stands, against a server with tokens."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "service.md"


def test_the_example_of_the_service_page_runs(guarded, capsys):
    url, token, _ = guarded
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "service.md", "exec"), {"url": url, "token": token})
    printed = capsys.readouterr().out
    assert "8.3" in printed
    assert "each with a probability of at least 95 %, given the model" in printed
    assert "With 95 % probability at most" in printed
