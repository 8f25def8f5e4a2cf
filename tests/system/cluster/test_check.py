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
# [job], [factors], and what a real cluster of two physical and two virtual nodes says of it.
REFUSED = {
    "too many clients": (
        "",
        "clients = [1, 8]",
        "factors.clients: 8: 8 nodes are asked for, and partition main has 4 that fit",
    ),
    "too many of a type": (
        "",
        'clients = [1, 3]\nnode_type = ["physical"]',
        (
            'factors.clients: 3 with node_type "physical": 3 nodes are asked for, and partition main '
            "has 2 that fit"
        ),
    ),
    "a type that is not there": (
        "",
        'node_type = ["physical", "gpu"]',
        (
            "factors.node_type: \"gpu\": no node of partition main has the feature 'gpu' (there: "
            "physical, virtual); [place.gpu]"
        ),
    ),
    "more nodes than there are": (
        "nodes = 5",
        "",
        "job.nodes = 5: 5 nodes are asked for, and partition main has 4 that fit",
    ),
    "more memory than a node has": (
        'options = ["--mem=999G"]',
        "",
        "its jobs: refused by slurm: Requested node configuration is not available",
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


def test_a_check_tells_the_nodes_and_after_a_trial_the_cost(lab: Any) -> None:
    text = STUDY.format(name="asked", job='time_limit = "00:06:00"', factors="clients = [1, 2]")
    (lab.work / "asked.toml").write_text(text)
    told = json.loads(lab.steelyard("check", "asked.toml", "--json"))
    cost = told["cost"]
    cores = int(lab.run("scontrol", "-o", "show", "node").stdout.split("CPUTot=")[1].split()[0])
    # Two runs on a node and two on two, at most six minutes each.
    assert cost["core_hours_at_most"] == pytest.approx((2 + 2 * 2) * cores * 0.1)
    assert cost["core_hours"] is None
    assert "no earlier run" in cost["missing"]["core_hours"]
    assert cost["known_nodes"] == 4
    lab.steelyard("submit", "asked.toml")
    lab.steelyard("status", "asked.toml", "--watch")
    lab.collect("asked.toml")
    after = json.loads(lab.steelyard("check", "asked.toml", "--json"))
    assert after["to_submit"] == 0
    (lab.work / "more.toml").write_text(text.replace('"asked"', '"more"'))
    more = json.loads(lab.steelyard("check", "more.toml", "--earlier", "asked", "--json"))["cost"]
    rows = lab.rows("asked", "SELECT elapsed_s, clients FROM attempts")
    used = sum(seconds * clients * cores / 3600 for seconds, clients in rows)
    assert more["core_hours"] == pytest.approx(used)
    assert after["cost"]["core_hours_used"] == pytest.approx(used)
    assert more["earlier"] == {"the same condition": 4}
    assert more["end_all_s"] <= sum(seconds for seconds, _ in rows)


def test_nodes_that_are_drained_are_a_warning(lab: Any) -> None:
    (lab.work / "drained.toml").write_text(STUDY.format(name="d", job="nodes = 4", factors=""))
    assert (
        lab.run("scontrol", "update", "nodename=n4", "state=drain", "reason=test").returncode == 0
    )
    try:
        told = json.loads(lab.steelyard("check", "drained.toml", "--json"))
    finally:
        lab.run("scontrol", "update", "nodename=n4", "state=resume")
    (problem,) = told["problems"]
    assert not problem["sure"]
    assert problem["text"].endswith(
        "job.nodes = 4: 4 nodes are asked for, and of the 4 of partition main 3 are up now: jobs "
        "will wait"
    )
