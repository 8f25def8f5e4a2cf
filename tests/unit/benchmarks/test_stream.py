"""STREAM: our program run, planted errors, and what its parser refuses of either program's output."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.registry import FailedError, OutputError

ROOT = Path(__file__).parents[3]
RECORDED = (ROOT / "tests/data/stream/stream.5.10.out").read_text(encoding="utf-8")
GIVEN: dict[str, object] = {"elements": 2000000, "threads": 2}


def parsed(folder: Path, text: str, given: dict[str, object]) -> dict[str, float]:
    (folder / "out.0").write_text(text, encoding="utf-8")
    return {r.metric: r.value for r in registry.load("stream").parse(folder, 0, given)}


def test_the_rates_of_the_original_are_in_bytes_per_second(tmp_path: Path) -> None:
    assert parsed(tmp_path, RECORDED, GIVEN) == {
        "copy": 2739.2e6,
        "scale": 16384.0e6,
        "add": 44111.9e6,
        "triad": pytest.approx(33102.0e6),
    }


@pytest.mark.parametrize(
    ("build", "triad"), [("verbose", 29127.1), ("float", 27776.8), ("float-verbose", 27815.2)]
)
def test_other_builds_of_the_original(tmp_path: Path, build: str, triad: float) -> None:
    text = (ROOT / f"tests/data/stream/stream.5.10.{build}.out").read_text(encoding="utf-8")
    assert parsed(tmp_path, text, GIVEN)["triad"] == pytest.approx(triad * 1e6)


def test_bytes_per_element_belong_to_the_rates(tmp_path: Path) -> None:
    text = RECORDED.replace("uses 8 bytes", "uses 4 bytes")
    with pytest.raises(OutputError, match=r"Copy: 2739\.2 MB/s in 0\.011682 s do not go together"):
        parsed(tmp_path, text, GIVEN)
    with pytest.raises(OutputError, match="elements of 2 bytes instead of 8 or 4"):
        parsed(tmp_path, RECORDED.replace("uses 8 bytes", "uses 2 bytes"), GIVEN)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Array size = 2000000", "Array size = 1000000", "elements = 1000000 instead of 2000000"),
        ("executed 10 times", "executed 2 times", "repetitions = 2 instead of 10"),
        ("counted = 2", "counted = 1", "threads = 1 instead of 2"),
        ("33102.0", "93102.0", "Triad: 93102.0 MB/s in 0.00145 s do not go together"),
        ("Copy:    ", "Kopie:   ", "loops"),
        ("0.029916     0.001450", "0.001016     0.001450", "are not mean, least and most"),
        ("Solution Validates", "Solution", "'Solution Validates' is expected"),
    ],
)
def test_a_result_of_another_problem_or_a_damaged_one_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert RECORDED.count(old) == 1
    with pytest.raises(OutputError) as caught:
        parsed(tmp_path, RECORDED.replace(old, new), GIVEN)
    assert words in str(caught.value)


def test_wrong_arrays_are_a_failed_benchmark(tmp_path: Path) -> None:
    said = "Failed Validation on array a[], AvgRelAbsErr > epsilon (1.000000e-13)\n"
    text = RECORDED.replace("Solution Validates", said + "Solution Validates")
    with pytest.raises(FailedError, match="STREAM's arrays are wrong: Failed Validation on array"):
        parsed(tmp_path, text, GIVEN)
