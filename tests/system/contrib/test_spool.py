"""Records that their folder cannot have: into the spool, and on from there, exactly once."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_for

from steelyard.analysis.sources import record_folders
from steelyard.wrappers.base.programs import find_node_program

ROOT = Path(__file__).parents[3]
FORWARD = ROOT / "contrib/spool/forward.sh"
START = int(time.time()) - 90


class Site:
    """A shared folder with its mark, and a node's spool."""

    def __init__(self, base: Path) -> None:
        self.records, self.spool, self.run = base / "records", base / "spool", base / "run"
        for folder in (self.records, self.spool, self.run):
            folder.mkdir()
        self.mark = self.records / record_folders.MARK
        self.mark.write_text("")

    def measure(self, job_id: str) -> str:
        """Measure a job that ends at once; return the output."""
        job = subprocess.Popen(["sleep", "600"])
        words = [
            find_node_program(), "sample", "--record-dir", self.records, "--job-id", job_id,
            "--node=n1", "--run-dir", self.run, "--spool-dir", self.spool, f"--watch={job.pid}",
            f"--pid={job.pid}", "--control", self.run / "sock",
        ]  # fmt: skip
        sampler = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        wait_for("the record", lambda: any(self.jsons()))
        job.kill()
        job.wait()
        _, said = sampler.communicate(timeout=90)
        return said

    def jsons(self) -> list[Path]:
        found = [*self.spool.rglob("n1.*.json"), *self.records.rglob("n1.*.json")]
        return [path for path in found if path.stat().st_size]

    def leave(self, job_id: str, *, end: float | None = 5.0, start: int = START) -> Path:
        folder = self.spool / job_id
        folder.mkdir(exist_ok=True)
        path = folder / f"n1.{start}.json"
        path.write_text(json.dumps({"node": "n1", "end_unix_s": end}))
        path.with_suffix(".csv").write_text(f"{job_id}\n")
        return path

    def forward(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", FORWARD, self.spool, self.records], env={**os.environ, **environment},
            capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip

    def sent(self) -> dict[str, str]:
        files = [p for p in self.records.rglob("*") if p.is_file() and p != self.mark]
        return {str(p.relative_to(self.records)): p.read_text() for p in files}

    def left(self) -> list[str]:
        return sorted(p.name for p in self.spool.rglob("*"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    tmp_path.chmod(0o755)
    return Site(tmp_path)


def test_with_its_mark_the_folder_has_the_record(site: Site) -> None:
    assert site.measure("7") == ""
    (path,) = site.jsons()
    day = record_folders.format_day(int(path.name.split(".")[1]))
    assert path.parent == site.records / day / "7"


MOUNTED, ANOTHERS = "is it mounted?", "belongs to uid 65533"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("no mark", MOUNTED), ("no folder", MOUNTED), ("a mark of another's", MOUNTED),
        ("another's folder", ANOTHERS), ("another's folder and mark", ANOTHERS),
    ],
)  # fmt: skip
def test_else_the_spool_has_it_and_the_log_says_so(site: Site, fault: str, words: str) -> None:
    """Folder and mark of another's: so a share looks where root is nobody (root_squash)."""
    if "another's" in fault and os.geteuid() != 0:
        pytest.skip("gives a file away: needs root")
    if fault.startswith("another's folder"):
        os.chown(site.records, 65533, 65533)
    if fault in ("a mark of another's", "another's folder and mark"):
        os.chown(site.mark, 65533, 65533)
    if fault.startswith("no"):
        site.mark.unlink()
    if fault == "no folder":
        site.records.rmdir()
    said = site.measure("7")
    assert words in said
    (path,) = site.jsons()
    assert path.parent == site.spool / "7"
    assert json.loads(path.read_text())["node"] == "n1"
    assert path.with_suffix(".csv").is_file()
    assert f"the record goes to {site.spool}" in said
    assert str(site.records) in said


def test_without_a_spool_all_is_as_before(site: Site) -> None:
    site.spool.rmdir()
    site.mark.unlink()
    assert site.measure("7") == ""
    assert site.jsons()[0].parent == site.records / "7"


def test_what_is_over_is_sent_once(site: Site) -> None:
    path = site.leave("7[1].srv")
    site.leave("8", end=None)
    place = f"{record_folders.format_day(START)}/7[1].srv/n1.{START}"
    truth = {f"{place}.json": path.read_text(), f"{place}.csv": "7[1].srv\n"}
    done = site.forward()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"1 records sent to {site.records}, 1 not over yet, 0 failed\n"
    assert site.sent() == truth
    assert site.left() == ["8", f"n1.{START}.csv", f"n1.{START}.json"]
    assert site.forward().stdout == ""
    assert site.sent() == truth


def test_a_record_that_never_ended_is_sent_in_the_end(site: Site) -> None:
    path = site.leave("8", end=None)
    for file in (path, path.with_suffix(".csv")):
        os.utime(file, (1, 1))
    site.forward()
    assert len(site.sent()) == 2


def test_samples_without_a_record_are_sent_after_a_week_and_told(site: Site) -> None:
    path = site.leave("7")
    path.unlink()
    samples = path.with_suffix(".csv")
    day = 86400
    os.utime(samples, (START - 6 * day,) * 2)
    done = site.forward()
    assert (done.stdout, site.sent()) == ("", {})
    os.utime(samples, (START - 8 * day,) * 2)
    temporary = samples.with_name(f".{path.name}.tmp")
    temporary.write_bytes(bytes(16384))
    site.forward()
    assert samples.exists(), "its sampler may live: it has touched the room for its record"
    os.utime(temporary, (START - 8 * day,) * 2)
    done = site.forward()
    told = f"0 records sent to {site.records}, 0 not over yet, 0 failed, 1 samples without a record sent"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{told}\n", "")
    assert site.sent() == {f"{record_folders.format_day(START)}/7/{samples.name}": "7\n"}
    assert site.left() == []


def test_what_a_killed_sampler_left_goes_after_a_week(site: Site) -> None:
    young, old = site.spool / "8", site.spool / "9"
    for folder, age_s in ((young, 6 * 86400), (old, 8 * 86400)):
        folder.mkdir()
        temporary = folder / f".n1.{START}.json.tmp"
        temporary.write_bytes(bytes(16384))
        os.utime(temporary, (START - age_s,) * 2)
    assert site.forward().stdout.endswith(" 0 failed, 1 that killed samplers left removed\n")
    assert site.left() == [f".n1.{START}.json.tmp", "8", "9"]
    os.utime(old, (START - 8 * 86400,) * 2)
    site.forward()
    assert site.left() == [f".n1.{START}.json.tmp", "8"]


@pytest.mark.parametrize("program", ["mkdir", "cat", "chmod", "sync", "mv", "rm", "rmdir"])
def test_killed_anywhere(site: Site, tmp_path: Path, program: str) -> None:
    """Each program it calls kills it, once before and once after it has done its work."""
    path = site.leave("7")
    truth = {path.name: path.read_text(), path.with_suffix(".csv").name: "7\n"}
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()
    for when in ('kill -9 $PPID; exec "$real" "$@"', '"$real" "$@"; kill -9 $PPID'):
        script = f'#!/bin/sh\nreal=$(PATH="{os.environ["PATH"]}" command -v {program})\n{when}\n'
        (stand_ins / program).write_text(script)
        (stand_ins / program).chmod(0o755)
        site.forward(PATH=f"{stand_ins}:{os.environ['PATH']}")
        there = {
            Path(n).name: t for n, t in site.sent().items() if not Path(n).name.startswith(".")
        }
        here = {p.name: p.read_text() for p in site.spool.rglob("n1.*") if p.is_file()}
        assert there | here == truth
    assert site.forward().returncode == 0
    assert {Path(name).name: text for name, text in site.sent().items()} == truth
    assert site.left() == []


def test_another_file_of_that_name_is_left_and_told(site: Site) -> None:
    path = site.leave("7")
    other = site.records / record_folders.format_day(START) / "7" / path.name
    other.parent.mkdir(parents=True)
    other.write_text("another's")
    done = site.forward()
    assert done.returncode == 3
    assert f"{path} could not be sent" in done.stderr
    assert other.read_text() == "another's"
    assert path.is_file()


def test_a_folder_without_its_mark_gets_nothing(site: Site) -> None:
    site.leave("7")
    site.mark.unlink()
    done = site.forward()
    assert done.returncode == 3
    assert "is it mounted? Nothing was sent" in done.stderr
    assert site.sent() == {}


def test_another_user_sends() -> None:
    if os.geteuid() != 0:
        pytest.skip("runs as another user: needs root")
    with tempfile.TemporaryDirectory(dir="/tmp") as base:  # pytest's own is root's alone
        Path(base).chmod(0o755)
        send_as_nobody(Site(Path(base)))


def send_as_nobody(site: Site) -> None:
    path = site.leave("7")
    path.chmod(0o400)
    os.chown(site.records, pwd.getpwnam("nobody").pw_uid, -1)
    words: list[Any] = ["sh", FORWARD, site.spool, site.records, "nobody"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(site.sent()) == 2
    assert site.left() == []
