"""A study of a user's program over threads, executed here: its figures are listed with their
levels.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import duckdb
import pytest

from steelyard.wrappers.commands import cli

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]

STUDY = """\
[study]
name = "sweep"
repeat = 3
[factors]
threads = { from = 1, to = 4, factor = 2 }
input = { files = "in/*", sample = 1 }
[[benchmark]]
use = "app"
command = "sleep 0.{threads}; printf 'said %s %s\\\\n' {threads}0 \\"$OMP_NUM_THREADS\\"; cat {input}"
env = { OMP_NUM_THREADS = "{threads}" }
[benchmark.figures.said]
pattern = 'said (\\d+) '
unit = "1"
[[benchmark]]
use = "filesystem"
test = "small_file_write"
write_files = 2
iterations = 1
"""


def test_threads_of_ones_own_program_come_to_the_report_and_to_compare(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "it's a file").write_text("content\n")
    Path("sweep.toml").write_text(STUDY)
    assert cli.main(["submit", "sweep.toml", "--scheduler", "local"]) == 0
    assert "the factor threads says nothing of filesystem" in capsys.readouterr().err
    outs = [p.read_text() for p in Path("sweep.study").glob("runs/app-*/local.1/out.0")]
    assert sorted(outs) == [f"said {n}0 {n}\ncontent\n" for n in (1, 2, 4) for _ in range(3)]
    (tmp_path / "in" / "another").touch()  # what was drawn stays drawn
    assert cli.main(["submit", "sweep.toml", "--scheduler", "local"]) == 0
    assert "nothing to add" in capsys.readouterr().out
    assert cli.main(["collect", "sweep"]) == 0
    with duckdb.connect("sweep.study/study.duckdb", read_only=True) as base:
        rows = base.execute(
            "SELECT CAST(condition->>'threads' AS INT), avg(value), count(*) FROM results "
            "JOIN runs USING (run_id) WHERE metric = 'said' GROUP BY 1 ORDER BY 1"
        ).fetchall()
        timed = base.execute(
            "SELECT CAST(condition->>'threads' AS INT), value, elapsed_s "
            "FROM results JOIN attempts USING (run_id, attempt) JOIN runs USING (run_id) "
            "WHERE metric = 'seconds' AND benchmark = 'app'"
        ).fetchall()
    assert rows == [(1, 10.0, 3), (2, 20.0, 3), (4, 40.0, 3)]
    assert len(timed) == 9
    for threads, seconds, elapsed_s in timed:
        assert 0.1 * threads <= seconds <= elapsed_s, "it sleeps so long, within its run"
    mean_s = {n: statistics.mean(s for m, s, _ in timed if m == n) for n in (1, 4)}
    check_words(capsys, mean_s)


def check_words(capsys: Capture, mean_s: dict[int, float]) -> None:
    """Check the output of the readers."""
    capsys.readouterr()
    assert cli.main(["report", "sweep", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert '"threads": [1, 2, 4]' in json.dumps(document)
    assert cli.main(["compare", "sweep", "threads=1", "threads=4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (seconds,) = [row for row in found["rows"] if row["metric"] == "seconds"]
    fast, slow = seconds["a"]["mean"], seconds["b"]["mean"]
    assert fast == pytest.approx(mean_s[1])
    assert slow == pytest.approx(mean_s[4])
    assert seconds["overhead"] == pytest.approx(slow / fast - 1)
