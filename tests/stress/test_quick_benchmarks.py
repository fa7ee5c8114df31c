"""All benchmarks run at tiny sizes: the servers, clusters and commands that they start, and the
table they print."""

import json

from benchmarks.__main__ import main

ROWS = {
    *("step", "step-whole", "step-single", "step-single-whole"),
    *(
        f"{case}{variant}"
        for case in (
            *("optimum-2500", "level-set-2500", "three-noise-levels-2500"),
            *("optimum-10k", "level-set-10k"),
        )
        for variant in ("", "-fixed", "-tuned")
    ),
    *("optimum-10k-dense", "level-set-10k-dense"),
    *("peer-scikit-learn", "peer-gpytorch", "peer-botorch", "peer-jax"),
    *(
        f"{row}-{layout}-{goal}"
        for row in (
            *(f"suggestion-{size}" for size in ("2.5k", "10k", "100k", "1M")),
            "memory-1M",
            "growth",
        )
        for layout in ("grid", "scattered")
        for goal in ("optimum", "level-set")
    ),
    *(f"{of}-{noise}" for of in ("variance", "mean") for noise in ("1e-06", "1e-10", "1e-10-long")),
    "given-away",
    "study-overhead",
    *("baseline-es", "baseline-pes", "baseline-mrs"),
    *(f"startup-{row}" for row in ("help", "version", "import", "ask", "tell", "status", "optuna")),
    *("startup-help-optuna", "startup-version-optuna"),
    *("import", "first-suggestion"),
    *(
        f"learning-{t}{row}"
        for t in (10, 20)
        for row in ("", "-ratio", "-scikit-learn", "-botorch")
    ),
    *(
        f"learned-{case}{row}"
        for case in ("400-12", "2700-12")
        for row in ("", "-ratio", "-botorch")
    ),
    *("learned-2700-12-result", "learned-2700-12-statements"),
    *(f"learned-optimum-400-12{row}" for row in ("", "-botorch", "-optuna")),
    "learned-table-30",
    "learned-wafer",
    *(f"profile-400-grid-12{row}" for row in ("", "-result", "-statements")),
    *("search-grid-20000-cheap", "search-grid-20000-expensive"),
    *(f"search-wine-{method}" for method in ("truvar", "random", "halving", "TPE")),
    *(f"optuna-branin-{row}" for row in ("truvar", "GP", "TPE", "random", "overhead")),
    "cluster-busy",
    *("cluster-step-one", "cluster-step-sharded", "cluster-cpu-one", "cluster-cpu-sharded"),
    *("cluster-memory-one", "cluster-memory-client", "cluster-memory-worker"),
    *(f"service-{row}" for row in ("rate", "p99", "p99-tell", "p99-look", "lost", "doubled")),
    *(
        f"service-{database}-{row}"
        for database in ("sqlite", "postgresql")
        for row in (
            "rate",
            "spread",
            "processor",
            "optuna",
            "optuna-spread",
            "optuna-processor",
            "ratio",
        )
    ),
    "weighted-100-level-set",
    "weighted-100-optimum",
    "weighted-144-level-set",
    "weighted-144-optimum",
    "weighted-1M-level-set",
    "weighted-1M-level-set-certified",
    "weighted-1M-level-set-matern52",
    "weighted-1M-level-set-matern52-certified",
    "weighted-1M-optimum",
    "weighted-1M-optimum-certified",
    "weighted-load-100",
    "weighted-long-100",
    "weighted-long-400",
    "weighted-900",
    "box-Branin-from-nothing-49-representers-plus-without-refinement",
    "box-Branin-from-nothing-49-representers-plus-refined",
    "box-Branin-from-nothing-49-representers-ei",
    "box-Branin-known-kernel-49-representers-TruVaR-without-refinement",
    "box-Branin-known-kernel-49-representers-TruVaR-refined",
    "box-Hartmann-3-known-kernel-49-representers-TruVaR-without-refinement",
    "box-Hartmann-3-known-kernel-49-representers-TruVaR-refined",
    "box-draw-of-a-Gaussian-process-known-kernel-49-representers-TruVaR-without-refinement",
    "box-draw-of-a-Gaussian-process-known-kernel-49-representers-TruVaR-refined",
    "box-draw-of-a-Gaussian-process-known-kernel-49-representers-TruVaR-refined-M-not-monotone",
    "average-error",
    "average-implicit-error",
    "average-implicit-loss",
    "average-implicit-ratio",
    "average-optimum-error",
    "average-optimum-loss",
    "average-optimum-ratio",
    "failures-region-corner-of-a-square-level-set",
    "failures-region-half-of-a-box-maximum",
    "failures-region-half-of-a-square-maximum",
    "failures-region-left-half-maximum",
    "failures-region-left-half-minimum",
    "failures-region-right-half-level-set",
    "failures-region-right-half-maximum",
    "failures-travel-failures",
    "failures-travel-strip",
    "failures-unit-failures",
    "failures-unit-strip",
    "study-level-set-mean-estimated",
    "study-level-set-mean-estimated-ratio",
    "study-level-set-mean-given",
    "study-level-set-mean-given-ratio",
    "study-optimum-mean-estimated",
    "study-optimum-mean-estimated-ratio",
    "study-optimum-mean-given",
    "study-optimum-mean-given-ratio",
    "tell-calls",
    "tracks-0.15-0.1-along",
    "tracks-0.15-0.1-along-told",
    "tracks-0.15-0.1-sawtooth",
    "tracks-0.15-0.1-told",
}


def test_the_quick_benchmarks_print_and_record_every_row(tmp_path, capsys):
    path = tmp_path / "deep" / "bench.json"
    assert main(["--quick", "--json", str(path)]) == 0
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["quick"] is True
    assert {row["name"] for row in record["rows"]} == ROWS
    assert len(record["rows"]) == len(ROWS)
    printed = capsys.readouterr().out
    for row in record["rows"]:
        assert row["what"] in printed
        assert row["measured"] is not None or row["note"]
