"""Uploads and checks that take long: other studies are told and read meanwhile, and a client may
give them up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.helpers.choices import children, running_server, wait_until
from tests.helpers.server import CURVE

import truvar as tv

httpx = pytest.importorskip("httpx", reason="needs truvar[service]")

UPLOADS = 5
TELLS = 1_500  # of an uploaded study
SIDE = 60  # points along a side of its grid
TRAINING_ROWS = 700  # of a table that a model is fitted to
WATCHED_SECONDS = 8.0  # that others are told and read at most, while uploads are under way
CLIENT_SECONDS = 12.0  # after which the client of an upload leaves
LONGEST = 4.0  # seconds that a tell to another study may take, on a machine with other work


def long_study() -> dict[str, Any]:
    """Return an exported study with many values, which takes long to load."""
    domain = tv.Domain.grid(x=np.linspace(0, 1, SIDE), y=np.linspace(0, 1, SIDE))
    study = tv.Study(domain, tv.Maximize(), kernel=1.0 * RBF(0.2), noise=0.01, mean=0.0)
    study.tell(domain.point(0), 0.5)
    exported: dict[str, Any] = json.loads(study.to_json())
    told = json.dumps(exported["events"][1])
    rng = np.random.default_rng(0)
    for number in range(3, TELLS + 2):
        event = json.loads(told)
        site = int(rng.integers(len(domain)))
        event["number"] = number
        event["details"] |= {
            "id": number - 1,
            "site": site,
            "point": domain.point(site),
            "y": float(rng.normal()),
        }
        exported["events"].append(event)
    return exported


def fitted_problem() -> dict[str, Any]:
    """Return a problem whose model is fitted to a table, which takes long."""
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{x!r},{float(np.sin(6 * x))!r}" for x in rng.random(TRAINING_ROWS).tolist())
    problem = (
        "[domain]\ngrid = {x = [0, 1, 200]}\n[goal]\nmaximize = true\n"
        '[model]\nkernel = "rbf"\ntraining = "t.csv"\nvalue = "f"\n[noise]\nvariance = 0.01\n'
    )
    return {"problem": problem, "tables": {"t.csv": f"x,f\n{rows}\n"}}


def longest_seconds(url: str, heavy: Callable[[int], Any]) -> tuple[float, list[Any]]:
    """Return the longest time of a tell or status of another study during heavy requests, and
    their answers so far."""
    answers: list[Any] = []

    def request(k: int) -> None:
        try:
            answers.append(heavy(k).status_code)
        except httpx.HTTPError as error:
            answers.append(error)

    threads = [threading.Thread(target=request, args=(k,), daemon=True) for k in range(UPLOADS)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    longest = 0.0
    end = time.monotonic() + WATCHED_SECONDS
    while len(answers) < UPLOADS and time.monotonic() < end:
        for work in (
            lambda: httpx.post(
                f"{url}/other/tell", json={"point": {"x": 0.0}, "y": 0.5}, timeout=120
            ),
            lambda: httpx.get(f"{url}/other/status", timeout=120),
        ):
            began = time.monotonic()
            work().raise_for_status()
            longest = max(longest, time.monotonic() - began)
        time.sleep(0.1)
    return longest, answers


def test_heavy_uploads_and_checks_do_not_delay_other_studies(tmp_path: Path) -> None:
    exported = long_study()
    checked = fitted_problem()
    with running_server(f"sqlite:///{tmp_path}/s.db") as (url, process):
        httpx.post(url, json={"name": "other", "problem": CURVE}, timeout=60).raise_for_status()
        httpx.get(f"{url}/other/status", timeout=60).raise_for_status()
        check = f"{url.removesuffix('/studies')}/problems/check"
        longest_check, checks = longest_seconds(
            url, lambda k: httpx.post(check, json=checked, timeout=CLIENT_SECONDS)
        )
        print(
            f"{UPLOADS} checks: others waited for {longest_check:.2f} s at most; answers {checks}"
        )
        longest_upload, uploads = longest_seconds(
            url,
            lambda k: httpx.post(
                url, json={"name": f"copy {k}", "study": exported}, timeout=CLIENT_SECONDS
            ),
        )
        size = len(json.dumps(exported)) / 1e6
        print(
            f"{UPLOADS} uploads of {size:.1f} MB: others waited for {longest_upload:.2f} s at "
            f"most; {uploads}"
        )
        assert longest_check < LONGEST
        assert longest_upload < LONGEST
        if (
            uploads.count(201) == 0
        ):  # all clients leave before the end: nothing is left of their uploads
            assert wait_until(lambda: children(process.pid) == [], 60)
            assert [row["name"] for row in httpx.get(url, timeout=60).json()["studies"]] == [
                "other"
            ]
