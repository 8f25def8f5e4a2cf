"""Studies that repeat until their intervals are narrow enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.submit.test_stop_rule import submit

from steelyard.analysis.stats.grouped_runs import mean_by_group
from steelyard.analysis.stats.planning import STOPPING_CONFIDENCE
from steelyard.analysis.summary import sampling_units
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study import plan
from steelyard.wrappers.study.folder import StudyDir

Write = Callable[..., Path]


def repeats(path: Path) -> list[int]:
    folder = StudyDir(studydir.derive_folder(path).absolute())
    return sorted(run.repeat for run in plan.read_runs(folder.plan))


def test_it_grows_by_blocks_until_the_most(
    write_study: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = submit(write_study, width="0.001%", most=6)
    assert repeats(path) == [1, 2, 3, 4]
    submit(write_study, width="0.001%", most=6)
    assert "1 of 1 main figure is wider than ± 0.001 %: 2 more" in capsys.readouterr().err
    assert repeats(path) == [1, 2, 3, 4, 5, 6]
    submit(write_study, width="0.001%", most=6)
    found = capsys.readouterr()
    assert "max_repeat = 6 is reached" in found.err and "nothing to add" in found.out
    folder = StudyDir(studydir.derive_folder(path).absolute())
    blocks = [run.block for run in plan.read_runs(folder.plan)]
    assert sorted(blocks) == [1, 1, 2, 2, 3, 4]


@pytest.mark.slow
def test_what_it_tells_in_the_end_is_the_stopped_interval(write_study: Write) -> None:
    path = submit(write_study)
    submit(write_study)
    folder = studydir.derive_folder(path).absolute()
    (row,) = [r for r in summarize(folder).rows if r.metric.is_primary]
    samples = sampling_units.group_samples(row)
    assert samples[0] == "block" and len(samples[1]) == 2
    assert row.interval == mean_by_group(samples[1], STOPPING_CONFIDENCE, never_negative=True)
    assert row.interval != mean_by_group(samples[1], never_negative=True)
