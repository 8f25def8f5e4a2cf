"""Replacements of other programs, which answer in the process of the test.

A replacement of sbatch, sacct or qsub is a Python script on PATH whose first line names this
interpreter; it is executed here. `steelyard-node netem parse` returns recorded answers. No test
waits for a process.
"""

from __future__ import annotations

import errno
import functools
import io
import os
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from tests import record_netem

answers = functools.cache(record_netem.read_answers)
ONE_AT_A_TIME = threading.Lock()  # arguments, environment and output belong to the complete process


def answer(
    argv: Sequence[str | Path], env: Mapping[str, str], options: Mapping[str, Any]
) -> subprocess.CompletedProcess[Any] | None:
    """Return the result of subprocess.run(argv, **options); None if no replacement exists.

    Raises the exceptions of subprocess.run: FileNotFoundError if the program does not exist,
    ValueError for an argument with a NUL.
    """
    found = shutil.which(str(argv[0]), path=env.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(argv[0]))
    words = [str(word) for word in argv[1:]]
    if any("\0" in word for word in words):
        raise ValueError("embedded null byte")
    if Path(found).name == "steelyard-node":
        return recorded(found, words, options)
    with Path(found).open("rb") as file:
        head = file.readline().split()
    if head[:1] != [f"#!{sys.executable}".encode()]:
        return None
    cwd = options.get("cwd")
    with ONE_AT_A_TIME, chdir(cwd) if cwd else nullcontext():
        return completed(found, words, execute(Path(found), words, env), options)


def recorded(
    program: str, words: list[str], options: Mapping[str, Any]
) -> subprocess.CompletedProcess[Any] | None:
    """Return the node program's recorded answer for a condition, which only it can parse."""
    if words[:3] != ["netem", "parse", "--"]:
        return None
    assert words[3] in answers(), f"no answer to {words[3]!r} is recorded: tests/record_netem.py"
    return completed(program, words, answers()[words[3]], options)


def execute(program: Path, argv: Sequence[str], env: Mapping[str, str]) -> tuple[int, str, str]:
    """Return exit code, output and error output, as of a process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", [str(program), *argv]),
        mock.patch.dict(os.environ, env, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            runpy.run_path(str(program), run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            err.write(f"{end.code}\n" if isinstance(end.code, str) else "")
    return code, out.getvalue(), err.getvalue()


def completed(
    program: str, words: list[str], said: tuple[int, str, str], options: Mapping[str, Any]
) -> subprocess.CompletedProcess[Any]:
    """Return a completed process, with its output where the caller requested it."""
    streams: list[Any] = []
    for name, text in zip(("stdout", "stderr"), said[1:], strict=True):
        target = options.get(name)
        if options.get("capture_output") or target == subprocess.PIPE:
            streams.append(text if options.get("text") else text.encode())
            continue
        if target is not None and target >= 0:
            os.write(target, text.encode())
        streams.append(None)
    done = subprocess.CompletedProcess([program, *words], said[0], *streams)
    if options.get("check"):
        done.check_returncode()
    return done
