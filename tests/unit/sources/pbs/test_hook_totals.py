"""Tests read the hook's reports of each node in the row of the job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steelyard.analysis.sources.pbs import accounting_rows

SILENT = "the sampler did not answer"
LOST = {"nodes_measured": 0, "energy_j": None, "exclusive": True, "missing": {"energy_j": SILENT}}


def told(energy_j: float | None) -> dict[str, Any]:
    return {"nodes_measured": 1, "energy_j": energy_j, "exclusive": True}


def cells_of(hosts: str, energy: str, **by_node: dict[str, Any]) -> dict[str, str]:
    fields = {
        "exec_host": hosts, "resources_used.energy": energy, accounting_rows.HOOK: json.dumps(by_node),
    }  # fmt: skip
    return accounting_rows.build_cells("7.srv", fields, "completed", None, 0, (1.0, 2.0, 3.0), {})


@pytest.mark.parametrize(
    ("by_node", "joules"),
    [
        ({"n1": told(80.5), "n2": told(19.5)}, "100"),
        ({"n1": told(80.5), "n2": told(None)}, ""),
        ({"n1": told(80.5), "n2": LOST}, ""),
        ({"n1": told(80.5)}, ""),  # as qstat of OpenPBS 23.06 has it
    ],
)
def test_joules_of_some_nodes_are_not_the_jobs(by_node: dict[str, Any], joules: str) -> None:
    """The server adds up the reports, but does not state that a node sent none."""
    server_says = f"{sum(node['energy_j'] or 0 for node in by_node.values()):g}"
    row = cells_of("n1/0+n2/0", server_says, **by_node)
    assert row["ConsumedEnergyRaw"] == joules


def test_a_node_whose_sampler_was_gone_is_not_counted() -> None:
    comment = json.loads(cells_of("n1/0+n2/0", "1", n1=told(1.0), n2=LOST)["AdminComment"])
    assert (comment["nodes"], comment["nodes_measured"], comment["energy_j"]) == (2, 1, None)
    assert comment["missing"]["energy_j"] == f"n2: {SILENT}"
