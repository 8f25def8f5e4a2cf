"""run.sh in a job of Torque or OpenPBS: the variables are recorded, pbsdsh is stood in for."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.system.leftovers import without_sweeps

from .pbs_lab import Recorded

if TYPE_CHECKING:
    from .conftest import Study

NODES = {"torque": ("vmb", "vm"), "openpbs": ("opbs1", "opbs2")}
JOB = {"torque": "99.vm", "openpbs": "139.opbs"}


@pytest.fixture(params=["torque", "openpbs"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Recorded:
    dialect = str(request.param)
    return Recorded(dialect, NODES[dialect], tmp_path, JOB[dialect])


def text(study: Study, job: Recorded, name: str, attempt: int = 0) -> str:
    path = study.attempt(f"{job.job_id}.{attempt}") / name
    return without_sweeps(path.read_text(encoding="utf-8"))


def until_text(path: Path, limit_s: float = 90) -> str:
    """What is in a file, once there is something."""
    end = time.monotonic() + limit_s
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end, path
        time.sleep(0.02)
    return path.read_text()


def stop(run: subprocess.Popen[str]) -> None:
    """Stop with SIGTERM, as pbs_mom does; run.sh then reports that it was stopped."""
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=90)
    assert run.returncode == 143


def leftover(study: Study, job: Recorded) -> list[str]:
    """Folders of tasks in the attempt's."""
    return [path.name for path in study.attempt(f"{job.job_id}.0").glob("task.*")]


def test_two_clients_are_on_two_nodes(study: Study, job: Recorded) -> None:
    study.body('echo "$SY_CLIENT $SY_THIS_NODE $PBS_NODENUM"; sy_nodes; printenv TMPDIR || :', 2)
    for attempt in (0, 1):
        done = study.run(**job.environment())
        assert (done.returncode, done.stderr) == (0, "")
        result = study.result(f"{job.job_id}.{attempt}")
        assert (result["scheduler"], result["job_id"]) == ("pbs", job.job_id)
        assert (result["nodes"], result["exit_codes"]) == ([*job.nodes], [0, 0])
    first, second = job.nodes
    assert text(study, job, "out.0") == f"0 {first} 0\n{first}\n{second}\n"
    # Its own number, by which the record knows a task's processes, and its own folder.
    own = "/var/tmp/pbs.139.opbs\n" if job.dialect == "openpbs" else ""
    assert text(study, job, "out.1") == f"1 {second} 1\n{second}\n{first}\n{own}"
    assert job.started() == ["2", "2"]
    assert leftover(study, job) == []
    assert not list(study.scratch.iterdir())


def test_a_command_on_the_other_node_gives_back_all_of_it(study: Study, job: Recorded) -> None:
    study.body(
        'sy_on_node "$(sy_nodes | tail -n 1)" bash -c \'printf "a\\0b \\n%s" "$1"; echo e >&2; exit 7\''
        ' - "c  d"; echo " $?"'
    )
    assert study.run(**job.environment()).returncode == 0
    assert text(study, job, "out.0") == "a\0b \nc  d 7\n"
    assert text(study, job, "err.0") == "e\n"


def test_odd_variables_arrive_and_none_is_executed(
    study: Study, job: Recorded, tmp_path: Path
) -> None:
    bad = tmp_path / "executed"
    odd = f"a\n'\"$(touch {bad})`touch {bad}` \\ PBS_X=1\nPBS_Y=2 é"
    study.body('sy_on_node "$(sy_nodes | tail -n 1)" env -0')
    given = {"PBS_JOBNAME": odd, "ODD": odd, "BIG": "x" * 4096, "BASH_FUNC_f%%": "() { :; }"}
    assert study.run(**job.environment(**given)).returncode == 0
    found = dict(item.split("=", 1) for item in text(study, job, "out.0").split("\0") if item)
    assert {name: found[name] for name in ("ODD", "BIG")} == {"ODD": odd, "BIG": "x" * 4096}
    assert (found["PBS_NODENUM"], found["SY_RUN_ID"]) == ("1", study.run_folder.name)
    assert not bad.exists()


def test_an_array_index_stays_in_the_id(study: Study, job: Recorded, tmp_path: Path) -> None:
    task = Recorded(job.dialect, job.nodes, tmp_path, f"123[4].{job.nodes[0]}")
    study.body("true", 2)
    assert study.run(**task.environment()).returncode == 0
    assert study.result(f"{task.job_id}.0")["job_id"] == task.job_id


def test_too_few_nodes_fail_the_run(study: Study, job: Recorded) -> None:
    study.body("true", 3)
    assert study.run(**job.environment()).returncode == 1
    said = f"3 nodes are needed, and job {job.job_id} has 2: {' '.join(job.nodes)}"
    assert study.result(f"{job.job_id}.0")["reason"] == f"client 0 never started: steelyard: {said}"
    assert job.started() == []


def test_without_the_node_file_nothing_begins(study: Study, job: Recorded) -> None:
    study.body("true")
    done = study.run(**job.environment(PBS_NODEFILE="/nowhere"))
    assert done.returncode == 1
    assert "the job's node file is not there: PBS_NODEFILE=/nowhere" in done.stderr


