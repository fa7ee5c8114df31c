"""The paper's experiments and the simulated data they run on: one file per figure, one for the lake."""
