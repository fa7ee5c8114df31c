"""Schema of problem files: one set of pydantic models for TOML files, Python dicts and HTTP bodies.

`ProblemSpec` is a whole problem, each of its sections a model. Rules between keys are
checked here too; what needs the data (columns of a table, options of a policy class) is checked
when the study is built (`truvar.problem.build`). This module imports no numerical library, so that
`truvar schema` is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field as DataclassField
from dataclasses import fields as dataclass_fields
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from truvar.acquisition.registry import POLICY_NAMES, policy_classes
from truvar.exceptions import InvalidProblemError
from truvar.problem.messages import (
    MAX_VALUE_LENGTH,
    NUMBERS,
    TABLE,
    TEXT,
    VALUES,
    expects,
    problem_message,
    rule_error,
    unknown_name_error,
)
from truvar.problem.parameters import Names, ParameterSpec

PARTS = 20  # steps of a mixture whose problem does not say how many
REPRESENTERS = 2500  # points that stand for a box whose problem does not say how many
_NOISE_KEYS = ("sd", "variance", "column", "levels")  # of [noise], one of which may be given
# Keys of [cost] for travel, in the order in which the costs are added.
_TRAVEL_KEYS = ("travel", "euclidean", "great_circle", "network", "matrix")
# Keys of [goal], of which exactly one is given.
_GOAL_KEYS = (
    "level_set",
    "level_set_below",
    "between",
    "fraction_of_max",
    "fraction_of_min",
    "within",
    "within_of_min",
    "maximize",
    "minimize",
    "map",
    "all_of",
)
# Keys of [model] for a model that is learned from the measurements.
_ENSEMBLE_KEYS = ("transform", "marginalise", "initial")

# -- values
# --------------------------------------------------------------------------------------------------

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NonNegative = Annotated[Number, Field(ge=0)]
Positive = Annotated[Number, Field(gt=0)]
F1 = Annotated[Number, Field(gt=0, le=1)]
Probability = Annotated[Number, Field(gt=0, lt=1)]
Share = Annotated[Number, Field(ge=0, lt=1)]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=1)]
NonNegativeCount = Annotated[int, Field(strict=True, ge=0)]
Text = Annotated[str, Field(strict=True)]

_NumberAxis = Annotated[
    tuple[Number, Number, Count],
    expects("[low, high, number of points] such as [0, 1, 50]", "give three numbers"),
]
_NumberInterval = Annotated[
    tuple[Number, Number], expects("[low, high] such as [0, 1]", "give two numbers")
]
Rates = Annotated[dict[str, NonNegative], expects("rates by column such as {x = 0.25}", parts=True)]
StartPlace = Annotated[
    Text | dict[str, Number | Flag | Text],
    expects("a point such as {x = 0.5} or the name of a place", "give one of them"),
]
LengthScales = Annotated[
    Positive | list[Positive], expects("a number > 0 or a list of them, one per column")
]
Mean = Annotated[Number | Text, expects("a number or the name of a column")]
Pair = Annotated[tuple[Number, Number], expects("[low, high] such as [5, 7]", "give two numbers")]
Thresholds = Annotated[
    Number | Annotated[list[Number], Field(min_length=1)],
    expects("a number or an ascending list of numbers"),
]
Start = Annotated[
    Literal["random"] | NonNegativeCount | dict[str, Number | Flag | Text],
    expects('"random", the index of a point or a point such as {x = 0.5}'),
]
_RepeatsKey = Annotated[
    Flag | Count, expects("true, false or a number of measurements >= 1", "give one of them")
]
PerTask = Annotated[list[Number], expects("a list of numbers, one per task")]
NoisePerTask = Annotated[
    list[Number] | list[list[Number]],
    expects(
        "a list of numbers, one per task, or with noise levels a list per task with one number per "
        "level"
    ),
]


# keys of the whole problem, which are in a section if they are written below its name
_TOP_KEYS = ("seed", "repeats", "quantity", "unit")


def _kind_of_side(value: Any) -> str:
    """Return which kind of column of a box or grid a value describes."""
    if isinstance(value, (Mapping, ParameterSpec)):
        return TABLE
    if (
        isinstance(value, (list, tuple))
        and value
        and all(isinstance(part, (str, bool)) for part in value)
    ):
        return VALUES
    return NUMBERS


Axis = Annotated[
    Annotated[_NumberAxis, Tag(NUMBERS)]
    | Annotated[Names, Tag(VALUES)]
    | Annotated[ParameterSpec, Tag(TABLE)],
    Discriminator(_kind_of_side),
]
Interval = Annotated[
    Annotated[_NumberInterval, Tag(NUMBERS)]
    | Annotated[Names, Tag(VALUES)]
    | Annotated[ParameterSpec, Tag(TABLE)],
    Discriminator(_kind_of_side),
]


class StrictModel(BaseModel):
    """Base class of problem sections and request bodies: immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        if cls.model_config.get("extra") == "forbid":
            for key in data:
                if key in _TOP_KEYS and key not in cls.model_fields:
                    raise rule_error(
                        f"has no key {key!r}, which belongs to the whole problem; write it above "
                        "the first section"
                    )
                if key not in cls.model_fields:
                    raise unknown_name_error("key", str(key), cls.model_fields)
        return dict(data)

    def given(self, *keys: str) -> list[str]:
        """Return those of the keys that were given a value."""
        return [
            key for key in keys if key in self.model_fields_set and getattr(self, key) is not None
        ]


