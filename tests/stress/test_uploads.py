"""Mutated studies are uploaded for a minute: each is refused or can be used, and memory stays bounded.

`TRUVAR_UPLOAD_SECONDS` sets for how long.
"""

from __future__ import annotations

import json
import os
import random
import resource
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs truvar[service]")

SECONDS = float(os.environ.get("TRUVAR_UPLOAD_SECONDS", "60"))
MAX_GROWTH = 500_000  # kilobytes


def test_no_upload_makes_a_server_fail(tmp_path: Path) -> None:
    from starlette.testclient import TestClient
    from tests.helpers.server import CURVE
    from tests.service.test_hardening import mutate

    from truvar.service.app import create_app

    rng = random.Random()
    seed = rng.randrange(10**6)
    rng.seed(seed)
    count = 0
    app = create_app(f"sqlite:///{tmp_path}/s.db")
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 5)) as client:
        assert client.post("/api/studies", json={"name": "s", "problem": CURVE}).status_code == 201
        for k in range(3):
            client.post("/api/studies/s/tell", json={"point": {"x": k / 29}, "y": float(k)})
        exported = client.get("/api/studies/s/export").json()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            name = f"m{count}"
            count += 1
            content = json.dumps({"name": name, "study": mutate(exported, rng)})
            answer = client.post("/api/studies", content=content, headers={"content-type": "application/json"})
            assert answer.status_code in (201, 409, 422), f"upload {count} of seed {seed}: {answer.text}"
            if answer.status_code == 201:
                for what in ("status", "view", "measurements", "export"):
                    found = client.get(f"/api/studies/{name}/{what}").status_code
                    assert found == 200, f"{what} of upload {count} of seed {seed}"
        growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert count > 10
    assert growth < MAX_GROWTH
