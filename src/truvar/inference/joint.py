"""The joint statements that follow from their inputs, by the kind of goal."""

from __future__ import annotations

from functools import cached_property

from truvar.inference._goals import inference_of
from truvar.inference.inputs import StatementInputs
from truvar.inference.statements import JointStatements


class StatementSource(StatementInputs):
    """Inputs, with the statements that follow from them."""

    @cached_property
    def joint(self) -> JointStatements:
        """The statements about all points jointly; computed when they are first asked for."""
        return joint_statements(self)


def joint_statements(inputs: StatementInputs) -> JointStatements:
    """Return what can be stated about all points jointly."""
    return inference_of(inputs.goal).statements(inputs)
