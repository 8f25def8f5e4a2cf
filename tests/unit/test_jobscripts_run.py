"""run.sh executed for real: local, with 1 and 2 clients, failing, stopped, killed."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.jobscripts import registry, runscript
from steelyard.jobscripts.registry import Benchmark

ROOT = Path(__file__).parents[2]
FSTEST = ROOT / "build/bin/steelyard-fstest"
RUN_ID = "tiny-0123abcd-001"
ODD = 'a "study" \\ of\n$(date) `id` %s é'
Environment = dict[str, str]


class Study:
    """A study's folder with one run in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / ODD
        self.scratch = tmp_path / "scratch ü"
        self.run_folder = self.folder / "runs" / RUN_ID
        self.run_folder.mkdir(parents=True)
        self.scratch.mkdir()
        (self.folder / "lib").mkdir()
        (self.folder / "lib/steelyard.sh").write_text(registry.library(), encoding="utf-8")
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SY_"))},
            "SY_SCRATCH_BASE": str(self.scratch),
            "STEELYARD_FSTEST": str(FSTEST),
        }

    def write(self, benchmark: Benchmark, clients: int, **parameters: object) -> None:
        text = runscript.render(
            benchmark, parameters, study_dir=self.folder, run_id=RUN_ID, clients=clients
        )
        (self.run_folder / "run.sh").write_text(text, encoding="utf-8")

    def body(self, text: str, clients: int = 1) -> None:
        """A run of a benchmark whose sy_client is `text`."""
        template = f"sy_client() {{\n{text}\n}}\n"
        base = registry.load("filesystem")
        self.write(dataclasses.replace(base, template=template), clients)

    def command(self) -> list[str]:
        return ["bash", str(self.run_folder / "run.sh")]

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(),
            env={**self.environment, **environment},
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )

    def start(self, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(),
            env={**self.environment, **environment},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def attempt(self, name: str = "local.1") -> Path:
        return self.run_folder / name

    def result(self, attempt: str = "local.1") -> dict[str, Any]:
        """result.json, which must always be whole and in its documented form."""
        found: dict[str, Any] = json.loads((self.attempt(attempt) / "result.json").read_bytes())
        assert list(found) == [
            *("format", "version", "run_id", "attempt", "scheduler", "job_id", "start_unix_s"),
            *("end_unix_s", "elapsed_s", "clients", "exit_codes", "state", "reason", "nodes"),
            "missing",
        ]
        assert (found["format"], found["version"]) == ("steelyard-run", 1)
        assert (found["run_id"], found["attempt"]) == (RUN_ID, attempt)
        nulls = {key for key, value in found.items() if value is None and key != "reason"}
        nulls |= {f"exit_codes.{i}" for i, code in enumerate(found["exit_codes"]) if code is None}
        nulls |= set() if found["nodes"] else {"nodes"}
        assert set(found["missing"]) == nulls
        assert (found["reason"] is None) == (found["state"] in ("started", "completed"))
        return found


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


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


def test_the_users_own_xhpl_gets_its_input_and_is_read(study: Study, tmp_path: Path) -> None:
    """No xhpl is packaged: a script prints a recorded output, if the input is as it should be."""
    recorded = ROOT / "tests/data/hpl/N1000.np2.NB64.out"
    xhpl = tmp_path / "my xhpl"
    xhpl.write_text(
        "#!/bin/bash\n"
        '[[ $(sed -n "6p;12p" HPL.dat) == "1000  Ns"$\'\\n\'"2  Qs" ]] || exit 9\n'
        f'[[ $OPENBLAS_NUM_THREADS == 3 ]] || exit 8\nexec cat "{recorded}"\n',
        encoding="utf-8",
    )
    xhpl.chmod(0o755)
    launcher = tmp_path / "launch"  # not Open MPI: gets -np and no more
    launcher.write_text('#!/bin/bash\n[[ $1 == -np && $2 == 2 ]] && exec "$3"\n', encoding="utf-8")
    launcher.chmod(0o755)
    benchmark = registry.load("hpl")
    given: dict[str, object] = {"n": 1000, "q": 2, "threads": 3, "xhpl": str(xhpl)}
    given["mpirun"] = str(launcher)
    study.write(benchmark, 1, **given)
    done = study.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert benchmark.parse(study.attempt(), 0, given)[0].value == 8.8125


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
    hold.write_text("[[ ${SY_CLIENT:-} != 1 ]] || sleep 1\n", encoding="utf-8")
    study.body("true", 2)
    assert study.run(BASH_ENV=str(hold)).returncode == 0
    starts = [int(lines_of(study.attempt() / f"client.{i}")[-1][2]) for i in range(2)]
    assert abs(starts[0] - starts[1]) < 400_000
    assert study.result()["elapsed_s"] < 0.8  # waiting for the other is not part of the run


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
        ["bash", "-c", script, "bash", str(ROOT / "jobscripts/steelyard.sh"), text],
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
    hold.write_text("[[ ${SY_CLIENT:-} != 1 ]] || sleep 3\n", encoding="utf-8")
    study.body("echo ran", 2)
    done = study.run(BASH_ENV=str(hold), SY_BARRIER_S="1")
    assert done.returncode == 1
    assert study.result()["reason"] == "client 1 had not started after 1 s"
    assert study.result()["exit_codes"] == [None, None]
    assert (study.attempt() / "out.0").read_text(encoding="utf-8") == ""


def test_a_folder_that_cannot_be_made_is_told(study: Study) -> None:
    study.body("true")
    (study.run_folder / "local.1").write_text("in the way", encoding="utf-8")
    done = study.run(SY_ATTEMPT="local.1")
    assert done.returncode == 1
    assert "steelyard: cannot make the folder" in done.stderr


# --- runs that are stopped ---


def in_session(pid: int) -> list[str]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "sid=,stat=,args="], check=True, capture_output=True, text=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [row[2] for row in rows if int(row[0]) == pid and not row[1].startswith("Z")]


