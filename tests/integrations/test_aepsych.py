"""The messages of AEPsych's clients, sent over a socket."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import truvar as tv
from truvar.integrations.aepsych import MAX_MESSAGE, AEPsychServer

HEARING = """
[common]
parnames = [loudness, ear, tone]
outcome_types = [binary]
target = 0.75
strategy_names = [init_strat, opt_strat]

[loudness]
par_type = continuous
lower_bound = 0.0
upper_bound = 1.0

[ear]
par_type = categorical
choices = [left, right]

[tone]
par_type = fixed
value = 440

[init_strat]
min_asks = 4
generator = SobolGenerator

[opt_strat]
min_asks = 8
generator = OptimizeAcqfGenerator
acqf = MCLevelSetEstimation
"""


class Client:
    """A client as AEPsych's clients are: one object per message, and nothing after it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)

    def send(self, kind: str, message: Any = "") -> dict[str, Any]:
        return self.send_bytes(json.dumps({"type": kind, "message": message}).encode())

    def send_bytes(self, *parts: bytes) -> dict[str, Any]:
        for part in parts:
            self.socket.sendall(part)
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """The next answer, and not a byte of the one after it."""
        received = b""
        while True:
            received += self.socket.recv(1)
            with contextlib.suppress(ValueError):
                answer: dict[str, Any] = json.loads(received)
                return answer


@pytest.fixture
def server() -> AEPsychServer:
    return AEPsychServer(representers=200)


@pytest.fixture
def client(server: AEPsychServer) -> Iterator[Client]:
    ports: list[int] = []
    ready = Event()

    def note(port: int) -> None:
        ports.append(port)
        ready.set()

    thread = Thread(target=server.serve, args=("127.0.0.1", 0, note), daemon=True)
    thread.start()
    assert ready.wait(30)
    each = Client(ports[0])
    yield each
    if not server.is_ended:
        assert each.send("exit")["is_finished"]
    thread.join(30)
    assert not thread.is_alive()


def heard(config: dict[str, Any]) -> list[int]:
    threshold = {"left": 0.3, "right": 0.6}
    pairs = zip(config["loudness"], config["ear"], strict=True)
    return [int(loudness > threshold[ear]) for loudness, ear in pairs]


def test_an_experiment_runs_until_it_is_finished(server: AEPsychServer, client: Client) -> None:
    assert client.send("setup", {"config_str": HEARING}) == {"strat_id": 0}
    n_trials = 0
    is_finished = False
    while not is_finished:
        answer = client.send("ask", {"num_points": 2})
        assert answer["num_points"] == 2
        assert set(answer["config"]) == {"loudness", "ear", "tone"}
        assert answer["config"]["tone"] == [440.0, 440.0]
        is_finished = answer["is_finished"]
        told = client.send("tell", {"config": answer["config"], "outcome": heard(answer["config"])})
        assert told == {"trials_recorded": 2, "model_data_added": 2}
        n_trials += 2
    assert n_trials == 12
    (study,) = server.studies
    assert (study.steps, study.pending) == (12, [])
    assert study.goal.threshold == 0.75
    assert study.outcome == tv.Binary()
    assert client.send("info")["current_strat_finished"]
    assert client.send("can_model") == {"can_model": True}


