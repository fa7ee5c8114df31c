"""AEPsych's own Python client, unchanged: `make test-labs`."""

from __future__ import annotations

from threading import Event, Thread

import pytest

pytest.importorskip("aepsych_client", reason="needs truvar[test-labs]")

from aepsych_client import AEPsychClient
from aepsych_client.client import ServerError

from truvar.integrations.aepsych import AEPsychServer

SETTINGS = """
[common]
parnames = [contrast]
lb = [0]
ub = [1]
outcome_types = [binary]
target = 0.75
strategy_names = [init_strat, opt_strat]
[init_strat]
min_asks = 5
generator = SobolGenerator
[opt_strat]
min_asks = 20
generator = OptimizeAcqfGenerator
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its `__del__`
def test_the_client_finds_a_threshold() -> None:
    ports: list[int] = []
    ready = Event()
    server = AEPsychServer(representers=100)

    def note(port: int) -> None:
        ports.append(port)
        ready.set()

    thread = Thread(target=server.serve, args=("127.0.0.1", 0, note), daemon=True)
    thread.start()
    assert ready.wait(30)
    client = AEPsychClient(ip="127.0.0.1", port=ports[0])
    with pytest.raises(ServerError, match="no experiment is set up"):
        client.ask()
    client.configure(config_str=SETTINGS, config_name="first")
    is_finished = False
    while not is_finished:
        trial = client.ask()
        contrast = trial["config"]["contrast"][0]
        client.tell(config=trial["config"], outcome=int(contrast > 0.4), reaction_time=0.3)
        is_finished = trial["is_finished"]
    assert server.studies[0].steps == 25
    answer = client.query(query_type="inverse", y=0.75, probability_space=True)
    assert answer["x"]["contrast"][0] == pytest.approx(0.4, abs=0.1)
    assert client.query("prediction", x={"contrast": [0.9]}, probability_space=True)["y"][0] > 0.75
    assert client.resume(config_name="first") == {"strat_id": 0}
    assert client.parameters() == {"contrast": [0.0, 1.0]}
    assert client.info()["current_strat_data_pts"] == 25
    assert client.get_config("common", "target") == {"common": {"target": "0.75"}}
    assert client.finish_strategy()["finished_strategy"] == "opt_strat"
    assert client.finalize() == {"config": "Terminate", "is_finished": True}
    thread.join(30)
    assert not thread.is_alive()
