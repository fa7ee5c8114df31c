"""Mutated studies of every kind are uploaded: each is refused or can be used, and memory stays
bounded.

The fuzz target runs for a minute; `TRUVAR_UPLOAD_SECONDS` sets for how long. `TRUVAR_UPLOADS` is
how many studies the slow test uploads.
"""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.helpers.uploads import exported_studies, mutated, use_upload

pytest.importorskip("fastapi", reason="needs truvar[service]")

SECONDS = float(os.environ.get("TRUVAR_UPLOAD_SECONDS", "60"))
UPLOADS = int(os.environ.get("TRUVAR_UPLOADS", "10000"))
MAX_GROWTH = 500_000  # kilobytes of memory, however many studies are uploaded
ROUND = 40  # studies that Hypothesis makes before the clock is looked at


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    from starlette.testclient import TestClient

    from truvar.service._app import create_app

    app = create_app(f"sqlite:///{tmp_path}/s.db")
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 5)) as found:
        yield found


def memory() -> int:
    """Return the largest memory of this process so far, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_no_upload_makes_a_server_fail(client: Any) -> None:
    exports = exported_studies()
    assert len(exports) > 20
    accepted: list[bool] = []
    before = memory()

    @settings(max_examples=ROUND, database=None, suppress_health_check=list(HealthCheck))
    @given(rng=st.randoms(use_true_random=False))
    def holds(rng: random.Random) -> None:
        accepted.append(use_upload(client, f"m{len(accepted)}", mutated(exports, rng)))

    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        hypothesis.seed(random.randrange(2**32))(holds)()
    print(
        f"{len(accepted)} uploads, {sum(accepted)} accepted, {(memory() - before) / 1000:.0f} MB "
        "more"
    )
    assert any(accepted)
    assert not all(accepted)
    assert memory() - before < MAX_GROWTH


@pytest.mark.slow
def test_ten_thousand_uploads_make_no_server_fail(client: Any) -> None:
    exports = exported_studies()
    rng = random.Random(2)
    before = memory()
    accepted = sum(use_upload(client, f"m{k}", mutated(exports, rng)) for k in range(UPLOADS))
    print(f"{UPLOADS} uploads, {accepted} accepted, {(memory() - before) / 1000:.0f} MB more")
    assert 0 < accepted < UPLOADS
    assert memory() - before < MAX_GROWTH
