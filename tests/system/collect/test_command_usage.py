"""A study's CPU time, memory and bytes are the command's own, not those of the shells around it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from steelyard.wrappers.commands import cli

# Each prints what the kernel counted for it: the truth.
OWN = """
import resource, time
while time.process_time() < 0.2: pass
held = bytearray(20_000_000); held[::4096] = b"x" * len(held[::4096])
used = resource.getrusage(resource.RUSAGE_SELF)
print("cpu", used.ru_utime + used.ru_stime, "memory", used.ru_maxrss * 1024)
"""
# Four at once, each with 30 MB: no single process has them.
FOUR = """
import multiprocessing, os, time
def hold(barrier):
    held = bytearray(30_000_000); held[::4096] = b"x" * len(held[::4096])
    barrier.wait(); time.sleep(1.3)
if __name__ == "__main__":
    barrier = multiprocessing.Barrier(4)
    all = [multiprocessing.Process(target=hold, args=(barrier,)) for _ in range(4)]
    [one.start() for one in all]; [one.join() for one in all]
    print("cpu 0 memory", 4 * 30_000_000)
"""
# Nobody waits for its children: their parent ignores SIGCHLD.
IGNORED = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(10):
    if os.fork() == 0:
        while time.process_time() < 0.1: pass
        os._exit(0)
try: os.wait()
except ChildProcessError: pass
print("cpu 1.0 memory 0")
"""


def figures(tmp_path: Path, program: str) -> dict[str, float]:
    """Return the metrics of a study of one run, the program's own and Steelyard's."""
    (tmp_path / "load.py").write_text(program)
    path = tmp_path / "own.toml"
    path.write_text(f"""
[study]
name = "own"
repeat = 1
blocks = 1
seed = 1
[job]
time_limit = "00:10:00"
[[benchmark]]
use = "app"
command = "/usr/bin/python3 -I {tmp_path}/load.py"
[benchmark.figures.true_cpu]
pattern = 'cpu ([0-9.]+)'
unit = "s"
[benchmark.figures.true_memory]
pattern = 'memory ([0-9]+)'
unit = "B"
""")
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 0
    assert cli.main(["collect", str(path)]) == 0
    with duckdb.connect(tmp_path / "own.study/study.duckdb", read_only=True) as database:
        apart = database.execute("SELECT * FROM checks WHERE NOT agrees").fetchall()
        assert apart == []  # SY24 stood in every run of a local study
        return dict(database.execute("SELECT metric, value FROM measurements").fetchall())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_cpu_memory_and_bytes_are_the_commands_own(tmp_path: Path) -> None:
    found = figures(tmp_path, OWN)
    # Printed a moment before its end.
    assert found["true_cpu"] <= found["cpu_s"] <= found["true_cpu"] + 0.02
    assert found["max_memory_bytes"] == found["true_memory"]
    assert found["wchar_bytes"] < 100  # the one line that it prints
    # One process, whose start and end are a part of elapsed_s.
    assert 0.2 <= found["seconds"] <= found["elapsed_s"]


def test_memory_of_several_processes_is_their_sum(tmp_path: Path) -> None:
    found = figures(tmp_path, FOUR)
    truth = found["true_memory"]
    assert truth <= found["max_memory_bytes"] <= truth + 60_000_000  # five interpreters


def test_what_nobody_waited_for_is_in_the_jobs_figure(tmp_path: Path) -> None:
    """The program's own usage lacks 1 s, which the job's record has: the record counts."""
    found = figures(tmp_path, IGNORED)
    assert found["cpu_s"] is None or 1.0 <= found["cpu_s"] <= 1.5
