"""The locks of a study: queried without taking them, and named if a disk has none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.collect import study as HELP

from steelyard.wrappers.study.folder import StudyDir, lock_study, read_lock_holder

Write = Callable[..., Path]

NO_LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>

int flock(int fd, int operation)
{
	(void)fd, (void)operation;
	errno = ENOSYS;
	return -1;
}

static int instead_of(const char *name, int fd, int command, void *argument)
{
	switch (command) {
	case F_SETLK: case F_SETLKW: case F_GETLK:
	case F_OFD_SETLK: case F_OFD_SETLKW: case F_OFD_GETLK:
		errno = ENOLCK;
		return -1;
	}
	return ((int (*)(int, int, void *))dlsym(RTLD_NEXT, name))(fd, command, argument);
}

#define INSTEAD_OF(name) \\
	int name(int fd, int command, ...) \\
	{ \\
		va_list rest; \\
		va_start(rest, command); \\
		void *argument = va_arg(rest, void *); \\
		va_end(rest); \\
		return instead_of(#name, fd, command, argument); \\
	}
INSTEAD_OF(fcntl)
INSTEAD_OF(fcntl64)
"""


@pytest.fixture(scope="module")
def without_locks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that sees no file system with locks."""
    folder = tmp_path_factory.mktemp("no-locks")
    (folder / "none.c").write_text(NO_LOCKS, encoding="utf-8")
    build = ["gcc", "-shared", "-fPIC", "-o", "none.so", "none.c", "-ldl"]
    subprocess.run(build, cwd=folder, check=True)
    return {**os.environ, "LD_PRELOAD": str(folder / "none.so")}


def steelyard(environment: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; from steelyard.wrappers.commands import cli; sys.exit(cli.main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-P", "-c", program, *map(str, words)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def told(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a command without locks."""
    (line,) = done.stderr.splitlines()
    assert done.returncode == 3 and "has no locks" in line and "on a disk that has them" in line
    return line


def test_submit_says_that_there_are_no_locks(
    without_locks: dict[str, str], write_study: Write
) -> None:
    path = write_study(("[1, 2]", "[1]"), ("repeat = 4\nblocks = 2", "repeat = 1"))
    done = steelyard(without_locks, "submit", path, "--scheduler", "local")
    assert ".lock cannot be locked" in told(done)


def test_collect_and_report_say_that_there_are_no_locks(
    without_locks: dict[str, str], tmp_path: Path
) -> None:
    study = HELP.Study(tmp_path)
    assert "study.duckdb cannot be locked" in told(steelyard(without_locks, "collect", study.dir))
    study.collect()
    done = steelyard(without_locks, "report", study.dir, "-o", tmp_path / "r.html")
    assert "study.duckdb cannot be locked" in told(done)


def test_who_asks_for_the_lock_keeps_nobody_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`steelyard status` is just looking, when a submit begins."""
    study = StudyDir(tmp_path / "x.study")
    with lock_study(study):
        assert read_lock_holder(study) == (os.getpid(), os.uname().nodename)
    real, begun = os.close, []

    def close(fd: int) -> None:
        if not begun:
            begun.append(fd)
            with lock_study(study):
                pass
        real(fd)

    monkeypatch.setattr(os, "close", close)
    assert read_lock_holder(study) is None
    assert begun
