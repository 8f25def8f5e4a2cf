"""Records of nodes with more than RAPL."""

from __future__ import annotations

import json
from typing import Any


def two_meters(maker: Any) -> None:
    """Add two meters that report 1000 J and 700 J of one package in 10 s."""
    record = json.loads(maker.rows["records"][0]["record"])
    zone = {"covers": "package", "unit": 0, "measures": "energy", "elapsed_s": 10.0}
    record["energy"] = {
        "covers": ["package"],
        "zones": [
            zone | {"meter": "powercap", "path": "/sys/class/powercap/a:0", "energy_j": 1000.0},
            zone | {"meter": "perf", "path": "/sys/bus/event_source/x", "energy_j": 700.0},
        ],
    }
    maker.rows["records"][0]["record"] = json.dumps(record)


def counted_by(*sources: str) -> Any:
    """Set the source of memory in each condition's records, in turn; "program": steelyard-time."""

    def change(maker: Any) -> None:
        for number, row in enumerate(maker.rows["records"]):
            source = sources[number % len(sources)]
            record = json.loads(row["record"]) | {"memory": {"source": source}}
            row["record"] = json.dumps(record)
            if source == "program":
                own = {"shells_cpu_s": 9.0, "cpu_s": 8.9, "max_memory_bytes": 1000}
                keys = {key: row[key] for key in ("run_id", "attempt")}
                maker.rows["command_usage"].append(keys | own | {"largest_process_bytes": 900})

    return change


def unlike_parts(maker: Any) -> None:
    for number, covers in enumerate((["node"], ["package", "dram"])):
        record = json.loads(maker.rows["records"][number]["record"])
        record["energy"] = {"covers": covers, "zones": []}
        maker.rows["records"][number]["record"] = json.dumps(record)
