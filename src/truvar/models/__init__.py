"""Gaussian-process models: kernels, hyperparameters, the exact posterior, and the surrogate model of a study."""
