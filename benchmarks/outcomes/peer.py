"""AEPsych on one problem, in the Python that has it: prints a line of JSON per trial.

/tmp/aepsych/bin/python benchmarks/outcomes/peer.py EAVC detection 0 60
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from statistics import NormalDist

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from problems import PROBLEMS

INITIAL = 10  # Sobol points before the acquisition function chooses, as in Letham et al. (2022)


def main(method: str, name: str, start: int, trials: int) -> None:
    """Run a method and print after every trial the share of points on the wrong side."""
    import torch
    from aepsych.acquisition import lookahead
    from aepsych.generators import OptimizeAcqfGenerator, SobolGenerator
    from aepsych.models import GPClassificationModel

    torch.set_num_threads(1)
    torch.manual_seed(start)
    problem = PROBLEMS[name]
    low = torch.tensor(problem.low, dtype=torch.float64)
    high = torch.tensor(problem.high, dtype=torch.float64)
    points = torch.tensor(problem.points, dtype=torch.float64)
    truth = problem.probability(problem.points)
    first = SobolGenerator(low, high, seed=start).gen(INITIAL)
    options = {"target": problem.threshold, "lb": low, "ub": high, "query_set_size": 256}
    chooser = OptimizeAcqfGenerator(low, high, acqf=getattr(lookahead, method), acqf_kwargs=options)
    model = GPClassificationModel(dim=len(low))
    x = torch.zeros((0, len(low)), dtype=torch.float64)
    y = torch.zeros(0, dtype=torch.float64)
    for trial in range(trials):
        begin = time.perf_counter()
        point = first[trial : trial + 1] if trial < INITIAL else chooser.gen(1, model)
        seconds = time.perf_counter() - begin
        answer = problem.answer(point[0].numpy(), start, trial)
        x = torch.cat([x, point.to(torch.float64)])
        y = torch.cat([y, torch.tensor([float(answer)], dtype=torch.float64)])
        if trial < INITIAL - 1:
            continue
        begin = time.perf_counter()
        model.fit(x, y)
        seconds += time.perf_counter() - begin
        with torch.no_grad():
            mean = model.predict(points, probability_space=True)[0].numpy()
            latent = model.predict(points)[0].numpy()
        above = latent >= NormalDist().inv_cdf(problem.threshold)  # with probability 1/2 or more
        wrong = float((above != (truth >= problem.threshold)).mean())
        error = float(np.abs(mean - truth).mean())
        print(json.dumps({"trial": trial + 1, "wrong": wrong, "error": error, "seconds": seconds}))
        sys.stdout.flush()


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
