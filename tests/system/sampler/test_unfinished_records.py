"""Records of samplers that were killed are finished by the next sampler or command."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.programs import find_node_program

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: RUN_DIR/netem is root's")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o755)
    (folder / "netem").mkdir(mode=0o700)
    return folder


def finish(run_dir: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [find_node_program(), "record", "--unfinished", run_dir],
        check=False, capture_output=True, text=True, timeout=30,
    )  # fmt: skip


def kill(attached: Any) -> None:
    child = attached.child_pid
    for pid in (attached.process.pid, child):
        os.kill(pid, signal.SIGKILL)
    attached.process.wait()
    with contextlib.suppress(OSError):
        while Path(f"/proc/{child}/exe").readlink():
            pass


def test_a_killed_samplers_record_has_totals_and_conditions(
    sampler: Any, run_dir: Path, waiting: Any
) -> None:
    attached = sampler.attach("--rate", "50", "--run-dir", run_dir, "--node", "n7", "--tag", "a=b")
    before = attached.totals()["elapsed_s"]
    waiting("room set aside", lambda: list(attached.folder.glob(".*")))
    kill(attached)
    done = {"requested": "delay=50ms", "applied": "delay=50ms", "valid": True, "undone": True}
    (run_dir / "netem" / "n7.1.done.json").write_text(json.dumps(done))
    assert (finish(run_dir).returncode, list((run_dir / "sample").iterdir())) == (0, [])
    record = attached.record
    assert record["complete"] is False
    assert record["incomplete_reason"] == "the sampler was killed before the job's end"
    assert record["elapsed_s"] >= before
    assert record["tags"] == {"a": "b", "network": "delay=50ms"}
    assert record["network_conditions"]["valid"] is True
    assert not list(attached.folder.glob(".*"))
    assert not (run_dir / "netem" / "n7.1.done.json").exists()


def test_a_record_that_had_no_name_yet_is_taken(sampler: Any, run_dir: Path) -> None:
    """Its text is whole, and lies in the temporary file, before the room set aside."""
    attached = sampler.attach("--run-dir", run_dir, "--node", "n7", "--tag", "a=b")
    kill(attached)
    record = attached.record_path
    record.with_name(f".{record.name}.tmp").write_bytes(record.read_bytes() + bytes(9000))
    record.write_bytes(b"")
    assert finish(run_dir).returncode == 0
    assert attached.record["tags"] == {"a": "b"}
    assert attached.record["probe"]["hostname"]
    assert not list(attached.folder.glob(".*"))


def test_one_killed_before_its_first_sample_leaves_nothing(sampler: Any, run_dir: Path) -> None:
    attached = sampler.attach("--run-dir", run_dir, "--node", "n7")
    kill(attached)
    attached.samples_path.unlink()
    attached.record_path.write_bytes(b"")
    done = finish(run_dir)
    assert done.returncode == 3
    assert "cannot open" in done.stderr
    assert list(attached.folder.iterdir()) == list((run_dir / "sample").iterdir()) == []


def test_one_that_lives_is_left_alone(sampler: Any, run_dir: Path) -> None:
    attached = sampler.attach("--run-dir", run_dir, "--node", "n7")
    before = attached.record_path.read_bytes()
    assert finish(run_dir).returncode == 0
    assert attached.record_path.read_bytes() == before
    assert [path.name for path in (run_dir / "sample").iterdir()] == [
        f"1.{attached.record_path.stem}"
    ]
    assert attached.end()["complete"] is True
    assert list((run_dir / "sample").iterdir()) == []
    assert finish(run_dir).returncode == 0
    assert attached.record["complete"] is True