def test_who_is_stopped_stops_the_other_node_too(study: Study, job: Recorded) -> None:
    study.body('trap "echo tidied; exit 143" TERM; echo begun; while :; do sleep 0.1; done', 2)
    run = study.start(**job.environment())
    for client in (0, 1):
        until_text(study.attempt(f"{job.job_id}.0") / f"out.{client}")
    stop(run)
    result = study.result(f"{job.job_id}.0")
    assert (result["exit_codes"], result["reason"]) == (
        [143, 143],
        "stopped by SIGTERM before its end",
    )
    assert [text(study, job, f"out.{client}") for client in (0, 1)] == ["begun\ntidied\n"] * 2
    assert leftover(study, job) == []


@pytest.mark.parametrize(
    ("words", "state"),
    [("=>> PBS: job killed: walltime 26 exceeded limit 15\n", "timeout"), ("x\n", "failed")],
)
def test_the_words_of_pbs_mom_tell_a_time_limit(
    study: Study, job: Recorded, tmp_path: Path, words: str, state: str
) -> None:
    study.body("echo begun; sleep 60")
    # The file is found by its name among the open ones: no other test may have a job of that id.
    job = replace(job, job_id=f"{os.getpid()}.{job.dialect}")
    errors = tmp_path / f"{job.job_id}.ER"  # as in the spool of pbs_mom
    environment = job.environment(SY_SCHEDULER="pbs")
    environment.pop("PBS_WALLTIME", None)
    with errors.open("w") as file:  # somebody has it open, as the job's first process does
        run = study.start(**environment)
        until_text(study.attempt(f"{job.job_id}.0") / "out.0")
        file.write(words)
        file.flush()
        stop(run)
    assert study.result(f"{job.job_id}.0")["state"] == state


def test_the_walltime_of_torque_is_a_time_limit(study: Study, tmp_path: Path) -> None:
    job = Recorded("torque", NODES["torque"], tmp_path, JOB["torque"])
    environment = job.environment()
    assert environment["PBS_WALLTIME"] == "120"
    os.utime(environment["PBS_NODEFILE"], (1_600_000_000, 1_600_000_000))
    study.body("sy_scheduler end_unix_s")
    assert study.run(**environment).returncode == 0
    assert text(study, job, "out.0") == "1600000120"


def test_a_task_that_is_killed_is_told(study: Study, job: Recorded) -> None:
    study.body(
        'sy_on_node "$(sy_nodes | tail -n 1)" bash -c \'kill -KILL "${SY_PBS_TASK##*/}"\'; echo $?'
    )
    assert study.run(**job.environment()).returncode == 0
    assert text(study, job, "out.0") == "1\n"
    said = f"steelyard: the task on node {job.nodes[1]} left no exit code"
    assert text(study, job, "err.0").startswith(said)


def test_a_server_on_the_other_node_is_stopped_there(study: Study, job: Recorded) -> None:
    study.body(
        'sy_server_start "$(sy_nodes | tail -n 1)" 10 bash -c \'trap "echo ended >&2; exit" TERM; exec 3<> <(:);'
        ' echo "ready $$ word"; while printf .; do read -r -t 0.1 -u 3; done\'; echo "$SY_SERVER_WORDS";'
        " sy_server_stop"
    )
    assert study.run(**job.environment()).returncode == 0
    assert text(study, job, "out.0") == "word\n"
    assert text(study, job, "err.0") == "ended\n"
    assert leftover(study, job) == []


def test_without_its_variables_other_nodes_are_still_reached(study: Study, job: Recorded) -> None:
    """As mpirun's agent does, which must not see the scheduler's job."""
    study.body(
        'sy_without_scheduler; compgen -v PBS_; sy_mpi_make_agent; "$SY_ATTEMPT_DIR/mpi-agent.0" "$(sy_nodes | '
        'tail -n 1)" echo on '
        "'$PBS_NODENUM'"
    )
    assert study.run(**job.environment()).returncode == 0
    assert text(study, job, "out.0") == "on 1\n"
    assert text(study, job, "err.0") == ""


def test_without_pbsdsh_there_is_ssh(study: Study, job: Recorded) -> None:
    study.body('echo "$SY_CLIENT $SY_THIS_NODE ${PBS_JOBID:-none}"; exit "$SY_CLIENT"', 2)
    assert study.run(**job.environment(tm=False)).returncode == 1
    assert study.result(f"{job.job_id}.0")["exit_codes"] == [0, 1]
    assert text(study, job, "out.1") == f"1 {job.nodes[1]} none\n"
    assert job.started() == [job.nodes[1]]


def test_a_job_of_slurm_within_one_of_pbs_is_slurms(study: Study, job: Recorded) -> None:
    study.body("true")
    text = study.run_folder / "run.sh"
    script = text.read_text(encoding="utf-8").replace(
        "\nsy_main\n", "\nsy_choose_scheduler; echo $SY_SCHEDULER\n"
    )
    text.write_text(script, encoding="utf-8")
    assert study.run(**job.environment()).stdout == "pbs\n"
    assert study.run(**job.environment(SLURM_JOB_ID="7")).stdout == "slurm\n"
    outside = {k: v for k, v in os.environ.items() if not k.startswith("PBS")}
    assert study.run(PATH=outside["PATH"]).stdout == "local\n"
