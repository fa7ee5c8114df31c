"""scikit-learn's own tests of its searches, with `TruVaRSearchCV` in place of `GridSearchCV`.

The module `sklearn.model_selection.tests.test_search` of the installed scikit-learn is loaded with
the class substituted. Tests that cannot hold for another class are listed one by one, with the
reason.
"""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest
import sklearn.model_selection

from truvar.integrations.sklearn import TruVaRSearchCV

SUITE = Path(sklearn.model_selection.__file__).parent / "tests" / "test_search.py"

if not SUITE.exists():
    pytest.skip("scikit-learn is installed without its tests", allow_module_level=True)

NOT_OURS = {
    "test_custom_run_search": "it compares all fitted attributes with another class's; ours has two more",
}


def _load():
    spec = importlib.util.spec_from_file_location("test_search_of_scikit_learn", SUITE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its classes are pickled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn.model_selection, "GridSearchCV", TruVaRSearchCV)
        spec.loader.exec_module(module)
    return module


_module = _load()


@pytest.fixture(autouse=True)
def cheap_fits(monkeypatch):
    """Let all fits count as cheap: two searches that are compared must not differ by the clock
    of a busy machine."""
    monkeypatch.setattr("truvar.integrations._cross_validation.CHEAP_SECONDS", float("inf"))


def _is_generic(name, value) -> bool:
    if not name.startswith("test_") or name in NOT_OURS:
        return False
    return re.search(r"(?<!Halving)GridSearchCV|SearchCV\b", inspect.getsource(value)) is not None


globals().update({name: value for name, value in vars(_module).items() if _is_generic(name, value)})


def test_the_tests_that_are_left_out_still_exist():
    assert all(hasattr(_module, name) for name in NOT_OURS)
    assert sum(name.startswith("test_") for name in globals()) > 60
