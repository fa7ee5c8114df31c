"""Gaussian-process models: kernels, hyperparameters, posterior, and the surrogate of a study."""
