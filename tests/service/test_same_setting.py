"""`same` in the body of a request."""

from tests.helpers.server import GRID


def test_suggestions_share_a_column(served):
    api, _ = served
    api.create("plate", GRID)
    suggestions = api.post("/studies/plate/ask", {"n": 4, "same": ["x"]})["suggestions"]
    assert len({each["point"]["x"] for each in suggestions}) == 1
    answer = api.post("/studies/plate/ask", {"n": 4, "same": ["z"]}, 422)
    assert "same: unknown column 'z'" in str(answer)
    api.post("/studies/plate/ask", {"n": 4, "same": "x"}, 422)
    assert len(api.get("/studies/plate/status")["pending"]) == 4
