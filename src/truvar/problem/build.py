"""Problems: a validated problem file or dict, and the study built from it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truvar.acquisition import TopK
from truvar.acquisition.confidence import ConstantBeta, LogBeta, RKHSBeta, TheoremBeta
from truvar.acquisition.registry import (
    DEFAULT_POLICY,
    has_cost_option,
    policy_class,
    policy_classes,
)
from truvar.domain.areas import Area, is_area_file, read_area
from truvar.domain.constraints import PolygonConstraint
from truvar.domain.costs import Cost, CostLike, NoiseLevels, NoiseLike, Tasks
from truvar.domain.domain import Domain
from truvar.domain.geographic import recognise_degrees
from truvar.domain.goals import (
    AllOf,
    Goal,
    LevelSet,
    Map,
    Maximize,
    Minimize,
    parse_constraints,
)
from truvar.domain.learned_cost import LearnedCost
from truvar.domain.travel import Euclidean, GreatCircle, Network, TravelMatrix
from truvar.domain.vehicles import Vehicle
from truvar.exceptions import InvalidDomainError, InvalidProblemError, TruvarError
from truvar.messages import unknown_name
from truvar.models.fit import training_data
from truvar.models.kernels import NamedKernel, check_named_kernel
from truvar.models.likelihoods import OUTCOMES, Outcome
from truvar.models.priors import Learned, Quantity
from truvar.problem.parameters import build_parameter
from truvar.problem.schema import (
    PARTS,
    REPRESENTERS,
    CostSpec,
    DirectionsSpec,
    DomainSpec,
    GoalSpec,
    LogBetaSpec,
    ModelSpec,
    NoiseSpec,
    OutcomeSpec,
    PolicySpec,
    PolygonSpec,
    ProblemSpec,
    QuantitySpec,
    RKHSBetaSpec,
    StudySpec,
    TasksSpec,
    TheoremBetaSpec,
    TopSpec,
    VehicleSpec,
    parse_spec,
    policy_options,
)
from truvar.study.study import Study
from truvar.tabular.column_types import file_label
from truvar.tabular.tables import is_netcdf, read_table

if TYPE_CHECKING:
    import pandas as pd

    from truvar.acquisition import Policy
    from truvar.acquisition.confidence import Schedule

Tables = Mapping[str, "pd.DataFrame"]


@dataclass(frozen=True)
class Problem:
    """A problem: its domain, and the goal, model, noise, cost and policy of its studies.

    Attributes:
        name: Name of its studies.
        spec: Keys and values as the problem file has them; [domain] is not read again.
        folder: Folder that paths in `spec` are relative to.
        domain: Where measurements can be made.
        tables: Tables that `spec` names; None: they are files in `folder`.
    """

    name: str
    spec: Mapping[str, Any]
    folder: Path
    domain: Domain
    tables: Tables | None = None

    @property
    def run(self) -> dict[str, Any]:
        """The limits of [run], or [limits], by name."""
        return self._settings.run.model_dump(exclude_unset=True)

    @cached_property
    def _settings(self) -> StudySpec:
        """The validated spec, without the domain."""
        return parse_spec(
            StudySpec, {key: value for key, value in self.spec.items() if key != "domain"}
        )

    @property
    def goal(self) -> Goal:
        """The goal of its studies."""
        return _build_goal(self._settings.goal)

    def study(self, **overrides: Any) -> Study:
        """Build a new study of the problem.

        Args:
            **overrides: Arguments of `Study` that replace those of the problem.

        Raises:
            TruvarError: If the problem or an override has a mistake.
        """
        model = self._settings.model
        if model.training is None:
            return self._unfitted_study(**overrides)
        store = overrides.pop("store", None)
        study = self._unfitted_study(**overrides)
        study.fit(_table(model.training, self.folder, self.tables), model.value)
        if store is None:
            return study
        # A study is stored together with its fitted model, or not at all.
        return Study.from_json(study.to_json(), store=store, author=study.author)

    def _unfitted_study(self, **overrides: Any) -> Study:
        """Build a study before its model is learned from the training file."""
        settings = self._settings
        arguments: dict[str, Any] = {
            "goal": _build_goal(settings.goal),
            "kernel": build_kernel(settings.model, len(self.domain.columns)),
            "mean": settings.model.mean,
            "exact_model": settings.model.exact,
            "noise": _build_noise(settings.noise),
            "noise_sd": settings.noise.sd,
            "outcome": _build_outcome(settings.outcome),
            "cost": _build_cost(settings.cost, self.folder, self.tables),
            "tasks": _build_tasks(settings.tasks),
            "vehicles": _build_vehicles(settings.vehicles),
            "quantities": _build_quantities(settings.quantities),
            "policy": _build_policy(settings.policy),
            "start": settings.start,
            "repeats": settings.repeats,
            "quantity": settings.quantity,
            "unit": settings.unit,
            "seed": settings.seed,
            "limits": self.run,
            "name": self.name,
        }
        if "noise" in overrides or "noise_sd" in overrides:
            arguments.update(noise=None, noise_sd=None)
        arguments.update(overrides)
        return Study(self.domain, arguments.pop("goal"), **arguments)

    def to_dict(self) -> dict[str, Any]:
        """Return the keys and values of the problem as they were given."""
        return dict(self.spec)


def load_problem(path: str | Path, *, check: bool = True) -> Problem:
    """Load a problem from a TOML file.

    Args:
        path: The problem file; paths in it are relative to its folder.
        check: Also check what only shows when a study is built. False saves that time for a caller
            who builds one anyway.

    Raises:
        TruvarError: If the file cannot be read or the problem has a mistake.
    """
    path = Path(path)
    return problem_from_dict(read_toml(path), folder=path.parent, name=path.stem, check=check)


def read_toml(path: Path) -> dict[str, Any]:
    """Read the keys and values of a problem file.

    Raises:
        InvalidProblemError: If there is no such file, or it is not TOML.
    """
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InvalidProblemError(f"there is no problem file {path}; check the path") from None
    except IsADirectoryError:
        raise InvalidProblemError(f"{path} is a folder; give the path of a problem file") from None
    except ValueError as error:  # no TOML, or no text at all
        raise InvalidProblemError(
            f"{path} is not valid TOML: {error}; correct the file there"
        ) from None


def problem_from_dict(
    spec: Mapping[str, Any],
    folder: str | Path = ".",
    name: str = "study",
    tables: Tables | None = None,
    *,
    check: bool = True,
) -> Problem:
    """Make a problem from a dict with the keys of a problem file.

    Args:
        spec: Keys and values, as in the file.
        folder: Folder of the tables that the problem names.
        name: Name of a problem that has no key `name`.
        tables: The tables that the problem names, instead of files in `folder`; no file is read
            then.
        check: Also check what only shows when a study is built.

    Raises:
        TruvarError: If the problem has a mistake.
    """
    parsed = parse_spec(ProblemSpec, spec)
    folder = Path(folder)
    problem = Problem(
        parsed.name or name, spec, folder, _build_domain(parsed.domain, folder, tables), tables
    )
    if check:
        problem._unfitted_study()
        model = parsed.model
        if model.training is not None:
            training = _table(model.training, folder, tables)
            with _section("model"):
                training_data(training, problem.domain.columns, model.value, problem.domain)
    return problem


# -- from the schema to the objects of a study
# -------------------------------------------------------------------------


@contextmanager
def _section(name: str) -> Iterator[None]:
    """Name the section of the problem in errors of the objects that are built from it."""
    try:
        yield
    except TruvarError as error:
        message = str(error)
        if not message.startswith(f"[{name}]"):
            message = f"[{name}] {message}"
        raise InvalidProblemError(message) from None


def _table(path: str, folder: Path, tables: Tables | None) -> pd.DataFrame:
    """Return a table that the problem names."""
    if tables is None:
        return read_table(folder / path)
    if path not in tables:
        given = ", ".join(map(repr, tables)) or "none"
        raise InvalidProblemError(
            f"the problem names the table {path!r}, which was not sent with it (got {given}); send "
            "it too"
        )
    return tables[path]


def _build_domain(spec: DomainSpec, folder: Path, tables: Tables | None) -> Domain:
    """Build the domain of a problem.

    Args:
        spec: The section [domain].
        folder: Folder of the table's file.
        tables: Tables by path, instead of files.
    """
    if spec.table is not None and is_netcdf(spec.table) and tables is None:
        with _section("domain"):
            return _netcdf_domain(spec, folder / spec.table, folder)
    if spec.table is not None:
        table = _table(spec.table, folder, tables)
        with _section("domain"):
            domain = Domain.table(
                table,
                spec.columns,
                spec.log or (),
                constraints=_constraints(spec, spec.columns or table.columns, folder, tables),
                label=spec.label or file_label(spec.table, table, spec.columns),
                missing=spec.missing,
                duplicates=spec.duplicates,
            )
            return domain.with_context(spec.context or ())
    with _section("domain"):
        if spec.box is not None:
            intervals: dict[str, Any] = {
                name: build_parameter(side) for name, side in spec.box.items()
            }
            representers = spec.representers or REPRESENTERS
            constraints = _constraints(spec, spec.box, folder, tables)
            box = Domain.box(representers=representers, constraints=constraints, **intervals)
            return box.with_context(spec.context or ())
        if spec.mixture is not None:
            fractions: dict[str, Any] = dict(spec.mixture)
            return Domain.mixture(parts=spec.parts or PARTS, **fractions)
        axes = {name: _axis(axis) for name, axis in (spec.grid or {}).items()}
        constraints = _constraints(spec, axes, folder, tables)
        return Domain.grid(constraints=constraints, **axes).with_context(spec.context or ())


def _netcdf_domain(spec: DomainSpec, path: Path, folder: Path) -> Domain:
    """Build the domain of a NetCDF file, whose dimensions are the columns.

    Args:
        spec: The section [domain], with the name of the file as its table.
        path: The file.
        folder: Folder of the files that constraints name.
    """
    if spec.log or spec.label:
        raise InvalidDomainError(
            f"log and label are for tables, but {path.name} is a NetCDF file; leave them out"
        )
    grid = Domain.from_xarray(path)
    if spec.columns and set(spec.columns) != set(grid.columns):
        raise InvalidDomainError(
            f"the columns of {path.name} are its dimensions {', '.join(grid.columns)}, got "
            f"{', '.join(spec.columns)}; leave out columns"
        )
    constraints = _constraints(spec, grid.columns, folder, None)
    domain = Domain.from_xarray(path, constraints=constraints) if constraints else grid
    return domain.with_context(spec.context or ())


def _axis(axis: Any) -> Any:
    """Return an axis of a grid as `Domain.grid` takes it."""
    if isinstance(axis, tuple):
        low, high, count = axis
        return np.linspace(low, high, count)
    return build_parameter(axis)


def _constraints(
    spec: DomainSpec, columns: Iterable[str], folder: Path, tables: Tables | None
) -> list[Any] | None:
    """Return the constraints of [domain], whose columns are given, as `Domain` takes them."""
    if spec.constraints is None:
        return None
    given: list[Any] = []
    for entry in spec.constraints:
        if not isinstance(entry, PolygonSpec):
            given.append(entry)
        elif entry.polygon is not None:
            given.append(PolygonConstraint([entry.polygon], entry.columns))
        elif entry.area is not None:
            pair = entry.columns or recognise_degrees(list(columns)) or ("lon", "lat")
            given.append(_polygon(entry.area, pair, folder, tables))
    return given


def _polygon(
    path: str, columns: tuple[str, str], folder: Path, tables: Tables | None
) -> PolygonConstraint:
    """Return the polygons of a map."""
    polygon = _area(path, columns, folder, tables).polygon
    if polygon is None:
        raise InvalidProblemError(f"{path} has no polygon; draw the area and save it again")
    return polygon


def _area(path: str, columns: tuple[str, str], folder: Path, tables: Tables | None) -> Area:
    """Return a map that the problem names."""
    if tables is not None:
        raise InvalidProblemError(
            f"the problem names the map {path!r}, and a server reads no maps; give the vertices "
            "(polygon = [[x, y], ...]) or the coordinates of the start instead"
        )
    return read_area(folder / path, columns)


def _build_goal(spec: GoalSpec) -> Goal:
    """Build the goal from the section [goal]."""
    with _section("goal"):
        for optimum, of in ((Maximize, spec.maximize), (Minimize, spec.minimize)):
            if of is not None:
                name = of if isinstance(of, str) else None
                return optimum(name, spec.subject_to, monotone=spec.monotone)
        if spec.all_of is not None:
            return AllOf(goals=parse_constraints(spec.all_of), monotone=spec.monotone)
        if spec.map is not None:
            return Map(spec.map, spec.weight)
        thresholds: Any = spec.level_set
        return LevelSet(
            thresholds,
            spec.fraction_of_max,
            spec.monotone,
            fraction_of_min=spec.fraction_of_min,
            between=spec.between,
            below=spec.level_set_below,
            within=spec.within,
            within_of_min=spec.within_of_min,
        )


def build_kernel(spec: ModelSpec, columns: int) -> NamedKernel | Learned:
    """Build the kernel, or the family to be learned.

    Args:
        spec: The section [model].
        columns: Number of coordinates of the domain.
    """
    if spec.lengthscales is None:
        with _section("model"):
            return Learned(
                spec.kernel,
                refit_every=spec.refit_every,
                noise=spec.learn_noise,
                marginalise=spec.marginalise,
                transform=spec.transform,
                n_initial=spec.initial,
            )
    scales = spec.lengthscales if isinstance(spec.lengthscales, list) else [spec.lengthscales]
    if len(scales) not in (1, columns):
        expected = f"1 or {columns} numbers" if columns > 1 else "1 number"
        raise InvalidProblemError(
            f"[model] lengthscales must be {expected}, got {len(scales)}; give one for all columns "
            "or one per column"
        )
    variance = 1.0 if spec.variance is None else spec.variance
    with _section("model"):
        return check_named_kernel(spec.kernel, scales, variance)


def _build_noise(spec: NoiseSpec) -> NoiseLike | None:
    """Build the noise from the section [noise]; None: to be learned."""
    if spec.levels is not None:
        return NoiseLevels(
            [level.variance for level in spec.levels], [level.cost for level in spec.levels]
        )
    return spec.column if spec.variance is None else spec.variance


def _build_cost(spec: CostSpec, folder: Path, tables: Tables | None) -> CostLike | None:
    """Build the cost from the section [cost]; None: 1 for every measurement.

    Args:
        spec: The section [cost].
        folder: Folder of the files that it names.
        tables: Tables by path, instead of files.
    """
    if not spec.known:
        return None
    base: float | str | LearnedCost = spec.base or 0.0
    if spec.column is not None:
        base = spec.column
    if spec.learned:
        with _section("cost"):
            base = LearnedCost(spec.prior, spec.factor or LearnedCost.factor)
    parts = _build_travel(spec, folder, tables)
    travel = parts[0] if len(parts) == 1 else parts
    with _section("cost"):
        return Cost(
            base,
            travel or {},
            spec.magnitude or {},
            spec.setup or {},
            _build_start(spec, folder, tables),
            must_return=spec.must_return or spec.returns,
            sampling=spec.sampling,
        )


def _build_start(
    spec: CostSpec, folder: Path, tables: Tables | None
) -> str | Mapping[str, Any] | None:
    """Return the start of [cost]: as it is given, or the home position of a map."""
    if not isinstance(spec.start, str) or not is_area_file(spec.start):
        return spec.start
    circle = spec.great_circle
    columns = ("lon", "lat") if circle is None else (circle.longitude, circle.latitude)
    home = _area(spec.start, columns, folder, tables).home
    if home is None:
        raise InvalidProblemError(
            f"start = {spec.start!r} has no home position; add one point, or give coordinates"
        )
    return home


def _build_travel(spec: CostSpec, folder: Path, tables: Tables | None) -> list[Any]:
    """Build the parts of the travel from the section [cost]."""
    parts: list[Any] = []
    with _section("cost"):
        if spec.travel is not None:
            parts.append(_rates(spec.travel))
        if spec.euclidean is not None:
            parts.append(Euclidean(_rates(spec.euclidean)))
        if spec.great_circle is not None:
            parts.append(GreatCircle(**spec.great_circle.model_dump()))
        if spec.network is not None:
            edges = _table(spec.network.table, folder, tables)
            parts.append(
                Network(edges, spec.network.places, spec.network.rate, spec.network.directed)
            )
        if spec.matrix is not None:
            matrix = _table(spec.matrix.table, folder, tables)
            named = matrix.set_index(matrix.columns[0])
            parts.append(TravelMatrix(named, spec.matrix.places, rate=spec.matrix.rate))
    return parts


def _rates(spec: Mapping[str, float | DirectionsSpec]) -> dict[str, Any]:
    """Return rates by column as `Cost` takes them."""
    return {
        name: rate.model_dump() if isinstance(rate, DirectionsSpec) else rate
        for name, rate in spec.items()
    }


def _build_vehicles(spec: Mapping[str, VehicleSpec]) -> dict[str, Vehicle] | None:
    """Build the vehicles from the section [vehicles]; None: a single crew."""
    return {
        name: Vehicle(each.start, each.speed, each.budget) for name, each in spec.items()
    } or None


def _build_quantities(spec: Mapping[str, QuantitySpec]) -> dict[str, Quantity] | None:
    """Build the quantities from the section [quantities]; None: they have no settings."""
    return {name: Quantity(**each.model_dump()) for name, each in spec.items()} or None


def _build_outcome(spec: str | OutcomeSpec | None) -> str | Outcome | None:
    """Build the outcome from the key or section of that name; None: numbers with normal noise."""
    if spec is None or isinstance(spec, str):
        return spec
    options = {key: getattr(spec, key) for key in spec.given("guess", "lapse", "exposure")}
    with _section("outcome"):
        return OUTCOMES[spec.kind](**options)


def _build_tasks(spec: TasksSpec) -> Tasks | None:
    """Build the tasks from the section [tasks]; None: the target alone."""
    if spec.names is None:
        return None
    with _section("tasks"):
        return Tasks(spec.covariance, spec.names, spec.noise, spec.cost, spec.mean)


def _build_policy(spec: PolicySpec) -> Policy | None:
    """Build the policy from the section [policy]; None (the default) if it is empty."""
    options = spec.options
    for key in spec.given("beta", "among", "anticipate"):
        options[key] = getattr(spec, key)
    if spec.name is None and not options:
        return None
    name, _, suffix = (spec.name or DEFAULT_POLICY).partition("/")
    policy = policy_class(name)
    known = [option.name for option in policy_options(policy)]
    for key in options:
        if key not in known:
            raise InvalidProblemError(f"[policy]: {_unknown_option(key, known, spec.name)}")
    if suffix:
        if not has_cost_option(policy):
            raise InvalidProblemError(
                f'[policy] name: {name} always divides by the cost, got "{spec.name}"; leave out '
                '"/cost"'
            )
        options["per_cost"] = True
    with _section("policy"):
        if spec.beta is not None:
            options["beta"] = _build_beta(spec.beta)
        if isinstance(spec.among, TopSpec):
            options["among"] = TopK(spec.among.top, spec.among.by)
        return policy(**options)


def _unknown_option(key: str, known: Sequence[str], name: str | None) -> str:
    """Return the message for an option that a policy does not have.

    Args:
        key: The option.
        known: Options of the policy.
        name: Name of the policy as the problem has it; None: left out.
    """
    owners = [
        other
        for other, policy in policy_classes().items()
        if key in {option.name for option in policy_options(policy)}
    ]
    if name is not None or not owners:
        return unknown_name("key", key, known)
    return (
        f"the default policy {DEFAULT_POLICY} has no key {key!r}, which belongs to "
        f"{', '.join(owners)}; "
        f'name the policy too, such as name = "{owners[0]}"'
    )


def _build_beta(spec: float | LogBetaSpec | TheoremBetaSpec | RKHSBetaSpec) -> Schedule:
    """Build the schedule of beta from the key `beta` of a policy."""
    if isinstance(spec, LogBetaSpec):
        return LogBeta(spec.log)
    if isinstance(spec, TheoremBetaSpec):
        return TheoremBeta(spec.theorem)
    if isinstance(spec, RKHSBetaSpec):
        return RKHSBeta(spec.rkhs, spec.delta, spec.horizon or RKHSBeta.horizon)
    return ConstantBeta(spec)
