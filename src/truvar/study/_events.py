"""Events of a study: the settings that the first one holds, and the actions that later ones hold.

The keys of event details are part of the storage format and must not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from truvar._typing import Array
from truvar.acquisition import Policy
from truvar.algorithm.learner import ActiveLearner
from truvar.domain.action import Action
from truvar.domain.costs import CostLike, NoiseLevels
from truvar.domain.domain import Domain
from truvar.domain.goals import Goal
from truvar.domain.learned_cost import ExpectedCost
from truvar.domain.repeats import Repeats
from truvar.domain.vehicles import Vehicle
from truvar.engines import EngineLike
from truvar.exceptions import SerializationError
from truvar.models.hyperparameters import AnyModel
from truvar.models.priors import Prior, Quantity
from truvar.storage.serialization import deserialize, serialize
from truvar.study._quantities import several_learner

# fields of `Prior` since release 0.3.0, which are stored unless they have their defaults
ADDED_TO_PRIOR = ("exact_model", "likelihood")

# Number of observations that hyperparameters were fitted to, with the quantity if there are several.
FitKey = int | tuple[str, int]
_EXTENSION = re.compile(r"extension (\d+): (.*)", re.DOTALL)


class ModelKey(NamedTuple):
    """Key of fitted hyperparameters, as events hold it: "12", or "extension 1: 12 of yield".

    Attributes:
        n_extensions: Number of extensions of the domain before the fit.
        fit: The observations that it was made to.
    """

    n_extensions: int
    fit: FitKey

    @property
    def quantity(self) -> str | None:
        """The quantity, if there are several."""
        return None if isinstance(self.fit, int) else self.fit[0]

    @property
    def n_observations(self) -> int:
        """The number of observations."""
        return self.fit if isinstance(self.fit, int) else self.fit[1]

    @staticmethod
    def parse(text: str) -> ModelKey:
        """Return the key that an event holds."""
        found = _EXTENSION.fullmatch(text)
        n_extensions = 0 if found is None else int(found[1])
        count, _, name = (text if found is None else found[2]).partition(" of ")
        return ModelKey(n_extensions, (name, int(count)) if name else int(count))

    def __str__(self) -> str:
        text = str(self.n_observations)
        if self.quantity is not None:
            text += f" of {self.quantity}"
        return f"extension {self.n_extensions}: {text}" if self.n_extensions else text


def fits_after(models: Mapping[ModelKey, AnyModel], n_extensions: int) -> dict[Any, AnyModel]:
    """Return the fits that were made after so many extensions, as a learner has them."""
    return {key.fit: each for key, each in models.items() if key.n_extensions == n_extensions}


def with_fits(
    models: Mapping[ModelKey, AnyModel], n_extensions: int, fits: Mapping[Any, AnyModel]
) -> dict[ModelKey, AnyModel]:
    """Return the fits of a study, with those that a learner has after so many extensions."""
    others = {key: each for key, each in models.items() if key.n_extensions != n_extensions}
    return {**others, **{ModelKey(n_extensions, fit): each for fit, each in fits.items()}}


@dataclass(frozen=True)
class StudyConfig:
    """Everything that a study is created with.

    Attributes:
        domain: Where to look.
        goal: What to look for; its `monotone` is decided here, so that a stored study keeps it.
        policy: How the next measurement is chosen.
        prior: The model, known or to be learned.
        cost: Cost of a measurement; None: 1, or the cost of the noise level.
        start: Row of the first suggestion; None: the policy's own choice.
        seed: Seed of everything that is drawn.
        engine: Name or factory of the engine; None: chosen by the size of the domain.
        limits: Limits that the study is meant to end at, by name.
        vehicles: Vehicles or crews by name; none: a single crew.
        quantities: Model and cost of quantities, where a study has several.
        repeats: Whether places may be measured again, or how often; None: where it pays.
        quantity: Name of what is measured; None: it has none.
        unit: Its unit; None: it has none.
    """

    domain: Domain
    goal: Goal
    policy: Policy
    prior: Prior
    cost: CostLike | None
    start: int | None
    seed: int
    engine: EngineLike
    limits: Mapping[str, float] = field(default_factory=dict)
    vehicles: Mapping[str, Vehicle] = field(default_factory=dict)
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    repeats: Repeats = None
    quantity: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "goal", self.policy.confidence.resolve_goal(self.goal))

    def make_learner(self) -> ActiveLearner:
        """Return the learner before the first measurement."""
        if self.goal.parts:
            return several_learner(self)
        return ActiveLearner(
            self.domain,
            self.goal,
            self.policy,
            self.prior,
            self.cost,
            self.seed,
            self.engine,
            self.repeats,
        )

    def to_details(self) -> dict[str, Any]:
        """Return the details of a "created" event: all settings in one flat dictionary."""
        details = {
            part.name: getattr(self, part.name) for part in fields(self) if part.name != "prior"
        }
        for name in ("vehicles", "quantities"):
            if not details[name]:
                del details[name]
        for name in ("repeats", "quantity", "unit"):
            if details[name] is None:
                del details[name]
        for part in fields(Prior):
            details[part.name] = getattr(self.prior, part.name)
        for name in ADDED_TO_PRIOR:
            if details[name] == getattr(Prior, name):
                del details[name]
        return details

    @staticmethod
    def from_details(details: Mapping[str, Any]) -> StudyConfig:
        """Return the settings that a "created" event holds.

        Raises:
            SerializationError: If the start or the seed is not a whole number.
        """
        _check_whole(details, ("start", "seed"))
        prior = Prior(
            **{part.name: details[part.name] for part in fields(Prior) if part.name in details}
        )
        others = {
            part.name: details[part.name] for part in fields(StudyConfig) if part.name in details
        }
        return StudyConfig(**others | {"prior": prior})

    def round_trip(self) -> StudyConfig:
        """Return the settings after a serialization round trip, as an opened study has them.

        A Python function cannot be stored. A noise or mean function on a finite domain is replaced
        by its values there.

        Raises:
            SerializationError: If a setting cannot be stored.
        """
        details = self.to_details()
        if isinstance(details["noise"], NoiseLevels) and not self.domain.continuous:
            details["noise"] = _tabulated(details["noise"], self.domain)
        for name in ("noise", "mean"):
            function = details[name]
            if callable(function) and not self.domain.continuous:
                details[name] = np.asarray(
                    function(self.domain.values(self.domain.points)), dtype=float
                )
        if callable(details["cost"]):
            raise SerializationError(
                f"cost cannot be stored, got the function {details['cost']!r}; give what it returns "
                "as an array with a cost per point of the domain, Cost(...) with travel (Euclidean, "
                'GreatCircle, Network or TravelMatrix), or cost="learned" and tell the cost of each '
                "measurement; or leave out store=..."
            )
        return StudyConfig.from_details(
            {name: deserialize(serialize(part, name)) for name, part in details.items()}
        )


def action_to_details(config: StudyConfig, action: Action) -> dict[str, Any]:
    """Return the action as an event holds it."""
    tasks = config.prior.tasks
    task = None if tasks is None else tasks.names[action.task]
    coordinates = action.point[: len(config.domain.columns)]
    # Values that the user reads may have fewer digits than the coordinates of the model.
    encoded = {} if config.domain.is_plain else {"coordinates": coordinates.tolist()}
    details: dict[str, Any] = {
        "id": action.id,
        "point": config.domain.named(coordinates),
        **encoded,
        "site": action.site,
        "level": action.level,
        "task": task,
        "noise": action.noise,
        "cost": action.cost,
        "gain": None if np.isnan(action.gain) else action.gain,
        "noise_told": action.noise_given,
    }
    # Studies without vehicles and repeats are stored as earlier releases stored them.
    if action.vehicle is not None:
        details["who"] = action.vehicle
    if action.repeats is not None:
        details["repeats"] = action.repeats
    if action.exposure is not None:
        details["exposure"] = action.exposure
    if action.expected_cost is not None:
        details["expected_cost"] = asdict(action.expected_cost)
        details["cost_told"] = action.cost_given
    return details


def action_from_details(config: StudyConfig, details: Mapping[str, Any]) -> Action:
    """Return the action that an event holds.

    Raises:
        SerializationError: If an id, site, level or repeated measurement is not a whole number.
    """
    _check_whole(details, ("id", "site", "level", "repeats"))
    given = details["point"]
    coordinates = list(
        details.get("coordinates") or [given[name] for name in config.domain.columns]
    )
    task = 0
    if config.prior.tasks is not None:
        task = list(config.prior.tasks.names).index(details["task"])
        coordinates.append(task)
    expected = details.get("expected_cost")
    if expected is not None:
        expected = ExpectedCost(**expected)
    return Action(
        id=details["id"],
        point=np.array(coordinates, dtype=float),
        site=details["site"],
        level=details["level"],
        task=task,
        noise=details["noise"],
        cost=details["cost"],
        gain=float("nan") if details["gain"] is None else details["gain"],
        noise_given=details["noise_told"],
        vehicle=details.get("who"),
        repeats=details.get("repeats"),
        exposure=details.get("exposure"),
        expected_cost=expected,
        cost_given=details.get("cost_told", False),
    )


def _check_whole(details: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Check that details are whole numbers or None."""
    for name in names:
        number = details.get(name)
        if number is not None and not isinstance(number, Integral):
            raise SerializationError(
                f"{name} of an event must be a whole number, got {number!r}; export it again"
            )


def _tabulated(levels: NoiseLevels, domain: Domain) -> NoiseLevels:
    """Return noise levels with functions replaced by their values at the points of a domain."""
    variance = [_values(each, domain) if callable(each) else each for each in levels.variance]
    return NoiseLevels(variance, levels.cost)


def _values(function: Callable[[Any], Any], domain: Domain) -> Array:
    """Return the values of a function at the points of a domain, (n,)."""
    return np.asarray(function(domain.values(domain.points)), dtype=float)
