"""truvar and its peers side by side, at equal cost."""
