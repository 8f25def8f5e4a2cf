"""Work shared with a second process: in order, whichever process did it; complete if one fails."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.base import parallel_work as shared_work
from steelyard.analysis.base.parallel_work import SharedWork

FIRST = os.getpid()
DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest's process has threads of numpy and DuckDB; the pieces below use neither."""
    monkeypatch.setattr(shared_work, "can_fork", lambda: True)


def tell(folder: Path, number: int) -> tuple[int, int]:
    """Make a file, and wait for that of the other process; return (number, process id)."""
    (folder / str(os.getpid())).touch()
    end = time.monotonic() + DEADLINE_S
    while len(list(folder.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return number, os.getpid()


def test_both_processes_work_and_results_keep_their_order(tmp_path: Path) -> None:
    with SharedWork([partial(tell, tmp_path, number) for number in range(20)]) as work:
        results = work.results()
    assert [number for number, _ in results] == list(range(20))
    done_by = {process for _, process in results}
    assert len(done_by) == 2 and FIRST in done_by


def elsewhere(fail: Callable[[], object], number: int) -> int:
    """The number; in any other process than the first what `fail` does."""
    if os.getpid() != FIRST:
        fail()
    return number


def raise_fault() -> None:
    raise RuntimeError("only there")


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("fail", "words"), [(raise_fault, "RuntimeError('only there')"), (be_killed, "status -9")]
)
def test_a_second_process_that_fails_is_told_and_costs_nothing(
    fail: Callable[[], None], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        SharedWork([partial(elsewhere, fail, number) for number in range(3)]) as work,
    ):
        wait_for_end(work)
        assert work.results() == [0, 1, 2]
    (told,) = caplog.messages
    assert told.startswith("the second process failed and its work is done again: ")
    assert words in told


def wait_for_end(work: SharedWork[Any]) -> None:
    """Until the second process has ended, so that it had the first piece."""
    os.waitid(os.P_PID, work._child, os.WEXITED | os.WNOWAIT)


def test_what_cannot_be_pickled_is_done_again(caplog: pytest.LogCaptureFixture) -> None:
    with SharedWork([lambda: sys.stdout.write, lambda: sys.stdout.write]) as work:
        wait_for_end(work)
        assert len(work.results()) == 2
    assert "pickle" in caplog.text


def raise_everywhere() -> int:
    raise ValueError("everywhere")


def test_a_piece_that_always_fails_raises_its_own_error() -> None:
    with pytest.raises(ValueError, match="everywhere"), SharedWork([raise_everywhere] * 2) as work:
        child = work._child
        work.results()
    assert is_gone(child)


def test_an_error_of_the_first_process_ends_the_second() -> None:
    begun = time.monotonic()
    with pytest.raises(KeyError), SharedWork([partial(time.sleep, DEADLINE_S)] * 2) as work:
        child = work._child
        raise KeyError
    assert is_gone(child)
    assert time.monotonic() - begun < DEADLINE_S / 2


def is_gone(child: int) -> bool:
    try:
        os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        return child > 0
    return False


def test_no_second_process_beside_threads_or_for_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    with SharedWork([os.getpid]) as work:
        assert work.results() == [FIRST]
    monkeypatch.undo()
    code = (
        "import os, threading\n"
        "from steelyard.analysis.base.parallel_work import SharedWork, can_fork\n"
        "print(can_fork() == (len(os.sched_getaffinity(0)) > 1))\n"
        "event = threading.Event()\n"
        "thread = threading.Thread(target=event.wait); thread.start()\n"
        "print(can_fork(), set(SharedWork([os.getpid] * 9).results()) == {os.getpid()})\n"
        "event.set(); thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["True", "False", "True"]


def test_the_second_process_ends_with_the_first(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from functools import partial\n"
        "from pathlib import Path\n"
        "from steelyard.analysis.base import parallel_work as shared_work\n"
        "shared_work.can_fork = lambda: True\n"
        "def piece(number):\n"
        "    Path(sys.argv[1], str(number)).touch(); time.sleep(0.2)\n"
        "work = shared_work.SharedWork([partial(piece, number) for number in range(300)])\n"
        "print(work._child, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        second = Path("/proc", first.stdout.readline().strip())
        assert second.is_dir()
        first.kill()
    end = time.monotonic() + DEADLINE_S / 2
    while is_running(second) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_running(second)
    assert len(list(tmp_path.iterdir())) < 300


def is_running(process: Path) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return (process / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
