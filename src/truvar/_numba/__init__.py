"""Compiled inner loops: arrays in, arrays out, no classes.

Each function has a NumPy version in `tests/reference/compiled.py`, named `<function>_reference`,
which the tests compare it with. Results are written to the last arguments, which the caller
allocates.
"""
