"""Runs Slurm's commands without a shell and with a time limit; retries while the controller is
lost."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from steelyard.analysis.sources import slurm_command_environment
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers.retries import CommandError, LostError, retry

TIMEOUT_S = 120

# Messages of Slurm for a controller that does not answer now but may answer later.
LOST = re.compile(
    "Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted"
    "|Connection refused|Connection timed out|backup controller in standby|Unexpected message"
    "|Communication connection failure|temporarily unable to accept job|Resource temporarily",
    re.IGNORECASE,
)
NO_SLURM = (
    "Slurm's commands have to work here (Debian: slurm-client; SLURM_CONF); without a cluster: "
    "`steelyard submit --scheduler local`, or a throwaway one, `steelyard cluster up`"
)


def run_once(
    argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Return stdout of one command. Raises LostError, CommandError, or MissingError if the program
    does not exist."""
    try:
        environment = (
            slurm_command_environment.build_environment()
            if env is None
            else {**env, "LC_ALL": "C.UTF-8"}
        )
        done = programs.run_quietly(argv, TIMEOUT_S, environment, cwd)
    except FileNotFoundError as error:
        raise MissingError(f"{argv[0]} is not on this machine: {NO_SLURM}") from error
    except subprocess.TimeoutExpired as error:
        raise LostError(f"{argv[0]} gave no answer in {TIMEOUT_S} s") from error
    if done.returncode == 0:
        return done.stdout
    message = last_line(done.stderr) or f"exit code {done.returncode}, and no word why"
    if LOST.search(done.stderr):
        raise LostError(f"{argv[0]}: {message}")
    raise CommandError(argv[0], message)


def last_line(text: str) -> str:
    """Return the last line with text, without the program's name; Steelyard's last line if it has
    one.

    Steelyard's plugin prints why it refuses an option; Slurm then only prints that the option is
    wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if "error: steelyard: " in line] or lines
    return re.sub(r"^\w+: (error|fatal): ", "", lines[-1]) if lines else ""


def run(argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """Return stdout of a command that is safe to repeat; it is retried while Slurm is lost."""
    return retry(lambda: run_once(argv, env))
