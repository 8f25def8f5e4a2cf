"""run.sh executed for real: local with 1 and 2 clients, failing, and in Slurm's way."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.jobscripts import registry, runscript

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

ROOT = Path(__file__).parents[3]
FSTEST = ROOT / "build/bin/steelyard-fstest"
RUN_ID = "tiny-0123abcd-001"
Environment = dict[str, str]


def lines_of(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()]


# --- runs that complete ---


@pytest.mark.skipif(not FSTEST.exists(), reason=f"{FSTEST} is missing: make all")
@pytest.mark.parametrize("clients", [1, 2])
@pytest.mark.parametrize("test", ["large_file_copy", "small_file_copy", "small_file_write"])
def test_the_file_system_tests_run_and_are_read(study: Study, test: str, clients: int) -> None:
    benchmark = registry.load("filesystem")
    given = {"test": test, "size": "1MiB", "copy_files": 20, "write_files": 30, "iterations": 2}
    study.write(benchmark, clients, **given)
    begin = time.time()
    done = study.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    result = study.result()
    assert result["state"] == "completed"
    assert result["exit_codes"] == [0] * clients
    assert result["nodes"] == [os.uname().nodename]
    assert begin <= result["start_unix_s"] < result["end_unix_s"] <= time.time()
    assert 0 < result["elapsed_s"] <= result["end_unix_s"] - result["start_unix_s"] + 1e-6
    assert result["missing"] == {"job_id": "no scheduler"}
    for client in range(clients):
        found = benchmark.parse(study.attempt(), client, given)
        seconds = [r.value for r in found if r.metric == "seconds"]
        assert len(seconds) == 2
        assert sum(seconds) < result["elapsed_s"]
    assert not list(study.scratch.iterdir())


@pytest.mark.skipif(not shutil.which("hpcc"), reason="hpcc is missing: apt-get install hpcc")
def test_hpl_runs_and_is_read(study: Study) -> None:
    benchmark = registry.load("hpl")
    given = {"n": 200, "nb": 32}
    study.write(benchmark, 1, **given)
    assert study.run().returncode == 0
    found = {r.metric: r.value for r in benchmark.parse(study.attempt(), 0, given)}
    assert set(found) == {"gflops", "hpl_s", "residual"}
    assert found["residual"] < 16
    assert found["gflops"] == pytest.approx(
        (2 / 3 * 200 + 1.5) * 200**2 / found["hpl_s"] / 1e9, 0.01
    )
    assert not list(study.scratch.iterdir())


@pytest.mark.skipif(
    not (shutil.which("hpcc") and shutil.which("mpirun")),
    reason="hpcc or mpirun is missing: apt-get install hpcc openmpi-bin",
)
def test_hpl_on_two_ranks_ignores_the_scheduler_around_it(study: Study) -> None:
    benchmark = registry.load("hpl")
    given = {"n": 200, "nb": 32, "q": 2}
    study.write(benchmark, 1, **given)
    # What a job of one task has set; mpirun would ask Slurm's daemons for its hosts.
    slurm = {"SLURM_NODELIST": "n1", "SLURM_TASKS_PER_NODE": "1", "SLURM_NNODES": "1"}
    slurm |= {"SLURM_JOBID": "1", "SLURM_JOB_NODELIST": "n1", "PMI_RANK": "0", "PMI_SIZE": "1"}
    assert study.run(SY_SCHEDULER="local", SLURM_JOB_ID="1", **slurm).returncode == 0
    assert study.result()["job_id"] is None
    assert benchmark.parse(study.attempt(), 0, given)


def test_clients_start_together_and_know_who_they_are(study: Study) -> None:
    study.body(
        'echo "$SY_CLIENT/$SY_CLIENTS $SY_PARAM_SIZE ${PWD##*/}"; [[ $PWD == "$SY_SCRATCH" ]]', 3
    )
    assert study.run().returncode == 0
    starts = []
    for client in range(3):
        out = (study.attempt() / f"out.{client}").read_text(encoding="utf-8")
        assert out.startswith(f"{client}/3 {256 << 20} steelyard.{RUN_ID}.{client}.")
        ready, end = lines_of(study.attempt() / f"client.{client}")
        assert (ready[0], end[0], end[1]) == ("ready", "end", "0")
        starts.append(int(end[2]))
    go = (study.attempt() / "go").stat().st_mtime
    assert all(start / 1e6 > go - 0.01 for start in starts)


def test_nobody_starts_before_the_last_is_ready(study: Study, tmp_path: Path) -> None:
    """The second client is held up outside of Steelyard, by what bash reads first."""
    hold = tmp_path / "hold.sh"
    held = tmp_path / "held"
    hold.write_text(f"[[ ${{SY_CLIENT:-}} != 1 ]] || {{ sleep 0.5; date +%s%6N >{held}; }}\n")
    study.body("true", 2)
    assert study.run(BASH_ENV=str(hold)).returncode == 0
    assert min(study.clock(client)[0][0] for client in range(2)) >= int(held.read_text())
    assert study.elapsed_is_the_longest_clients(2)  # waiting for the other is not part of the run


def test_each_execution_is_an_attempt_of_its_own(study: Study) -> None:
    study.body("true")
    for number in (1, 2, 3):
        assert study.run().returncode == 0
        assert study.result(f"local.{number}")["state"] == "completed"
    assert study.run(SY_ATTEMPT="local.9").returncode == 0
    assert study.result("local.9")["state"] == "completed"


# --- runs that fail ---


def test_a_failing_client_is_told_with_its_last_words(study: Study) -> None:
    study.body(
        "[[ $SY_CLIENT == 0 ]] || { echo first; printf '\"no\" \\\\ \\x01\\n\\n' >&2; exit 7; }", 2
    )
    done = study.run()
    node = os.uname().nodename
    result = study.result()
    assert done.returncode == 1
    assert (result["state"], result["exit_codes"]) == ("failed", [0, 7])
    assert result["reason"] == f'client 1 on {node} exited with 7: "no" \\ \x01'
    assert done.stderr.startswith(f"steelyard: {RUN_ID}: failed: client 1 on {node} exited with 7")
    assert (study.attempt() / "out.1").read_text(encoding="utf-8") == "first\n"
    assert not list(study.scratch.iterdir())


@pytest.mark.parametrize(
    ("printed", "read"),
    [
        (r"caf\xc3\xa9", "café"),
        (r"caf\xe9 \xc3\xa9", "caf? ??"),
        (r"\xf0\x9f\x98\x80 \x1b[1m\t\x7f\r", "\U0001f600 \x1b[1m\t\x7f\r"),
        (r"%s %d \\\\n \${HOME}", "%s %d \\n ${HOME}"),
        ("x" * 1000, "x" * 300),
        (r"-----\nno such file\n-----", "no such file"),  # the frame that mpirun has around it
    ],
)
def test_result_is_json_whatever_a_client_says(study: Study, printed: str, read: str) -> None:
    study.body(f"printf '%b\\n' \"{printed}\" >&2; exit 1")
    assert study.run().returncode == 1
    assert study.result()["reason"].endswith(f"exited with 1: {read}")


def test_every_character_survives_the_json_string() -> None:
    text = "".join(chr(c) for c in range(1, 0x250)) + "\u2028\uffff\U0001f600"
    script = 'LC_ALL=C; . "$1"; sy_json_string "$2"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(ROOT / "jobscripts/lib/result.sh"), text],
        check=True,
        capture_output=True,
    )
    assert json.loads(done.stdout) == text


def test_a_client_killed_by_a_signal_has_no_exit_code(study: Study) -> None:
    study.body('[[ $SY_CLIENT == 0 ]] || kill -9 $$ "$BASHPID"', 2)
    # The client's shell is gone, so nobody could write its end.
    assert study.run().returncode == 1
    result = study.result()
    assert (result["state"], result["exit_codes"]) == ("failed", [0, None])
    assert result["reason"] == "client 1 left no exit code: it was killed"


def test_a_missing_program_is_told_with_what_to_do(study: Study) -> None:
    study.write(registry.load("filesystem"), 1)
    done = study.run(STEELYARD_FSTEST="/absent/fstest")
    assert done.returncode == 1
    assert study.result()["exit_codes"] == [3]
    assert study.result()["reason"].endswith(
        "steelyard: /absent/fstest: no program that can be run"
    )
    done = study.run(STEELYARD_FSTEST="", PATH="/usr/bin:/bin")
    assert "steelyard-fstest is missing on" in study.result("local.2")["reason"]
    assert study.result("local.2")["reason"].endswith("and set STEELYARD_FSTEST or PATH")


def test_a_client_that_cannot_start_does_not_hang_the_others(study: Study) -> None:
    study.body("true", 2)
    done = study.run(SY_SCRATCH_BASE="/absent")
    assert done.returncode == 1
    reason = study.result()["reason"]
    assert reason == "client 0 never started: steelyard: cannot make a scratch folder in /absent"
    assert study.result()["exit_codes"] == [None, None]


def test_a_client_that_does_not_get_ready_in_time(study: Study, tmp_path: Path) -> None:
    hold = tmp_path / "hold.sh"
    hold.write_text("[[ ${SY_CLIENT:-} != 1 ]] || sleep 9\n", encoding="utf-8")
    study.body("echo ran", 2)
    done = study.run(BASH_ENV=str(hold), SY_BARRIER_S="4")
    assert done.returncode == 1
    assert study.result()["reason"] == "client 1 had not started after 4 s"
    assert study.result()["exit_codes"] == [None, None]
    assert (study.attempt() / "out.0").read_text(encoding="utf-8") == ""


def test_a_folder_that_cannot_be_made_is_told(study: Study) -> None:
    study.body("true")
    (study.run_folder / "local.1").write_text("in the way", encoding="utf-8")
    done = study.run(SY_ATTEMPT="local.1")
    assert done.returncode == 1
    assert "steelyard: cannot make the folder" in done.stderr


# --- Slurm's side, with an srun that starts the tasks here and refuses what it does not know ---

SRUN = r"""#!/bin/bash
printf '%s\n' "$@" >"$SRUN_LOG"
tasks=0
while (($# > 0)); do
    case $1 in
    --ntasks=*) tasks=${1#*=} ;;
    --nodes=* | --ntasks-per-node=1 | --overlap | --export=ALL | --input=none) ;;
    --cpu-bind=none | --wait=0 | --kill-on-bad-exit=0 | --job-name=*) ;;
    -*) echo "srun: unrecognized option '$1'" >&2; exit 1 ;;
    *) break ;;
    esac
    shift
