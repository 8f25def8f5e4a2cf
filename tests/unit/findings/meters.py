"""Records of nodes with more than RAPL."""

from __future__ import annotations

import json
from typing import Any


def two_meters(maker: Any) -> None:
    """They tell 1000 J and 700 J of one package in 10 s."""
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


def unlike_parts(maker: Any) -> None:
    for number, covers in enumerate((["node"], ["package", "dram"])):
        record = json.loads(maker.rows["records"][number]["record"])
        record["energy"] = {"covers": covers, "zones": []}
        maker.rows["records"][number]["record"] = json.dumps(record)
