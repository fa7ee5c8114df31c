"""Gaussian-process models: kernels, hyperparameters, posterior, and the surrogate of a study."""

from __future__ import annotations

from truvar._names import offer

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "cost_model": ("CostModel",),
        "diagnostics": ("MIN_MEASUREMENTS", "ModelCheck", "NORMAL_95", "check_model"),
        "ensemble": ("Ensemble", "EnsembleModel", "MEMORY"),
        "factor": ("LocalFactor", "LocatedNeighbourhood", "Row", "weighted_gram"),
        "feasibility": ("FeasibilityModel",),
        "fit": ("Model", "training_data", "unfitted"),
        "frozen": ("FrozenPosterior", "spread_points"),
        "hyperparameters": ("AnyModel",),
        "hyperposterior": ("HyperPrior", "MarginalLikelihood", "find_mode"),
        "kernels": (
            "Coregionalized",
            "NamedKernel",
            "SMOOTHNESS",
            "Stationary",
            "check_named_kernel",
            "covariance_function",
            "indicator_columns",
            "named_kernel",
            "prior_scale",
            "stationary_form",
            "to_sklearn",
        ),
        "likelihoods": ("Binary", "OUTCOMES", "Outcome", "outcome_named"),
        "likelihoods.gaussian": ("LARGEST_LEARNED",),
        "mean": ("MeanLike",),
        "observations": ("Observations",),
        "posterior": ("Posterior",),
        "priors": ("Learned", "Prior", "Quantity"),
        "surrogate": ("Surrogate",),
        "transforms": ("OutputTransform", "SMALLEST_UNIT"),
    },
)
