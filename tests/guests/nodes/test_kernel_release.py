"""The kernel as a factor on a real cluster: its host's and its guests', each run verified."""

from __future__ import annotations

import os

from tests.throwaway_lab import Lab

STUDY = """
[study]
name = "kernels"
repeat = 1
[job]
time_limit = "00:02:00"
[factors]
kernel_release = ["{host}", "{guest}"]
[place."{host}"]
slurm = "--constraint=physical"
[place."{guest}"]
slurm = "--constraint=virtual"
[[benchmark]]
use = "app"
command = "uname -r"
"""


def test_each_level_runs_on_its_kernel_and_the_record_says_so(virtual_lab: Lab) -> None:
    host = os.uname().release
    guest = virtual_lab.cluster.find_guest("v1").run(["uname", "-r"]).stdout.strip()
    text = STUDY.format(host=host, guest=guest)
    (virtual_lab.work / "kernels.toml").write_text(text)
    virtual_lab.steelyard("submit", "kernels.toml")
    virtual_lab.wait_study("kernels.toml")
    virtual_lab.collect("kernels.toml")
    runs = virtual_lab.rows(
        "kernels",
        "SELECT run_id, json_extract_string(condition, 'kernel_release'), attempt, state, "
        "coalesce(valid, true) FROM runs",
    )
    ran = {level: (state, valid) for _, level, _, state, valid in runs}
    assert ran == {host: ("completed", True), guest: ("completed", True)}
    for run_id, level, attempt, _, _ in runs:
        out = virtual_lab.work / "kernels.study/runs" / run_id / attempt / "out.0"
        assert out.read_text().strip() == level
