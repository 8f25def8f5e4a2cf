"""The commands of Torque and OpenPBS, asked as an ordinary user."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.pbs import qstat
from steelyard.analysis.sources.pbs.field_values import split_job_id
from steelyard.analysis.sources.pbs.states import OPENPBS, TORQUE

HEAD_BYTES = 1 << 16
# One id of many that is not known makes qstat end with an error, although it tells the others.
UNKNOWN = re.compile(
    r"Unknown Job Id|Job has finished|Unknown queue|illegally formed job", re.IGNORECASE
)
TORQUE_HOME = Path("/var/spool/torque")
CHUNK = 100  # ids to a call: its arguments must fit
MOST_OF_TORQUE = 10  # its qstat keeps a connection for each id that is not known, and runs out


def is_installed() -> bool:
    """By qstat and pbsnodes: Grid Engine has no pbsnodes, and that of slurm-wlm-torque is a script."""
    program = shutil.which("qstat")
    return (
        program is not None
        and shutil.which("pbsnodes") is not None
        and not is_slurm_imitation(program)
    )


def is_slurm_imitation(program: str) -> bool:
    """Whether it is Slurm's own imitation: a script that speaks of Slurm."""
    try:
        with Path(program).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(b"#!") and b"slurm" in head.lower()


def detect_dialect() -> str | None:
    """`torque` or `openpbs` (PBS Pro too), as qstat says; None: no PBS on the PATH."""
    program = shutil.which("qstat")
    return read_dialect_and_version(program)[0] if program is not None and is_installed() else None


def read_version() -> str | None:
    """`6.1.3`, `23.06.06`; None: not known."""
    program = shutil.which("qstat")
    return read_dialect_and_version(program)[1] if program is not None and is_installed() else None


@functools.cache
def read_dialect_and_version(program: str) -> tuple[str | None, str | None]:
    """Dialect and version that a qstat tells of itself."""
    try:
        words = run([program, "--version"], 10.0).text
    except MissingError:
        return None, None
    match = re.search(r"pbs_version = (\S+)", words)
    if match is not None:
        return OPENPBS, match[1]
    match = re.search(r"^version: (\S+)", words, re.IGNORECASE | re.MULTILINE)
    return (TORQUE, match[1]) if match else (None, None)


class Answer:
    """What a program said: standard output, errors behind it, and its exit code."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.out = done.stdout.decode("utf-8", "replace")
        self.errors = done.stderr.decode("utf-8", "replace")
        self.text = self.out + self.errors
        self.code = done.returncode


def run(arguments: Sequence[str], time_out_s: float) -> Answer:
    """MissingError when it cannot be run or does not end in time."""
    name = Path(arguments[0]).name
    try:
        done = subprocess.run(
            list(arguments),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=build_environment(),
            timeout=time_out_s,
            check=False,
        )
    except OSError as error:
        raise MissingError(f"'{name}' cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise MissingError(f"{name}: no answer in {time_out_s:g} s") from None
    return Answer(done)


def query_jobs(
    job_ids: Sequence[str], time_out_s: float = 60.0, program: str = "qstat"
) -> dict[str, qstat.Job]:
    """Attributes of the jobs that the server still knows, of arrays their jobs too.

    Times are seconds since 1970 in Torque's, and text in UTC in OpenPBS' answer.
    """
    asked = list(dict.fromkeys(replace_tasks_by_arrays(job_ids)))
    if detect_dialect() == TORQUE and len(asked) > MOST_OF_TORQUE:
        told = query_jobs_once((), time_out_s, program)
        return {job: told[job] for job in told if is_requested(job, {*asked, *job_ids})}
    found: dict[str, qstat.Job] = {}
    for start in range(0, len(asked), CHUNK):
        found |= query_jobs_once(asked[start : start + CHUNK], time_out_s, program)
    return found


def query_jobs_once(
    job_ids: Sequence[str], time_out_s: float = 60.0, program: str = "qstat"
) -> dict[str, qstat.Job]:
    """As query_jobs(), in one call of qstat; without ids, all jobs of the server."""
    is_torque = detect_dialect() == TORQUE
    # What Torque has of XML, OpenPBS has of history: -x.
    flags = ["-x", "-t"] if is_torque else ["-x", "-f", "-t"]
    parse = qstat.parse_xml if is_torque else qstat.parse_text
    return parse(run_qstat([program, *flags, *job_ids], time_out_s))


def find_torque_home() -> Path:
    """Where Torque keeps its files on this machine, as it was built; nodes do without commands."""
    try:
        words = run(["qsub", "--about"], 10.0).text
    except MissingError:
        return TORQUE_HOME
    found = re.search(r"(?:serverhome|homedir):\s*(/\S*)", words, re.IGNORECASE)
    return Path(found[1]) if found else TORQUE_HOME


def has_mom(home: Path) -> bool:
    """Whether a pbs_mom runs on this machine, by its lock file; packages of a server or of the users'
    commands bring an empty mom_priv."""
    try:
        return (home / "mom_priv/mom.lock").exists()
    except OSError:
        return False


def replace_tasks_by_arrays(job_ids: Sequence[str]) -> Iterator[str]:
    """For each task of an array the array: one question for all of them."""
    for text in job_ids:
        job = split_job_id(text)
        yield (job.format_array_id() if job is not None else None) or text


def is_requested(job_id: str, requested: set[str]) -> bool:
    """It, its array, or either without the server's name."""
    job = split_job_id(job_id)
    names = {job_id, job.format_array_id() or job_id} if job is not None else {job_id}
    return bool(names & requested or {name.partition(".")[0] for name in names} & requested)


def run_qstat(arguments: Sequence[str], time_out_s: float) -> str:
    """What qstat says of the jobs that it knows; MissingError when it is not about jobs."""
    answer = run(arguments, time_out_s)
    lines = [line for line in answer.errors.split("\n") if line.strip()]
    if answer.code and not (lines and all(map(UNKNOWN.search, lines))):
        words = " ".join(answer.errors.split())[:300] or f"exit code {answer.code}"
        raise MissingError(f"qstat does not answer: {words}. Is pbs_server running?")
    return answer.out


# The programs of PBS take defaults from variables of their own (PBS_DPREFIX, PBS_QSTAT_NO_COMPLETE,
# PBSDEBUG, …): a user's would change what we ask, and what the answer means. A PBS job around us
# leaves some, too.
OF_PBS = ("PBS", "QSTATRCHOME", "TORQUE_")
# Which server, and how it is reached; PBS_DEFAULT is Torque's and an old name of OpenPBS'.
WAY = ("PBS_DEFAULT", "PBS_SERVER", "PBS_PRIMARY", "PBS_SECONDARY", "PBS_CONF_FILE", "PBS_EXEC",
       "PBS_HOME", "PBS_BATCH_SERVICE_PORT", "PBS_BATCH_SERVICE_PORT_DIS", "PBS_LEAF_NAME",
       "PBS_AUTH_METHOD", "PBS_ENCRYPT_METHOD", "PBS_SUPPORTED_AUTH_METHODS")  # fmt: skip


def remove_pbs_variables() -> dict[str, str]:
    """Our environment without what another job or server of PBS left in it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_PBS)}


def server_variables() -> dict[str, str]:
    """What leads to the server that our environment points to."""
    return {name: os.environ[name] for name in WAY if name in os.environ}


def build_environment() -> dict[str, str]:
    """For a program that only asks, or deletes: times in UTC, nothing from a ~/.qstatrc."""
    return {
        **remove_pbs_variables(),
        **server_variables(),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "QSTATRCHOME": "/dev/null",
    }
