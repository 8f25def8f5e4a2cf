"""Features of OpenPBS only: accounting by a hook, altered requests, reruns."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.pbs import records
from tests.pbs.conftest import RECORDS, Server

ALTERED = (
    "steelyard: --netem=delay=50: netem: delay=50: "
    "expected a time with unit us, ms or s, such as 50ms"
)


@pytest.fixture
def openpbs(server: Server) -> Server:
    if server.torque:
        pytest.skip("the server is a Torque")
    return server


def used(found: dict[str, Any]) -> dict[str, Any]:
    """The hook's JSON; merged from several hosts it comes in single quotes."""
    text = found["resources_used.steelyard_used"].replace("\n\t", "")
    told = json.loads(text.removeprefix("'").removesuffix("'"))
    assert isinstance(told, dict)
    return told


def test_the_server_has_each_nodes_totals(openpbs: Server) -> None:
    job = openpbs.submit("sleep 3", *openpbs.nodes(2), "-v", "STEELYARD_TAGS=a=b")
    found = openpbs.wait(job)
    by_node = {record["node"]: record for record in records.of(RECORDS, job, nodes=2)}
    told = used(found)
    assert set(told) == set(by_node)
    joules = []
    for node, totals in told.items():
        assert totals["tags"] == {"a": "b"}
        assert totals["elapsed_s"] == pytest.approx(by_node[node]["elapsed_s"], abs=1e-3)
        assert totals["energy_j"] == by_node[node]["energy"]["energy_j"]
        joules.append(totals["energy_j"] or 0.0)
    if not any(joules):
        assert "resources_used.energy" not in found
        pytest.skip("the nodes have no RAPL: nothing to sum")
    # 23.06: qstat shows the other node's last report, only the E record has the sum (#2656).
    shown = float(found["resources_used.energy"])
    assert any(shown == pytest.approx(truth, rel=1e-6) for truth in (sum(joules), *joules))


def test_a_request_is_not_altered_into_a_faulty_one(openpbs: Server) -> None:
    job = openpbs.submit("sleep 1", "-h", "-l", "steelyard=tag=a%3Db")
    faulty = ["qalter", "-l", "steelyard=netem=delay%3D50", job]
    done = subprocess.run(faulty, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert ALTERED in done.stderr
    good = ["qalter", "-l", "steelyard=tag=a%3Dc", job]
    subprocess.run(good, check=True, timeout=30)
    assert openpbs.job(job)["Resource_List.steelyard"] == "tag=a%3Dc"
    subprocess.run(["qdel", job], check=True, timeout=30)


def test_variables_are_seen_as_the_resource(openpbs: Server) -> None:
    words = ["-h", "-v", "STEELYARD_NETEM=delay=50ms\\,loss=1%,STEELYARD_TAGS=a=b"]
    job = openpbs.submit("sleep 1", *openpbs.nodes(1), *words)
    text = "netem=delay%3D50ms%2Closs%3D1%25:tag=a%3Db"
    assert openpbs.job(job)["Resource_List.steelyard"] == text
    subprocess.run(["qdel", job], check=True, timeout=30)


def test_qstat_tells_of_odd_names(openpbs: Server) -> None:
    """Names and variables that broke qstat's JSON: what we read is text."""
    job = openpbs.submit("sleep 1", "-h", "-N", "nan", "-v", "X=.5,Y=a\\\\b")
    assert openpbs.job(job)["Job_Name"] == "nan"
    subprocess.run(["qdel", job], check=True, timeout=30)


def test_a_job_that_ran_out_of_time_has_totals(openpbs: Server) -> None:
    job = openpbs.submit("sleep 600", "-l", "walltime=3")
    found = openpbs.wait(job)
    assert found["Exit_status"] == "-29"
    (record,) = records.of(RECORDS, job)
    (totals,) = used(found).values()
    assert totals["elapsed_s"] == pytest.approx(record["elapsed_s"], abs=1e-3)
