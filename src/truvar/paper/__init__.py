"""Data and experiments of the paper: one module per figure, run by `truvar reproduce`.

| module | content |
|---|---|
| `experiment` | settings of a reproduction, running an experiment, writing its results |
| `_curves` | mean and median curves of the runs, tables made from them |
| `fields`, `_field_plots` | the functions of the level-set figures, and maps of them |
| `lake`, `svm` | the simulated lake and the table of SVM errors |
| `fig1` to `fig5` | one module per figure, with a function `make` |
| `draws`, `noiseless`, `terrain` | figures that are not in the paper: more functions, less noise, real terrain |
"""

from __future__ import annotations

from truvar._names import offer

__all__, __getattr__, __dir__ = offer(
    __name__,
    {
        "experiment": ("ReproductionConfig", "reproduce"),
        "fields": ("simulated_lake",),
    },
    defined=("FIGURES", "FIGURES_WITH_DATA"),
)

FIGURES = (
    "fig1",
    "fig2a",
    "fig2b",
    "fig2c",
    "fig3a",
    "fig3b",
    "fig3c",
    "fig4",
    "fig5",
    "draws",
    "noiseless",
    "terrain",
)
# Figures that can be made from a table of the user's.
FIGURES_WITH_DATA = ("fig2a", "fig2b", "fig3c")
