"""A status that believes an earlier look says what one from the start says, whatever was changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.base import file_times
from steelyard.analysis.sources import study_files
from steelyard.wrappers.submit import earlier_looks, status

from ..somebody import open_way

NOBODY = 65534
RUNS = 6
FIRST = "b-00000000-001"
Finish = Callable[..., None]


@pytest.fixture
def study(tmp_path: Path, finish_run: Finish, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All runs have ended: the second one failed, the third one at its second attempt."""
    monkeypatch.setattr(earlier_looks, "FEWEST", 1)
    monkeypatch.setattr(file_times, "RACE_NS", 0)
    runs = [planned(number) for number in range(1, RUNS + 1)]
    plan = {"format": "steelyard-plan", "version": 1, "study": {"name": "s"}, "runs": runs}
    folder = tmp_path / "s.study"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan))
    for number, run in enumerate(runs, 1):
        finish_run(folder / "runs" / run["run_id"], "1.0", "failed" if number == 2 else "completed")
    again = {"start_unix_s": 2000.0, "end_unix_s": 2003.5, "elapsed_s": 3.5}
    finish_run(folder / "runs" / runs[2]["run_id"], "1.1", "failed", reason="exit code 3", **again)
    settle()
    return folder


def planned(number: int) -> dict[str, Any]:
    """A run of plan.json."""
    return {
        "run_id": f"b-00000000-{number:03}", "block": 1, "position": number, "benchmark": "b",
        "parameters": {}, "variant": "b", "condition": {}, "condition_label": "no factors",
        "is_baseline": True, "repeat": number,
    }  # fmt: skip


def settle() -> None:
    """Let the clock of the disk go on, so that what was written lies before the next look."""
    time.sleep(0.03)


def told(study: Path) -> dict[str, Any]:
    """All that a status says but its own time."""
    found = asdict(status.snapshot(study))
    del found["unix_s"]
    return found


def from_the_start(study: Path) -> dict[str, Any]:
    """As told(), by a look that knows of no earlier one."""
    file = study / earlier_looks.FILE
    file.rename(study.parent / "aside")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(earlier_looks, "FEWEST", 1_000_000)
            return told(study)
    finally:
        (study.parent / "aside").rename(file)


@pytest.fixture
def results_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs of which a result.json was read, from now on."""
    found: list[str] = []
    read = study_files.run_folder

    def noted(run_id: str, path: Path) -> study_files.RunFolder:
        found.append(run_id)
        return read(run_id, path)

    monkeypatch.setattr(study_files, "run_folder", noted)
    return found


def test_a_second_look_reads_no_result_and_says_the_same(
    study: Path, results_read: list[str]
) -> None:
    first = told(study)
    assert (first["done"], first["failed"], len(results_read)) == (RUNS - 2, 2, RUNS + 1)
    assert [one["reason"] for one in first["failures"]] == [None, "exit code 3"]
    results_read.clear()
    assert told(study) == first
    assert results_read == []


def test_what_a_look_tells_of_a_run_is_the_same(study: Path) -> None:
    def states() -> list[status.RunState]:
        with earlier_looks.EarlierLooks(study) as looks:
            runs = study_files.read_plan(study).runs
            return [status.state_of(run, looks.last_attempt(run.run_id), None) for run in runs]

    first = states()
    again = states()
    assert again == first
    for old, new in zip(first, again, strict=True):
        assert old.folder and new.folder
        assert new.folder.path == old.folder.path
        for name in earlier_looks.KEPT:
            assert (new.folder.result or {})[name] == (old.folder.result or {})[name]


def attempt(study: Path) -> Path:
    """That of the first run."""
    return study / "runs" / FIRST / "1.0"


def write(path: Path, **fields: object) -> None:
    """A result with other fields, in place."""
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def begun_again(study: Path) -> None:
    shutil.copytree(attempt(study), study / "runs" / FIRST / "1.1")
    write(study / "runs" / FIRST / "1.1" / "result.json", state="started", start_unix_s=3000.0)


def retried(study: Path) -> None:
    """--retry-failed: the failed run is completed by another job."""
    runs = study / "runs"
    shutil.copytree(attempt(study), runs / "b-00000000-002" / "7.0")
    write(runs / "b-00000000-002" / "7.0" / "result.json", start_unix_s=3000.0)


def one_letter(study: Path) -> None:
    """Of the same size, under the times that it had."""
    path = attempt(study) / "result.json"
    times, text = path.stat(), path.read_text()
    path.write_text(text.replace('"completed"', '"timeout"  '))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size


def another_in_its_place(study: Path) -> None:
    """Written whole, as the job's script does it, under the times that the old one had."""
    path = attempt(study) / "result.json"
    times, new = path.stat(), path.with_name("new")
    new.write_text(path.read_text().replace('"completed"', '"timeout"  '))
    os.utime(new, ns=(times.st_atime_ns, times.st_mtime_ns))
    new.rename(path)


def no_json(study: Path) -> None:
    (attempt(study) / "result.json").write_text("{")


def result_gone(study: Path) -> None:
    (attempt(study) / "result.json").unlink()


