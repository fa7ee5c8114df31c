"""Backtests: policies against known values. Each policy asks, a table or a function answers, and all are compared at
equal cost.

`replay` is one run, `outcome` what came out of all of them, `runs` spreads and keeps them.
"""

from truvar.backtest.result import Backtest
from truvar.backtest.runner import backtest
from truvar.backtest.simulation import Function, Simulator, Truth, is_noisy, simulate_run, truth_column

__all__ = ["Backtest", "Function", "Simulator", "Truth", "backtest", "is_noisy", "simulate_run", "truth_column"]
