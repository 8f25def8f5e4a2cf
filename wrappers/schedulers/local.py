"""The scheduler `local`: runs one after another on this machine, each measured by the sampler."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import RESULT_STATES, Submission
from steelyard.jobscripts.regular_files import read_tail
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.errors import MissingError, SteelyardError, UsageError
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.netem.program import Conditions
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes, Node
from steelyard.wrappers.schedulers.base import EXPORTED, Batch, Scheduler, Task
from steelyard.wrappers.study.folder import StudyDir, read_lock_holder
from steelyard.wrappers.study.table_reader import Table

GONE = "the submit that ran it was killed"
# steelyard.sh gives its clients 10 s to stop, and then needs a moment to write the result.
GRACE_S = 15
TAIL_BYTES = 65536  # of a run's output; its last message is in it
END_S = 2 * GRACE_S  # for a submit to end after SIGTERM


class Local(Scheduler):
    """The runs of one study on this machine. Only `submit` starts a run, and waits for its end."""

    name = "local"
    runs_here = True

    def __init__(self, study_dir: Path, patient: bool = True) -> None:
        super().__init__(study_dir, patient)
        self.study = StudyDir(study_dir.absolute())

    @classmethod
    def is_installed(cls) -> bool:
        """Return True: no command is needed."""
        return True

    @classmethod
    def run_checks(cls) -> Iterator[Check]:
        """Yield nothing: `steelyard doctor` checks this machine itself."""
        return iter(())

    def cluster_name(self) -> str | None:
        """Return None: this machine is no cluster."""
        return None

    def max_runs(self) -> int | None:
        """Return None: the number of runs has no limit."""
        return None

    @classmethod
    def check_options(cls, table: Table, key: str, options: Sequence[str]) -> None:
        """Accept all options: this scheduler uses none of them."""

    def place_options(self, level: str, given: Sequence[str] | None, nodes: int) -> list[str]:
        """Return no options: this machine is the only node."""
        return []

    def node_options(self, node: str) -> list[str]:
        """Return no options: this machine is the only node, and submit has checked its
        name."""
        return []

    def condition_options(self, condition: Mapping[str, object]) -> list[str]:
        """Return no options: each run's conditions come from Batch.conditions and are applied
        around it."""
        return []

    def selects_nodes(self, batch: Batch) -> bool:
        """Return True: the only node is this machine."""
        return True

    def available_nodes(self, batch: Batch) -> AvailableNodes:
        """Return this machine as the only node: clients share it, and one run executes at a
        time."""
        machine = os.uname()
        node = Node(machine.nodename, idle=True, cores=count_cores(), kernel=machine.release)
        return AvailableNodes("this machine", (node,))

    def node_features(self) -> dict[str, frozenset[str]]:
        """Return nothing: submit checks this machine itself."""
        return {}

    def render_script(self, batch: Batch, after: str | None) -> str:  # no runs execute in parallel
        """Return the commands that `submit` runs, for a person to read or to repeat."""
        commands = "\n".join(self.command_line(batch, run_id) for run_id in batch.run_ids)
        return f"#!/bin/bash\n# Runs of {batch.study}, one after another.\n{commands}\n"

    def command_line(self, batch: Batch, run_id: str) -> str:
        """Return the command line of one run."""
        attempt = next_attempt_folder(self.study.run(run_id))
        conditions, folder = run_conditions(batch, run_id), netem.choose_run_dir()
        sampler_options = netem.sampler_options(conditions, folder)
        return " ".join(
            [
                *(f"{line} &&" for line in netem.format_shell_commands(conditions, folder, run_id)),
                "env",
                *(f"{k}={shlex.quote(v)}" for k, v in run_variables(batch, attempt.name).items()),
                shlex.join(make_command(batch, self.study, run_id, attempt, sampler_options)),
            ]
        )

    def submit(self, batch: Batch, script: Path) -> None:  # people read the script
        """Execute the runs. Ctrl-C stops the active run and is raised again."""
        programs.find_node_program()
        for number, run_id in enumerate(batch.run_ids, start=1):
            begin = time.monotonic()
            state = execute_run(batch, self.study, run_id)
            print(
                f"block {batch.block}, {number} of {len(batch.run_ids)}: {run_id}: {state} "
                f"({time.monotonic() - begin:.1f} s)",
                file=sys.stderr,
            )

    def find_submission(self, batch: Batch, since_unix_s: float) -> str | None:
        """Return None: no run outlives the submit that started it."""
        return None

    def active_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return the runs without a result of the last submission, while another submit executes
        it."""
        if self.find_other_submit() is None or not submissions:
            return {}
        last = submissions[-1]
        tasks = {}
        for run_id in last.run_ids:
            state, start = read_last_state(self.study.run(run_id))
            if state not in RESULT_STATES or start < last.submitted_unix_s:
                tasks[run_id] = Task("running" if state == "started" else "pending")
        return tasks

    def ended_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return the runs that no submit will finish: lost, or planned again if they have no
        attempt."""
        run_ids = {run_id for entry in submissions for run_id in entry.run_ids}
        tasks = {}
        for run_id in run_ids:
            began = read_last_state(self.study.run(run_id))[0] is not None
            tasks[run_id] = Task("lost", GONE) if began else Task("planned")
        return tasks

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """End the submit that executes the study, and wait until it has stopped its run. SIGTERM is
        sent because processes that a script started with `&` ignore SIGINT."""
        holder = self.find_other_submit()
        if holder is None or not submissions:
            return
        pid, host = holder
        if host != os.uname().nodename:
            raise UsageError(f"the study runs on {host} (process {pid}): cancel it there")
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + END_S
        while self.find_other_submit() == holder:
            if time.monotonic() > deadline:
                raise MissingError(
                    f"process {pid}, which executes the study, was asked to end and has not after "
                    f"{END_S} s: see what it does, and end it (kill -9 {pid})"
                )
            time.sleep(0.05)

    def find_other_submit(self) -> tuple[int, str] | None:
        """Return process id and host of another submit of this study; None while this process holds
        the lock."""
        holder = read_lock_holder(self.study)
        return None if holder == (os.getpid(), os.uname().nodename) else holder


def count_cores() -> int | None:
    """Return the number of cores of this machine, without second hardware threads."""
    paths = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    return len({path.read_text() for path in paths}) or os.cpu_count()


def run_variables(batch: Batch, attempt: str) -> dict[str, str]:
    """Return the variables that run.sh expects of its starter (head of
    jobscripts/lib/run_main.sh)."""
    variables = {"SY_SCHEDULER": Local.name, "SY_ATTEMPT": attempt}
    if batch.job.time_limit_s is not None:
        variables["SY_TIME_LIMIT_S"] = str(batch.job.time_limit_s)
    return variables


def make_command(
    batch: Batch, study: StudyDir, run_id: str, attempt: Path, sampler_options: Sequence[str]
) -> list[str]:
    """Return the command that runs the script under the sampler, with records in the attempt's
    folder. `sampler_options` are those for the run's conditions."""
    tags = (*batch.tags, *batch.job.tags)
    return [
        str(programs.find_node_program()),
        "sample",
        "--with-parent",  # a submit that is killed must not leave a run behind it
        f"--record-dir={attempt / 'record'}",
        f"--job-id={run_id}",
        *sampler_options,
        *(f"--tag={key}={value}" for key, value in tags),
        "--",
        "/bin/bash",
        str(study.run(run_id) / "run.sh"),
    ]


