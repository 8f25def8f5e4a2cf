"""Submitting to a PBS of paper, in both dialects: exact scripts, no run twice, nothing lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.collect.study import write_record
from tests.unit.schedulers.conftest import PaperPbs
from tests.unit.schedulers.test_pbs import folder_of, progress, submitted

from steelyard.wrappers.schedulers import ledger

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
NETWORK = ("[factors]", '[factors]\nnetwork = ["none", "delay=50ms,loss=1%"]')


def test_conditions_and_tags_travel_in_one_resource(pbs: PaperPbs, write_study: Write) -> None:
    pbs.with_node_part()
    submitted(write_study(NETWORK, ("[1, 2]", "[1]")))
    door = "-l other=steelyard:" if pbs.dialect == "torque" else "-l steelyard="
    texts = sorted(o for options in pbs.options() for o in options if o.startswith(door))
    tags = "tag=study%3Dsmall:tag=block%3D{0}:tag=network%3D{1}:tag=clients%3D1"
    asked = "delay%3D50ms%2Closs%3D1%25"
    assert texts == [
        *(f"{door}netem={asked}:{tags.format(b, asked)}" for b in (1, 2)),
        *(f"{door}{tags.format(b, 'none')}" for b in (1, 2)),
    ]


def test_the_environment_travels_whole(
    pbs: PaperPbs, write_study: Write, monkeypatch: Patch
) -> None:
    odd = "a,b 'c' \"d\" $(e)\nf=\\g"
    monkeypatch.setenv("WANTED", odd)
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("PBS_DPREFIX", "#QSUB")
    monkeypatch.setenv("PBS_DEFAULT", "vm")
    path = write_study(("[factors]", '[job]\nexport = ["WANTED"]\n[factors]'))
    submitted(path)
    job = next(iter(pbs.jobs.values()))
    assert {"SECRET", "WANTED", "PBS_DPREFIX"}.isdisjoint(job["variables"])
    assert job["variables"]["PBS_DEFAULT"] == "vm" and job["cwd"] == str(folder_of(path).path)
    entry = ledger.read_submissions(folder_of(path))[0]
    file = folder_of(path).script(entry.submission_id).with_suffix(".env")
    assert file.stat().st_mode & 0o777 == 0o600
    done = subprocess.run(["bash", "-c", '. "$1"; printf %s "$WANTED"', "-", file],
                          capture_output=True, check=True, text=True, env={})  # fmt: skip
    assert done.stdout == odd


def test_the_script_runs_the_run_of_its_index(pbs: PaperPbs, write_study: Write) -> None:
    """And makes a folder for every start of a job that is run again."""
    path = write_study()
    submitted(path)
    entry = ledger.read_submissions(folder_of(path))[0]
    run = folder_of(path).run(entry.run_ids[2])
    (run / "run.sh").write_text('echo "$SY_SCHEDULER $SY_ATTEMPT"\n')
    index = {"torque": "PBS_ARRAYID", "openpbs": "PBS_ARRAY_INDEX"}[pbs.dialect]
    job = {"PBS_JOBID": "7[2].vm", index: "2", "PATH": os.environ["PATH"]}
    for _ in range(2):
        script = folder_of(path).script(entry.submission_id)
        subprocess.run(["bash", script], env=job, check=True, cwd="/", timeout=90)
    outputs = {p.parent.name: p.read_text() for p in run.glob("*/job.out")}
    assert outputs == {f"7[2].vm.{n}": f"pbs 7[2].vm.{n}\n" for n in (0, 1)}


REFUSED_THERE = "--netem=delay=50ms: this kernel has no sch_netem"


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (None, "its node's log says why"),
        ({"network_conditions": f"refused: {REFUSED_THERE}"}, f"n2: {REFUSED_THERE}"),
        ({"network_conditions": "asked for, not in place yet"}, "its node's log says why"),
    ],
    ids=["no record", "its words", "a node that was not asked any more"],
)
def test_a_run_that_the_node_refused_says_so(
    pbs: PaperPbs, write_study: Write, capsys: Capture, tmp_path: Path, monkeypatch: Patch,
    missing: dict[str, str] | None, words: str,
) -> None:  # fmt: skip
    """Torque brings no output back of such a job: the words are in the record alone."""
    monkeypatch.setenv("STEELYARD_RECORD_DIR", str(tmp_path / "records"))
    pbs.with_node_part()
    path = write_study(NETWORK, ("[1, 2]", "[1]"))
    submitted(path)
    entry = next(e for e in ledger.read_submissions(folder_of(path)) if e.options)
    letter, name, code = {"torque": ("C", "exit_status", -2), "openpbs": ("F", "Exit_status", -19)}[
        pbs.dialect
    ]
    pbs.set_tasks(str(entry.job_id), *[letter] * 4)
    told = {name: code, "run_count": 1, "exec_host": "vm/0"}
    job = str(entry.job_id).replace("[]", "[0]")
    pbs.change(attributes={job: told})
    if missing is not None:
        folder = tmp_path / "records" / job
        write_record(folder, "n1", 1e9, job, missing={"network_conditions": "asked for, "})
        write_record(folder, "n2", 1e9, job, missing=missing)
    failures = progress(path, capsys)["failures"]
    assert isinstance(failures, list)
    wanted = f"its condition could not be applied (exit code 4): {words}"
    assert [f["reason"] for f in failures if f["run_id"] == entry.run_ids[0]] == [wanted]
