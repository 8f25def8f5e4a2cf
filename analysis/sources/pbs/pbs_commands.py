"""Runs the commands of Torque and OpenPBS as an ordinary user, and parses qstat's answer.

`qstat -f` is parsed as text (both dialects) and as XML (Torque). The JSON of OpenPBS is not used: it
is invalid for all jobs as soon as one is named `nan`.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.pbs.field_values import OPENPBS, TORQUE, split_job_id

Job = dict[str, str]

HEAD = "Job Id: "
ATTRIBUTE = re.compile(r"    ([A-Za-z][\w.-]*) = (.*)", re.ASCII | re.DOTALL)
VARIABLES = "Variable_List"  # set by the user: its values may have lines like qstat's
# Characters that XML 1.0 forbids. A job's name may have them, and all jobs are in one document.
FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:x0*1?[0-9a-f]|0*[12]?\d|0*3[01]);",
    re.IGNORECASE,
)


def parse_text(text: str) -> dict[str, Job]:
    """Return attributes of each job by its id: `{"1.srv": {"Resource_List.walltime": "00:02:00"}}`.

    A long value continues in lines that begin with a tab. Any other line that is no attribute
    follows a line break in a value (of a variable). If an attribute occurs twice, the first counts.
    After Variable_List the last counts, since the first may be a line of a variable.
    """
    jobs: dict[str, Job] = {}
    job: Job = {}
    behind: set[str] = set()
    name = ""
    for line in text.split("\n"):
        match = ATTRIBUTE.fullmatch(line)
        if line.startswith(HEAD):
            job, name = jobs.setdefault(line[len(HEAD) :].strip(), {}), ""
            behind.clear()
        elif match is not None:
            name = "" if match[1] in job and match[1] not in behind else match[1]
            if name:
                job[name] = match[2]
            if VARIABLES in job and name:
                behind.add(name)
        elif name and line.startswith("\t"):
            job[name] += line[1:]
        elif name and line:
            job[name] += "\n" + line
    return jobs


def parse_xml(text: str) -> dict[str, Job]:
    """Do the same for Torque's `qstat -x`, which is one document per job.

    Times are in Unix seconds.
    """
    jobs: dict[str, Job] = {}
    for document in re.split(r"<\?xml[^>]*\?>", text):
        if not document.strip():
            continue
        try:
            # the document is qstat's own; the parser loads nothing else
            root = ElementTree.fromstring(FORBIDDEN.sub("\ufffd", document))
        except ElementTree.ParseError as error:
            raise MissingError(f"qstat -x is not XML: {error}") from None
        jobs |= {
            job.findtext("Job_Id") or "": dict(read_attributes(job)) for job in root.iter("Job")
        }
    return jobs


def read_attributes(element: ElementTree.Element, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values as in the text form: nested names are joined by a period."""
    for child in element:
        if len(child):
            yield from read_attributes(child, f"{prefix}{child.tag}.")
        elif child.tag != "Job_Id":
            yield prefix + child.tag, child.text or ""


HEAD_BYTES = 1 << 16
# One unknown id makes qstat exit with an error, although it reports the other jobs.
UNKNOWN = re.compile(
    r"Unknown Job Id|Job has finished|Unknown queue|illegally formed job", re.IGNORECASE
)
TORQUE_HOME = Path("/var/spool/torque")
CHUNK = 100  # ids per call: its arguments must fit
MOST_OF_TORQUE = 10  # its qstat keeps a connection open for each unknown id, and runs out


def is_installed() -> bool:
    """Whether qstat and pbsnodes are those of a PBS.

    Grid Engine has no pbsnodes, and the qstat of slurm-wlm-torque is a script.
    """
    program = shutil.which("qstat")
    return (
        program is not None
        and shutil.which("pbsnodes") is not None
        and not is_slurm_imitation(program)
    )


def is_slurm_imitation(program: str) -> bool:
    """Whether the program is Slurm's imitation: a script that mentions Slurm."""
    try:
        with Path(program).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(b"#!") and b"slurm" in head.lower()


def detect_dialect() -> str | None:
    """Return `torque` or `openpbs` (also PBS Pro) as qstat reports it; None: no PBS on the PATH."""
    program = shutil.which("qstat")
    return read_dialect_and_version(program)[0] if program is not None and is_installed() else None


def read_version() -> str | None:
    """Return the version, such as `6.1.3` or `23.06.06`; None: unknown."""
    program = shutil.which("qstat")
    return read_dialect_and_version(program)[1] if program is not None and is_installed() else None


@functools.cache
def read_dialect_and_version(program: str) -> tuple[str | None, str | None]:
    """Return dialect and version that a qstat reports."""
    try:
        text = run([program, "--version"], 10.0).text
    except MissingError:
        return None, None
    match = re.search(r"pbs_version = (\S+)", text)
    if match is not None:
        return OPENPBS, match[1]
    match = re.search(r"^version: (\S+)", text, re.IGNORECASE | re.MULTILINE)
    return (TORQUE, match[1]) if match else (None, None)


