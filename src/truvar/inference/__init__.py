"""Statements about the result of a study."""

from __future__ import annotations

from truvar._names import offer

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "_goals": ("inference_of",),
        "_several": ("SeveralSource", "statement_source"),
        "bands": ("true_f1",),
        "certificate": ("Certificate", "certify", "with_joint_statements"),
        "certificate_text": ("format_share",),
        "errors": ("ClassErrors",),
        "inputs": ("CertificateInputs",),
        "joint": ("StatementSource",),
        "limits": (
            "StatementLimits",
            "StopCheck",
            "check_improvement_goal",
            "check_stop",
            "improvement_per_cost",
        ),
        "margins": ("classify_with_margin",),
        "regime": ("REGIME_SUMMARIES",),
        "sensitivity": ("SobolIndices", "sobol_indices"),
        "statements": (
            "BandStatements",
            "CONFIDENCE",
            "Classification",
            "Estimate",
            "JointStatements",
        ),
        "stopping": ("finished",),
        "undecided_causes": ("main_cause",),
    },
)