def result_aside(study: Path) -> None:
    (attempt(study) / "result.json").rename(attempt(study) / "result.old")


def a_fifo(study: Path) -> None:
    result_gone(study)
    os.mkfifo(attempt(study) / "result.json")


def attempt_gone(study: Path) -> None:
    shutil.rmtree(attempt(study))


def attempt_hidden(study: Path) -> None:
    attempt(study).rename(attempt(study).with_name(".1.0"))


def run_gone(study: Path) -> None:
    shutil.rmtree(attempt(study).parent)


def runs_gone(study: Path) -> None:
    shutil.rmtree(study / "runs")


def runs_exchanged(study: Path) -> None:
    """Each keeps its inode and its times."""
    runs = study / "runs"
    (runs / FIRST).rename(runs / "x")
    (runs / "b-00000000-002").rename(runs / FIRST)
    (runs / "x").rename(runs / "b-00000000-002")


def restored(study: Path) -> None:
    """The whole study from a copy with its times, and one result in it another."""
    copy = study.with_name("copy")
    shutil.copytree(study, copy)
    one_letter(copy)
    shutil.rmtree(study)
    copy.rename(study)


def the_earlier_attempt(study: Path) -> None:
    """Of two: it began later than was said."""
    write(study / "runs" / "b-00000000-003" / "1.0" / "result.json", start_unix_s=5000.0)


def grown(study: Path) -> None:
    """By a run that has ended."""
    plan = json.loads((study / "plan.json").read_text())
    plan["runs"].append(planned(RUNS + 1))
    (study / "plan.json").write_text(json.dumps(plan))
    shutil.copytree(attempt(study).parent, study / "runs" / f"b-00000000-{RUNS + 1:03}")


