"""Files out of packs lie in a folder that goes with its process, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from steelyard.analysis.sources import record_packs

CODE = """
import os, sys
from steelyard.analysis.sources import record_packs
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        record_packs.make_scratch_folder()
        os._exit(0)
    os.waitpid(child, 0)
else:
    record_packs.make_scratch_folder()
print("ready", flush=True)
if sys.argv[1] == "wait":
    sys.stdin.read()
"""


def start(folder: Path, how: str) -> subprocess.Popen[str]:
    """A process that has made its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, how],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_what_a_killed_process_left_is_removed_and_a_living_ones_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(tmp_path, "end") as ended:
        ended.communicate()
    assert list(tmp_path.iterdir()) == []
    with start(tmp_path, "wait") as killed, start(tmp_path, "wait") as living:
        before = set(tmp_path.iterdir())
        assert len(before) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with start(tmp_path, "fork") as forked:
            forked.communicate()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        record_packs.remove_stale_scratch()
        (left,) = tmp_path.iterdir()
        assert left in before
        living.communicate()
    assert list(tmp_path.iterdir()) == []
