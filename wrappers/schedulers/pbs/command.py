"""Runs the commands of PBS: no shell, a time limit, and a server that is away is told from a no."""

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

# PBS' own words for a server that is not there now but may be again.
LOST = re.compile(
    r"cannot connect to (specified )?server|connection refused|connection timed out"
    r"|could not connect|communication failure|end of file|premature end of message"
    r"|server (is )?(shutting down|too busy|is busy)|trqauthd|time(d)? ?out"
    r"|no route to host|network is unreachable|error communicating with|request invalid for state"
    r"|pbs_iff|lost connection|protocol \(ASN\.1\) error|batch protocol error",
    re.IGNORECASE,
)
# A name that nobody has: asking again does not help.
NO_HOST = re.compile("can ?not resolve|unknown host", re.IGNORECASE)
# A job that was there: qstat and qdel say so with a line for each.
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
    """What a command said; LostError without an answer, MissingError without the program."""
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
    """stdout of one command; LostError, CommandError, or MissingError without the program."""
    done = run_program(argv, env, cwd)
    if done.returncode == 0:
        return done.stdout
    raise format_error(argv[0], done.stderr, done.returncode)


def run_for_jobs(argv: Sequence[str]) -> str:
    """stdout of a command that names jobs, some of which may be gone: that is no error."""
    done = run_program(argv)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    wrong = [line for line in lines if not GONE.search(line)]
    if done.returncode != 0 and (wrong or not lines):
        raise format_error(argv[0], "\n".join(wrong), done.returncode)
    return done.stdout


def format_error(program: str, said: str, code: int) -> MissingError:
    """The error in the command's own words."""
    message = last_line(said) or f"exit code {code}, and no word why"
    if LOST.search(said) and not NO_HOST.search(said):
        return LostError(f"{program}: {message}")
    return CommandError(program, message)


def classify_error(error: MissingError) -> MissingError:
    """What a reader of the analysis could not have: LostError where asking again may help."""
    said = str(error)
    return LostError(said) if LOST.search(said) and not NO_HOST.search(said) else error


def last_line(text: str) -> str:
    """The line that says why, without the program's name before it: ours, where one is.

    Our submit filter and our hook say why they refuse; after them qsub says only that it failed.
    Torque ends with "Error (-111 - Unknown error -111)"; an option that is refused has the usage
    behind it.
    """
    before, _, usage = text.partition("usage:")
    lines = [line.strip() for line in (before.strip() or usage).splitlines() if line.strip()]
    for telling in ("steelyard: ", "annot connect to server"):
        lines = [line for line in lines if telling in line] or lines
    return re.sub(r"^q[a-z]+: ", "", lines[-1]) if lines else ""


def run(argv: Sequence[str]) -> str:
    """stdout of a command that may be repeated without harm, tried again while the server is lost."""
    return retry(lambda: run_once(argv))
