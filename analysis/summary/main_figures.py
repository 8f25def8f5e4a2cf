"""Which metrics stand in the first tables and figures."""

from __future__ import annotations

from steelyard.analysis.summary.energy_metrics import METRICS as ENERGY_SHARES
from steelyard.analysis.summary.gpu_energy import METRIC as GPU_ENERGY
from steelyard.analysis.summary.summary import Row

# Of every run, shares where they were asked for; shown beside a benchmark's own figures.
MAIN = ("elapsed_s", "energy_j", *ENERGY_SHARES, GPU_ENERGY, "cpu_s")


def is_main(row: Row) -> bool:
    """Whether a metric stands in the first tables."""
    return row.metric.is_primary or row.metric.name in MAIN
