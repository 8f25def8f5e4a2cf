"""steelyard-fstest itself: what it does to a directory, counted from outside, and what it refuses."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "build/bin/steelyard-fstest"
SOURCE = ROOT / "jobscripts/filesystem"
MIB = 1 << 20
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
TESTS = ["large_file_copy", "small_file_copy", "small_file_write"]
pytestmark = [
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is missing: make all"),
]

# Counts fsync() and corrupts one byte of a write() on request, like a faulty file system.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int syncs;
int fsync(int fd) { int (*real)(int) = dlsym(RTLD_NEXT, "fsync"); syncs++; return real(fd); }
ssize_t write(int fd, const void *data, size_t n)
{
	ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
	static int large;
	if (getenv("SPOIL") && n == 4096 && ++large == atoi(getenv("SPOIL"))) {
		char copy[4096];
		memcpy(copy, data, n);
		copy[7] ^= 1;
		return real(fd, copy, n);
	}
	return real(fd, data, n);
}
__attribute__((destructor)) static void tell(void)
{
	FILE *file = getenv("SYNCS") ? fopen(getenv("SYNCS"), "w") : NULL;
	if (file) { fprintf(file, "%d", syncs); fclose(file); }
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM, encoding="utf-8")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c", "-ldl"],
        check=True,
    )
    return folder / "shim.so"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with somebody's file in it, which must be all that is in it afterwards too."""
    place = tmp_path / 'a "place"\n\\ é'
    place.mkdir()
    (place / "f00000000").write_text("mine", encoding="utf-8")
    yield place
    assert [path.name for path in place.iterdir()] == ["f00000000"]
    assert (place / "f00000000").read_text(encoding="utf-8") == "mine"


def command(place: Path, test: str, **options: object) -> list[str]:
    words = [str(PROGRAM), "--test", test, "--directory", str(place)]
    for name, value in options.items():
        words += ["--" + name.replace("_", "-"), str(value)]
    return words


def run(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True, **options)


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("sync", ["each", "end", "none"])
@pytest.mark.parametrize("test", TESTS)
def test_output_of_each_test_and_sync(place: Path, test: str, sync: str) -> None:
    begin = time.monotonic()
    done = run(
        command(place, test, size=3 * MIB + 5, files=70, file_size=1025, iterations=2, sync=sync)
    )
    took = time.monotonic() - begin
    assert (done.returncode, done.stderr) == (0, "")
    start, *iterations, end = rows(done.stdout)
    large = test == "large_file_copy"
    files, size = (1, 3 * MIB + 5) if large else (70, 1025)
    assert start["directory"] == str(place)
    assert (start["files"], start["file_bytes"], start["sync"]) == (files, size, sync)
    assert [row["iteration"] for row in iterations] == [1, 2]
    assert {(row["bytes"], row["files"], row["test"]) for row in iterations} == {
        (files * size, files, test)
    }
    assert all(row["seconds"] > 0 for row in iterations)
    assert sum(row["seconds"] for row in iterations) < took
    assert (end["end"], end["folder_synced"]) == (True, sync != "none")


def test_the_file_system_is_told_as_the_kernel_has_it(place: Path) -> None:
    done = run(command(place, "small_file_write", files=1, iterations=1))
    filesystem = rows(done.stdout)[-1]["filesystem"]
    found = run(["findmnt", "--json", "--target", str(place)])
    mount = json.loads(found.stdout)["filesystems"][0]
    assert filesystem["mount"]["type"] == mount["fstype"]
    assert filesystem["mount"]["mount_point"] == mount["target"]
    assert filesystem["magic"].startswith("0x")


@pytest.mark.parametrize("test", TESTS)
def test_every_byte_goes_through_read_and_write(place: Path, tmp_path: Path, test: str) -> None:
    """Against the kernel's own count: a shell's io holds that of the children it has reaped."""
    words = command(place, test, size=8 * MIB, files=400, file_size=2048, iterations=3)
    script = '"$@" >"$OUT" && while read -r line; do echo "$line"; done </proc/$$/io'
    environment = {**os.environ, "OUT": str(tmp_path / "out"), "LC_ALL": "C"}
    done = run(["bash", "-c", script, "bash", *words], env=environment)
    io = {key: int(value) for key, value in (line.split(": ") for line in done.stdout.splitlines())}
    once = 8 * MIB if test == "large_file_copy" else 400 * 2048
    sources = 0 if test == "small_file_write" else once
    written = sources + 3 * once
    assert written <= io["wchar"] < written + 10_000
    copied = 0 if test == "small_file_write" else 3 * once
    verified = 3 * 64 * 4096  # at most
    assert copied <= io["rchar"] < copied + verified + 100_000


