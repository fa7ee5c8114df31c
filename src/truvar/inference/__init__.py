"""Statements about the result of a study."""
