"""Integrations with other libraries.

Import each from its own module, which needs the library it is for.

| module | content |
|---|---|
| `sklearn` | `TruVaRSearchCV`, a search like `GridSearchCV` |
| `optuna` | `TruVaRSampler`, a sampler |
| `botorch` | `TruncatedVarianceReduction`, an acquisition function |
| `gest` | `TruVaRGenerator`, a generator for Xopt, libEnsemble and Optimas |
| `mcp` | `make_server`, the studies of a store as tools for assistants |
| `ray` | `RayExecutor`, measurements on a Ray cluster |
| `dask`, `sharded` | `connect` to a Dask cluster; `Sharded`, an engine for domains too large for one machine |
| `measurement_command` | `MeasurementCommand`, an external program that measures |
"""

__all__ = [
    "botorch",
    "dask",
    "gest",
    "mcp",
    "measurement_command",
    "optuna",
    "ray",
    "sharded",
    "sklearn",
]