def _one_required(*keys: str) -> ConfigDict:
    """Return the configuration of a section whose JSON Schema requires exactly one of the keys."""
    return ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in keys]})


def _check_one_given(spec: StrictModel, *keys: str) -> None:
    """Check that exactly one of several keys is given."""
    given = spec.given(*keys)
    if len(given) == 1:
        return
    found = " and ".join(given) or "none of them"
    remedy = "leave out the others" if given else "give one"
    raise rule_error(f"needs exactly one of {', '.join(keys)}, got {found}; {remedy}")


def text_or_table(value: Any) -> str:
    """Return the tag of a union between text and a table of keys."""
    return TABLE if isinstance(value, (Mapping, BaseModel)) else TEXT


class DirectionsSpec(StrictModel):
    """Rates that differ by direction."""

    increasing: NonNegative = Field(description="Rate where the column increases.")
    decreasing: NonNegative = Field(description="Rate where it decreases.")


_TravelRate = Annotated[
    Annotated[NonNegative, Tag(TEXT)] | Annotated[DirectionsSpec, Tag(TABLE)],
    Discriminator(text_or_table),
]
TravelRates = Annotated[
    dict[str, _TravelRate], expects("rates by column such as {x = 0.25}", parts=True)
]


# -- sections
# --------------------------------------------------------------------------------------------------


class PolygonSpec(StrictModel):
    """The inside of a polygon, given by its vertices or by the file of a map."""

    polygon: Annotated[
        list[tuple[Number, Number]] | None,
        Field(min_length=3, description="Its vertices [x, y]."),
    ] = None
    area: Text | None = Field(
        default=None,
        description="Path of a GeoJSON file or a .plan of QGroundControl with polygons in degrees.",
        examples=["lake.geojson"],
    )
    columns: Annotated[
        tuple[Text, Text] | None,
        Field(
            description="The two columns; the first two by default, or those of longitude and "
            "latitude if there is an area."
        ),
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.polygon is None) == (self.area is None):
            given = "both" if self.area is not None else "neither"
            raise rule_error(f"needs either polygon or area, got {given}; give one of them")
        return self


ConstraintEntry = Annotated[
    Annotated[Text, Tag(TEXT)] | Annotated[PolygonSpec, Tag(TABLE)], Discriminator(text_or_table)
]