done
[[ -z ${SRUN_FAILS:-} ]] || { echo "srun: error: Unable to create step: $SRUN_FAILS" >&2; exit 1; }
trap : TERM
for ((i = 0; i < tasks; i++)); do
    SLURM_PROCID=$i SLURM_STEP_ID=0 SLURMD_NODENAME=n$((i + 1)) "$@" &
done
until wait; do :; done
"""


@pytest.fixture
def slurm(study: Study, tmp_path: Path) -> Environment:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/srun").write_text(SRUN, encoding="utf-8")
    (tmp_path / "bin/srun").chmod(0o755)
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "SRUN_LOG": str(tmp_path / "srun.log"),
        "SLURM_JOB_ID": "4711",
    }


def test_in_slurm_one_step_starts_a_client_per_node(
    study: Study, slurm: Environment, tmp_path: Path
) -> None:
    study.body('echo "$SY_CLIENT"', 2)
    assert study.run(**slurm).returncode == 0
    result = study.result("4711.0")
    assert (result["scheduler"], result["job_id"], result["missing"]) == ("slurm", "4711", {})
    assert (result["nodes"], result["exit_codes"]) == (["n1", "n2"], [0, 0])
    words = (tmp_path / "srun.log").read_text(encoding="utf-8").split("\n")
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1"} < set(words)
    assert study.run(SLURM_RESTART_COUNT="1", **slurm).returncode == 0
    assert study.result("4711.1")["state"] == "completed"


@pytest.mark.parametrize(
    ("job_state", "state"),
    [("COMPLETING Reason=TimeLimit", "timeout"), ("CANCELLED Reason=None", "failed")],
)
def test_slurm_is_asked_whether_it_was_the_time_limit(
    study: Study, slurm: Environment, tmp_path: Path, job_state: str, state: str
) -> None:
    """Slurm 22.05 does not tell a job its end time."""
    for name, text in (
        (
            "scontrol",
            f'[[ "$*" == "--oneliner show job 4711" ]] && echo "A=1 JobState={job_state} Dependency=(null)"',
        ),
        ("scancel", "exit 1"),  # the step is gone already
    ):
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    study.body("echo here; sleep 60", 2)
    with study.start(**slurm) as child:
        out = study.attempt("4711.0") / "out.1"
        deadline = time.monotonic() + 90
        while not (out.exists() and out.stat().st_size > 0):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=90) == 143
    assert study.result("4711.0")["state"] == state
    assert study.result("4711.0")["exit_codes"] == [143, 143]


def test_a_step_that_cannot_be_made_is_told_with_sruns_words(
    study: Study, slurm: Environment
) -> None:
    study.body("true", 2)
    assert study.run(SRUN_FAILS="Memory required", **slurm).returncode == 1
    reason = study.result("4711.0")["reason"]
    assert reason == "client 0 never started: srun: error: Unable to create step: Memory required"


def test_slurm_asked_for_outside_of_a_job(study: Study) -> None:
    study.body("true")
    done = study.run(SY_SCHEDULER="slurm")
    assert done.returncode != 0
    assert "SLURM_JOB_ID: SY_SCHEDULER is slurm, but this is no Slurm job" in done.stderr


# --- the script's text ---


def test_parameters_reach_the_client_as_they_are(study: Study) -> None:
    values: list[object] = ["", "a b", "'\"`$(id)\\", "-n", "é*?~"]
    benchmark = registry.load("filesystem")
    for value in values:
        template = 'sy_client() { printf "%s" "$SY_PARAM_DIRECTORY"; }'
        study.write(dataclasses.replace(benchmark, template=template), 1, directory=value)
        done = study.run(SY_ATTEMPT="local.1")
        assert done.returncode == 0
        assert (study.attempt() / "out.0").read_text(encoding="utf-8") == value


def test_a_run_script_is_clean_for_shellcheck(study: Study) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is missing: apt-get install shellcheck")
    for name in registry.names():
        parameters = registry.load(name).parameters
        needed = {key: "/usr/bin/true" for key, one in parameters.items() if one.required}
        study.write(registry.load(name), 2, **needed)
        script = study.run_folder / "run.sh"
        done = subprocess.run(
            ["shellcheck", "--exclude=SC1091,SC2016,SC2153", str(script)],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.stdout == ""


@pytest.mark.slow
def test_the_joined_library_is_clean_for_shellcheck() -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is missing: apt-get install shellcheck")
    done = subprocess.run(
        ["shellcheck", "-"], input=registry.library(), check=False, capture_output=True, text=True
    )
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("run_id", "clients", "environment"),
    [("../x", 1, {}), ("", 1, {}), ("a b", 1, {}), ("x", 0, {}), ("x", 1, {"A B": "1"})],
)
def test_what_no_caller_may_let_through(
    run_id: str, clients: int, environment: dict[str, str]
) -> None:
    benchmark = registry.load("filesystem")
    with pytest.raises(ValueError, match=re.escape(repr(run_id) if not environment else "A B")):
        runscript.render(
            benchmark,
            {},
            study_dir=Path("/x"),
            run_id=run_id,
            clients=clients,
            environment=environment,
        )
