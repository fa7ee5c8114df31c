"""Cost of a glider section that samples on the way, relative to one that measures at stops only.

    python -m benchmarks --only tracks
    python -m benchmarks.tracks --fields 12

Fields drawn from a Gaussian process over a section of 40 x 20 points, with the model known. The
glider flies in straight lines; a leg costs its length in sections, and every stop, such as one to
surface and send, costs `STOP_COSTS`. Its sensor gives `SAMPLES` values per unit of length, each with the noise of a
measurement. A section ends when the F1 score of its classification, of all points, is 0.95 for the
first time, which is looked at after each leg.

| section | choices | values |
|---|---|---|
| stops | by what the stop tells, default policy | at the stop |
| told | the same | along the leg, by `tell_track` |
| along | `sampling="along"`: by what the leg tells | along the leg, by `tell_track` |
| sawtooth | none: `TEETH` times up or down from one end to the other, then back with one more | along the leg |
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

import truvar as tv
from benchmarks.decision.fields import Array
from benchmarks.failures import f1
from benchmarks.measure import Row, at_most, one_thread

LENGTHS = ((0.15, 0.3), (0.3, 0.35))  # of the distance and the depth: rough and smooth fields
SHAPE = (40, 20)
FIELDS = 8  # of each kind
ABOVE = 0.3  # share of the points that lie above the threshold
SD = 0.1  # of one value, in units of the field's standard deviation
SAMPLES = 400  # values per unit of length
STOP_COSTS = (0.1, 0.5)  # in lengths of the section
F1 = 0.95
MAX_LEGS = 80
TEETH = 8
MAX_SHARE = 0.9  # cost of `along` relative to `told` that counts as paying
SECTIONS = ("stops", "told", "along", "sawtooth")
DOMAIN = tv.Domain.grid(distance=np.linspace(0, 1, SHAPE[0]), depth=np.linspace(0, 1, SHAPE[1]))


def rows(quick: bool = False) -> list[Row]:
    """Return a row for each kind of field and section: its cost relative to stops."""
    found = []
    cases = [(lengths, stop_cost) for stop_cost in STOP_COSTS for lengths in LENGTHS]
    for lengths, stop_cost in cases[:1] if quick else cases:
        costs = section_costs(lengths, stop_cost, *((1, 3) if quick else (FIELDS, MAX_LEGS)))
        base = costs["stops"].mean()
        kind = f"{lengths[0]:g}-{stop_cost:g}"
        about = f"length-scale {lengths[0]:g}, a stop costs {stop_cost:g}"
        for name in SECTIONS[1:]:
            share = float(costs[name].mean() / base)
            note = f"{about}, {base:.3g} with stops only, {len(costs[name])} fields"
            found.append(
                Row(f"tracks-{kind}-{name}", f"cost to F1 {F1:g}, {name}", share, "x", None, note)
            )
        gain = float(costs["along"].mean() / costs["told"].mean())
        target = at_most(MAX_SHARE) if stop_cost == max(STOP_COSTS) else None
        what = f"cost to F1 {F1:g}, along relative to told"
        found.append(Row(f"tracks-{kind}-along-told", what, gain, "x", target, about))
    return found


def section_costs(
    lengths: Sequence[float], stop_cost: float, fields: int, max_legs: int = MAX_LEGS
) -> dict[str, Array]:
    """Return the cost of each section by name, one per field."""
    return {
        name: np.array(
            [section(name, lengths, stop_cost, seed, max_legs) for seed in range(fields)]
        )
        for name in SECTIONS
    }


def section(
    name: str, lengths: Sequence[float], stop_cost: float, seed: int, max_legs: int = MAX_LEGS
) -> float:
    """Return the cost of one section until its classification is good enough."""
    from scipy.interpolate import RegularGridInterpolator
    from sklearn.gaussian_process.kernels import Matern

    kernel = Matern(list(lengths), nu=2.5)
    rng = np.random.default_rng((seed, 7))
    covariance = kernel(DOMAIN.points) + 1e-9 * np.eye(len(DOMAIN))
    truth = np.linalg.cholesky(covariance) @ rng.standard_normal(len(DOMAIN))
    field = RegularGridInterpolator(
        [np.unique(column) for column in DOMAIN.points.T], truth.reshape(SHAPE), method="cubic"
    )
    threshold = float(np.quantile(truth, 1 - ABOVE))
    noise = np.random.default_rng((seed, 8))
    start = {"distance": 0.0, "depth": 0.0}
    study = tv.Study(
        DOMAIN,
        tv.LevelSet(threshold),
        kernel=kernel,
        mean=0.0,
        noise_sd=SD,
        cost=tv.Cost(
            stop_cost,
            travel=tv.Euclidean({"distance": 1.0, "depth": 1.0}),
            start=start,
            sampling="along" if name == "along" else "stops",
        ),
        seed=seed,
    )
    position = np.zeros(2)
    spent = 0.0
    planned = sawtooth()
    for _ in range(max_legs):
        suggestion = None if name == "sawtooth" else study.ask()
        stop = next(planned) if suggestion is None else np.array(list(suggestion.point.values()))
        length = float(np.linalg.norm(stop - position))
        spent += stop_cost + length
        if name == "stops" and suggestion is not None:
            study.tell(suggestion, field(stop)[0] + SD * noise.standard_normal())
        else:
            count = max(int(SAMPLES * length), 1)
            shares = np.arange(1, count + 1)[:, None] / count
            track = position + shares * (stop - position)
            values = field(track) + SD * noise.standard_normal(count)
            study.tell_track(
                pd.DataFrame({"distance": track[:, 0], "depth": track[:, 1], "value": values})
            )
        position = stop
        if f1(study.predict(DOMAIN.points)[0] >= threshold, truth >= threshold) >= F1:
            break
    return spent


def sawtooth() -> Iterator[Array]:
    """Yield the stops of a sawtooth: there and back, with a tooth more each time."""
    for repetition in range(MAX_LEGS):
        direction = repetition % 2 == 1
        ends = (np.arange(TEETH + repetition) + 1) / (TEETH + repetition)
        for k, end in enumerate(ends):
            x = 1 - end if direction else end
            yield np.array([x, float((k + 1) % 2)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the cost of every section."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tracks", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--fields", type=int, default=FIELDS, help=f"fields of each kind; default {FIELDS}"
    )
    given = parser.parse_args(arguments)
    with one_thread():
        for lengths, stop_cost in [(each, price) for price in STOP_COSTS for each in LENGTHS]:
            costs = section_costs(lengths, stop_cost, given.fields)
            base = costs["stops"].mean()
            for name, cost in costs.items():
                print(
                    f"length-scale {lengths[0]:g}, stop {stop_cost:g}, {name}: {cost.mean():.3g} "
                    f"(standard error {cost.std() / np.sqrt(len(cost)):.2g}), "
                    f"{cost.mean() / base:.2f} of stops",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