def execute_run(batch: Batch, study: StudyDir, run_id: str) -> str:
    """Execute one run and return its state as in result.json, which is written on Ctrl-C as
    well."""
    attempt = next_attempt_folder(study.run(run_id))
    (attempt / "record").mkdir(parents=True)
    with ExitStack() as stack:
        try:
            conditions = run_conditions(batch, run_id)
            sampler_options = stack.enter_context(
                netem.apply_conditions(conditions, netem.choose_run_dir(), run_id)
            )
        except SteelyardError as error:  # never run under other conditions than requested
            return record_failure(attempt, run_id, str(error))
        return measure_run(batch, study, run_id, attempt, sampler_options)


def measure_run(
    batch: Batch, study: StudyDir, run_id: str, attempt: Path, sampler_options: Sequence[str]
) -> str:
    """Execute the run's script under the sampler and return its state."""
    child = start_run(
        make_command(batch, study, run_id, attempt, sampler_options),
        exported_environment(batch) | run_variables(batch, attempt.name),
        attempt / "job.out",
    )
    timed_out = False
    try:
        timed_out = not wait_for_run(child, batch.job.time_limit_s)
    finally:
        state = write_final_state(attempt, run_id, child.returncode, timed_out)
    return state


def exported_environment(batch: Batch) -> dict[str, str]:
    """Return the variables that a run gets of the submitting shell, the same as under a
    scheduler."""
    names = (*EXPORTED, *batch.job.export)
    return {name: os.environ[name] for name in names if name in os.environ}


