"""Observation models: how a measured value comes from the function that is modelled."""
