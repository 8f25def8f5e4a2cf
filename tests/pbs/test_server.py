"""Jobs of an ordinary user through a real server: measured on every node, refused where they should be."""

from __future__ import annotations

import subprocess

import pytest
from tests.pbs import records
from tests.pbs.conftest import RECORDS, Server

from steelyard.wrappers.base.programs import find_node_program

BURN = "t=$(($(date +%s) + 3)); while [ $(date +%s) -lt $t ]; do :; done; times >cpu"


def seconds(text: str) -> float:
    minutes, _, rest = text.rstrip("s").partition("m")
    return 60 * float(minutes) + float(rest)


def test_a_job_is_measured_as_its_shell_counts(server: Server) -> None:
    job = server.submit(f"cd {server.folder}; {BURN}", *server.nodes(1))
    assert int(server.wait(job).get("exit_status", server.job(job).get("Exit_status", -1))) == 0
    (record,) = records.of(RECORDS, job)
    words = (server.folder / "cpu").read_text().split()
    truth_s = sum(seconds(word) for word in words)
    # On a busy node the I/O of a job with a cgroup may be reported as missing: its CPU is complete.
    whole = record["complete"] or "their I/O is not known" in record["incomplete_reason"]
    assert whole, record["incomplete_reason"]
    assert record["job"]["scheduler"] == "pbs"
    assert record["job"]["job_id"] == job
    assert record["cpu"]["cpu_s"] == pytest.approx(truth_s, abs=0.5)
    assert 2 <= record["elapsed_s"] <= 60


def test_every_node_of_a_job_has_its_record(server: Server) -> None:
    job = server.submit("sleep 3", *server.nodes(2))
    server.wait(job)
    found = records.of(RECORDS, job, nodes=2)
    assert len({record["node"] for record in found}) == 2
    for record in found:
        assert record["complete"], record["incomplete_reason"]
        assert record["elapsed_s"] >= 2


def test_tags_of_the_environment(server: Server) -> None:
    job = server.submit("sleep 1", "-v", "STEELYARD_TAGS=colour=red;size=9")
    server.wait(job)
    (record,) = records.of(RECORDS, job)
    assert record["tags"] == {"colour": "red", "size": "9"}


def test_every_task_of_an_array(server: Server) -> None:
    array = server.submit("sleep 1", *server.array(3))
    assert "[]" in array
    for index in range(3):
        task = array.replace("[]", f"[{index}]")
        server.wait(task)
        (record,) = records.of(RECORDS, task)
        assert record["job"]["job_id"] == task


def test_a_faulty_condition_is_refused_at_qsub(server: Server) -> None:
    words = [find_node_program(), "job", "check", "--netem=dela=50ms"]
    truth = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    done = server.qsub("sleep 1", "-v", "STEELYARD_NETEM=dela=50ms")
    assert done.returncode != 0
    assert done.stdout == ""
    assert truth.strip().removeprefix("steelyard: ") in done.stderr


def test_what_a_node_cannot_do_ends_the_job_once(server: Server) -> None:
    """It is refused at qsub by the policy, else on the node, without endless requeueing."""
    done = server.qsub("echo ran >ran", "-v", r"STEELYARD_NETEM=rate=100mbit\,dev=steelyard0")
    if done.returncode != 0:
        assert "dev=steelyard0" in done.stderr
        pytest.skip(f"refused at qsub: {done.stderr.splitlines()[0]}")
    job = done.stdout.strip()
    found = server.wait(job)
    assert int(found.get("start_count", found.get("run_count", 0))) == 1
    assert int(found.get("exit_status", found.get("Exit_status", 0))) < 0
    assert not (server.folder / "ran").exists()


@pytest.mark.parametrize("name", ["a'b", "$(id)", "x=y;z"])
def test_any_name(server: Server, name: str) -> None:
    done = server.qsub("sleep 1", "-N", name)
    if done.returncode != 0:
        pytest.skip(f"this qsub takes no such name: {done.stderr.splitlines()[0]}")
    job = done.stdout.strip()
    server.wait(job)
    (record,) = records.of(RECORDS, job)
    assert record["job"]["name"] == name


def test_a_deleted_job_has_its_record(server: Server) -> None:
    job = server.submit("sleep 600")
    server.until(job, lambda found: found.get("job_state") == "R")
    subprocess.run(["qdel", job], check=True)
    server.wait(job)
    (record,) = records.of(RECORDS, job)
    assert record["elapsed_s"] < 600
