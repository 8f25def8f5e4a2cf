"""Samples that a sweep thins: totals remain, readers report it, other users' remain complete."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.cluster.sacct_lab import Lab, lab
from tests.unit.collect.study import DATA, Study, run_id
from tests.unit.sweep.swept_site import DAY_S, Site

from steelyard.analysis.base import file_changes
from steelyard.analysis.sources import record_folders, record_packs, sample_csv, sample_packs
from steelyard.wrappers.commands import cli
from steelyard.wrappers.sweep.sweep import SweepRequest, sweep

__all__ = ["lab"]
LONG = (DATA / "records" / "long" / "vm.1795546550.csv").read_bytes()
WORDS = "n1: a sweep has thinned its samples: one in 30 s is left"


def leave_long(site: Site, job_id: str) -> None:
    folder = site.leave(job_id, 20 * DAY_S)
    (path,) = folder.glob("*.csv")
    path.write_bytes(LONG)
    os.utime(path, ns=(site.truth[job_id, path.name][1],) * 2)
    fewer = sample_packs.thin(LONG, 30)
    assert fewer != LONG
    site.truth[job_id, path.name] = (fewer, path.stat().st_mtime_ns)


def test_the_command_thins_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(tmp_path / "records")
    leave_long(site, "7")
    site.leave("8", 20 * DAY_S)  # of one line: nothing to thin
    asked = ["sweep", "--record-dir", str(site.dir), "--samples"]
    assert cli.main([*asked, "30s"]) == 0
    assert "2 jobs (4 files) packed" in (told := capsys.readouterr().out)
    assert "1 file of samples thinned" in told
    assert site.found() == site.truth and site.loose() == set()
    for made in site.dir.rglob("*.parquet"):
        rows = duckdb.sql(f"SELECT DISTINCT job_id, thinned_s FROM '{made}' ORDER BY job_id")
        assert rows.fetchall() == [("7", 30), ("8", None)]
    for words in ("30", "0s", "none", "5d"):
        with pytest.raises(SystemExit):
            cli.main([*asked, words])
        assert "expected all, 30s, 5m, 1h or ends" in capsys.readouterr().err


def test_a_sweep_that_was_killed_takes_out_what_it_has_thinned(tmp_path: Path) -> None:
    site = Site(tmp_path / "records")
    leave_long(site, "7")
    before = tmp_path / "before"
    shutil.copytree(site.dir, before)
    site.sweep(every_s=30)
    shutil.copytree(before, site.dir, dirs_exist_ok=True)  # packed, and not removed yet
    assert site.loose() == {"7"}
    site.sweep(every_s=60)  # by another cron line
    assert site.loose() == set() and site.found() == site.truth
    assert len(list(site.dir.rglob("records-*.parquet"))) == 1


@pytest.mark.parametrize(
    "fields", [{}, {"complete": False, "cpu": {"cpu_s": None}}], ids=["", "cut"]
)
def test_show_tells_it_and_totals_stay(
    lab: Lab, capsys: pytest.CaptureFixture[str], fields: dict[str, Any]
) -> None:
    """Of a record cut short the samples are all that its totals come from."""
    path = lab.record("1", lab.job("1", 100000, 900, TotalCPU=""), **fields)
    path.with_suffix(".csv").write_bytes(LONG)

    def shown() -> dict[str, Any]:
        assert cli.main(["show", "1", "--record-dir", str(lab.records), "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    before = shown()
    assert lab.pack(30) == 1 and not path.exists()
    after = shown()
    assert not [note for note in before["notes"] if sample_csv.THINNED in note]
    assert [note for note in after["notes"] if note.startswith(WORDS)]
    values = [dict(one["nodes"][0]) for one in (before, after)]
    if fields:
        assert values[0]["cpu_s"] == 101.260657
        assert (values[0].pop("samples"), values[1].pop("samples")) == (903, 34)  # what there is
    assert values[0] == values[1]


def test_compare_tells_it_too(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        path = lab.record(str(number), lab.job(str(number), 100000 * number, 900))
        path.with_suffix(".csv").write_bytes(LONG)
        if number == 1:
            assert lab.pack(30) == 1
    asked = ["compare", "1", "2", "--record-dir", str(lab.records)]
    assert cli.main(asked) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"A: {WORDS}" in text and f"B: {WORDS}" not in text
    assert cli.main([*asked, "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["course_notes"]
    assert note.startswith(f"A: {WORDS}")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(file_changes, "RACE_NS", 0)
    made = Study(tmp_path)
    made.everything()
    made.now_unix_s += 3600
    made.record_dir.chmod(0o755)
    return made


def samples(study: Study) -> tuple[Any, ...]:
    """Lines by file; what is amiss with samples; checks of them."""
    with duckdb.connect(str(study.dir / "study.duckdb"), read_only=True) as base:
        lines = base.execute("SELECT path, samples FROM sources ORDER BY path").fetchall()
        gaps = base.execute("SELECT reason FROM gaps WHERE kind = 'samples'").fetchall()
        checks = base.execute("SELECT agrees FROM checks WHERE source_a = 'samples'").fetchall()
    return lines, [reason for (reason,) in gaps], checks


def test_whole_samples_of_a_study_stay_when_the_nodes_are_thinned(study: Study) -> None:
    study.collect()
    before = samples(study)
    sweep(SweepRequest(study.record_dir, pack_after_s=-1e9, every_s=0))
    assert not list(study.record_dir.rglob("*.csv"))
    study.collect()
    assert samples(study) == before
    assert before[1] == [] and {lines for _, lines in before[0]} == {3}


def test_a_study_is_told_of_samples_that_come_thinned(study: Study) -> None:
    sweep(SweepRequest(study.record_dir, pack_after_s=-1e9, every_s=0))
    study.collect()
    lines, gaps, checks = samples(study)
    assert {count for _, count in lines} == {2}
    assert len(gaps) == len(lines) > 3 and all("none is left between" in one for one in gaps)
    assert len(checks) > 20 and {agrees for (agrees,) in checks} == {True}
    with duckdb.connect(str(study.dir / "study.duckdb")) as base:
        stamps = base.execute("SELECT run_id FROM attempts WHERE stamp IS NOT NULL").fetchall()
    assert (run_id("twonodes"),) in stamps, "nothing more will come: not read again each time"
    study.collect()
    assert samples(study) == (lines, gaps, checks)


def test_a_pack_of_a_later_version_is_named(tmp_path: Path) -> None:
    site = Site(tmp_path / "records")
    leave_long(site, "7")
    site.sweep()
    (pack,) = site.dir.rglob("records-*.parquet")
    duckdb.execute(
        f"CREATE OR REPLACE TABLE later AS SELECT * REPLACE (9 AS format_version) FROM '{pack}'"
    )
    duckdb.execute(f"COPY later TO '{pack}' (FORMAT parquet)")
    assert record_folders.find_job_folders(site.dir, "7") == [pack]
    with pytest.raises(OSError, match="its format is 9: use a newer Steelyard"):
        [file.content for file in record_packs.read_files(pack)]
