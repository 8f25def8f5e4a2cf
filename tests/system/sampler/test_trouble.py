"""The sampler killed, the disk full, the folder not ours: the job goes on, the record says so."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.programs import find_node_program

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def repair(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [find_node_program(), "record", "--samples", path],
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip


def test_a_killed_child_leaves_a_record_with_the_totals_so_far(sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--rate", "20", "--tag", "a=b")
    root = subprocess.Popen(["bash", "-c", "head -c 3000000 /dev/zero >/dev/null; sleep 5"])
    attached.send(f"root {root.pid}")
    waiting("some samples", lambda: (attached.column("elapsed_s")[-1] or 0) > 0.1)
    os.kill(attached.child_pid, signal.SIGKILL)
    assert attached.process.wait(90) == 0
    record = attached.record
    root.kill()
    root.wait()
    assert record["complete"] is False
    assert record["incomplete_reason"] == "the sampler was killed by signal 9"
    assert record["incomplete_of"] == "job"
    assert record["tags"] == {"a": "b"}
    # Killed between a sample's line and its totals, those of the sample before are what is there.
    last = attached.column("elapsed_s")[-2:]
    assert any(record["elapsed_s"] == pytest.approx(elapsed_s) for elapsed_s in last)
    assert record["probe"]["format"] == "steelyard-probe"


def test_a_child_that_cannot_be_started_leaves_a_record_and_no_sampler(sampler: Any) -> None:
    """It stayed for as long as nobody killed it: who would have told it of the job's end?"""
    refused = ("strace", "-o", "/dev/null", "-e", "inject=clone:error=EAGAIN")
    attached = sampler.attach("--rate", "20", prefix=refused)
    assert attached.process.wait(90) == 0
    assert attached.record["complete"] is False
    assert attached.record["incomplete_reason"] == "the sampler could not be started"


def test_a_killed_child_does_not_end_the_command(sampler: Any, waiting: Any) -> None:
    command = ["sh", "-c", "sleep 0.7; echo x > /dev/null; exit 4"]
    process, measured = sampler.start(command, "--bpf=no")  # which has children for a moment, too
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def nobody() -> int | None:
        for pid in children.read_text().split():
            if Path(f"/proc/{pid}/comm").read_text() == "steelyard-node\n":
                return int(pid)
        return None

    os.kill(waiting("the child", nobody), signal.SIGKILL)
    assert process.wait(90) == 4
    record = measured.record
    assert record["complete"] is False
    assert record["cpu"]["source"] == "rusage"
    assert record["exit"]["exit_code"] == 4


def test_both_killed_leave_what_record_can_repair(sampler: Any) -> None:
    attached = sampler.attach("--rate", "20", "--tag", "a=b")
    time.sleep(0.3)
    child = attached.child_pid
    os.kill(attached.process.pid, signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
    attached.process.wait(90)
    start = attached.record
    assert start["complete"] is False
    assert start["elapsed_s"] is None
    assert start["tags"] == {"a": "b"}
    with attached.samples_path.open("ab") as file:
        os.fchmod(file.fileno(), 0o640)
        file.write(b"1795251150.006470,9")
    done = repair(attached.samples_path)
    assert done.returncode == 0, done.stderr
    record = attached.record
    assert record["complete"] is False
    reason = "the sampler was killed before the job's end; the last line was cut short"
    assert record["incomplete_reason"] == reason
    assert record["tags"] == {"a": "b"}
    assert record["probe"] == start["probe"]
    rows = attached.samples[:-1]
    assert record["sampler"]["samples"] == len(rows)
    assert record["elapsed_s"] == pytest.approx(float(rows[-1]["elapsed_s"]))
    assert record["tcp"]["sent_segments"] == int(rows[-1]["sent_segments"])
    assert not list(attached.folder.glob(".*"))
    # Once more changes nothing.
    assert repair(attached.samples_path).returncode == 0
    assert attached.record == record


def test_record_leaves_a_complete_one_alone(sampler: Any) -> None:
    _, measured = sampler.run(["true"])
    before = measured.record_path.read_bytes()
    assert repair(measured.samples_path).returncode == 0
    assert measured.record_path.read_bytes() == before


def test_record_makes_one_where_there_is_none(sampler: Any) -> None:
    _, measured = sampler.run(["true"])
    expected = measured.record
    samples = measured.samples_path
    measured.record_path.unlink()
    assert repair(samples).returncode == 0
    record = measured.record
    assert record["node"] == expected["node"]
    assert record["job"]["job_id"] == expected["job"]["job_id"]
    assert record["complete"] is False
    assert record["elapsed_s"] == pytest.approx(expected["elapsed_s"])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.csv", b"", "expected a file NODE.START.csv"),
        ("n.1.csv", b"", "no line of column names"),
        ("n.1.csv", b"a,b\n1,2\n", "no column elapsed_s"),
    ],
)
def test_record_refuses_what_is_no_file_of_samples(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    done = repair(tmp_path / name)
    assert done.returncode == 3
    assert says in done.stderr
    assert not list(tmp_path.glob("*.json"))


def test_the_parent_killed_leaves_the_command_and_ends_the_child(
    sampler: Any, waiting: Any
) -> None:
    attached = sampler.attach("--rate", "20")
    child = Path(f"/proc/{attached.child_pid}")
    attached.process.kill()
    attached.process.wait(90)
    waiting("the end of the child", lambda: is_zombie(child))
    assert attached.record["complete"] is False
    assert len(attached.samples) >= 1


def is_zombie(process: Path) -> bool:
    """Or gone."""
    try:
        return ") Z " in (process / "stat").read_text()
    except OSError:
        return True


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0755", "tmpfs", folder], check=True
    )
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def is_full(samples: Path) -> bool:
    """Has the last page no room for another line? How long one is hangs on the machine's devices."""
    lines = samples.read_bytes().splitlines(keepends=True)
    return len(lines) > 1 and -sum(map(len, lines)) % 4096 < max(map(len, lines[1:])) + 16


