"""The paper's data and experiments: a file per figure, made by `truvar reproduce`."""

FIGURES = ("fig1", "fig2a", "fig2b", "fig2c", "fig3a", "fig3b", "fig3c", "fig4", "fig5", "terrain")
FIGURES_WITH_DATA = ("fig2a", "fig2b", "fig3c")  # figures that take a table of one's own