def test_queries_are_answered_from_the_model(server: AEPsychServer, client: Client) -> None:
    client.send("setup", {"config_str": HEARING})
    assert "needs a trial" in client.send("query", {"query_type": "max"})["server_error"]
    for loudness in np.linspace(0, 1, 9):
        for ear in ("left", "right"):
            config = {"loudness": [loudness], "ear": [ear]}
            client.send("tell", {"config": config, "outcome": heard(config)[0]})
    study = server.studies[0]
    x = {"loudness": [0.9], "ear": ["left"]}
    answer = client.send("query", {"query_type": "prediction", "x": x})
    assert answer["y"] == [pytest.approx(study.predict([{"loudness": 0.9, "ear": "left"}])[0][0])]
    assert answer["y"][0] > 0.5
    assert answer["probability_space"] is True
    best = client.send("query", {"query_type": "max"})
    worst = client.send("query", {"query_type": "min"})
    assert worst["y"][0] < 0.5 < best["y"][0]
    assert worst["x"]["loudness"][0] < best["x"]["loudness"][0]
    inverse = {"query_type": "inverse", "y": 0.5, "probability_space": True}
    left = client.send("query", {**inverse, "constraints": {"1": "left"}})
    right = client.send("query", {**inverse, "constraints": {"ear": ["right"]}})
    assert (left["x"]["ear"], right["x"]["ear"]) == (["left"], ["right"])
    assert left["y"] == [pytest.approx(0.5, abs=0.1)]
    assert left["x"]["loudness"][0] < right["x"]["loudness"][0]


def test_settings_parameters_and_strategies_can_be_asked_for(client: Client) -> None:
    client.send("setup", {"config_str": HEARING})
    assert client.send("parameters")["loudness"] == [0.0, 1.0]
    target = client.send("get_config", {"section": "common", "property": "target"})
    assert target == {"common": {"target": "0.75"}}
    assert client.send("get_config")["ear"]["par_type"] == "categorical"
    assert client.send("setup", {"config_str": HEARING.replace("0.75", "0.6")}) == {"strat_id": 1}
    assert client.send("info")["strat_count"] == 2
    assert client.send("resume", {"strat_id": 0}) == {"strat_id": 0}
    assert client.send("finish_strategy")["finished_strat_idx"] == 0
    assert client.send("ask")["is_finished"] is True
    assert "must be one of [0, 1], got 7" in client.send("resume", {"strat_id": 7})["server_error"]


def test_what_is_not_modelled_is_noted(server: AEPsychServer, client: Client) -> None:
    client.send("setup", {"config_str": HEARING})
    config = {"loudness": 0.5, "ear": "left"}
    answer = client.send("tell", {"config": config, "outcome": {"outcome": 1}, "rt": 0.42})
    assert answer["model_data_added"] == 1
    answer = client.send("tell", {"config": config, "outcome": 0, "model_data": False})
    assert answer == {"trials_recorded": 1, "model_data_added": 0}
    study = server.studies[0]
    assert study.steps == 1
    notes = [row["text"] for row in study.events.query("kind == 'noted'")["details"]]
    assert '"rt": 0.42' in notes[0]
    assert '"model_data": false' in notes[1]


def test_a_message_may_come_in_parts_and_the_next_client_is_served(client: Client) -> None:
    text = json.dumps({"type": "setup", "message": {"config_str": HEARING}}).encode()
    assert client.send_bytes(text[:50], text[50:]) == {"strat_id": 0}
    port = client.socket.getpeername()[1]
    other = Client(port)
    assert other.send("ask")["num_points"] == 1
    other.socket.close()
    too_long = Client(port)
    answer = too_long.send_bytes(b'{"type": "' + b"x" * (MAX_MESSAGE + 1))
    assert "at most" in answer["server_error"]


@pytest.mark.parametrize(
    "text",
    [
        b'{"type": ask}',
        b"{'type': 'ask'}",
        b"ask",
        b"\xff\xfe",
        b'{"type": "ask"]}',
        b'{"type": "\xff"}',
        b"[" * 100_000 + b"]" * 100_000,
    ],
)
def test_what_is_no_json_is_answered_and_the_next_message_is_read(
    client: Client, text: bytes
) -> None:
    """A client waits for an answer: without one it would hang in the middle of a session."""
    assert "a message must be JSON" in client.send_bytes(text)["server_error"]
    assert client.send("setup", {"config_str": HEARING}) == {"strat_id": 0}


