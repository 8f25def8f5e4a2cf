"""A study on OpenPBS from its submissions to its report: the recorded accounting of an array, the
objects that our hook adds to it, the nodes' records, and the runs' folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.sources.pbs.accounting import Pbs
from steelyard.wrappers.commands import cli

query = HELP.query
LOG = Path(__file__).parents[2] / "data" / "openpbs" / "accounting-1-classic-pelog.log"
ARRAY = "8[].vm"  # tasks 1 to 4: 1, 3 and 4 ended with 0, 2 with 7
STARTS = {1: 1795240300, 2: 1795240301, 3: 1795240302, 4: 1795240303}
RUNS = [f"filesystem-0000000a-{n + 1:03d}" for n in range(5)]  # array task i is run_ids[i]
JOULES = {1: 100.0, 3: 103.0, 4: 106.0}


def hooked(line: str) -> str:
    """An E as it is with our hook (seen on OpenPBS 23.06)."""
    parts = (line + ";;;").split(";", 3)
    task = parts[2].partition("[")[2].partition("]")[0]
    if parts[1] != "E" or not parts[2].startswith("8[") or task not in {"1", "3", "4"}:
        return line
    told = {"steelyard": 1, "energy_j": JOULES[int(task)], "cpu_s": 5.0, "exclusive": True}
    told |= {"rx_bytes": 500, "tags": {"k": 'a "b" c=d'}}
    text = json.dumps({"vm": told})
    used = f"resources_used.energy={JOULES[int(task)]:g} resources_used.steelyard_used='{text}' "
    return line.replace("resources_used.vmem=", f"{used}resources_used.vmem=", 1)


def leave_run(study: Any, task: int) -> None:
    """Write the files of a run's script and its node."""
    job = f"8[{task}].vm"
    folder = study.dir / "runs" / RUNS[task] / f"{job}.0"
    folder.mkdir(parents=True)
    document = {
        "format": "steelyard-run", "version": 1, "run_id": RUNS[task], "attempt": folder.name,
        "scheduler": "pbs", "job_id": job, "start_unix_s": STARTS[task] + 0.25,
        "end_unix_s": STARTS[task] + 0.75, "elapsed_s": 0.5, "clients": 1, "exit_codes": [0],
        "state": "completed", "reason": None, "nodes": ["vm"], "missing": {},
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(document), encoding="utf-8")
    output = HELP.DATA / "filesystem" / "large_file_copy.out"
    (folder / "out.0").write_bytes(output.read_bytes())
    path = HELP.write_record(
        study.record_dir / job, "vm", STARTS[task], job, missing={}, samples_file=None,
        job={"scheduler": "pbs", "job_id": job, "exclusive": True},
        energy={"energy_j": JOULES[task], "zones": []},
    )  # fmt: skip
    path.with_suffix(".csv").unlink()


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    study = HELP.Study(tmp_path)
    planned = [study.planned(run, n + 1, "clients=1") for n, run in enumerate(RUNS)]
    plan = {"format": "steelyard-plan", "version": 1, "study": {"name": "x"}, "runs": planned}
    (study.dir / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    line = {
        "submission_id": "b1", "scheduler": "pbs", "cluster": "vm", "job_id": ARRAY,
        "submitted_unix_s": 1795240294.5, "block": 0, "options": [], "run_ids": RUNS,
    }  # fmt: skip
    (study.dir / "submissions.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    logs = tmp_path / "accounting"
    logs.mkdir()
    lines = LOG.read_text(encoding="utf-8").split("\n")
    (logs / "20261121").write_text("\n".join(map(hooked, lines)), encoding="utf-8")
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", str(logs))
    monkeypatch.setattr("steelyard.analysis.sources.pbs.pbs_commands.is_installed", lambda: False)
    study.log = logs / "20261121"
    study.now_unix_s = 1795250000.0
    for task in JOULES:
        leave_run(study, task)
    return study


def collect(study: Any) -> Any:
    return study.collect(accounting={"pbs": Pbs()})


def test_runs_records_and_joules(study: Any) -> None:
    for _ in range(2):
        collected = collect(study)
        # The array began at 1, so that its first run never had a task.
        assert dict(collected.states) == {"completed": 3, "failed": 1, "cancelled": 1}
        assert query(
            study, "SELECT attempt, node, energy_j, exclusive FROM records ORDER BY ALL"
        ) == [(f"8[{n}].vm.0", "vm", joules, True) for n, joules in JOULES.items()]
    found = query(
        study,
        "SELECT JobID, ConsumedEnergyRaw, TotalCPU, MaxRSS, NodeList FROM accounting "
        "WHERE JobID = '8[1].vm'",
    )
    assert found == [("8[1].vm", "100", "00:00:00", "7224K", "vm")]


def test_samples_in_folders_with_brackets(study: Any) -> None:
    HELP.write_record(study.record_dir / "8[1].vm", "vm", STARTS[1], "8[1].vm")
    collect(study)
    assert query(study, "SELECT attempt, count(*) FROM samples GROUP BY ALL") == [("8[1].vm.0", 3)]


def test_what_the_hook_wrote_agrees_with_the_records(study: Any) -> None:
    collect(study)
    where = "source_b = 'scheduler' AND node = 'vm'"
    rows = query(study, f"SELECT quantity, count(*), bool_and(agrees) FROM checks WHERE {where} "
                 "GROUP BY ALL ORDER BY ALL")  # fmt: skip
    assert rows == [("cpu_s", 3, True), ("energy_j", 3, True), ("rx_bytes", 3, True)]


def test_a_hook_that_says_otherwise_is_told(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = study.log.read_text(encoding="utf-8")
    study.log.write_text(text.replace('"energy_j": 103.0', '"energy_j": 104.0'), encoding="utf-8")
    collect(study)
    assert query(
        study, "SELECT run_id, value_a, value_b FROM checks WHERE NOT agrees"
    ) == [(RUNS[3], 103.0, 104.0)]  # fmt: skip
    assert cli.main(["report", str(study.dir)]) == 0
    assert "SY24" in capsys.readouterr().out


def test_the_report_names_tasks_as_their_server_does(study: Any, tmp_path: Path) -> None:
    collect(study)
    assert cli.main(["report", str(study.dir), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "8[3].vm" in page and "8[].vm_3" not in page


def test_a_line_that_cannot_be_read_is_a_gap(study: Any) -> None:
    with study.log.open("a", encoding="utf-8") as log:
        log.write("\n11/21/2026 06:00:00;a;8[1].vm;user=x group=\n")
    collected = collect(study)
    (gap,) = [g for g in collected.gaps if g.kind == "accounting"]
    assert (gap.run_id, gap.attempt) == (RUNS[1], "8[1].vm.0")
    assert gap.reason.startswith("a line of job 8[1].vm in the accounting cannot be read, and")


def test_what_left_a_result_was_not_deleted_while_it_waited(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """qstat of OpenPBS reports the earlier tasks of a deleted array as deleted, too."""
    over = {"job_state": "F", "ctime": "Sat Nov 21 05:51:35 2026", "Exit_status": "1"}
    told = {f"8[{task}].vm": over for task in range(1, 5)}
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", "/nowhere")
    programs = "steelyard.analysis.sources.pbs.pbs_commands"
    monkeypatch.setattr(f"{programs}.is_installed", lambda: True)
    monkeypatch.setattr(f"{programs}.detect_dialect", lambda: "openpbs")
    monkeypatch.setattr(f"{programs}.query_jobs", lambda ids, limit: told)
    assert dict(collect(study).states) == {"completed": 3, "cancelled": 2}
