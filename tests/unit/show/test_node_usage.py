"""How `steelyard show` prints what a job used."""

from __future__ import annotations

from typing import Any

from steelyard.facts.quantities import METRICS
from steelyard.wrappers.show import job_pair, job_text, node_usage

BYTES = 8_304_721  # 7.92 MiB, 8.3 MB


def values() -> dict[str, Any]:
    return dict.fromkeys(METRICS, None) | {"max_memory_bytes": BYTES, "rx_bytes": BYTES}


def test_memory_has_one_unit_wherever_it_is_printed() -> None:
    """The unit in which it is requested, as in `asked and used`; what was sent stays in powers of 10."""
    cells = dict(zip(node_usage.USE_HEADINGS, node_usage.usage_cells(values()), strict=True))
    assert cells["memory"] == "7.92 MiB"
    assert "8.3 MB" in " ".join(cells.values())
    assert job_text.WORDS["memory_used_bytes"][1](BYTES) == "7.92 MiB"
    one = job_pair.Used("max_memory_bytes", "bytes", BYTES, 2 * BYTES)
    assert job_pair.format_used(one)[1:3] == ("7.92 MiB", "15.8 MiB")


def test_the_memory_of_all_nodes_is_said_to_be_of_the_largest() -> None:
    cells = dict(
        zip(node_usage.USE_HEADINGS, node_usage.usage_cells(values(), of_all=True), strict=True)
    )
    assert cells["memory"] == "7.92 MiB on one node"
    nothing = dict.fromkeys(METRICS, None)
    assert (
        dict(
            zip(node_usage.USE_HEADINGS, node_usage.usage_cells(nothing, of_all=True), strict=True)
        )["memory"]
        == node_usage.usage_cells(nothing)[node_usage.USE_HEADINGS.index("memory")]
    )
