"""Which metrics stand in the first tables and figures."""

from __future__ import annotations

from steelyard.analysis.base.benchmark_traits import elapsed_figures
from steelyard.analysis.summary.energy_metrics import METRICS as ENERGY_SHARES
from steelyard.analysis.summary.gpu_energy import METRIC as GPU_ENERGY
from steelyard.analysis.summary.summary import Row

# Of every run, shares where they were asked for; shown beside a benchmark's own figures.
MAIN = ("elapsed_s", "energy_j", *ENERGY_SHARES, GPU_ENERGY, "cpu_s")


def is_main(row: Row) -> bool:
    """Whether a metric stands in the first tables."""
    return row.metric.is_primary or is_common(row.group.variant, row.metric.name)


def is_common(variant: str, metric: str) -> bool:
    """Whether a metric of every run stands there: elapsed_s only where the benchmark has no figure
    that is the same time."""
    return metric in MAIN and not (metric == "elapsed_s" and elapsed_figures(variant))