def run_conditions(batch: Batch, run_id: str) -> Conditions:
    """Return the conditions of a run."""
    return batch.conditions.get(run_id, netem.NOTHING)


def record_failure(attempt: Path, run_id: str, why: str) -> str:
    """Record a run as failed because its conditions could not be applied."""
    path = attempt / study_files.RESULT_FILE
    result = empty_result(attempt.name, run_id)
    result |= {"state": "failed", "reason": f"its condition could not be applied: {why}"}
    ledger.write_atomically(path, json.dumps(result) + "\n")
    return "failed"


def start_run(argv: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a run in its own session: a Ctrl-C at the terminal reaches only this process, which
    stops the run."""
    with log.open("wb") as out:
        try:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise MissingError(f"{argv[0]} cannot be run: {error.strerror}") from error


def wait_for_run(child: subprocess.Popen[bytes], limit_s: int | None) -> bool:
    """Wait for the child's end and return True, or stop it at its time limit and return False. It
    is stopped on Ctrl-C, too."""
    try:
        child.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        stop_run(child)
        return False
    except BaseException:  # the run must not outlive this process
        stop_run(child)
        raise
    return True


def stop_run(child: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to the run, and SIGKILL after the grace period."""
    signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        signal_group(child.pid, signal.SIGKILL)
        child.wait()


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the child's process group."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def write_final_state(attempt: Path, run_id: str, code: int, timed_out: bool) -> str:
    """Write a final state, even if the run's script was killed before it could, and return it."""
    outcome = study_files.read_run_folder(run_id, attempt)
    state = outcome.text("state")
    if state in RESULT_STATES:
        return str(state)
    state = "timeout" if timed_out else "failed"
    result = dict(outcome.result or empty_result(attempt.name, run_id))
    result |= {"state": state, "reason": failure_reason(attempt / "job.out", code)}
    ledger.write_atomically(attempt / study_files.RESULT_FILE, json.dumps(result) + "\n")
    return state


def failure_reason(log: Path, code: int) -> str:
    """Return a message that says why a run left no result."""
    lines = read_tail(log, TAIL_BYTES).decode("utf-8", "replace").splitlines()
    last_line = next((line.strip() for line in reversed(lines) if line.strip()), "")
    end = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return f"the run left no result: {end}" + (f": {last_line[:300]}" if last_line else "")


def empty_result(attempt: str, run_id: str) -> dict[str, object]:
    """Return the content of a result.json without known values."""
    why = "the run's script did not get as far as writing it"
    unknown = ("job_id", "start_unix_s", "end_unix_s", "elapsed_s", "clients")
    return {
        "format": study_files.RUN_FORMAT,
        "version": study_files.RUN_VERSION,
        "run_id": run_id,
        "attempt": attempt,
        "scheduler": Local.name,
        **dict.fromkeys(unknown, None),
        "exit_codes": [],
        "nodes": [],
        "missing": dict.fromkeys((*unknown, "nodes"), why),
    }


def next_attempt_folder(run_dir: Path) -> Path:
    """Return the first runs/RUN_ID/local.N that does not exist."""
    number = 1
    while (run_dir / f"local.{number}").exists():
        number += 1
    return run_dir / f"local.{number}"


def read_last_state(run_dir: Path) -> tuple[str | None, float]:
    """Return state and start (Unix time) of the last local attempt; None and 0 without an
    attempt."""
    number = int(next_attempt_folder(run_dir).name.partition(".")[2]) - 1
    if number == 0:
        return None, 0.0
    last = study_files.read_run_folder(run_dir.name, run_dir / f"local.{number}")
    return last.text("state") or "started", last.number("start_unix_s") or 0.0
