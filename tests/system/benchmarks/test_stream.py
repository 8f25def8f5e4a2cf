"""STREAM: our program run, planted errors, and what its parser refuses of either program's output."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.unit.benchmarks.test_stream import parsed

from steelyard.jobscripts.registry import FailedError

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "build/bin/steelyard-stream"


@pytest.mark.parametrize("threads", [1, 2])
def test_ours_runs_and_is_read(tmp_path: Path, threads: int) -> None:
    done = subprocess.run(
        [PROGRAM, "300001", "3"], env={"OMP_NUM_THREADS": str(threads)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    given = {"elements": 300001, "repetitions": 3, "threads": threads}
    assert set(parsed(tmp_path, done.stdout, given)) == {"copy", "scale", "add", "triad"}


@pytest.mark.parametrize("arguments", [[], ["1000"], ["1000", "1"], ["0", "5"], ["x", "5"]])
def test_wrong_arguments_are_one_line_and_exit_code_2(arguments: list[str]) -> None:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "steelyard-stream: expected ELEMENTS and REPETITIONS (2 to 1000)\n"


def test_a_planted_error_in_a_loop_is_seen(tmp_path: Path) -> None:
    """The same program whose triad multiplies by another factor."""
    source = (ROOT / "jobscripts/stream/stream.c").read_text(encoding="utf-8")
    wrong = source.replace("a[i] = b[i] + FACTOR * c[i];", "a[i] = b[i] + 3.0000001 * c[i];")
    assert wrong != source
    (tmp_path / "wrong.c").write_text(wrong, encoding="utf-8")
    flags = ["-std=gnu11", "-O1", "-fopenmp", "-o", tmp_path / "wrong", tmp_path / "wrong.c", "-lm"]
    subprocess.run(["cc", *flags], check=True)
    done = subprocess.run(
        [tmp_path / "wrong", "1000", "3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    with pytest.raises(FailedError, match="arrays are wrong"):
        parsed(tmp_path, done.stdout, {"elements": 1000, "repetitions": 3})
