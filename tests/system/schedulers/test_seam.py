"""Only a scheduler's own files depend on it; another one needs no change elsewhere.

The other one belongs to the test, with only the parts of Torque that its recorded log and these
checks need.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.unit.schedulers.test_seam import STUDY
from tests.unit.schedulers.test_seam import torque as torque  # noqa: PLC0414 - a fixture

from steelyard.analysis.collect import collect
from steelyard.wrappers.commands import cli

IDS = ["0.vm", "1.vm"]  # as qsub told them
SHELL = """
SY_SCHEDULERS+=(torque)
sy_torque_is_inside_job() { [[ -n ${PBS_JOBID:-} ]]; }
sy_torque_variables() { printf '%s\\n' "${!PBS_@}"; }
sy_torque_job_id() { :; }
sy_torque_memory_kib() { :; }
sy_torque_begin() { SY_JOB_ID=$PBS_JOBID; }
sy_torque_attempt_name() { printf '%s.0' "$PBS_JOBID"; }
sy_torque_launch() { SY_ROLE=client "$BASH" "$1" & SY_PIDS=($!); }
sy_torque_version() { :; }
sy_torque_is_noise() { return 1; }
sy_torque_end_unix_s() { :; }
sy_torque_is_time_limit_reached() { return 1; }
sy_torque_set_client() { SY_CLIENT=0 SY_THIS_NODE=vm SY_STEP=-; }
"""


def test_another_scheduler_needs_no_change_elsewhere(
    torque: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.toml").write_text(STUDY, encoding="utf-8")
    assert cli.main(["submit", str(tmp_path / "two.toml"), "--scheduler", "torque"]) == 0
    study = tmp_path / "two.study"
    entries = [json.loads(line) for line in (study / "submissions.jsonl").read_text().splitlines()]
    assert [entry["job_id"] for entry in entries] == IDS
    scripts = [(study / f"submissions/{e['submission_id']}.sh").read_text() for e in entries]
    assert all("#PBS -l nodes=1:virtual\n" in text for text in scripts)
    assert ["#PBS -v STEELYARD_NETEM=delay=50ms" in text for text in scripts].count(True) == 1

    (path,) = (study / "lib").iterdir()
    with path.open("a", encoding="utf-8") as library:
        library.write(SHELL)  # as a file of jobscripts/lib/schedulers
    done = subprocess.run(
        ["bash", study / "submissions" / f"{entries[0]['submission_id']}.sh"],
        env={**os.environ, "PBS_JOBID": IDS[0]}, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    attempt = study / "runs" / entries[0]["run_ids"][0] / "0.vm.0"
    result = json.loads((attempt / "result.json").read_text())
    assert (result["scheduler"], result["job_id"], result["nodes"]) == ("torque", "0.vm", ["vm"])

    capsys.readouterr()
    assert cli.main(["status", str(study), "--json"]) == 5
    progress = json.loads(capsys.readouterr().out)
    assert (progress["done"], progress["failed"]) == (1, 1)
    assert progress["failures"][0]["reason"].startswith("exit status ")
    # The log is older than the study: submitted then.
    lines = [json.dumps(entry | {"submitted_unix_s": 1795240009.5}) for entry in entries]
    (study / "submissions.jsonl").write_text("".join(f"{line}\n" for line in lines))
    collected = collect.collect(study, patience_s=0)
    assert dict(collected.states) == {"completed": 1, "cancelled": 1}