@pytest.mark.parametrize(
    ("test", "sync", "syncs"),
    [
        ("small_file_write", "each", 3 * 21),
        ("small_file_write", "end", 3 * 21),
        ("small_file_write", "none", 0),
        ("small_file_copy", "each", 3 * 21),
        ("large_file_copy", "each", 3 * 2),
        ("large_file_copy", "none", 0),
    ],
)
def test_fsync_is_called_for_each_file_and_the_folder(
    place: Path, tmp_path: Path, shim: Path, test: str, sync: str, syncs: int
) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(shim), "SYNCS": str(tmp_path / "syncs")}
    words = command(place, test, size=MIB, files=20, iterations=3, sync=sync)
    assert run(words, env=environment).returncode == 0
    assert (tmp_path / "syncs").read_text(encoding="utf-8") == str(syncs)


@pytest.mark.parametrize(("test", "spoil"), [("large_file_copy", 273), ("small_file_write", 1)])
def test_a_file_system_that_spoils_a_byte_is_found_out(
    place: Path, shim: Path, test: str, spoil: int
) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(shim), "SPOIL": str(spoil)}
    # Write number 273 of 4 KiB is the copy's block 16, where the fifth of the 64 places begins.
    words = command(place, test, size=MIB, files=3, file_size=4096, buffer=4096, iterations=1)
    done = run(words, env=environment)
    assert done.returncode == 7
    assert "differs near byte" in done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("test", TESTS)
def test_direct_opens_every_file_past_the_page_cache(
    place: Path, tmp_path: Path, test: str
) -> None:
    """As strace sees it: sources and targets with O_DIRECT, but for what verifies and syncs."""
    trace = tmp_path / "trace"
    words = command(place, test, size=MIB, files=2, file_size=4096, iterations=1)
    done = run(["strace", "-f", "-e", "trace=openat", "-o", str(trace), *words, "--direct"])
    assert done.returncode == 0, done.stderr
    assert rows(done.stdout)[0]["direct"] is True
    opened = [line for line in trace.read_text().splitlines() if '"f0000' in line]
    made = [line for line in opened if "O_CREAT" in line]
    sources = 0 if test == "small_file_write" else len(made) // 2
    assert len(made) >= 1
    assert all("O_DIRECT" in line for line in made)
    assert len([line for line in opened if "O_DIRECT" in line]) == len(made) + sources


def test_direct_is_refused_with_sizes_that_cannot_be(place: Path) -> None:
    done = run([*command(place, "small_file_write", file_size=100), "--direct"])
    assert (done.returncode, done.stdout) == (8, "")
    assert "files of 100 bytes cannot be written by O_DIRECT" in done.stderr
    done = run([*command(place, "small_file_write", buffer=1000), "--direct"])
    assert done.returncode == 2
    assert "--direct needs a --buffer of whole 4096 bytes" in done.stderr


