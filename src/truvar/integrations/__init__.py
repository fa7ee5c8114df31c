"""Integrations with other libraries.

Import each from its own module, which needs the library it is for.

| module | content |
|---|---|
| `sklearn` | `TruVaRSearchCV`, a search like `GridSearchCV` |
| `optuna` | `TruVaRSampler`, a sampler |
| `botorch` | `TruncatedVarianceReduction`, an acquisition function |
| `gest` | `TruVaRGenerator`, a generator for Xopt, libEnsemble and Optimas |
| `bluesky` | `TruVaROptimizer`, an optimizer for the plans of bluesky-adaptive |
| `aepsych` | `AEPsychServer`, studies for clients of AEPsych |
| `mlflow` | `MLflowLogger`, a callback that logs measurements |
| `mcp` | `make_server`, the studies of a store as tools for assistants |
| `ray` | `RayExecutor`, measurements on a Ray cluster |
| `dask`, `sharded` | `connect` to a Dask cluster; `Sharded`, an engine for domains too large for one machine |
| `measurement_command` | `MeasurementCommand`, an external program that measures |
"""

__all__ = [
    "aepsych",
    "bluesky",
    "botorch",
    "dask",
    "gest",
    "mcp",
    "measurement_command",
    "mlflow",
    "optuna",
    "ray",
    "sharded",
    "sklearn",
]