class Answer:
    """Output of a program: standard output, errors, both together, and its exit code."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.out = done.stdout.decode("utf-8", "replace")
        self.errors = done.stderr.decode("utf-8", "replace")
        self.text = self.out + self.errors
        self.code = done.returncode


def run(arguments: Sequence[str], time_out_s: float) -> Answer:
    """Run a program; raise MissingError when it cannot be run or does not end in time."""
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
) -> dict[str, Job]:
    """Return the attributes of the jobs that the server still has; for arrays also of their tasks.

    Torque reports times in seconds since 1970, OpenPBS as text in UTC.
    """
    requested = list(dict.fromkeys(replace_tasks_by_arrays(job_ids)))
    if detect_dialect() == TORQUE and len(requested) > MOST_OF_TORQUE:
        jobs = query_jobs_once((), time_out_s, program)
        return {job: jobs[job] for job in jobs if is_requested(job, {*requested, *job_ids})}
    found: dict[str, Job] = {}
    for start in range(0, len(requested), CHUNK):
        found |= query_jobs_once(requested[start : start + CHUNK], time_out_s, program)
    return found


def query_jobs_once(
    job_ids: Sequence[str], time_out_s: float = 60.0, program: str = "qstat"
) -> dict[str, Job]:
    """Do the same as `query_jobs` in one call of qstat; without ids, return all jobs."""
    is_torque = detect_dialect() == TORQUE
    # -x requests XML from Torque, and ended jobs from OpenPBS.
    flags = ["-x", "-t"] if is_torque else ["-x", "-f", "-t"]
    parse = parse_xml if is_torque else parse_text
    return parse(run_qstat([program, *flags, *job_ids], time_out_s))


def find_torque_home() -> Path:
    """Return Torque's folder on this machine, as compiled in; nodes may lack the commands."""
    try:
        text = run(["qsub", "--about"], 10.0).text
    except MissingError:
        return TORQUE_HOME
    found = re.search(r"(?:serverhome|homedir):\s*(/\S*)", text, re.IGNORECASE)
    return Path(found[1]) if found else TORQUE_HOME


def has_mom(home: Path) -> bool:
    """Whether a pbs_mom runs on this machine, by its lock file.

    An empty mom_priv proves nothing: packages of the server and of the user commands install it.
    """
    try:
        return (home / "mom_priv/mom.lock").exists()
    except OSError:
        return False


def replace_tasks_by_arrays(job_ids: Sequence[str]) -> Iterator[str]:
    """Yield each id, for an array task its array: one query returns all tasks."""
    for text in job_ids:
        job = split_job_id(text)
        yield (job.format_array_id() if job is not None else None) or text


def is_requested(job_id: str, requested: set[str]) -> bool:
    """Whether the job or its array was requested, with or without the server's name."""
    job = split_job_id(job_id)
    names = {job_id, job.format_array_id() or job_id} if job is not None else {job_id}
    return bool(names & requested or {name.partition(".")[0] for name in names} & requested)


def run_qstat(arguments: Sequence[str], time_out_s: float) -> str:
    """Return qstat's answer about the jobs that it knows; raise MissingError for other errors."""
    answer = run(arguments, time_out_s)
    lines = [line for line in answer.errors.split("\n") if line.strip()]
    if answer.code and not (lines and all(map(UNKNOWN.search, lines))):
        message = " ".join(answer.errors.split())[:300] or f"exit code {answer.code}"
        raise MissingError(f"qstat does not answer: {message}. Is pbs_server running?")
    return answer.out


# PBS commands take defaults from environment variables (PBS_DPREFIX, PBS_QSTAT_NO_COMPLETE,
# PBSDEBUG, …). A user's settings would change the request and the meaning of the answer. A
# surrounding PBS job sets some, too.
OF_PBS = ("PBS", "QSTATRCHOME", "TORQUE_")
# Variables that select the server and the way to reach it. PBS_DEFAULT is Torque's, and an old name
# of OpenPBS'.
WAY = ("PBS_DEFAULT", "PBS_SERVER", "PBS_PRIMARY", "PBS_SECONDARY", "PBS_CONF_FILE", "PBS_EXEC",
       "PBS_HOME", "PBS_BATCH_SERVICE_PORT", "PBS_BATCH_SERVICE_PORT_DIS", "PBS_LEAF_NAME",
       "PBS_AUTH_METHOD", "PBS_ENCRYPT_METHOD", "PBS_SUPPORTED_AUTH_METHODS")  # fmt: skip


def remove_pbs_variables() -> dict[str, str]:
    """Return this environment without the variables of another PBS job or server."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_PBS)}


def server_variables() -> dict[str, str]:
    """Return the variables that select the server."""
    return {name: os.environ[name] for name in WAY if name in os.environ}


def build_environment() -> dict[str, str]:
    """Return the environment for a command that only queries or deletes.

    Times are in UTC, and no ~/.qstatrc is read.
    """
    return {
        **remove_pbs_variables(),
        **server_variables(),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "QSTATRCHOME": "/dev/null",
    }
