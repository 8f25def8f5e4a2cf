"""The benchmark ior: every pattern run and read, the stonewall, refusals, and data that is not right."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.registry import OutputError

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "build/bin/steelyard-iotest"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
MPIRUN += ["--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "^tcp,openib,ofi", "-np"]
PATTERNS = {
    "easy": {"write", "read"},
    "hard": {"write", "read"},
    "md_easy": {"create", "stat", "delete"},
    "md_hard": {"create", "stat", "read_files", "delete"},
}

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("mpicc") and shutil.which("mpirun")),
        reason="no mpicc and mpirun (Debian: libopenmpi-dev, openmpi-bin)",
    ),
]


def run(
    ranks: int, folder: Path, *words: str, program: Path = PROGRAM
) -> subprocess.CompletedProcess[str]:
    command = [*MPIRUN, str(ranks), str(program), "--directory", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def parsed(folder: Path, text: str, given: dict[str, object]) -> dict[str, float]:
    (folder / "out.0").write_text(text, encoding="utf-8")
    return {r.metric: r.value for r in registry.load("ior").parse(folder, 0, given)}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_runs_is_read_and_leaves_nothing(tmp_path: Path, pattern: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    words = ("--transfer", "1001", "--block", "50500", "--files", "50", "--pattern", pattern)
    done = run(3, work, *words)
    assert done.returncode == 0, done.stderr
    given: dict[str, object] = {"pattern": pattern, "ranks": 3, "transfer": 1001, "block": 50500}
    given["files"] = 50
    found = parsed(tmp_path, done.stdout, given)
    assert set(found) == PATTERNS[pattern] | {"reached", "least"}
    assert found["reached"] == found["least"] == 50  # 50 whole transfers in 50500 bytes
    for phase in json.loads(done.stdout)["phases"]:
        assert phase["operations"] == 150
        name = phase["name"] if f"{phase['name']}_files" not in found else "read_files"
        count = phase["bytes"] if pattern in ("easy", "hard") else 150
        assert found[name] == pytest.approx(count / phase["seconds"], rel=1e-9)
    assert not list(work.iterdir())


def test_at_the_stonewall_all_go_on_to_what_the_farthest_had_reached(tmp_path: Path) -> None:
    """Each rank has written one file at least when it looks at the clock."""
    words = ("--files", "1000000", "--pattern", "md_easy", "--stonewall", "0.05")
    done = run(2, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    given: dict[str, object] = {"pattern": "md_easy", "files": 1000000, "stonewall_s": 0.05}
    # What is not said on the command line is the program's default, which is the benchmark's.
    found = parsed(tmp_path, done.stdout, given)
    assert 1 <= found["least"] <= found["reached"] < 1000000
    (create, *_) = json.loads(done.stdout)["phases"]
    assert create["operations"] == 2 * found["reached"]
    with pytest.raises(OutputError, match=r"stonewall_s is 0\.05 instead of 0\.0"):
        parsed(tmp_path, done.stdout, {**given, "stonewall_s": 0.0})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"operations": 4,', '"operations": 5,', "5 operations instead of 4"),
        ('"bytes": 64}', '"bytes": 63}', "63 bytes instead of 64"),
        ('"reached": 2', '"reached": 3', "2 to 3 of 2 operations: cannot be"),
        ('"least": 2', '"least": 1', "1 of 2 operations, without a stonewall"),
        ('"name": "read"', '"name": "look"', "no document of the pattern easy"),
        ('"ranks": 2', '"ranks": 3', "ranks is 3 instead of 2"),
        ("]}", "]", "cut short or damaged"),
    ],
)
def test_a_document_that_cannot_be_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    phase = '{"name": "NAME", "seconds": 0.5, "operations": 4, "bytes": 64}'
    phases = ", ".join(phase.replace("NAME", name) for name in ("write", "read"))
    text = (
        '{"format": "steelyard-ior", "version": 1, "pattern": "easy", "ranks": 2, "nodes": 1, '
        '"transfer": 16, "block": 32, "files": 1000, "stonewall_s": 0, "reached": 2, "least": 2, '
        f'"phases": [{phases}]}}\n'
    )
    given: dict[str, object] = {"transfer": 16, "block": 32}
    assert parsed(tmp_path, text, given)["write"] == 128  # 64 bytes in half a second
    assert old in text
    with pytest.raises(OutputError) as caught:
        parsed(tmp_path, text.replace(old, new, 1), given)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pattern", "soft"], "expected easy, hard, md_easy or md_hard, found 'soft'"),
        (["--files", "many"], "expected a number, found 'many'"),
        (["--blocks", "3"], "unknown argument '--blocks'"),
        (["--block", "100"], "at least: 'easy'"),
        (["--directory", "here"], "expected --directory /PATH, found 'here'"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(
    tmp_path: Path, words: list[str], said: str
) -> None:
    command = [PROGRAM, "--directory", tmp_path, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("steelyard-iotest: ")
    assert done.stderr.endswith(said + "\n")


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = run(2, tmp_path / "absent")
    assert done.returncode != 0
    assert "absent/seen: cannot be written: No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("pattern", "old", "new"),
    [
        ("hard", "(uint64_t)rank << 48", "(uint64_t)t_rank << 48"),
        ("md_hard", "+ (uint64_t)rank * 7", "+ (uint64_t)(t_rank++) * 7"),
    ],
)
def test_data_of_another_rank_is_not_taken_for_right(
    tmp_path: Path, pattern: str, old: str, new: str
) -> None:
    """Built so that what is written is not what the reader expects."""
    shutil.copytree(ROOT / "jobscripts/ior/src", tmp_path / "src")
    for path in sorted((tmp_path / "src").glob("iotest_*.c")):
        text = path.read_text(encoding="utf-8")
        text = text.replace(old, new).replace("static struct {", "static int t_rank;\n\nstatic struct {", 1)  # fmt: skip
        text = text.replace("errno = 0;\n\twritten = pwrite", "t_rank++;\n\terrno = 0;\n\twritten = pwrite")  # fmt: skip
        path.write_text(text, encoding="utf-8")
    files = [str(path) for path in sorted((tmp_path / "src").glob("*.c"))]
    subprocess.run(["mpicc", "-std=gnu11", "-w", "-o", str(tmp_path / "wrong"), *files], check=True)
    words = ("--pattern", pattern, "--transfer", "64", "--block", "640", "--files", "3")
    done = run(2, tmp_path, *words, program=tmp_path / "wrong")
    assert done.returncode != 0
    assert "not what was written" in done.stderr