def test_messages_that_arrive_together_are_answered_one_after_the_other(client: Client) -> None:
    setup = {"type": "setup", "message": {"config_str": HEARING, "note": 'braces } in "texts" {'}}
    ask = {"type": "ask", "message": ""}
    text = (json.dumps(setup) + "\n" + json.dumps(ask)).encode()
    assert client.send_bytes(text) == {"strat_id": 0}
    assert client.receive()["num_points"] == 1


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("ask", "", "no experiment is set up"),
        ("dance", "", "unknown message type 'dance'"),
        ("setup", {}, "setup needs config_str"),
        ("setup", {"config_str": "nonsense"}, "must be a text in INI format"),
        ("setup", {"config_str": "[x]\na = 1"}, r"need a section [common]"),
        ("setup", {"config_str": "[common]\nlb = [0]"}, "parnames must name a parameter"),
        ("setup", {"config_str": "[common]\nparnames = [x]"}, "'x' needs bounds"),
        (
            "setup",
            {"config_str": "[common]\nparnames = [x]\nlb = [a]\nub = [1]"},
            "lb must be a finite number, got 'a'",
        ),
        (
            "setup",
            {"config_str": HEARING.replace("[binary]", "[binary, continuous]")},
            "must name one outcome",
        ),
        ("setup", {"config_str": HEARING.replace("[binary]", "[ordinal]")}, "unknown outcome type"),
        (
            "setup",
            {"config_str": HEARING.replace("par_type = categorical", "par_type = colour")},
            "par_type of 'ear'",
        ),
        (
            "setup",
            {"config_str": HEARING.replace("target", "stimuli_per_trial = 2\ntarget")},
            "one stimulus per trial",
        ),
        (
            "setup",
            {"config_str": HEARING.replace("[opt_strat]", "[other]")},
            "got no section [opt_strat]",
        ),
    ],
)
def test_mistakes_are_answered(
    server: AEPsychServer, kind: str, message: Any, expected: str
) -> None:
    answer = server.handle({"type": kind, "message": message})
    assert expected in answer["server_error"]
    assert not server.studies


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("tell", {"outcome": 1}, "config must have a value of every parameter"),
        ("tell", {"config": {"loudness": 0.5}, "outcome": 1}, "got none of 'ear'"),
        ("tell", {"config": {"loudness": 0.5, "ear": "left"}}, "the measured value y"),
        ("tell", {"config": {"loudness": 0.5, "ear": "left"}, "outcome": 7}, "is 1 or 0, got 7"),
        ("tell", {"config": {"loudness": 7, "ear": "left"}, "outcome": 1}, "loudness"),
        (
            "tell",
            {"config": {"loudness": [0.5, 0.6], "ear": ["left"]}, "outcome": 1},
            "same length",
        ),
        (
            "tell",
            {"config": {"loudness": [0.5], "ear": ["left"]}, "outcome": [1, 0]},
            "each trial has one outcome",
        ),
        ("ask", {"num_points": 0}, "num_points"),
        ("ask", {"num_points": 101}, "at most 100"),
        ("ask", {"num_points": "many"}, "num_points"),
    ],
)
def test_trials_that_cannot_be_used_change_nothing(
    server: AEPsychServer, kind: str, message: Any, expected: str
) -> None:
    server.handle({"type": "setup", "message": {"config_str": HEARING}})
    answer = server.handle({"type": kind, "message": message})
    assert expected in answer["server_error"]
    (study,) = server.studies
    assert (study.steps, len(study.events)) == (0, 1)


@pytest.mark.parametrize("request_", [7, [], {}, {"type": 3}, "ask"])
def test_requests_of_another_form_are_answered(server: AEPsychServer, request_: Any) -> None:
    assert "must be an object" in server.handle(request_)["server_error"]


