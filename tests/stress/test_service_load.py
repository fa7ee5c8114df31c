"""Many clients at once on one server: nothing told is lost, nothing counts twice. `make bench`
does it for longer."""

import pytest

pytest.importorskip("fastapi", reason="needs truvar[service]")


def test_fifty_clients_at_once_lose_and_double_nothing(tmp_path):
    from benchmarks.service import lost_and_doubled, run_load, server

    store = f"sqlite:///{tmp_path}/load.db"
    with server(store) as url:
        load = run_load(url, clients=50, seconds=3.0)
    assert load.failures == []
    assert sum(map(len, load.acknowledged.values())) >= 50  # each client got through once at least
    assert lost_and_doubled(store, load) == (0, 0)
