"""steelyard-fstest with a process per file, counted from outside: processes and their arguments."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from .test_fstest import MIB, PROGRAM, command, rows, run

pytestmark = [
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is missing: make all"),
]


LOGGED = '#!/bin/sh\nprintf "%s\\n" "$*" >>"$CALLS"\nexec /bin/{name} "$@"\n'


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that gets a line for each cp and dd that is started, with its arguments."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("cp", "dd"):
        (folder / name).write_text(LOGGED.format(name=name), encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


@pytest.mark.parametrize(
    ("test", "files", "first"),
    [
        ("large_file_copy", 1, r"-f {place}/\S+/source/f00000000 {local}/\S+/target/f00000000"),
        ("small_file_copy", 30, r"-f {local}/\S+/source/f00000000 {place}/\S+/target/f00000000"),
        (
            "small_file_write",
            30,
            r"if=/dev/urandom of={place}/\S+/target/f00000000 bs=1025 count=1 ",
        ),
    ],
)
def test_a_process_is_started_for_each_file(
    tmp_path: Path, calls: Path, test: str, files: int, first: str
) -> None:
    """A large file from the directory to the local folder, small ones from there into it."""
    folders = {name: tmp_path / name for name in ("place", "local")}
    for folder in folders.values():
        folder.mkdir()
    words = command(
        folders["place"], test, size=MIB, files=files, file_size=1025, iterations=2,
        process="each", sync="none", local=folders["local"], rest=1,
    )  # fmt: skip
    done = run([*words, "--keep"])
    assert (done.returncode, done.stderr) == (0, "")
    lines = calls.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 * files
    assert re.match(first.format(**folders), lines[0])
    assert lines[0] == lines[files]  # kept, and written over
    start = rows(done.stdout)[0]
    assert (start["process"], start["keep"], start["files"]) == ("each", True, files)
    assert [list(folder.iterdir()) for folder in folders.values()] == [[], []]


def test_a_process_that_fails_is_told(tmp_path: Path, calls: Path) -> None:
    program = calls.parent / "programs" / "dd"
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (tmp_path / "place").mkdir()
    words = command(tmp_path / "place", "small_file_write", process="each", sync="none", files=2)
    done = run(words)
    assert done.returncode == 6
    assert done.stderr.startswith(f"steelyard-fstest: cannot run the test in {tmp_path}/place/")
    assert list((tmp_path / "place").iterdir()) == []


def test_a_short_file_of_a_process_is_found_out(tmp_path: Path, calls: Path) -> None:
    program = calls.parent / "programs" / "dd"
    program.write_text('#!/bin/sh\nprintf x >"${2#of=}"\n', encoding="utf-8")
    (tmp_path / "place").mkdir()
    words = command(tmp_path / "place", "small_file_write", process="each", sync="none", files=2)
    done = run(words)
    assert done.returncode == 7
    assert "has 1 bytes instead of 1024" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"process": "each"}, "--process each takes --sync end or none, and no --direct"),
        ({"local": "/tmp"}, "--local is of --process each"),
        ({"process": "many"}, "not allowed as a value: many"),
    ],
)
def test_options_that_do_not_go_together(
    tmp_path: Path, options: dict[str, object], words: str
) -> None:
    done = run(command(tmp_path, "small_file_copy", **options))
    assert done.returncode == 2
    assert done.stderr.startswith(f"steelyard-fstest: {words}\n")