def test_a_file_system_without_direct_says_so() -> None:
    """None such is to be had here: strace answers EINVAL in its place."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        inject = "inject=write:error=EINVAL:when=2"
        words = command(Path(folder), "small_file_write", files=1, file_size=512, iterations=1)
        done = run(
            ["strace", "-e", "trace=write", "-e", inject, "-o", "/dev/null", *words, "--direct"]
        )
        assert done.returncode == 8, done.stderr
        assert "does not take O_DIRECT for files of 512 bytes" in done.stderr
        assert list(Path(folder).iterdir()) == []


# --- refusals ---


def test_a_directory_that_is_missing_or_none(place: Path) -> None:
    done = run(command(place / "absent", "small_file_write"))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("absent: No such file or directory: give a folder that exists\n")
    done = run(command(place / "f00000000", "small_file_write"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "Not a directory" in done.stderr


def test_a_directory_that_cannot_be_written_to(tmp_path: Path) -> None:
    from tests.unit.somebody import open_copy  # here: this file is also run by itself

    options: dict[str, Any] = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
    program = str(open_copy(PROGRAM, tmp_path))
    done = run([program, *command(Path("/usr"), "small_file_write")[1:]], **options, cwd="/")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "steelyard-fstest: /usr cannot be written to: Permission denied\n"


@pytest.mark.parametrize(
    ("test", "options"),
    [
        ("large_file_copy", {"size": 1 << 60}),
        ("small_file_copy", {"files": 99999999, "file_size": 1 << 40}),
        ("small_file_write", {"files": 99999999, "file_size": 1 << 40}),
    ],
)
def test_not_enough_space_is_refused_before_anything_is_written(
    place: Path, test: str, options: dict[str, object]
) -> None:
    done = run(command(place, test, **options))
    assert (done.returncode, done.stdout) == (5, "")
    assert "has not enough space: " in done.stderr
    assert done.stderr.count("\n") <= 2  # the folder's own name has one


def test_a_write_that_fails_in_the_middle_is_told_and_everything_removed(place: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

    done = run(command(place, "large_file_copy", size=2 * MIB), preexec_fn=limit)
    assert (done.returncode, done.stdout) == (6, "")
    assert "cannot make the files to copy in " in done.stderr
    assert "File too large" in done.stderr


def test_output_that_cannot_be_written_is_an_error(place: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        words = command(place, "small_file_write", files=1, iterations=1)
        done = subprocess.run(words, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 6
    assert "cannot write the output" in done.stderr


def dies_with_us() -> None:
    """In the child: ended when we are, however."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def endless(place: Path, test: str) -> Iterator[subprocess.Popen[str]]:
    """One that runs for hours if nobody ends it: it outlives neither this block nor us."""
    words = command(place, test, iterations=100000, size=4 * MIB)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words,
        stdout=pipe,
        stderr=pipe,
        text=True,
        preexec_fn=dies_with_us,  # noqa: PLW1509
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def test_no_endless_program_outlives_its_test(tmp_path: Path) -> None:
    """Whatever becomes of pytest, here played by a process that is killed."""
    script = (
        f"import pathlib, runpy, time\nm = runpy.run_path({__file__!r})\n"
        f"with m['endless'](pathlib.Path({str(tmp_path)!r}), 'small_file_write') as child:\n"
        "    print(child.pid, flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as player:
        assert player.stdout is not None
        program = Path(f"/proc/{int(player.stdout.readline())}/exe")
        assert program.resolve() == PROGRAM
        player.kill()
        player.wait()
    end = time.monotonic() + 90
    while program.is_symlink() and time.monotonic() < end:
        time.sleep(0.01)
    assert not program.is_symlink()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("test", TESTS)
def test_interrupted_it_removes_its_files(place: Path, test: str, number: signal.Signals) -> None:
    with endless(place, test) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.readline()
        child.send_signal(number)
        assert child.wait(timeout=90) == 128 + number


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--test and --directory are needed"),
        (["--test", "large_file_copy"], "--test and --directory are needed"),
        (["--test", "copy"], "not allowed as a value: copy"),
        (["--iterations", "0"], "not allowed as a value: 0"),
        (["--iterations", "-1"], "not allowed as a value: -1"),
        (["--iterations", "1x"], "not allowed as a value: 1x"),
        (["--size", "99999999999999999999"], "not allowed as a value: 99999999999999999999"),
        (["--buffer", "2147483648"], "not allowed as a value: 2147483648"),
        (["--sync", ""], "not allowed as a value: "),
        (["--directory", ""], "not allowed as a value: "),
        (["--verbose"], "unknown option or missing value: --verbose"),
        (["--size"], "unknown option or missing value: --size"),
        (["more"], "unexpected argument: more"),
    ],
)
def test_wrong_usage(words: list[str], message: str) -> None:
    done = run([str(PROGRAM), *words])
    assert (done.returncode, done.stdout) == (2, "")
    first, second, *_ = done.stderr.split("\n")
    assert first == f"steelyard-fstest: {message}"
    assert second.startswith("usage: ")