def keeps_room(folder: Path) -> bool:
    """Whether the first record is written, and the file for the next one has room for it and more
    (SPARE_BYTES of record_files.c)."""
    return any(path.stat().st_size > 16384 for path in folder.rglob(".*.json.tmp"))


@needs_root
def test_a_full_disk_stops_neither_the_job_nor_the_totals(
    sampler: Any, small_disk: Path, waiting: Any
) -> None:
    sampler.base = small_disk
    attached = sampler.attach("--rate", "50")
    root = subprocess.Popen(["bash", "-c", "sleep 0.6; head -c 3000000 /dev/zero >/dev/null; read"],
                            stdin=subprocess.PIPE)  # fmt: skip
    attached.send(f"root {root.pid}")
    waiting("room for the final record is kept", lambda: keeps_room(small_disk))
    with (small_disk / "filler").open("wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(bytes(4096))
    waiting("all of the last page", lambda: is_full(attached.samples_path))
    for _ in range(3):
        time.sleep(0.5)
        attached.totals()  # it has taken a sample
    attached.send(f"done {root.pid} 0 3000000 0 0 0")
    root.communicate(b"\n", timeout=90)
    record = attached.end()
    assert record["incomplete_of"] == "processes", record[
        "incomplete_reason"
    ]  # a full disk made all records of a node useless
    assert record["io"]["rchar_bytes"] >= 3_000_000
    assert record["sampler"]["samples_lost"] > 0
    assert record["sampler"]["samples_lost_reason"] == "No space left on device"
    assert record["sampler"]["samples"] == len(attached.samples)
    assert attached.samples_path.read_bytes().endswith(b"\n")
    # The totals go on past what could be written.
    assert record["elapsed_s"] > attached.column("elapsed_s")[-1]


@needs_root
@pytest.mark.parametrize(
    ("room", "words"),
    [("size=4k,nr_inodes=9", ": No space left on device"), ("nr_inodes=5", ".csv: No space left")],
    ids=["no room to write", "no room for another file"],
)
def test_a_disk_that_is_full_at_the_start_keeps_no_empty_file(
    sampler: Any, small_disk: Path, room: str, words: str
) -> None:
    subprocess.run(["mount", "-o", f"remount,{room}", small_disk], check=True)
    if "size" in room:
        (small_disk / "filler").write_bytes(bytes(4096))
    sampler.base = small_disk
    done, measured = sampler.run(["sh", "-c", "exit 6"], stderr=subprocess.PIPE)
    assert done.returncode == 6
    assert words in done.stderr.decode()
    assert list(measured.folder.iterdir()) == []


def test_a_file_size_limit_does_not_kill_it(sampler: Any) -> None:
    done, measured = sampler.run(
        ["sh", "-c", "sleep 0.5"], "--rate", "100",
        prefix=("prlimit", "--fsize=4096"), stderr=subprocess.PIPE,
    )  # fmt: skip
    assert done.returncode == 0
    # The samples that fitted are kept, and the record that did not is made of them.
    (samples,) = measured.folder.iterdir()
    assert samples.read_bytes().endswith(b"\n")
    assert 1 < len(samples.read_bytes().splitlines()) - 1 < 40
    assert repair(samples).returncode == 0
    assert measured.record["sampler"]["samples"] == len(measured.samples)


def test_a_link_in_the_place_of_the_jobs_folder_is_refused(sampler: Any, tmp_path: Path) -> None:
    arguments, folder = sampler.arguments("--", "sh", "-c", "exit 6")
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    done = subprocess.run(arguments, stderr=subprocess.PIPE, check=False, timeout=90)
    assert done.returncode == 6
    assert b"links not followed" in done.stderr
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_folder_that_others_may_write_to_is_refused(sampler: Any) -> None:
    arguments, folder = sampler.arguments("--", "true")
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    done = subprocess.run(arguments, stderr=subprocess.PIPE, check=False, timeout=90)
    assert done.returncode == 0
    assert b"may be written by others" in done.stderr
    assert not list(folder.iterdir())


@needs_root
def test_a_folder_of_another_user_is_refused(sampler: Any) -> None:
    arguments, folder = sampler.arguments("--", "true")
    folder.mkdir(parents=True)
    os.chown(folder, 65534, 65534)
    done = subprocess.run(arguments, stderr=subprocess.PIPE, check=False, timeout=90)
    assert b"belongs to uid 65534" in done.stderr
    assert not list(folder.iterdir())


@needs_root
def test_files_belong_to_the_jobs_user_and_nobody_else_reads_them(sampler: Any) -> None:
    _, measured = sampler.run(["true"], "--owner", "1234:2345")
    for path in (measured.record_path, measured.samples_path):
        info = path.stat()
        assert (info.st_uid, info.st_gid, info.st_mode & 0o7777) == (1234, 2345, 0o440)
    assert measured.folder.stat().st_mode & 0o7777 == 0o755
    assert sorted(p.suffix for p in measured.folder.iterdir()) == [".csv", ".json"]


def test_two_samplers_of_one_job_in_one_second_have_files_of_their_own(sampler: Any) -> None:
    arguments, folder = sampler.arguments("--", "sleep", "0.2")
    both = [subprocess.Popen(arguments) for _ in range(2)]
    assert [process.wait(90) for process in both] == [0, 0]
    assert len(list(folder.glob("*.json"))) == len(list(folder.glob("*.csv"))) == 2
