"""How fast truvar is, and against what: `python -m benchmarks` prints one table and writes build/bench.json."""