class DomainSpec(StrictModel):
    """The candidates: exactly one of a table, a grid, a box and a mixture."""

    model_config = _one_required("table", "grid", "box", "mixture")

    table: Text | None = Field(
        default=None,
        description="Path of a CSV file or Excel workbook, relative to the problem file.",
        examples=["lake.csv"],
    )
    columns: Annotated[list[Text], expects("a list of column names such as ['x', 'y']")] | None = (
        Field(
            default=None,
            description="Columns of the table that are coordinates; all of them by default.",
            examples=[["distance_m", "depth_m"]],
        )
    )
    label: Text | None = Field(
        default=None,
        description="Column of the table whose values name the points in suggestions and reports.",
        examples=["station"],
    )
    missing: Literal["refuse", "drop"] = Field(
        default="refuse",
        description="Rows of the table that lack a coordinate: refuse the table, or leave them out.",
    )
    duplicates: Literal["refuse", "drop"] = Field(
        default="refuse",
        description="Rows of the table that repeat the point of another: refuse the table, or "
        "leave them out.",
    )
    context: (
        Annotated[list[Text], expects("a list of column names such as ['temperature']")] | None
    ) = Field(
        default=None,
        description="Columns that are given, not chosen, when a measurement is suggested.",
        examples=[["temperature"]],
    )
    grid: (
        Annotated[
            dict[str, Axis], expects("a table of columns such as {x = [0, 1, 50]}", parts=True)
        ]
        | None
    ) = Field(
        default=None,
        description="Every combination of values: by column [low, high, number of points], a list "
        "of texts, or a "
        "parameter such as {log = [1e-6, 1e-1], count = 6} or {integer = [1, 12]}.",
        examples=[{"x": [0, 1478, 50], "y": [-18, 0, 50]}],
    )
    box: (
        Annotated[
            dict[str, Interval], expects("a table of columns such as {x = [0, 1]}", parts=True)
        ]
        | None
    ) = Field(
        default=None,
        description="Any point in between: by column [low, high], a list of texts, which are "
        "categories, or a "
        "parameter such as {log = [1e-6, 1e-1]}, {integer = [1, 12]}, {ordinal = [16, 32, 64]} or "
        "{boolean = true}.",
        examples=[
            {"x": [0, 1], "y": [0, 1]},
            {"lr": {"log": [1e-6, 1e-1]}, "solver": ["lbfgs", "saga"]},
        ],
    )
    log: (
        Annotated[Literal["auto"] | list[Text], expects('"auto" or a list of column names')] | None
    ) = Field(
        default=None,
        description='Columns of the table that have a logarithmic scale; "auto" for those spaced '
        "by ratios.",
        examples=[["C", "gamma"]],
    )
    mixture: (
        Annotated[
            dict[str, Interval],
            expects("a table of components such as {a = [0, 1], b = [0, 1]}", parts=True),
        ]
        | None
    ) = Field(
        default=None,
        description="Fractions that sum to one: [least, largest] by component.",
        examples=[{"water": [0.2, 1], "ethanol": [0, 1]}],
    )
    parts: Annotated[int, Field(strict=True, ge=2)] | None = Field(
        default=None,
        description=f"Number of steps of a mixture from 0 to 1 ({PARTS} by default).",
        examples=[20],
    )
    representers: Annotated[int, Field(strict=True, ge=2)] | None = Field(
        default=None,
        description=f"Number of points that stand for a box ({REPRESENTERS} by default).",
        examples=[2500],
    )

    constraints: list[ConstraintEntry] | None = Field(
        default=None,
        description="What every point must satisfy: linear inequalities between columns, "
        "comparisons with values of a "
        "column, names of table columns of truth values, or polygons.",
        examples=[
            [
                "x + y <= 1",
                "solver != 'saga'",
                {"polygon": [[0, 0], [1, 0], [0.5, 1]], "columns": ["x", "y"]},
            ]
        ],
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        kinds = ("table", "grid", "box", "mixture")
        _check_one_given(self, *kinds)
        (kind,) = self.given(*kinds)
        if kind == "mixture" and self.constraints:
            raise rule_error(
                "constraints belong to a table, grid or box, got a mixture; give intervals of "
                "fractions"
            )
        owners = {
            "columns": "table",
            "log": "table",
            "label": "table",
            "missing": "table",
            "duplicates": "table",
            "representers": "box",
            "parts": "mixture",
        }
        for key, owner in owners.items():
            if self.given(key) and kind != owner:
                raise rule_error(f"{key} belongs to a {owner}, got a {kind}; leave out {key}")
        if self.given("context") and kind == "mixture":
            raise rule_error(
                "context belongs to a table, grid or box, got a mixture; leave out context"
            )
        reserved = {
            "box": ("representers", "seed", "constraints"),
            "grid": ("constraints",),
            "mixture": ("parts",),
        }
        for name in reserved.get(kind, ()):
            if name in getattr(self, kind):
                raise rule_error(
                    f"{kind} cannot have a column {name!r}, which is the name of an option; rename "
                    "it"
                )
        return self


OptimumOf = Annotated[
    Literal[True] | Text,
    expects("true or the name of a quantity", "write true or leave out the key"),
]
Requirements = Annotated[
    Text | list[Text],
    expects('comparisons such as "impurity <= 1"', "write them as text, or a list of texts"),
]


class GoalSpec(StrictModel):
    """The goal: exactly one of `GOAL_KEYS`, and `monotone`."""

    model_config = _one_required(*_GOAL_KEYS)

    level_set: Thresholds | None = Field(
        default=None,
        description="Threshold: find the points whose value is above it; or several, for the bands "
        "between them.",
        examples=[7.0, [5.0, 7.0, 10.0]],
    )
    level_set_below: Number | None = Field(
        default=None,
        description="Threshold: find the points whose value is below it.",
        examples=[4.0],
    )
    between: Pair | None = Field(
        default=None,
        description="Find the points whose value lies between two thresholds.",
        examples=[[5.0, 7.0]],
    )
    fraction_of_max: Number | None = Field(
        default=None,
        description="Threshold relative to the unknown maximum, between 0 and 1.",
        examples=[0.8],
    )
    fraction_of_min: Positive | None = Field(
        default=None,
        description="Threshold relative to the unknown minimum: above 1 if that is positive, below "
        "1 if negative.",
        examples=[1.2],
    )
    within: Positive | None = Field(
        default=None,
        description="Margin: find the points whose value is within it of the highest.",
        examples=[0.02],
    )
    within_of_min: Positive | None = Field(
        default=None,
        description="Margin: find the points whose value is within it of the lowest.",
        examples=[0.02],
    )
    maximize: OptimumOf | None = Field(
        default=None,
        description="Find the point with the largest value: true, or the name of the quantity.",
        examples=[True, "yield"],
    )
    minimize: OptimumOf | None = Field(
        default=None,
        description="Find the point with the smallest value: true, or the name of the quantity.",
        examples=[True, "impurity"],
    )
    subject_to: Requirements | None = Field(
        default=None,
        description="With maximize or minimize: what other quantities must satisfy.",
        examples=["impurity <= 1", ["impurity <= 1", "5 <= pH <= 7"]],
    )
    all_of: Requirements | None = Field(
        default=None,
        description="Find the points where several quantities satisfy all of this.",
        examples=[["yield >= 80", "impurity <= 1"]],
    )
    map: Positive | None = Field(
        default=None,
        description="Accuracy: know the value everywhere, within this distance.",
        examples=[0.3],
    )
    weight: str | None = Field(
        default=None,
        description="With map: column of the table with a number >= 0 for how much each point "
        "matters.",
        examples=["area_m2"],
    )
    monotone: Flag | None = Field(
        default=None,
        description="Whether points that are classified stay so; false allows them to become "
        "undecided. Default: as "
        "the policy has it, which is true for truvar and gchk and with a beta that is proven, "
        "false for the others.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_one_given(self, *_GOAL_KEYS)
        if self.weight is not None and self.map is None:
            raise rule_error("weight needs map, got none; leave out weight, or give map")
        if self.subject_to is not None and not isinstance(self.maximize or self.minimize, str):
            raise rule_error(
                'subject_to needs the quantity to optimise, got none; write maximize = "yield" or '
                'minimize = "yield"'
            )
        return self


class ModelSpec(StrictModel):
    """The Gaussian-process prior. Without lengthscales it is learned from the measurements."""

    kernel: Literal["rbf", "matern12", "matern32", "matern52"] = Field(
        default="matern52", description="Family of the kernel.", examples=["matern52"]
    )
    lengthscales: LengthScales | None = Field(
        default=None,
        description="Length scales, one or one per column, in the units of the columns. Leave out "
        "to learn the model.",
        examples=[[244.7, 2.72]],
    )
    variance: Positive | None = Field(
        default=None,
        description="Prior variance k(x, x); needs lengthscales beside it (1 by default).",
        examples=[4.5],
    )
    mean: Mean | None = Field(
        default=None,
        description="Prior mean: a number, or the column of the table that has it. Leave out to "
        "learn a constant.",
        examples=[2.4, "bathymetry"],
    )
    refit_every: Count | None = Field(
        default=None,
        description="Number of measurements between two fits of a learned model.",
        examples=[3],
    )
    learn_noise: Flag = Field(
        default=False,
        description="Learn the noise variance too, as is always done without [noise].",
    )
    transform: Literal["auto", "log", "none"] = Field(
        default="auto",
        description='How a learned model transforms the values: "auto" for a power if they call '
        'for one, "log" for '
        'logarithms (mean and noise are then those of the logarithms), "none".',
        examples=["log"],
    )
    marginalise: Flag = Field(
        default=True,
        description="Average a learned model over the plausible hyperparameters; false uses the "
        "most probable ones.",
    )
    initial: Annotated[int, Field(strict=True, ge=2)] | None = Field(
        default=None,
        description="Number of measurements spread over the domain before a learned model is used.",
        examples=[8],
    )
    exact: Flag = Field(
        default=False,
        description="Claims take the given kernel as the truth; false compares it with learned "
        "ones.",
    )
    training: Text | None = Field(
        default=None,
        description="Path of a CSV file to learn the model from before the first measurement.",
        examples=["last_year.csv"],
    )
    value: Text | None = Field(
        default=None,
        description="Column of measured values in the training file.",
        examples=["algae"],
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.value is not None and self.training is None:
            raise rule_error(
                f"value = {self.value!r} is a column of the training file, got no training; give "
                "training"
            )
        for key in self.given(*_ENSEMBLE_KEYS):
            if self.training is not None:
                raise rule_error(
                    f"{key} is for a model learned from the measurements, got training too; leave "
                    "out one"
                )
        if self.exact and self.lengthscales is None and self.training is None:
            raise rule_error("exact is for a given kernel, got no lengthscales; give them")
        if self.lengthscales is None:
            if self.variance is not None:
                raise rule_error(
                    f"variance needs lengthscales beside it, got variance = {self.variance:g} "
                    "alone; give both, or "
                    "neither to learn them"
                )
            return self
        for key in self.given("refit_every", "training", *_ENSEMBLE_KEYS):
            raise rule_error(f"{key} is for a learned model, got lengthscales too; leave out one")
        return self


class LevelSpec(StrictModel):
    """One noise level: its variance and what it adds to the cost."""

    variance: Annotated[NonNegative | Text, expects("a number >= 0 or the name of a column")] = (
        Field(
            description="Noise variance of a measurement at this level, or the column of the table "
            "that has it."
        )
    )
    cost: NonNegative = Field(description="Cost added to that of the point.")


class NoiseSpec(StrictModel):
    """The measurement noise: one of sd, variance, column and levels. Without it, it is learned."""

    sd: Annotated[NonNegative | Text, expects("a number >= 0 or the name of a column")] | None = (
        Field(
            default=None,
            description="Standard deviation of one measurement, its ±, or the column of the table "
            "that has it.",
            examples=[0.37],
        )
    )
    variance: NonNegative | None = Field(
        default=None, description="Noise variance of one measurement.", examples=[0.136]
    )
    column: Text | None = Field(
        default=None,
        description="Column of the table with the noise variance of each point.",
        examples=["variance"],
    )
    levels: (
        Annotated[
            list[LevelSpec],
            Field(min_length=1),
            expects(
                "a list such as [{variance = 1e-3, cost = 10}]",
                "give every level its variance and cost",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="Precisions to choose from at every point.",
        examples=[[{"variance": 1e-6, "cost": 15}, {"variance": 0.05, "cost": 2}]],
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.known:
            _check_one_given(self, *_NOISE_KEYS)
        return self

    @property
    def known(self) -> bool:
        """Whether the noise is given, not learned."""
        return bool(self.given(*_NOISE_KEYS))


class OutcomeSpec(StrictModel):
    """The kind of value that a measurement gives, if that is no number with normal noise."""

    kind: Literal["binary", "count"] = Field(
        description='"binary" for yes (1) or no (0), "count" for a number of events.',
        examples=["binary"],
    )
    guess: Share | None = Field(
        default=None,
        description="Probability of a yes where nothing is detected; binary only.",
        examples=[0.5],
    )
    lapse: Share | None = Field(
        default=None,
        description="Probability of a no where everything is detected; binary only.",
        examples=[0.02],
    )
    exposure: Positive | None = Field(
        default=None,
        description="Exposure of a measurement that is told without one; count only.",
        examples=[2.0],
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        others = {"binary": ("exposure",), "count": ("guess", "lapse")}
        for key in self.given(*others[self.kind]):
            raise rule_error(f"{key} is not for kind = {self.kind!r}; leave it out")
        return self


Outcome = Annotated[
    Annotated[
        Literal["binary", "count"],
        expects('"binary", "count" or a table such as {kind = "binary", guess = 0.5}'),
        Tag(TEXT),
    ]
    | Annotated[OutcomeSpec, Tag(TABLE)],
    Discriminator(text_or_table),
]


class GreatCircleSpec(StrictModel):
    """Ways along great circles."""

    longitude: Text = Field(description="Column of the longitudes, in degrees.")
    latitude: Text = Field(description="Column of the latitudes, in degrees.")
    rate: NonNegative = Field(default=1.0, description="Cost of a kilometre.")


class NetworkSpec(StrictModel):
    """Ways along the edges of a network."""

    table: Text = Field(description="Path of a CSV file with the columns from, to and cost.")
    places: Text | None = Field(
        default=None, description="Column of the domain's table with the place of each point."
    )
    rate: NonNegative = Field(default=1.0, description="Factor of the costs.")
    directed: Flag = Field(
        default=False, description="Whether an edge leads in one direction only."
    )


class MatrixSpec(StrictModel):
    """Ways with costs given as a matrix."""

    table: Text = Field(
        description="Path of a CSV file: the names of the places, then a column per place."
    )
    places: Text | None = Field(
        default=None, description="Column of the domain's table with the place of each point."
    )
    rate: NonNegative = Field(default=1.0, description="Factor of the costs.")


class VehicleSpec(StrictModel):
    """A vehicle or crew."""

    start: StartPlace | None = Field(
        default=None,
        description="Position before its first measurement; that of [cost] by default.",
    )
    speed: Positive = Field(default=1.0, description="Travel costs are divided by it.")
    budget: Positive | None = Field(default=None, description="Total cost of its measurements.")


class QuantitySpec(StrictModel):
    """One of several quantities."""

    noise: NonNegative | None = Field(
        default=None, description="Noise variance of its measurements; that of [noise] by default."
    )
    cost: NonNegative | None = Field(
        default=None,
        description="Cost of measuring it, in addition to that of the place. If one quantity has "
        "a cost, each may be measured alone.",
    )
    mean: Number | None = Field(
        default=None, description="Prior mean; that of [model] by default, else learned."
    )
    transform: Literal["auto", "log", "none"] | None = Field(
        default=None, description="As the key of [model]."
    )


class CostSpec(StrictModel):
    """The cost of a measurement: base or column, plus travel, set-up and magnitude."""

    base: Number | None = Field(
        default=None,
        description="Cost of every measurement; 0 by default if [cost] has other keys, 1 without "
        "[cost].",
        examples=[4.0],
    )
    column: Text | None = Field(
        default=None,
        description="Column of the table with the cost of each point.",
        examples=["duration_s"],
    )
    learned: Flag = Field(
        default=False,
        description="Whether the cost is only known after a measurement, told with the value, and "
        "learned; instead of base or column.",
        examples=[True],
    )
    prior: Annotated[Positive | Text, expects("a number > 0 or the name of a column")] | None = (
        Field(
            default=None,
            description="With learned: cost expected of a measurement before any is known, or the "
            "column of planned costs.",
            examples=[20.0],
        )
    )
    factor: Positive | None = Field(
        default=None,
        description="With learned: factor above 1 within which costs lie around prior; 5 by "
        "default.",
        examples=[5.0],
    )
    travel: TravelRates | None = Field(
        default=None,
        description="Rate by column, times the distance from the point measured last; it may "
        "differ by direction.",
        examples=[{"distance_m": 0.25}, {"depth_m": {"increasing": 0.5, "decreasing": 0.1}}],
    )
    euclidean: TravelRates | None = Field(
        default=None,
        description="Rate by column for straight lines: the root of the sum of (rate x "
        "difference)^2.",
        examples=[{"east_m": 0.25, "north_m": 0.25}],
    )
    great_circle: GreatCircleSpec | None = Field(
        default=None,
        description="Ways along great circles: columns of longitude and latitude, and the cost of "
        "a kilometre.",
        examples=[{"longitude": "lon", "latitude": "lat", "rate": 0.1}],
    )
    network: NetworkSpec | None = Field(
        default=None,
        description="Shortest routes in a network: a table of edges, and the column with the place "
        "of each point.",
        examples=[{"table": "roads.csv", "places": "village"}],
    )
    matrix: MatrixSpec | None = Field(
        default=None,
        description="Costs of all legs as a table: one row and one column per place.",
        examples=[{"table": "minutes.csv", "places": "station"}],
    )
    setup: Rates | None = Field(
        default=None,
        description="Cost by column that is added where the column changes.",
        examples=[{"temperature": 30.0}],
    )
    start: StartPlace | None = Field(
        default=None,
        description="Position before the first measurement: a point, a place of the network or "
        "matrix, or the path of a map (.geojson, .plan) with a home position.",
        examples=[{"distance_m": 0.0, "depth_m": 0.0}, "harbour", "survey.plan"],
    )
    must_return: Flag = Field(
        default=False, description="Whether the return leg to the start must fit into the budget."
    )
    sampling: Literal["stops", "along"] = Field(
        default="stops",
        description="Whether values are measured at the suggested points only, or along the "
        "straight legs to them too.",
        examples=["along"],
    )
    returns: Flag = Field(
        default=False, description="Former name of `must_return`, which goes in 0.5.0."
    )
    magnitude: Rates | None = Field(
        default=None,
        description="Rate by column, times the size of the coordinate.",
        examples=[{"depth_m": 4.0}],
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.base is not None and self.column is not None:
            raise rule_error(
                f"needs either base or column, got base = {self.base:g} and column = "
                f"{self.column!r}; leave out one"
            )
        if self.learned and self.given("base", "column"):
            raise rule_error(
                f"needs either learned or {self.given('base', 'column')[0]}, got both; leave out "
                "one, or give prior instead"
            )
        if not self.learned and self.given("prior", "factor"):
            raise rule_error(
                f"has {self.given('prior', 'factor')[0]}, which needs learned = true; add it, or "
                "give base or column instead"
            )
        return self

    @property
    def known(self) -> bool:
        """Whether a cost is given."""
        return self.learned or bool(
            self.given(
                "base",
                "column",
                "magnitude",
                "setup",
                "start",
                "must_return",
                "returns",
                *_TRAVEL_KEYS,
            )
        )


class TasksSpec(StrictModel):
    """Correlated quantities that can be measured instead of the target, which is the first task."""

    names: (
        Annotated[
            list[Text], Field(min_length=2), expects("a list of at least two different names")
        ]
        | None
    ) = Field(
        default=None,
        description="Names of the tasks, the target first.",
        examples=[["algae", "turbidity"]],
    )
    covariance: (
        Annotated[list[list[Number]], expects("a matrix of numbers such as [[1, 0.5], [0.5, 1]]")]
        | None
    ) = Field(
        default=None,
        description="Covariance between the tasks, a row per task; it multiplies the kernel. "
        "Learned by default.",
        examples=[[[1.0, 0.5], [0.5, 1.0]]],
    )
    noise: NoisePerTask | None = Field(
        default=None,
        description="Noise variance of each task, with noise levels a list per task; that of "
        "[noise] by default.",
        examples=[[0.1, 0.2]],
    )
    cost: PerTask | None = Field(
        default=None,
        description="Cost of each task; that of [cost] by default.",
        examples=[[10, 1]],
    )
    mean: PerTask | None = Field(
        default=None,
        description="Prior mean of each task; by default that of [model], of the target alone "
        "without covariance.",
        examples=[[2.4, 0.0]],
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.model_fields_set and not self.given("names"):
            raise rule_error("needs names, got none; give them, the target first")
        return self

    @property
    def known(self) -> bool:
        """Whether there are tasks."""
        return self.names is not None


class LogBetaSpec(StrictModel):
    """beta = log * log(|D| t^2)."""

    log: Positive


class TheoremBetaSpec(StrictModel):
    """The beta of Theorem 3.1 with failure probability `theorem`."""

    theorem: Probability


class RKHSBetaSpec(StrictModel):
    """The beta for a function with RKHS norm at most `rkhs`."""

    rkhs: Positive
    delta: Probability
    horizon: Count | None = None


class TopSpec(StrictModel):
    """The `top` points with the highest upper confidence bound or expected improvement."""

    top: Count = Field(description="Number of points.")
    by: Literal["ucb", "ei"] = Field(
        default="ucb", description="Upper confidence bound (ucb) or expected improvement (ei)."
    )


Beta = Annotated[
    Positive | LogBetaSpec | TheoremBetaSpec | RKHSBetaSpec,
    expects(
        "a number > 0, {log = 1.0}, {theorem = 0.1} or {rkhs = 5.0, delta = 0.1}",
        "give one of them",
    ),
]
Among = Annotated[
    Annotated[
        Literal["potential"],
        expects('"potential" or a table such as {top = 50}', "correct it or leave it out"),
        Tag(TEXT),
    ]
    | Annotated[TopSpec, Tag(TABLE)],
    Discriminator(text_or_table),
]


def _check_policy_name(given: str) -> str:
    name, _, suffix = given.partition("/")
    if name in POLICY_NAMES and suffix in ("", "cost"):
        return given
    raise unknown_name_error("policy", given[:MAX_VALUE_LENGTH], POLICY_NAMES)


PolicyName = Annotated[
    Text,
    AfterValidator(_check_policy_name),
    WithJsonSchema(
        {
            "type": "string",
            "anyOf": [
                {"enum": list(POLICY_NAMES)},
                {"pattern": f"^({'|'.join(POLICY_NAMES)})/cost$"},
            ],
        }
    ),
]


class PolicySpec(StrictModel):
    """The policy and its options, which are the fields of its class."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: PolicyName | None = Field(
        default=None,
        description='Name of the policy; "/cost" after it divides its score by the cost. Default: '
        '"auto"; '
        '"truvar" is the algorithm of the paper.',
        examples=["auto", "truvar", "ei/cost"],
    )
    beta: Beta | None = Field(
        default=None,
        description="Confidence parameter: a constant, {log = a}, {theorem = delta} or {rkhs = "
        "norm, delta = delta}.",
        examples=[9.0, {"log": 1.0}, {"theorem": 0.1}, {"rkhs": 5.0, "delta": 0.1}],
    )
    among: Among | None = Field(
        default=None,
        description='Choose only among undecided points ("potential") or the best few: {top = 20, '
        'by = "ei"}.',
        examples=["potential", {"top": 20, "by": "ei"}],
    )
    anticipate: Literal["mean", "average"] | None = Field(
        default=None,
        description="Score the undecided points as they would be after the measurement.",
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options other than name, beta, among and anticipate."""
        return dict(self.model_extra or {})


class LimitsSpec(StrictModel):
    """Limits of a run, which stops at the first one reached."""

    budget: NonNegative | None = Field(default=None, description="Total cost.", examples=[500])
    steps: NonNegativeCount | None = Field(
        default=None, description="Number of measurements.", examples=[200]
    )
    epsilon: NonNegative | None = Field(
        default=None,
        description="Accuracy of the answer, in the units of the values.",
        examples=[0.5],
    )
    f1: F1 | None = Field(
        default=None,
        description="Level set: F1 score of the classification that is reached with 97.5 % "
        "probability.",
        examples=[0.95],
    )
    regret: NonNegative | None = Field(
        default=None,
        description="Optimum: regret of the recommended point, in the units of the values, that is "
        "not exceeded with "
        "97.5 % probability.",
        examples=[0.01],
    )
    improvement_per_cost: NonNegative | None = Field(
        default=None,
        description="Optimum: expected improvement per unit cost below which no measurement is "
        "worth its cost.",
        examples=[0.001],
    )
    accuracy: Positive | None = Field(
        default=None,
        description="Map: distance from the true values, in their units, that is not exceeded at "
        "99 % of the points with 95 % probability.",
        examples=[0.3],
    )
    max_failures: NonNegativeCount | None = Field(
        default=None,
        description="Number of measurements that may fail in one run; one more ends it.",
        examples=[5],
    )
    retries: NonNegativeCount | None = Field(
        default=None,
        description="How often a measurement is repeated before it counts as failed.",
        examples=[2],
    )


# -- the whole
# --------------------------------------------------------------------------------------------------


class StudySpec(StrictModel):
    """A problem without its domain."""

    name: Text | None = Field(
        default=None,
        description="Name of the study; the name of the file by default.",
        examples=["lake"],
    )
    seed: NonNegativeCount = Field(default=0, description="Seed of the random choices.")
    start: Start | None = Field(
        default=None,
        description='First suggestion: "random", the index of a point or a point; the policy\'s '
        "choice by default.",
        examples=["random", 0, {"x": 0.5}],
    )
    repeats: _RepeatsKey | None = Field(
        default=None,
        description="Whether a place may be suggested again, or the number of measurements of a "
        "place; where it pays by default.",
        examples=[False, 3],
    )
    quantity: Text | None = Field(
        default=None,
        description="Name of what is measured, for axes and sentences.",
        examples=["oxygen"],
    )
    unit: Text | None = Field(default=None, description="Its unit.", examples=["mg/l"])
    goal: GoalSpec = Field(description="What to find.")
    model: ModelSpec = Field(default=ModelSpec(), description="Prior of the unknown function.")
    noise: NoiseSpec = Field(default=NoiseSpec(), description="Noise of a measurement.")
    outcome: Outcome | None = Field(
        default=None,
        description='What a measurement gives: "binary" for yes or no, "count" for a number of '
        "events, or a table with kind and options. A number with normal noise by default.",
        examples=["binary", {"kind": "binary", "guess": 0.5, "lapse": 0.02}],
    )
    cost: CostSpec = Field(default=CostSpec(), description="Cost of a measurement.")
    tasks: TasksSpec = Field(
        default=TasksSpec(), description="Other quantities that can be measured instead."
    )
    vehicles: Annotated[
        dict[str, VehicleSpec],
        expects("a table of vehicles such as {boat-1 = {speed = 2}}", parts=True),
    ] = Field(
        default={},
        description="Vehicles or crews by name, each with its own position.",
        examples=[{"boat-1": {}, "boat-2": {"speed": 2.0, "budget": 300}}],
    )
    quantities: Annotated[
        dict[str, QuantitySpec],
        expects("a table of quantities such as {yield = {noise = 0.04}}", parts=True),
    ] = Field(
        default={},
        description="Noise, cost and mean of each quantity by its name, where there are several.",
        examples=[{"yield": {"noise": 0.04, "cost": 2.5}, "impurity": {}}],
    )
    policy: PolicySpec = Field(
        default=PolicySpec(), description="How the next measurement is chosen."
    )
    run: LimitsSpec = Field(default=LimitsSpec(), description="Limits at which `truvar run` stops.")

    @model_validator(mode="before")
    @classmethod
    def _add_missing_sections(cls, data: Any) -> Any:
        """Add missing required sections as empty ones, whose own message says what they need."""
        if not isinstance(data, Mapping):
            return data
        if "limits" in data:  # another name of [run]
            if "run" in data:
                raise rule_error("[limits] is another name of [run], got both; keep one of them")
            data = {"run" if name == "limits" else name: section for name, section in data.items()}
        required = [name for name, field in cls.model_fields.items() if field.is_required()]
        return {**{name: {} for name in required}, **data}


class ProblemSpec(StudySpec):
    """A problem for truvar: what to find, where, and what a measurement costs."""

    domain: DomainSpec = Field(description="Where measurements can be made.")

    @model_validator(mode="after")
    def _check_noise(self) -> Self:
        if self.noise.known:
            if self.model.learn_noise and self.model.lengthscales is not None:
                raise rule_error(
                    "[model] learn_noise = true needs an unknown noise, got [noise] too; leave out "
                    "one"
                )
            return self
        if "learn_noise" in self.model.model_fields_set and not self.model.learn_noise:
            raise rule_error(
                "[model] learn_noise = false needs a known noise, got no [noise]; give its variance"
            )
        return self


SECTIONS = tuple(
    name
    for name, field in ProblemSpec.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, StrictModel)
)
"""Keys of a problem that are tables."""

SpecT = TypeVar("SpecT", bound=StrictModel)


def parse_spec(model: type[SpecT], data: Any) -> SpecT:
    """Validate a problem, or one without its domain.

    Args:
        model: `ProblemSpec` or `StudySpec`.
        data: Its keys and values, as a TOML file or a JSON object has them.

    Raises:
        InvalidProblemError: If something is wrong; reports the first mistake.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidProblemError(problem_message(first, SECTIONS)) from None


# -- JSON Schema
# --------------------------------------------------------------------------------------------------


class _TomlJsonSchema(GenerateJsonSchema):
    """JSON Schema of a TOML file, which has no null: an optional key is left out."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        generated = super().default_schema(schema)
        if generated.get("default") is None or isinstance(generated["default"], dict):
            generated.pop("default", None)
        return generated


# JSON types of policy options, by the annotation of the dataclass field.
_OPTION_TYPES = {
    "bool": "boolean",
    "float": "number",
    "float | None": "number",
    "int": "integer",
    "int | None": "integer",
}


def problem_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of problem files, with the options of all policies."""
    schema = ProblemSpec.model_json_schema(schema_generator=_TomlJsonSchema)
    properties = schema["$defs"]["PolicySpec"]["properties"]
    owners: dict[str, list[str]] = {}
    types: dict[str, Any] = {}
    for name, policy in policy_classes().items():
        for option in policy_options(policy):
            owners.setdefault(option.name, []).append(name)
            types[option.name] = option.type
    for option_name, names in sorted(owners.items()):
        if option_name in properties:
            continue
        properties[option_name] = {
            "title": option_name,
            "description": f"Option of {', '.join(names)}.",
        }
        if types[option_name] in _OPTION_TYPES:
            properties[option_name]["type"] = _OPTION_TYPES[types[option_name]]
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "truvar problem file"}


def policy_options(policy: Any) -> tuple[DataclassField[Any], ...]:
    """Return the options of a policy class: its dataclass fields."""
    return dataclass_fields(policy)
