"""stress-ng: its table read, what is refused of it, and runs of the real program."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.registry import OutputError

from .conftest import Study

ROOT = Path(__file__).parents[3]
RECORDED = (ROOT / "tests/data/stressng/matrix.0.15.06.yaml").read_text(encoding="utf-8")
PROGRAM = shutil.which("stress-ng")
real = pytest.mark.skipif(not PROGRAM, reason="no stress-ng (Debian: stress-ng)")


def parsed(folder: Path, text: str, **given: object) -> dict[str, float]:
    (folder / "out.0").write_text(text, encoding="utf-8")
    return {r.metric: r.value for r in registry.load("stressng").parse(folder, 0, given)}


def test_rates_are_those_that_it_tells(tmp_path: Path) -> None:
    assert parsed(tmp_path, RECORDED, stressor="matrix") == {
        "bogo_ops_per_s": 915.958289,
        "bogo_ops_per_cpu_s": 752.900640,
    }


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("- stressor: matrix", "- stressor: vm", "stressors ['vm'] instead of matrix"),
        ("bogo-ops: 1832", "bogo-ops: 1833", "but 1833 in 2.000091 s"),
        ("real-time: 915.958289", "real-time: nan", "'nan' cannot be"),
        ("      user-time: 2.206217\n", "", "without user-time"),
        ("\n...\n", "\n", "cut short"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert RECORDED.count(old) == 1
    with pytest.raises(OutputError) as caught:
        parsed(tmp_path, RECORDED.replace(old, new), stressor="matrix")
    assert words in str(caught.value)


@real
def test_one_worker_for_each_processor_of_the_job(study: Study) -> None:
    given = {"stressor": "cpu", "method": "fft", "seconds": 1}
    study.write(registry.load("stressng"), 1, **given)
    assert study.run().returncode == 0
    processors = len(os.sched_getaffinity(0))
    said = (study.attempt() / "err.0").read_text(encoding="utf-8")
    assert f"dispatching hogs: {processors} cpu" in said
    rates = registry.load("stressng").parse(study.attempt(), 0, given)
    assert [rate.metric for rate in rates] == ["bogo_ops_per_s", "bogo_ops_per_cpu_s"]
    assert str(PROGRAM) in (study.attempt() / "environment.0").read_text(encoding="utf-8")


@real
def test_a_stressor_that_it_does_not_have_is_named(study: Study) -> None:
    study.write(registry.load("stressng"), 1, stressor="nosuch", seconds=1)
    assert study.run().returncode == 1
    assert f"{PROGRAM} has no stressor nosuch" in str(study.result()["reason"])
