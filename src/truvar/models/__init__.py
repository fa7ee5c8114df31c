"""Gaussian-process models: kernels, exact posterior, fitting."""
