"""The search domain: points, candidates, costs and goals."""

from __future__ import annotations

from truvar._names import offer

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "action": ("Action",),
        "box": ("box_fields",),
        "candidates": ("ActionSpace", "Candidates", "CoordinateFunction", "model_sites"),
        "constraints": (
            "LinearConstraint",
            "PolygonConstraint",
            "as_constraint",
            "check_size",
            "is_geometry",
            "is_truth",
            "polygon_of",
            "region_text",
        ),
        "costs": ("Cost", "CostLike", "NoiseLevels", "NoiseLike", "Tasks"),
        "dates": ("Date",),
        "domain": ("Domain",),
        "exclusions": ("Exclusion", "Place", "excluded_points"),
        "geo": ("CLASSES", "ORIGINS", "to_geopandas", "to_xarray"),
        "given_context": ("ContextSlice", "rows_in_context", "slice_in_context"),
        "goals": (
            "AllOf",
            "Bands",
            "ConstrainedOptimum",
            "Goal",
            "LevelSet",
            "Map",
            "Maximize",
            "Minimize",
            "Optimum",
            "Regions",
            "Score",
            "probability_of",
        ),
        "grid": ("SAME_POINT", "mesh"),
        "labels": (
            "can_be_given",
            "label_columns",
            "labelled_point",
            "rows_by_label",
            "with_other_columns",
        ),
        "layout": ("GridLayout",),
        "parameters": (
            "Boolean",
            "Categorical",
            "Integer",
            "Log",
            "Ordinal",
            "Parameter",
            "Range",
            "plain_value",
        ),
        "rounding": ("shown_numbers",),
        "satisfiability": ("holds_somewhere",),
        "scales": ("is_geometric",),
        "table": ("LOG_RATIO", "check_rows", "number_column", "row_fields"),
        "travel": ("Euclidean", "GreatCircle", "Network", "TravelMatrix"),
        "vehicles": ("Departure", "Origin", "Vehicle", "as_departure", "check_vehicles"),
    },
)
