"""Backtests: compare policies on known values, at equal cost.

Each policy suggests measurements, and a table or a function answers them in place of an instrument.

| module | content |
|---|---|
| `simulation` | one run of one policy |
| `_runner` | all policies and replicates, in parallel, with finished runs kept on disk |
| `_result` | scores at equal cost, costs to reach targets |
"""

from truvar.backtest._result import Backtest
from truvar.backtest._runner import backtest
from truvar.backtest.simulation import (
    Function,
    Judged,
    Simulator,
    Truth,
    is_noisy,
    simulate_run,
    truth_column,
)

__all__ = [
    "Backtest",
    "Function",
    "Judged",
    "Simulator",
    "Truth",
    "backtest",
    "is_noisy",
    "simulate_run",
    "truth_column",
]
