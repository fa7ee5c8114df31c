"""Requests that match the OpenAPI schema, and many that do not, are answered without a server
error."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from tests.helpers.server import CURVE

from truvar.storage.base import MAX_NAME_LENGTH

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")

positive_data_acceptance = pytest.importorskip(
    "schemathesis.specs.openapi.checks"
).positive_data_acceptance

# Raised where an invalid request cannot be made of a schema, by versions that say so.
UnsupportedSchema = getattr(schemathesis.errors, "UnsupportedSchema", Unsatisfiable)

EXAMPLES = 3  # for each operation, both valid and invalid ones
MORE_EXAMPLES = 20  # of the slow test


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


def statuses(operation, mode, examples) -> set[int]:
    """Return the status codes of the answers to requests that schemathesis generates."""
    seen: list[int] = []

    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode]))
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    def holds(case):
        name = (case.path_parameters or {}).get("name")
        # There is no study of a random name; a name that is too long may be what makes the request
        # invalid.
        if name is not None and len(str(name)) <= MAX_NAME_LENGTH and len(seen) % 2:
            case.path_parameters["name"] = "fuzzed"
        answer = case.call()
        seen.append(answer.status_code)
        # All checks but one: whether a point is in the domain, say, is no matter of the schema.
        case.validate_response(answer, excluded_checks=[positive_data_acceptance])
        assert answer.status_code < 500, (case.method, case.path, case.body, answer.text)
        if answer.status_code >= 400:
            assert answer.json()["error"]

    try:
        holds()
    except (Unsatisfiable, UnsupportedSchema):
        # A request without parameters cannot be invalid, and some mutations cannot be generated.
        assert mode == "NEGATIVE"
    return set(seen)


MODES = pytest.mark.parametrize(("mode", "expected"), [("POSITIVE", 200), ("NEGATIVE", 422)])


@MODES
def test_no_request_is_answered_by_a_server_error(operations, mode, expected):
    assert len(operations) > 15
    assert expected in set().union(
        *(statuses(operation, mode, EXAMPLES) for operation in operations)
    )


@pytest.mark.slow
@MODES
def test_none_of_many_requests_is_answered_by_a_server_error(operations, mode, expected):
    assert expected in set().union(
        *(statuses(operation, mode, MORE_EXAMPLES) for operation in operations)
    )
