"""Usage of a job's processes that no process waits for.

It is exact to the byte if the nodes' kernel counts, and reported as missing if it does not
(`bpf=no`, an old kernel).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.pbs import records
from tests.pbs.conftest import RECORDS, Server

CHILDREN = 500
BURN_S = 0.003  # by a child
MORE_S = 0.001  # a child's start and end, of an orphan its parent's, too
SHELL_S = 0.3
SHELL_BYTES = 500_000  # its libraries, its script, the profile of the site
TOGETHER_S = 60


@pytest.fixture
def load(server: Server) -> str:
    program = server.folder / "load"
    source = Path(__file__).parents[1] / "system/bpf/load.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-pthread", "-o", program, source], check=True)
    return str(program)


def storm(server: Server, load: str, how: str, children: int, name: str = "$PBS_JOBID") -> str:
    """So many processes; a file holds what they did. Of one length: the shell reads it."""
    return f"{load} {how} {children:04} {BURN_S * 1e6:.0f} >{server.folder}/known.{name}"


def known(server: Server, name: str) -> dict[str, int]:
    told = json.loads((server.folder / f"known.{name}").read_text())
    assert isinstance(told, dict)
    return told


def beyond(record: dict[str, Any], truth: dict[str, int]) -> dict[str, int]:
    """Return the job's usage except its load, that is, its shell's own.

    If the node does not count, the record must list what is missing.
    """
    if record["io"]["source"] != "bpf":
        told = record["incomplete_reason"] or record["missing"]["cpu.unseen_s"]
        assert re.search("no step reported|no step has waited for", told)
        pytest.skip(f"not counted on {record['node']}, and told: {told}")
    said = record["incomplete_reason"], record["missing"].get("bpf.missed_ends")
    assert (record["complete"], *said) == (True, None, None)
    found = {name: record["io"][name] - truth[name] for name in truth}
    assert 0 < found["rchar_bytes"] < SHELL_BYTES
    assert 0 <= found["wchar_bytes"] < SHELL_BYTES
    return found


def assert_cpu_is_true(record: dict[str, Any], children: int) -> None:
    burned_s = children * BURN_S
    assert burned_s <= record["cpu"]["cpu_s"] <= burned_s + MORE_S * children + SHELL_S


@pytest.mark.parametrize("how", ["ignore", "orphan"])
def test_every_byte_of_processes_that_nobody_waits_for(server: Server, load: str, how: str) -> None:
    """What is beyond the load is the shell's own, and the same whatever the load's size."""
    found = []
    for children in (CHILDREN, 1):
        job = server.submit(storm(server, load, how, children))
        server.wait(job)
        (record,) = records.of(RECORDS, job)
        found.append(beyond(record, known(server, job)))
        assert_cpu_is_true(record, children)
    assert found[0] == found[1]


def test_cpu_is_what_the_shell_was_told_of_its_children(server: Server, load: str) -> None:
    """getrusage(2) reports the same of processes that were waited for."""
    script = f"bash -c '{storm(server, load, 'wait', CHILDREN)}; times >{server.folder}/times'"
    job = server.submit(script)
    server.wait(job)
    (record,) = records.of(RECORDS, job)
    words = re.findall(r"(\d+)m([0-9.]+)s", (server.folder / "times").read_text())
    truth_s = sum(60 * float(minutes) + float(seconds) for minutes, seconds in words)
    assert truth_s >= CHILDREN * BURN_S
    assert truth_s - 0.01 <= record["cpu"]["cpu_s"] <= truth_s + SHELL_S
    # The scheduler's own, in whole seconds, is read with a delay.
    hours, minutes, rest = map(int, server.job(job)["resources_used.cput"].split(":"))
    assert 3600 * hours + 60 * minutes + rest <= record["cpu"]["cpu_s"] + 1


def test_every_task_of_an_array_is_its_own(server: Server, load: str) -> None:
    tasks = 3
    array = server.submit(storm(server, load, "ignore", CHILDREN), *server.array(tasks))
    found = []
    for index in range(tasks):
        task = array.replace("[]", f"[{index}]")
        server.wait(task)
        (record,) = records.of(RECORDS, task)
        found.append(beyond(record, known(server, task)))
        assert_cpu_is_true(record, CHILDREN)
    assert found[1:] == found[:-1]


def test_two_jobs_of_a_user_on_one_node_are_told_apart(server: Server, load: str) -> None:
    """At once: each goes on when the other has begun."""
    os.mkfifo(server.folder / "meet")
    loads = {">": CHILDREN // 2, "<": CHILDREN}
    jobs = [
        server.submit(
            f": {way}{server.folder}/meet; {storm(server, load, 'ignore', children)}",
            "-l", f"walltime={TOGETHER_S}",
        )
        for way, children in loads.items()
    ]  # fmt: skip
    for job in jobs:
        server.wait(job)
    if not all((server.folder / f"known.{job}").exists() for job in jobs):
        pytest.skip(f"the two have not met on a node within {TOGETHER_S} s")
    found = [records.of(RECORDS, job)[0] for job in jobs]
    one, two = (beyond(r, known(server, job)) for r, job in zip(found, jobs, strict=True))
    assert one == two
    for record, children in zip(found, loads.values(), strict=True):
        assert_cpu_is_true(record, children)


def test_tasks_of_every_node(server: Server, load: str) -> None:
    """What TM starts: on the second node it is all that there is."""
    found = []
    for children in (CHILDREN, 1):
        task = server.folder / "task.sh"
        task.write_text(f"{storm(server, load, 'ignore', children, '$PBS_JOBID.$PBS_NODENUM')}\n")
        job = server.submit(f"pbsdsh sh {task}", *server.nodes(2))
        server.wait(job)
        first = server.job(job)["exec_host"].split("/")[0]
        by_node = {record["node"].split(".")[0]: record for record in records.of(RECORDS, job, 2)}
        ours = beyond(by_node.pop(first.split(".")[0]), known(server, f"{job}.0"))
        assert ours["wchar_bytes"] < SHELL_BYTES
        (other,) = by_node.values()
        found.append(beyond(other, known(server, f"{job}.1")))
        assert_cpu_is_true(other, children)
    assert found[0] == found[1]
