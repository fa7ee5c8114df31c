"""Fresh processes: how long `import truvar` takes next to scikit-learn's Gaussian processes, and the first suggestion.

The processes take turns; a first one, not counted, fills the cache of compiled code.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.measure import Row, at_most, median

PEER = """
import time; start = time.perf_counter()
import sklearn.gaussian_process
print(time.perf_counter() - start)
"""

OWN = """
import time; start = time.perf_counter()
import truvar
loaded = time.perf_counter()
import numpy as np
from sklearn.gaussian_process.kernels import RBF
axis = np.linspace(0, 1, {side})
study = truvar.Study(truvar.Domain.grid(x=axis, y=axis), truvar.Maximize(), kernel=RBF(0.1), mean=0.0, noise=1e-6)
study.ask()
print(loaded - start, time.perf_counter() - loaded)
"""


def rows(quick: bool) -> list[Row]:
    side = 12 if quick else 50
    own = OWN.format(side=side)
    peer = PEER
    if not quick:
        _fresh(own)
    imports = []
    firsts = []
    peers = []
    for _ in range(1 if quick else 7):
        (taken,) = _fresh(peer)
        loaded, first = _fresh(own)
        peers.append(taken)
        imports.append(loaded)
        firsts.append(first)
    return [
        Row(
            "import",
            "import truvar / import sklearn.gaussian_process, fresh processes",
            median(imports) / median(peers),
            "x",
            at_most(1.5),
            f"{median(imports):.2f} against {median(peers):.2f} s",
        ),
        Row(
            "first-suggestion",
            f"first suggestion in a fresh process, N={side * side}, after the imports",
            median(firsts),
            "s",
            at_most(1.5),
            f"{median(imports) + median(firsts):.2f} s with the imports",
        ),
    ]


def _fresh(code: str) -> list[float]:
    """Return the numbers that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]
