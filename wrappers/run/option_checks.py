"""Checks the options of `steelyard run` before anything starts."""

from __future__ import annotations

import argparse
import array
import fcntl
import os
import re
import stat
import sys
import termios
from pathlib import Path

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.launchers import launcher_checks, launcher_grammar
from steelyard.wrappers.launchers.launcher_grammar import Launcher
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.netem.program import Conditions
from steelyard.wrappers.study.job_settings import TAG_KEY

MIN_RATE_HZ, MAX_RATE_HZ = 0.001, 1000.0


def read_conditions(args: argparse.Namespace) -> Conditions:
    """Parse --netem, --cache and --peer, and check that this machine can apply them."""
    if args.netem != netem.NONE:
        netem.parse_specification(args.netem)
    elif args.peer is not None:
        raise UsageError("--peer: goes with --netem=SPEC, whose round-trip times are measured")
    peer = None if args.peer is None else netem.resolve_address(args.peer)
    wanted = netem.Conditions(args.netem, args.cache, peer)
    netem.check_on_this_machine(wanted)
    return wanted


def read_launcher(text: str, condition: str = netem.NONE) -> Launcher:
    """Parse --in; check that the launcher is installed, allowed to this user, and fits the
    condition."""
    try:
        launcher = launcher_grammar.parse(text)
    except UsageError as error:
        raise UsageError(f"--in: {error}", part=text) from error
    refusal = launcher_grammar.condition_conflict(launcher, condition)
    if refusal is not None:
        raise UsageError(f"--in {text} --netem={condition}: {refusal}", part=text)
    job_condition = netem.read_job_condition()
    refusal = launcher_grammar.condition_conflict(launcher, job_condition)
    if refusal is not None:
        raise UsageError(f"--in {text}: this job has --netem={job_condition}: {refusal}", part=text)
    launcher_checks.check_on_this_machine(launcher)
    return launcher


def read_input(text: str | None, benchmark: str | None, to_files: bool) -> Path | None:
    """Return the file that every run reads as its stdin. None is the terminal, or an empty stdin
    for a command that writes to files."""
    if text is None:
        if to_files and benchmark is None:
            check_unread_stdin(os.fstat(0) if is_open(0) else None)
        return None
    if benchmark is not None:
        raise UsageError(f"--input {text}: goes with commands, not with --benchmark", part=text)
    path = Path(text).absolute()
    if not path.exists() or path.is_dir() or not os.access(path, os.R_OK):
        raise UsageError(f"--input {text}: no file that can be read", part=text)
    return path


def check_unread_stdin(status: os.stat_result | None) -> None:
    """Raise UsageError for an unread file as stdin: every run of the command would need it from
    its start. For an unread pipe or socket, print a note."""
    if status is None or stat.S_ISCHR(status.st_mode):
        return
    empty = "the command's stdin is empty in every run"
    if stat.S_ISREG(status.st_mode) and status.st_size and os.lseek(0, 0, os.SEEK_CUR) == 0:
        raise UsageError(
            f"stdin is a file, and {empty}: give each run the file with --input FILE, "
            "or none with </dev/null",
            part="--input",
        )
    if not stat.S_ISREG(status.st_mode) and not count_unread_bytes(0):
        return
    print(f"steelyard run: note: {empty}; --input FILE gives each run a file", file=sys.stderr)


def count_unread_bytes(fd: int) -> int:
    """Return the number of unread bytes in a pipe or socket; 0 if it cannot be read."""
    number = array.array("i", [0])
    try:
        fcntl.ioctl(fd, termios.FIONREAD, number)
    except OSError:
        return 0
    return number[0]


def is_open(fd: int) -> bool:
    """Return whether the descriptor is open."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def read_rate(text: str | None) -> float | None:
    """Parse --sample-rate; grammar and message are those of plugins/node/base/number.c."""
    if text is None:
        return None
    plain = re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", text)
    rate_hz = float(text) if plain else -1.0
    if rate_hz != 0 and not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise UsageError(
            f"--sample-rate={text}: expected a rate in Hz: 0 (totals only), or {MIN_RATE_HZ:g} "
            f"to {MAX_RATE_HZ:g}",
            part=text,
        )
    return rate_hz


def read_tags(tags: list[str]) -> tuple[str, ...]:
    """Check that each tag is KEY=VALUE."""
    for tag in tags:
        key, equals, value = tag.partition("=")
        if not (equals and TAG_KEY.fullmatch(key) and value and value.isprintable()):
            raise UsageError(f"--tag {tag}: allowed is KEY=VALUE, the key a word", part=tag)
    return tuple(tags)