CHANGES = (
    begun_again, retried, one_letter, another_in_its_place, no_json, result_gone,
    result_aside, a_fifo, attempt_gone, attempt_hidden, run_gone, runs_gone, runs_exchanged,
    restored, the_earlier_attempt, grown,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_told_at_the_next_look(study: Path, change: Callable[[Path], None]) -> None:
    before = told(study)
    change(study)
    found = told(study)
    assert found == from_the_start(study)
    assert found != before
    settle()
    assert told(study) == found  # of a file written since
    assert told(study) == found


def test_a_result_that_comes_after_its_folder_is_told(study: Path) -> None:
    """A run that is begun again: looked at before, between and behind."""
    before = told(study)
    (study / "runs" / FIRST / "1.1").mkdir()
    settle()
    assert told(study) == told(study) == before
    shutil.copy(attempt(study) / "result.json", study / "runs" / FIRST / "1.1")
    write(study / "runs" / FIRST / "1.1" / "result.json", state="failed", start_unix_s=3000.0)
    assert told(study)["done"] == before["done"] - 1


def test_another_name_of_an_attempt_is_told(study: Path) -> None:
    """No count tells it, the last failure's folder does."""
    failed = study / "runs" / "b-00000000-002" / "1.0"
    told(study)
    failed.rename(failed.with_name("2.0"))
    assert told(study)["failures"][0]["folder"] == str(failed.with_name("2.0"))


def test_what_lies_behind_a_link_is_read_each_time(study: Path) -> None:
    away = study.parent / "scratch"
    attempt(study).rename(away)
    attempt(study).symlink_to(away)
    settle()
    assert told(study)["done"] == RUNS - 2
    away.rename(study.parent / "moved")
    shutil.copytree(study.parent / "moved", away)
    write(away / "result.json", state="failed")
    assert told(study)["done"] == RUNS - 3


def test_a_link_that_leads_nowhere_may_lead_somewhere_later(study: Path) -> None:
    away = study.parent / "scratch"
    (study / "runs" / FIRST / "1.1").symlink_to(away)
    settle()
    assert told(study)["done"] == RUNS - 2
    shutil.copytree(attempt(study), away)
    write(away / "result.json", state="failed", start_unix_s=9000.0)
    assert told(study)["done"] == RUNS - 3


def test_what_was_written_a_moment_ago_is_read_again(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be written once more under the same times."""
    monkeypatch.setattr(file_times, "RACE_NS", 2_000_000_000)
    told(study)
    assert not (study / earlier_looks.FILE).exists()
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "runs"]


def test_a_small_study_gets_no_file(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier_looks, "FEWEST", RUNS + 1)
    told(study)
    assert not (study / earlier_looks.FILE).exists()


def test_what_runs_is_not_noted(study: Path, finish_run: Finish, results_read: list[str]) -> None:
    write(attempt(study) / "result.json", state="started")
    (study / "runs" / "b-00000000-004" / "1.0" / "result.json").unlink()
    settle()
    told(study)
    results_read.clear()
    told(study)
    assert {*results_read} == {FIRST, "b-00000000-004"}


def cut(data: bytes) -> bytes:
    return data[:-40]


def a_letter_changed(data: bytes) -> bytes:
    assert b'"failed"' in data
    return data.replace(b'"failed"', b'"foiled"', 1)


def a_hole(data: bytes) -> bytes:
    """As a crash of a node leaves it."""
    return data[:200] + bytes(len(data) - 200)


def of_another_make(data: bytes) -> bytes:
    """Whole, and not what this one writes."""
    body = b'{"reader":[99],"runs":{"x":1}}'
    return earlier_looks.digest(body) + b"\n" + body


@pytest.mark.parametrize(
    "damage",
    [cut, a_letter_changed, a_hole, of_another_make, lambda _: b"", lambda _: b"\xff\x00\n[]\n"],
)
def test_a_damaged_file_is_not_believed_and_made_anew(
    study: Path, damage: Callable[[bytes], bytes], results_read: list[str]
) -> None:
    first = told(study)
    file = study / earlier_looks.FILE
    file.write_bytes(damage(file.read_bytes()))
    results_read.clear()
    assert told(study) == first
    assert len(results_read) == RUNS + 1
    results_read.clear()
    assert told(study) == first
    assert results_read == []


@pytest.mark.parametrize("what", ["folder", "fifo", "link"])
def test_something_else_in_its_place_is_no_harm(study: Path, what: str) -> None:
    file = study / earlier_looks.FILE
    outside = study.parent / "outside"
    outside.write_text("mine")
    if what == "folder":
        file.mkdir()
    elif what == "fifo":
        os.mkfifo(file)
    else:
        file.symlink_to(outside)
    assert (told(study), outside.read_text()) == (told(study), "mine")


def test_another_version_reads_all_anew(
    study: Path, monkeypatch: pytest.MonkeyPatch, results_read: list[str]
) -> None:
    first = told(study)
    monkeypatch.setattr(earlier_looks, "VERSION", earlier_looks.VERSION + 1)
    results_read.clear()
    assert told(study) == first
    assert len(results_read) == RUNS + 1


def test_a_program_that_reads_otherwise_reads_all_anew(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results_read: list[str]
) -> None:
    told(study)
    (tmp_path / "other.py").write_text("# another reader\n")
    monkeypatch.setattr(study_files, "__file__", str(tmp_path / "other.py"))
    results_read.clear()
    told(study)
    assert len(results_read) == RUNS + 1


LOOK = """
import sys
from pathlib import Path
from steelyard.analysis.base import file_times
from steelyard.wrappers.submit import earlier_looks, status
earlier_looks.FEWEST, file_times.RACE_NS = 1, 0
study = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    found = status.snapshot(study)
    print(found.done, found.failed)
    (study / earlier_looks.FILE).unlink(missing_ok=True)
"""


def look(study: Path, times: int = 1, **options: Any) -> subprocess.Popen[str]:
    """A process that looks, each time as if there were no earlier look of its own."""
    command = [sys.executable, "-P", "-c", LOOK, str(study), str(times)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


def test_several_looks_at_once_say_the_same(study: Path) -> None:
    times = 30
    looks = [look(study, times) for _ in range(4)]
    for one in looks:
        out, err = one.communicate(timeout=120)
        assert (one.returncode, err) == (0, "")
        assert out.splitlines() == [f"{RUNS - 2} 2"] * times
    told(study)
    left = {path.name for path in study.iterdir()}
    assert left == {"plan.json", "runs", earlier_looks.FILE}


def test_a_look_that_was_killed_is_waited_for_no_longer_than_a_minute(study: Path) -> None:
    part = study / f"{earlier_looks.FILE}.part"
    part.write_text("half")
    first = told(study)
    assert not (study / earlier_looks.FILE).exists()
    assert part.read_text() == "half"
    old = time.time() - earlier_looks.STALE_S - 1
    os.utime(part, (old, old))
    assert told(study) == first
    assert (study / earlier_looks.FILE).exists()
    assert not part.exists()


def test_a_full_disk_is_no_error(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> None:
        os.write(fd, data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(earlier_looks.ledger, "write_all", full)
    assert told(study)["done"] == RUNS - 2
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "runs"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes somebody else")
@pytest.mark.parametrize("mode", [0o555, 0o755, 0o777])
def test_a_study_that_is_not_ones_own_gets_no_file(study: Path, mode: int) -> None:
    """Read-only, or another's; root's own files in a user's folder are none of his wish either."""
    study.chmod(mode)
    open_way(study)
    one = look(study, user=NOBODY, group=NOBODY)
    out, err = one.communicate(timeout=60)
    assert (out, err) == (f"{RUNS - 2} 2\n", "")
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "runs"]
    os.chown(study, NOBODY, NOBODY)
    told(study)
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "runs"]


def test_a_study_that_cannot_be_written_is_told_without_a_word(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(part: Path) -> int:
        raise OSError(30, "Read-only file system", str(part))

    monkeypatch.setattr(earlier_looks, "create", refused)
    assert told(study) == told(study)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_file_of_somebody_else_is_not_believed(study: Path, results_read: list[str]) -> None:
    told(study)
    os.chown(study / earlier_looks.FILE, NOBODY, NOBODY)
    results_read.clear()
    told(study)
    assert len(results_read) == RUNS + 1
