"""Whatever fits the OpenAPI schema, and much that does not, is answered without a mistake of the server."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from tests.helpers.server import CURVE

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")

EACH = 8  # examples for each operation, that fit the schema and that do not


@pytest.fixture(scope="module")
def operations(served):
    api, _ = served
    api.create("fuzzed", CURVE)
    (s,) = api.post("/studies/fuzzed/ask", {})["suggestions"]
    api.post("/studies/fuzzed/tell", {"id": s["id"], "y": 1.0})
    schema = schemathesis.openapi.from_url(f"{api.url}/api/openapi.json")
    found = [operation.ok() for operation in schema.get_all_operations()]
    # A stream has no end to wait for, and its own test reads it; a report takes a second to draw.
    return [operation for operation in found if not operation.path.endswith(("/live", "/report"))]


def statuses(operation, mode) -> set[int]:
    """What comes back for requests that schemathesis makes up."""
    seen: list[int] = []

    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode]))
    @settings(
        max_examples=EACH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    def holds(case):
        if "name" in (case.path_parameters or {}) and len(seen) % 2:
            case.path_parameters["name"] = "fuzzed"  # random names are never there
        answer = case.call()
        seen.append(answer.status_code)
        assert answer.status_code < 500, (case.method, case.path, case.body, answer.text)
        if answer.status_code >= 400:
            assert answer.json()["error"]

    try:
        holds()
    except Unsatisfiable:
        assert mode == "NEGATIVE"  # nothing can be wrong where nothing is sent
    return set(seen)


@pytest.mark.parametrize(("mode", "expected"), [("POSITIVE", 200), ("NEGATIVE", 422)])
def test_no_request_is_answered_by_a_server_error(operations, mode, expected):
    assert len(operations) > 15
    assert expected in set().union(*(statuses(operation, mode) for operation in operations))
