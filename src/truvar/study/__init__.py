"""The stateful ask-and-tell interface."""

from __future__ import annotations

from truvar._names import offer

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "base": ("BaseStudy",),
        "commands": (
            "Allow",
            "Command",
            "Correct",
            "Exclude",
            "Fail",
            "Fit",
            "MAX_LEASE",
            "MAX_REASON_LENGTH",
            "MAX_REPEATS",
            "Receipt",
            "Tell",
            "TellRepeats",
            "Withdraw",
        ),
        "convergence": (
            "CHECKPOINTS",
            "ScoreAfter",
            "best_values",
            "checkpoints",
            "past_scores",
            "score_history",
            "score_source",
        ),
        "executors": ("WorkerPool",),
        "explanation": ("expected_values",),
        "integrity": ("check_store",),
        "limits": ("RunLimits",),
        "lookahead": ("Lookahead",),
        "measurements_io": (
            "MeasurementInput",
            "answer_pending",
            "parse_csv",
            "parse_words",
            "parse_workbook",
            "skip_repeated",
            "tell_all",
            "without_keys",
        ),
        "operations": ("Operation", "Told"),
        "outliers": ("outlier_messages",),
        "_frames": ("suggestion_frame",),
        "records": ("FailureRecord", "MeasurementRecord"),
        "result": ("Best", "BestObserved", "Result"),
        "stored": ("load", "studies"),
        "study": ("Study",),
        "suggestion": ("Suggestion",),
        "vehicles": ("VehicleStatus", "ask_next"),
        "tracks": ("Track", "bin_track", "track_measurements", "value_column"),
    },
)