@pytest.mark.parametrize("clients", [1, 2])
def test_a_killed_run_is_still_started(study: Study, clients: int) -> None:
    study.body("echo here; sleep 60", clients)
    with study.start() as child:
        last = study.attempt() / f"out.{clients - 1}"
        wait_for(lambda: last.exists() and last.stat().st_size > 0, "the clients run")
        os.killpg(child.pid, signal.SIGKILL)
        assert child.wait(timeout=20) == -signal.SIGKILL
    result = study.result()
    assert (result["state"], result["exit_codes"]) == ("started", [])
    assert result["missing"]["end_unix_s"] == "the run had not ended when this was written"
    assert not list(study.attempt().glob(".result*"))


@pytest.mark.parametrize(
    ("limit", "state", "reason"),
    [
        ("", "failed", "stopped by SIGTERM before its end"),
        ("3600", "failed", "stopped by SIGTERM before its end"),
        ("1", "timeout", "stopped at its time limit"),
    ],
)
def test_a_stopped_run_says_so_and_leaves_nothing_behind(
    study: Study, limit: str, state: str, reason: str
) -> None:
    study.body("echo here; bash -c 'sleep 61; true' & sleep 60; echo never", 2)
    with study.start(SY_TIME_LIMIT_S=limit) as child:
        wait_for(
            lambda: sum("sleep 61" in args for args in in_session(child.pid)) >= 2, "clients run"
        )
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=20) == 143
        assert in_session(child.pid) == []
    result = study.result()
    assert (result["state"], result["reason"]) == (state, reason)
    assert result["exit_codes"] == [143, 143]
    assert result["elapsed_s"] > 0
    assert (study.attempt() / "out.0").read_text(encoding="utf-8") == "here\n"
    assert not list(study.scratch.iterdir())


def test_a_client_that_does_not_listen_is_killed_after_the_grace(study: Study) -> None:
    study.body("trap '' TERM; echo here; sleep 60")
    with study.start(SY_GRACE_S="1") as child:
        out = study.attempt() / "out.0"
        wait_for(lambda: out.exists() and out.stat().st_size > 0, "the client runs")
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=20) == 143
        assert in_session(child.pid) == []
    assert study.result()["exit_codes"] == [None]


def test_ctrl_c_stops_a_run(study: Study) -> None:
    study.body("echo here; sleep 60")
    with study.start() as child:
        out = study.attempt() / "out.0"
        wait_for(lambda: out.exists() and out.stat().st_size > 0, "the client runs")
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=20) == 130
    assert study.result()["reason"] == "stopped by SIGINT before its end"
    assert not list(study.scratch.iterdir())


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
for ((i = 0; i < tasks; i++)); do
    SLURM_PROCID=$i SLURM_STEP_ID=0 SLURMD_NODENAME=n$((i + 1)) "$@" &
done
wait
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
        study.write(registry.load(name), 2)
        script = study.run_folder / "run.sh"
        done = subprocess.run(
            ["shellcheck", "--exclude=SC1091,SC2016", str(script)],
            check=False,
            capture_output=True,
            text=True,
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
