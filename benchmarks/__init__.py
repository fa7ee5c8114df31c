"""Speed of truvar against alternatives: `python -m benchmarks` prints one table and writes
build/bench.json."""
