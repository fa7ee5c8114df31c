"""Draw the pictures of the pages about the learned model and about trust: `python
docs/model_pictures.py`.

`averaging.png` compares the single best hyperparameters with the average over plausible ones;
`power.png` compares a model of skewed values with a model of a power of them; `unseen.png` shows
what a study that knows nothing says of a region that it has not seen. Needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

import truvar as tv
from truvar._typing import Array
from truvar.report import style

IMAGES = Path(__file__).parent / "images"
X = np.linspace(0, 1, 101)
SEED = 18  # of the function and the measured points of averaging.png
N_MEASURED = 6
NORMAL_95 = 1.96  # standard deviations
BAND = "#9DC3DD"
MEAN = "#1F5F8B"


def survey(kernel: tv.Learned, truth: Array, rows: Array) -> tv.Study:
    """Return a study that was told the true values at some rows."""
    domain = tv.Domain.grid(x=X)
    study = tv.Study(domain, tv.Maximize(), kernel=kernel)
    for row in rows:
        study.tell(domain.point(int(row)), float(truth[row]))
    return study


def smooth_function(rng: np.random.Generator) -> Array:
    """Return a draw of a Gaussian process on `X`."""
    covariance = Matern(0.2, nu=2.5)(X[:, None]) + 1e-9 * np.eye(len(X))
    return np.asarray(np.linalg.cholesky(covariance) @ rng.standard_normal(len(X)))


def draw(ax: Any, study: tv.Study, truth: Array, rows: Array, title: str) -> None:
    """Draw the posterior mean, its 95 % interval, the measurements and the truth."""
    transform = study.transform
    mean, variance = study._learner.surrogate.predict_modelled(
        X[:, None]
    )  # the interval is that of the transform
    low, middle, high = (
        transform.inverse(mean + k * np.sqrt(variance)) for k in (-NORMAL_95, 0.0, NORMAL_95)
    )
    ax.fill_between(X, low, high, color=BAND, lw=0, label="95 % interval")
    ax.plot(X, middle, color=MEAN, label="posterior median")
    ax.plot(X, truth, color=style.INK, ls="--", lw=1, label="truth")
    ax.plot(X[rows], truth[rows], "o", color=style.INK, ms=4, label="measured")
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel("x")


def two_panels(name: str, make: Callable[[Any, Any], None]) -> None:
    """Draw two panels with a common vertical axis and one legend, and write the file."""
    figure = style.new_figure(7.6, 3.0, dpi=110)
    left, right = figure.subplots(1, 2, sharey=True)
    make(left, right)
    figure.legend(
        *left.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=8,
    )
    figure.savefig(IMAGES / name)


def averaging(left: Any, right: Any) -> None:
    """Draw the plug-in posterior beside the averaged one."""
    rng = np.random.default_rng(SEED)
    truth = smooth_function(rng)
    rows = rng.choice(len(X), N_MEASURED, replace=False)
    plug_in = survey(tv.Learned(marginalise=False), truth, rows)
    averaged = survey(tv.Learned(), truth, rows)
    draw(left, plug_in, truth, rows, "the most probable hyperparameters")
    draw(right, averaged, truth, rows, "averaged over 16 samples")


def power(left: Any, right: Any) -> None:
    """Draw a model of the values of a narrow peak beside a model of a power of them."""
    truth = 20 * np.exp(-(((X - 0.3) / 0.08) ** 2)) + np.sin(14 * X) + 2 * X + 2
    rows = np.linspace(1, 99, 11).round().astype(int)
    plain = survey(tv.Learned(transform="none"), truth, rows)
    transformed = survey(tv.Learned(), truth, rows)
    draw(left, plain, truth, rows, 'transform="none"')
    draw(
        right,
        transformed,
        truth,
        rows,
        f'transform="auto": power {transformed.transform.power:.2g}',
    )
    left.set_ylim(-6, 27)


def unseen() -> None:
    """Draw a level set of two lobes after 40 measurements, one lobe of which is not seen yet."""
    domain = tv.Domain.grid(distance_m=np.linspace(0, 1478, 50), depth_m=np.linspace(-18, 0, 50))
    cost = tv.Cost(base=4, travel={"distance_m": 0.25}, magnitude={"depth_m": 4})
    study = tv.Study(domain, tv.LevelSet(7.0), cost=cost, seed=1, start="random")

    def measure(point: dict[str, float]) -> float:
        band = np.exp(-((point["depth_m"] + 8) ** 2) / 8)
        return float(9 * band * np.sin(point["distance_m"] / 235) ** 2)

    study.run(measure, steps=40)
    truth = np.array([measure(domain.point(row)) for row in range(len(domain))])
    classes = study.result().classify()
    print(study.result().certificate)
    print(f"{int((classes.below & (truth >= 7)).sum())} points above 7 are shown as below")
    study.plot(truth=truth).savefig(IMAGES / "unseen.png")


if __name__ == "__main__":
    two_panels("averaging.png", averaging)
    two_panels("power.png", power)
    unseen()