def test_bounds_in_lists_logarithms_and_numbers_as_outcome(server: AEPsychServer) -> None:
    text = """
    [common]
    parnames = [a, b, c, d]
    lb = [-1]
    ub = [1]
    outcome_types = [continuous]
    [b]
    par_type = continuous
    lower_bound = 0.001
    upper_bound = 1
    log_scale = True
    [c]
    par_type = integer
    lower_bound = 1
    upper_bound = 4
    [d]
    par_type = binary
    """.replace("\n    ", "\n")
    assert server.handle({"type": "setup", "message": {"config_str": text}}) == {"strat_id": 0}
    (study,) = server.studies
    assert study.goal.seeks_optimum
    for _ in range(3):
        config = server.handle({"type": "ask", "message": ""})["config"]
        assert config["d"][0] in (0, 1)
        assert config["c"][0] in (1, 2, 3, 4)
        answer = server.handle({"type": "tell", "message": {"config": config, "outcome": 1.5}})
        assert answer["trials_recorded"] == 1
    assert not study.pending


# An example that comes with AEPsych, shortened: comments stand behind the values.
COMMENTED = """
### Threshold estimation
[common]
parnames = [par1, par2] # names of the parameters
lb = [0, 0] # lower bounds
ub = [1, 1] # upper bounds
stimuli_per_trial = 1 # the number of stimuli shown in each trial
outcome_types = [binary] # can be [binary] or [continuous]
target = 0.75 # desired threshold
min_asks = 5 # of every strategy that does not say it
strategy_names = [init_strat, opt_strat] # sections below
[init_strat]
generator = SobolGenerator
[opt_strat]
min_asks = ${other:trials} # number of model-based trials
[other]
trials = 20
"""


def test_comments_defaults_and_references_are_read_as_by_aepsych(server: AEPsychServer) -> None:
    assert server.handle({"type": "setup", "message": {"config_str": COMMENTED}}) == {"strat_id": 0}
    (study,) = server.studies
    assert study.domain.columns == ("par1", "par2")
    assert study.goal.threshold == 0.75
    assert server._session.experiment.n_asks == 25
    answer = server.handle({"type": "get_config", "message": {}})
    assert answer["opt_strat"]["min_asks"] == "20"
    sections = {
        "common": {"parnames": ["x"], "outcome_types": ["continuous"], "strategy_names": ["s"]},
        "x": {"lower_bound": 0, "upper_bound": 2},
        "s": {"min_asks": 3},
    }
    assert server.handle({"type": "setup", "message": {"config_dict": sections}}) == {"strat_id": 1}
    assert server.studies[1].domain.columns == ("x",)
    missing = COMMENTED.replace("${other:trials}", "${other:asks}")
    answer = server.handle({"type": "setup", "message": {"config_str": missing}})
    assert "must be a text in INI format" in answer["server_error"]


def test_clients_that_send_a_version_are_answered_as_before_08(server: AEPsychServer) -> None:
    """AEPsych's clients in Unity and MATLAB read a number where newer ones read an object."""
    setup = {"type": "setup", "version": "0.01", "message": {"config_str": COMMENTED}}
    assert server.handle(setup | {"metadata": {}}) == 0
    assert server.handle(setup) == 1
    resume = {"type": "resume", "version": "0.01", "message": {"strat_id": "0"}}  # as in MATLAB
    assert server.handle(resume) == 0
    config = server.handle({"type": "ask", "version": "0.01", "message": ""})["config"]
    tell = {"type": "tell", "message": {"config": config, "outcome": 1}, "extra_info": {"rt": 0.4}}
    assert server.handle(tell)["trials_recorded"] == 1
    study = server.studies[0]
    assert '"rt": 0.4' in study.events.query("kind == 'noted'")["details"].iloc[0]["text"]
    answer = server.handle({"type": "query", "message": {"query_type": "max", "x": {}, "y": 0.0}})
    assert isinstance(answer["y"], float)
    assert server.handle({"type": "resume", "message": {"strat_id": 1}}) == {"strat_id": 1}
    assert "server_error" in server.handle(resume | {"message": {"strat_id": "2"}})


