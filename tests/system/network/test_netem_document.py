"""What `steelyard-node netem` writes has the fields of facts/fields, and no others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.network.netem_wire import EtcLab, two_namespaces_with_etc

from steelyard.facts import json_fields

SITES = """site a 10.77.0.1
to b rate=8mbit,to=10.77.0.2
site b 10.77.0.2
to a rate=8mbit,to=10.77.0.1
"""
TRACE = "time_s,rate_mbit\n0,8\n3600,24\n"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[EtcLab]:
    with two_namespaces_with_etc(tmp_path) as made:
        made.put("wan.csv", TRACE)
        made.put("wan.sites", SITES)
        yield made


@pytest.mark.parametrize(
    "spec",
    ["rate=8mbit,dev=v0", "rate=8mbit,to=10.77.0.2", "trace=wan,to=10.77.0.2", "sites=wan"],
)
def test_a_document_has_the_declared_fields(lab: EtcLab, spec: str) -> None:
    done = lab.apply(spec, "1", "--peer=10.77.0.2")
    assert done.returncode == 0, done.stderr
    ended = lab.finish()
    faults = [
        json_fields.compare("network_conditions", one) for one in (json.loads(done.stdout), ended)
    ]
    assert faults == [[], []]
