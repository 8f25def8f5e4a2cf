"""Runs PBS commands without a shell and with a time limit; separates lost servers from refusals."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers.retries import CommandError, LostError, retry

TIMEOUT_S = 120

# Messages of PBS for a server that does not answer now but may answer later.
LOST = re.compile(
    r"cannot connect to (specified )?server|connection refused|connection timed out"
    r"|could not connect|communication failure|end of file|premature end of message"
    r"|server (is )?(shutting down|too busy|is busy)|trqauthd|time(d)? ?out"
    r"|no route to host|network is unreachable|error communicating with|request invalid for state"
    r"|pbs_iff|lost connection|protocol \(ASN\.1\) error|batch protocol error",
    re.IGNORECASE,
)
# An unknown host name: a retry does not help.
NO_HOST = re.compile("can ?not resolve|unknown host", re.IGNORECASE)
# A job that has ended: qstat and qdel print one such line for each.
GONE = re.compile(
    r"Unknown Job|Job has finished|Unknown queue destination|has already completed"
    r"|Request invalid for state of job|Job not found",
    re.IGNORECASE,
)
NO_PBS = (
    "the commands of Torque or OpenPBS have to work here (PBS_DEFAULT or PBS_SERVER name the "
    "server); without one: `steelyard submit --scheduler local`"
)


def run_program(
    argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command and return the completed process. Raises LostError if it gives no answer,
    MissingError if the program does not exist."""
    try:
        return programs.run_quietly(
            argv, TIMEOUT_S, pbs_commands.build_environment() if env is None else env, cwd
        )
    except FileNotFoundError as error:
        raise MissingError(f"{argv[0]} is not on this machine: {NO_PBS}") from error
    except subprocess.TimeoutExpired as error:
        raise LostError(f"{argv[0]} gave no answer in {TIMEOUT_S} s") from error


def run_once(
    argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Return stdout of one command. Raises LostError, CommandError, or MissingError if the program
    does not exist."""
    done = run_program(argv, env, cwd)
    if done.returncode == 0:
        return done.stdout
    raise format_error(argv[0], done.stderr, done.returncode)


def run_for_jobs(argv: Sequence[str]) -> str:
    """Return stdout of a command that names jobs. Jobs that have ended are no error."""
    done = run_program(argv)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    wrong = [line for line in lines if not GONE.search(line)]
    if done.returncode != 0 and (wrong or not lines):
        raise format_error(argv[0], "\n".join(wrong), done.returncode)
    return done.stdout


def format_error(program: str, output: str, code: int) -> MissingError:
    """Return the error with the command's own message: a LostError if the server did not answer."""
    message = last_line(output) or f"exit code {code}, and no word why"
    if LOST.search(output) and not NO_HOST.search(output):
        return LostError(f"{program}: {message}")
    return CommandError(program, message)


def classify_error(error: MissingError) -> MissingError:
    """Return the analysis reader's error, as a LostError where a retry may help."""
    message = str(error)
    return LostError(message) if LOST.search(message) and not NO_HOST.search(message) else error


def last_line(text: str) -> str:
    """Return the line that gives the reason, without the program's name; Steelyard's line if it has
    one.

    Steelyard's submit filter and hook print why they refuse; qsub then only prints that it failed.
    Torque ends with "Error (-111 - Unknown error -111)". After a refused option comes the usage
    text."""
    before, _, usage = text.partition("usage:")
    lines = [line.strip() for line in (before.strip() or usage).splitlines() if line.strip()]
    for telling in ("steelyard: ", "annot connect to server"):
        lines = [line for line in lines if telling in line] or lines
    return re.sub(r"^q[a-z]+: ", "", lines[-1]) if lines else ""


def run(argv: Sequence[str]) -> str:
    """Return stdout of a command that is safe to repeat; it is retried while the server is lost."""
    return retry(lambda: run_once(argv))
