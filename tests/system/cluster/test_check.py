"""`steelyard check` and what `submit` refuses, by a real Slurm's partition and sbatch."""

from __future__ import annotations

import json
from typing import Any

import pytest

STUDY = """\
[study]
name = "{name}"
repeat = 2
[job]
{job}
[factors]
{factors}
[[benchmark]]
use = "filesystem"
test = "small_file_write"
write_files = 2
iterations = 1
"""
# [job], [factors], and the refusal of a real cluster of two physical and two virtual nodes.
REFUSED = {
    "too many of a type": (
        "",
        'clients = [1, 3]\nnode_type = ["physical"]',
        (
            'factors.clients: 3 with node_type "physical": 3 nodes are asked for, and partition main '
            "has 2 that fit"
        ),
    ),
    "a partition that is not there": (
        'partition = "nowhere"',
        "",
        "its jobs: refused by slurm: Invalid partition name specified",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_cluster_cannot_have_is_told_before_anything_is_submitted(
    lab: Any, case: str
) -> None:
    job, factors, words = REFUSED[case]
    file = lab.work / "refused.toml"
    file.write_text(STUDY.format(name="refused", job=job, factors=factors))
    before = lab.queued()
    told = json.loads(lab.steelyard("check", str(file), "--json", code=3))
    (problem,) = [one for one in told["problems"] if one["sure"]]
    assert words in problem["text"]
    done = lab.ours("submit", str(file))
    assert done.returncode == 3
    assert words in done.stderr
    assert lab.queued() <= before  # one of before may have ended
    assert not (lab.work / "refused.study" / "runs").exists()


def test_nodes_that_are_drained_are_a_warning(lab: Any) -> None:
    (lab.work / "drained.toml").write_text(STUDY.format(name="d", job="nodes = 4", factors=""))
    assert (
        lab.run("scontrol", "update", "nodename=n4", "state=drain", "reason=test").returncode == 0
    )
    try:
        told = json.loads(lab.steelyard("check", "drained.toml", "--json"))
    finally:
        lab.run("scontrol", "update", "nodename=n4", "state=resume")
    assert told["cost"]["known_nodes"] == 4
    (problem,) = told["problems"]
    assert not problem["sure"]
    assert problem["text"].endswith(
        "job.nodes = 4: 4 nodes are asked for, and of the 4 of partition main 3 are up now: jobs "
        "will wait"
    )
