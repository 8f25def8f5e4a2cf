"""Parameters that follow from a run's nodes, tasks and processors where the study gives none.

A study that makes `nodes`, `tasks_per_node` or `cpus_per_task` a factor changes the job, and with
it the number of MPI ranks, HPL's grid of processes and the threads of each rank."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from steelyard.jobscripts.registry import Benchmark
from steelyard.wrappers.study.job_settings import ALLOCATION, Job

GRID = ("p", "q")  # HPL's rows and columns of processes


def job_parameters(
    benchmark: Benchmark, job: Job, levels: Mapping[str, object], given: Collection[str]
) -> dict[str, int]:
    """Return the parameters that follow from the job of a run with these levels, without those in
    `given`.

    ranks (or p × q): nodes × tasks_per_node, where one of ALLOCATION is a factor. threads:
    cpus_per_task, where it is known."""
    own = job.apply_levels(levels)
    found = {} if own.cpus_per_task is None else {"threads": own.cpus_per_task}
    if any(name in levels for name in ALLOCATION):
        ranks = own.nodes * (own.tasks_per_node or 1)
        found["ranks"] = ranks
        if not any(name in given for name in GRID):
            found |= dict(zip(GRID, find_squarest_grid(ranks), strict=True))
    return {
        name: value
        for name, value in found.items()
        if name in benchmark.parameters and name not in given
    }


def find_squarest_grid(ranks: int) -> tuple[int, int]:
    """Return the rows × columns of the most square grid with no more rows than columns, which HPL's
    authors advise (netlib.org/benchmark/hpl/faqs.html: "P and Q approximately equal, Q slightly
    larger")."""
    rows = next(rows for rows in range(math.isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows
