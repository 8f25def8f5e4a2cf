"""Finds Steelyard's own programs, runs programs whose output is read, and knows the syntax of a
command line that needs a shell.

A program is searched in this order:

1. the path in its variable, $STEELYARD_NODE for steelyard-node;
2. build/bin of the checkout that this package is imported from;
3. the folder `libexec` inside the installed package, which a wheel for a platform brings;
4. PATH;
5. /usr/local/libexec/steelyard and /usr/libexec/steelyard, where an administrator installs.

A checkout and a wheel come before PATH and the administrator's installation because their programs
have the version of this Python package: it reads every record that they write, and they know every
option that it passes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from steelyard.analysis.sources.sample_library import BUILT, BUNDLED, INSTALLED
from steelyard.wrappers.base.errors import MissingError

PROGRAM = "steelyard-node"
# programs in the folder libexec of a platform's wheel
IN_WHEEL = (PROGRAM, "steelyard-time", "steelyard-load", "steelyard-fstest")


def find_node_program() -> Path:
    """Return the path of steelyard-node. Raises MissingError, which names the searched folders."""
    named = os.environ.get("STEELYARD_NODE")
    if named and not is_program(Path(named)):
        raise MissingError(f"STEELYARD_NODE={named}: no program that can be run")
    found = find_program(PROGRAM)
    if found is None:
        searched = ", ".join(str(folder) for folder in (built_programs(), BUNDLED, *INSTALLED))
        raise MissingError(
            f"{PROGRAM} is missing (searched: {searched}, PATH): {remedy(PROGRAM)}, "
            "or set STEELYARD_NODE to its path"
        )
    return found


def find_program(name: str) -> Path | None:
    """Return the path of one of our programs, in the order above, or of another program by PATH; or
    None."""
    on_path = shutil.which(name)
    if not name.startswith("steelyard-"):
        return Path(on_path) if on_path else None
    named = os.environ.get(variable(name))
    places = [
        *([Path(named)] if named else []),
        built_programs() / name,
        BUNDLED / name,
        *([Path(on_path)] if on_path else []),
        *(folder / name for folder in INSTALLED),
    ]
    return next((path for path in places if is_program(path)), None)


def variable(program: str) -> str:
    """Return the variable with the path of one of our programs: STEELYARD_NODE,
    STEELYARD_FSTEST."""
    return program.upper().replace("-", "_")


def remedy(program: str) -> str:
    """Return how to get a program of ours that is missing or too old."""
    make = "run `make all` in the checkout"
    if program in IN_WHEEL:
        return f"install the wheel of Steelyard for this platform, or {make}"
    return make


def built_programs() -> Path:
    """Return build/bin of the checkout that this package is imported from, whether or not it
    exists."""
    return BUILT / "bin"


def is_program(path: Path) -> bool:
    """Return whether the path is a file that may be executed."""
    return path.is_file() and os.access(path, os.X_OK)


def run_quietly(
    argv: Sequence[str],
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its output and exit code. Raises OSError if it cannot run,
    TimeoutExpired."""
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_s,
        env=env,
        cwd=cwd,
        check=False,
    )


SHELL_SYNTAX = "|&;<>()$`*?[\n"  # outside of quotes
# POSIX' reserved words and built-in utilities that are not also programs.
SHELL_BUILT_IN = frozenset(
    re.findall(
        r"\S+",
        """! . : { } alias bg break case cd command continue do done elif else esac eval exec exit
        export fc fg fi for getopts hash if in jobs read readonly return set shift then times trap
        type ulimit umask unalias unset until wait while""",
    )
)
SHELL_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
