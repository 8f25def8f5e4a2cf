"""Network conditions of records: into the database, and what makes a run invalid."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from steelyard.analysis.collect.network import normalize_specification


@pytest.mark.parametrize(
    "level",
    [
        *("delay=0ms", "delay=0s~0us", "delay=50ms~0ms", "delay=50ms~5ms/uniform"),
        *("loss=0.0%", "loss=0.10%", "loss=gemodel:1%:99%", "loss=gemodel:1%:10%:100%"),
        *("loss=gemodel:1%:10%:100%:0%", "loss=gemodel:1%:99%:50%:0%", "loss=gemodel:0%:100%"),
        *("loss=gemodel:0.5%:10%:70%:0.1%", "rate=1000kbit", "rate=0.5gbit", "delay=1.5ms"),
        *("loss=state:1%:99%:0%", "loss=state:1%:10%:0%:100%:0.1%", "loss=state:2%:98%:0%:100%:0%"),
        *("rate=1000kbit:24:0:0", "rate=1mbit:-14:48", "slot=10ms:0.01s", "slot=1ms:2ms:0:0"),
        *("slot=10ms~0.002s/normal:3:0", "slot=10ms~2ms/pareto:0:1500", "trace=wan:repeat"),
        *("slot=1ms:1ms:0:1500", "slot=1ms:1ms:3:0", "loss=1%,seed=042,ecn=yes"),
        *("delay=1ms,limit=01000", "port=080,delay=0.001s", "delay=1ms,to=10.0.0.1/32"),
        *("delay=1ms,direction=egress", "delay=1ms,rto_min=0.002s", "delay=1ms,to=2001:DB8::/32"),
    ],
)
def test_a_level_means_what_the_node_writes_into_the_record(level: str) -> None:
    """The record has the text that the C parser makes of it."""
    node = Path(__file__).parents[3] / "build/bin/steelyard-node"
    done = subprocess.run(
        [node, "netem", "parse", level], check=True, capture_output=True, timeout=90
    )
    assert normalize_specification(json.loads(done.stdout)["requested"]) == normalize_specification(
        level
    )
