"""The joint statements that follow from their inputs, by the kind of goal."""

from __future__ import annotations

from functools import cached_property

from truvar.domain.goals import Bands, LevelSet
from truvar.inference._level_set import level_set_statements
from truvar.inference._optimum import optimum_statements
from truvar.inference.bands import band_statements
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
    if isinstance(inputs.goal, Bands):
        return band_statements(inputs, inputs.goal)
    if isinstance(inputs.goal, LevelSet):
        return level_set_statements(inputs, inputs.goal)
    return optimum_statements(inputs)