def test_numbers_with_fewer_digits_are_those_that_were_asked_for(server: AEPsychServer) -> None:
    """Unity keeps 32 bits of a number, MATLAB prints 15 digits of it."""
    text = COMMENTED.replace("ub = [1, 1]", "ub = [1, 0.123456789]")
    server.handle({"type": "setup", "message": {"config_str": text}})
    (study,) = server.studies
    for name in ("float32", "text"):
        config = server.handle({"type": "ask", "message": {"num_points": 3}})["config"]
        for key, values in config.items():
            config[key] = [
                float(np.float32(each)) if name == "float32" else float(f"{each:.15g}")
                for each in values
            ]
        message = {"config": config, "outcome": [1, 0, 1]}
        assert server.handle({"type": "tell", "message": message})["trials_recorded"] == 3
        assert not study.pending
    edge = {"par1": [1.0], "par2": [float(np.float32(0.123456789))]}  # beyond the end, by 3e-9
    assert edge["par2"][0] > 0.123456789
    answer = server.handle({"type": "tell", "message": {"config": edge, "outcome": 1}})
    assert answer["trials_recorded"] == 1


def test_constraints_are_values_or_ranges_and_count_fixed_parameters(server: AEPsychServer) -> None:
    text = HEARING.replace("[loudness, ear, tone]", "[tone, loudness, ear]")
    server.handle({"type": "setup", "message": {"config_str": text}})
    config = {"loudness": [0.1, 0.9], "ear": ["left", "left"]}
    server.handle({"type": "tell", "message": {"config": config, "outcome": [0, 1]}})

    def loudest(constraints: dict[str, Any]) -> dict[str, Any]:
        message = {"query_type": "max", "constraints": constraints}
        return server.handle({"type": "query", "message": message})

    assert loudest({"1": 0.3})["x"]["loudness"] == [0.3]
    assert loudest({"loudness": [0.2]})["x"]["loudness"] == [0.2]
    assert 0.4 <= loudest({"1": [0.4, 0.5], "2": "left"})["x"]["loudness"][0] <= 0.5
    assert loudest({"tone": 440})["x"]["tone"] == [440.0]
    assert "no point of the domain" in loudest({"loudness": [2, 3]})["server_error"]
    assert "unknown parameter 'pitch'" in loudest({"pitch": 1})["server_error"]


def test_the_number_of_trials_that_are_told_can_end_an_experiment(server: AEPsychServer) -> None:
    text = COMMENTED.replace("min_asks = 5 #", "#").replace("min_asks = $", "min_total_tells = $")
    text = text.replace("trials = 20", "trials = 3")
    server.handle({"type": "setup", "message": {"config_str": text}})
    finished = []
    for trial in range(4):
        answer = server.handle({"type": "ask", "message": ""})
        finished.append(answer["is_finished"])
        if trial != 1:  # no answer in this one
            server.handle({"type": "tell", "message": {"config": answer["config"], "outcome": 1}})
    assert finished == [False, False, False, True]


def test_the_command_serves_stores_and_continues(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    text = HEARING + "[metadata]\nexperiment_name = hearing\nparticipant_id = p7\n"
    words = [sys.executable, "-m", "truvar", "serve-aepsych", "--store", "hearing.db"]
    for round_ in range(2):
        process = subprocess.Popen(
            [*words, "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        port = int(process.stdout.readline().split(" (")[0].rpartition(":")[2])
        client = Client(port)
        assert client.send("setup", {"config_str": text}) == {"strat_id": 0}
        config = client.send("ask")["config"]
        client.send("tell", {"config": config, "outcome": 1})
        assert client.send("exit") == {"config": "Terminate", "is_finished": True}
        assert process.wait(60) == 0
        study = tv.load(f"sqlite:///{tmp_path / 'hearing.db'}", "hearing-p7")
        assert study.steps == round_ + 1
