"""One bit of an SQLite file is flipped, a thousand times: each flip is harmless or reported."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.helpers.problems import KINDS, truth

import truvar as tv

FLIPS = int(os.environ.get("TRUVAR_FLIPS", "1000"))


def content(path: Path) -> tuple[object, ...]:
    """Return everything that a user can read from the store."""
    url = f"sqlite:///{path}"
    listed = tv.studies(url)
    study = tv.load(url, "lake")
    return study.to_json(), study.measurements.to_csv(), study.pending, listed.to_csv()


def test_every_flipped_bit_is_harmless_or_reported(tmp_path: Path) -> None:
    path = tmp_path / "lake.db"
    study = KINDS["level set with travel"].study(store=f"sqlite:///{path}", name="lake")
    study.run(truth, steps=6)
    study.ask()
    study.note("rain")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    del study
    sound = path.read_bytes()
    expected = content(path)
    rng = random.Random(4)
    damaged = tmp_path / "damaged.db"
    reported = 0
    for _ in range(FLIPS):
        position = rng.randrange(8 * len(sound))
        flipped = bytearray(sound)
        flipped[position // 8] ^= 1 << position % 8
        for leftover in ("-wal", "-shm"):
            Path(f"{damaged}{leftover}").unlink(missing_ok=True)
        damaged.unlink(missing_ok=True)
        damaged.write_bytes(flipped)
        try:
            found = content(damaged)
        except tv.TruvarError:
            reported += 1
        else:
            assert found == expected, (
                f"bit {position} of {len(sound)} bytes changed what is read, silently"
            )
    assert 0 < reported < FLIPS
