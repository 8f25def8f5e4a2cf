"""A study through the real cluster, by the commands that a user types."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.throwaway_lab import Lab, until

STUDY = """
[study]
name = "small"
repeat = {repeat}
blocks = {repeat}
seed = 7
[job]
time_limit = "00:02:00"
[factors]
clients = [1, 2]
[baseline]
clients = 1
[[benchmark]]
use = "filesystem"
test = "small_file_write"
write_files = 20
directory = "{directory}"
"""


def write_study(lab: Lab, repeat: int, directory: Path) -> str:
    """Write a study of two conditions; return its file's name."""
    file = lab.work / "small.toml"
    file.write_text(STUDY.format(repeat=repeat, directory=directory), encoding="utf-8")
    return file.name


def submissions(lab: Lab) -> list[dict[str, Any]]:
    """Return the submissions so far."""
    text = (lab.work / "small.study" / "submissions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_study_from_submission_to_report(lab: Lab) -> None:
    """Every run is done once, measured on every node it had, merged once and reported."""
    study = write_study(lab, 2, lab.work)
    lab.steelyard("submit", study)
    assert len(submissions(lab)) == 4  # two blocks, each with one and with two nodes
    lab.wait_study(study)
    lab.collect(study)

    assert lab.rows("small", "SELECT state, valid, count(*) FROM runs GROUP BY ALL") == [
        ("completed", True, 4)
    ]
    nodes = lab.rows(
        "small",
        "SELECT run.condition_label, count(*) FROM records JOIN runs AS run USING (run_id) "
        "WHERE complete GROUP BY ALL ORDER BY ALL",
    )
    assert nodes == [("clients=1", 2), ("clients=2", 4)]
    assert lab.rows("small", "SELECT DISTINCT metric FROM results WHERE value > 0 ORDER BY metric")
    assert lab.rows("small", "SELECT min(cpu_s) > 0, min(samples) >= 2 FROM records") == [
        (True, True)
    ]
    # 20 files of 1 KiB, 5 times, a client on each node; the scripts around it write some kB.
    (written,) = lab.rows("small", "SELECT min(wchar_bytes), max(wchar_bytes) FROM records")
    assert 20 * 1024 * 5 <= written[0] <= written[1] < 20 * 1024 * 5 + 20_000
    assert lab.rows("small", "SELECT count(*) FROM records WHERE energy_j = 0") == [(0,)]

    # What may make a later night slower, of the scheduler and of the node.
    versions = lab.rows("small", "SELECT DISTINCT value FROM tags WHERE key = 'scheduler.version'")
    assert versions == [(lab.run("scontrol", "--version").stdout.strip(),)]
    kernels = lab.rows(
        "small",
        "SELECT DISTINCT record->>'$.probe.libc.version', "
        "record->>'$.probe.cpu.vulnerabilities.spectre_v2' FROM records",
    )
    text = Path("/sys/devices/system/cpu/vulnerabilities/spectre_v2").read_text(encoding="ascii")
    assert kernels == [(os.confstr("CS_GNU_LIBC_VERSION"), text.strip())]

    before = lab.rows("small", "SELECT * FROM results ORDER BY ALL")
    lab.collect(study)
    assert lab.rows("small", "SELECT * FROM results ORDER BY ALL") == before

    lab.steelyard("report", study, "-o", "report.html")
    text = (lab.work / "report.html").read_text(encoding="utf-8")
    assert "clients=2" in text
    assert "http://" not in text.replace("http://www.w3.org/", "")


def test_cancelled_runs_are_rows_with_their_state(lab: Lab) -> None:
    """A run that runs is running; `cancel` ends what runs and what waits, and none has failed."""
    study = write_study(lab, 1, lab.work)
    file = lab.work / study
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("write_files = 20", "iterations = 500"), encoding="utf-8")
    lab.steelyard("submit", study)
    until(lambda: lab.run("squeue", "-h", "-t", "R").stdout, "a run has started")
    # A user's settings for squeue do not affect ours: nothing is lost.
    mine = ("env", "SQUEUE_PARTITION=nowhere", "SQUEUE_STATES=SUSPENDED", "SACCT_FORMAT=user")
    words = ("-m", "steelyard.wrappers.commands.cli", "status", study, "--json")
    told = json.loads(lab.run(*mine, sys.executable, *words).stdout)
    assert (told["failed"], told["running"] + told["waiting"]) == (0, 2)
    lab.steelyard("cancel", study)

    def cancelled() -> bool:
        lab.collect(study)
        return lab.rows("small", "SELECT DISTINCT state FROM runs") == [("cancelled",)]

    until(cancelled, "the accounting knows that both runs were cancelled")


def test_a_node_type_is_a_feature_of_the_nodes(lab: Lab) -> None:
    """One NPB kernel, class S, by node type: each run is on a node with that feature."""
    (lab.work / "npb.toml").write_text(
        """
[study]
name = "small"
repeat = 1
[job]
time_limit = "00:02:00"
[factors]
node_type = ["physical", "virtual"]
[[benchmark]]
use = "npb"
kernel = "is"
class = "S"
""",
        encoding="utf-8",
    )
    lab.steelyard("submit", "npb.toml")
    lab.wait_study("npb.toml")
    lab.collect("npb.toml")
    assert lab.rows("small", "SELECT state, count(*) FROM runs GROUP BY ALL") == [("completed", 2)]
    assert lab.rows(
        "small", "SELECT count(*) FROM results WHERE metric = 'mops' AND value > 0"
    ) == [(2,)]
    nodes = {"physical": {"n1", "n2"}, "virtual": {"n3", "n4"}}
    for label, node in lab.rows(
        "small", "SELECT condition_label, node FROM records JOIN runs USING (run_id)"
    ):
        assert node in nodes[label.removeprefix("node_type=")]
