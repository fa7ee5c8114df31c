"""The search domain: points, candidates, costs and goals."""
