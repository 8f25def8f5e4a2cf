"""steelyard-node sample attached to processes that others start: messages, roots, cgroups."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.system.sampler.conftest import Attached, is_written
from tests.waiting import wait_for

from steelyard.wrappers.base.programs import find_node_program

from .roots import end_root, start_root, wait_ready

# Its children wait for a signal, write 1 MB and take 4 MB of memory, and wait again.
LATER = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.write(1, b"ready\\n")
signal.sigwait([signal.SIGUSR1])
open("/dev/null", "wb", buffering=0).write(bytes(1 << 20))
taken = b"x" * (4 << 20)
os.write(1, b"ready\\n")
os.read(0, 1)
"""


def test_descendants_of_a_root_agree_with_psutil(sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--rate", "10")
    root = start_root(2, cpu_s=0.2)
    attached.send(f"root {root.pid}")
    wait_ready(root, 2)
    children = psutil.Process(root.pid).children(recursive=True)
    assert len(children) == 2
    # What the kernel counts of a write comes after its reader was woken.
    waiting("they rest", lambda: all(child.status() == "sleeping" for child in children))
    totals = attached.totals()
    cpu_s = sum(sum(c.cpu_times()[:2]) for c in children)
    rss = sum(c.memory_info().rss for c in children)
    read = sum(c.io_counters().read_chars for c in children)
    written = sum(c.io_counters().write_chars for c in children)
    assert totals["cpu_s"] == pytest.approx(cpu_s, abs=0.05)
    assert totals["rchar_bytes"] == read
    assert totals["wchar_bytes"] == written >= 2 << 20
    assert totals["max_memory_bytes"] == pytest.approx(rss, rel=0.2)
    end_root(root, 2)
    record = attached.end()
    assert record["complete"] is False  # nobody has counted those that no sample saw
    assert record["processes"]["max_processes"] == 2
    # They are gone, and what they used is still there.
    assert 0.4 <= totals["cpu_s"] <= record["cpu"]["cpu_s"] < totals["cpu_s"] + 0.2
    assert totals["wchar_bytes"] == record["io"]["wchar_bytes"]
    assert (record["cpu"]["source"], record["io"]["source"]) == ("processes", "processes")


def test_nothing_named_is_null_and_not_zero(sampler: Any) -> None:
    attached = sampler.attach()
    record = attached.end()
    assert record["complete"] is True
    assert record["processes"]["named"] is False
    for path in ("cpu.cpu_s", "io.rchar_bytes", "memory.max_memory_bytes"):
        part, name = path.split(".")
        assert record[part][name] is None
        assert record["missing"][path] == "no process of the job was named to the sampler"
    assert attached.column("cpu_s") == [None] * len(attached.samples)


def test_a_root_that_ran_nothing_has_no_maxima(sampler: Any) -> None:
    """A job that was refused before its first task; 0 would be a figure of nobody."""
    attached = sampler.attach("--rate", "10")
    root = start_root(0)
    attached.send(f"root {root.pid}")
    assert attached.totals()["max_memory_bytes"] is None
    end_root(root, 0)
    record = attached.end()
    assert (record["cpu"]["cpu_s"], record["processes"]["max_processes"]) == (0, None)
    assert record["processes"]["named"] is True
    assert (record["memory"]["max_memory_bytes"], record["memory"]["source"]) == (None, None)
    for name in ("memory.max_memory_bytes", "memory.source", "processes.max_processes"):
        assert record["missing"][name].startswith("no process of the job was there at any sample")


def test_what_a_process_used_before_the_sampler_is_not_counted(sampler: Any) -> None:
    root = start_root(1, cpu_s=0.3)
    wait_ready(root, 1)
    time.sleep(0.05)  # its start and the sampler's are told apart by clock ticks
    attached = sampler.attach("--pid", str(root.pid), "--rate", "10")
    totals = attached.totals()
    assert totals["cpu_s"] < 0.05
    assert totals["wchar_bytes"] == 0
    end_root(root, 1)
    attached.end()


def test_done_gives_the_final_counters_of_a_root(sampler: Any) -> None:
    attached = sampler.attach()
    root = start_root(1)
    attached.send(f"root {root.pid}")
    wait_ready(root, 1)
    attached.send(f"done {root.pid} 12345678 90000001 90000002 90000003 90000004")
    end_root(root, 1)
    record = attached.end()
    # And the start of its child, an interpreter, whom it has not waited for yet.
    assert 12.345678 <= record["cpu"]["cpu_s"] < 12.345678 + 0.2
    assert record["io"]["source"] == "reaped"
    assert 90000001 <= record["io"]["rchar_bytes"] < 90000001 + (1 << 20)
    assert record["io"]["write_bytes"] == 90000004


def test_children_that_a_parent_does_not_wait_for_are_kept(sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--rate", "20")
    # Child and parent stay until stdin ends; the parent outlives the child, whose end it never hears of.
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        'code = \'import sys; open("/dev/null", "wb", 0).write(bytes(3 << 20)); sys.stdin.read()\'\n'
        "os.posix_spawn(sys.executable, [sys.executable, '-c', code], os.environ)\n"
        "try: os.wait()\n"
        "except ChildProcessError: pass"
    )
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"
    root = subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE)
    attached.send(f"root {root.pid}")
    waiting("its child's work", lambda: (attached.totals()["wchar_bytes"] or 0) >= 3 << 20)
    assert attached.totals()["wchar_bytes"] < 4 << 20
    root.communicate(timeout=90)
    assert root.returncode == 0
    record = attached.end()
    assert 3 << 20 <= record["io"]["wchar_bytes"] < 4 << 20
    column = attached.column("wchar_bytes")
    assert column == sorted(column, key=lambda value: -1 if value is None else value)


def test_ends_on_sigterm(sampler: Any) -> None:
    attached = sampler.attach()
    attached.process.terminate()
    assert attached.process.wait(90) == 0
    assert attached.record["complete"] is True


def test_messages_set_tags_and_job_fields_at_once(sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--tag", "a=1")
    attached.send("tag a=2", "tag b=x y", "job name my job", "exclusive no")
    # The record of the start is written anew: a crash would not lose them.
    waiting("the tags in the record", lambda: attached.record["tags"] == {"a": "2", "b": "x y"})
    assert attached.record["complete"] is False
    record = attached.end()
    assert record["tags"] == {"a": "2", "b": "x y"}
    assert (record["job"]["name"], record["job"]["exclusive"]) == ("my job", False)


def test_rate_changes_and_0_stops(sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--rate", "0.1")
    assert len(attached.samples) == 1
    attached.send("rate 50")
    waiting("samples at the new rate", lambda: len(attached.samples) > 10)
    attached.send("rate 0")
    attached.totals()  # it has read the message
    count = len(attached.samples)
    time.sleep(0.2)
    assert len(attached.samples) == count
    assert attached.totals()["cpu_s"] is None
    record = attached.end()
    assert record["sampler"]["rate_hz"] == 0
    assert record["elapsed_s"] > 0.2
    assert "named" in record["missing"]["cpu.cpu_s"]


def test_rate_0_gives_what_the_steps_have_told(sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--rate", "0")
    first, second = start_root(0), start_root(0)
    for root in (first, second):
        attached.send(f"root {root.pid}")
    attached.send(f"done {first.pid} 2000000 10 20 30 40")
    end_root(first, 0)
    waiting("that a step was here", lambda: attached.column("processes")[-1] is not None)
    # Of what the other one's processes did nobody knows: a part is not the whole.
    assert attached.totals()["cpu_s"] is None
    attached.send("peak 5000000", f"done {second.pid} 3000000 1 2 3 4")
    end_root(second, 0)
    totals = attached.totals()
    assert totals["cpu_s"] == 5
    assert [totals[f"{n}_bytes"] for n in ("rchar", "wchar", "read", "write")] == [11, 22, 33, 44]
    assert totals["max_memory_bytes"] == 5_000_000
    assert totals["elapsed_s"] > 0 and totals["rx_bytes"] is not None
    record = attached.end()
    assert record["cpu"]["cpu_s"] == 5
    assert (record["io"]["write_bytes"], record["io"]["source"]) == (44, "reaped")
    assert record["memory"] == {
        "max_memory_bytes": 5_000_000, "source": "rusage", "charged_peak_bytes": None,
        "minor_faults": None, "major_faults": None,
    }  # fmt: skip


def test_rate_0_without_the_word_of_a_step_is_null(sampler: Any) -> None:
    attached = sampler.attach("--rate", "0")
    root = start_root(1, cpu_s=0.1)
    attached.send(f"root {root.pid}")
    wait_ready(root, 1)
    end_root(root, 1)
    record = attached.end()
    assert record["cpu"]["cpu_s"] is record["io"]["wchar_bytes"] is None
    assert "not every step" in record["missing"]["cpu.cpu_s"]
    assert "not every step" in record["missing"]["cpu.source"]


@pytest.mark.parametrize(("begun", "late_s"), [(False, 5), (True, 5), (True, 0.3)])
def test_of_a_late_sampler_the_launch_counts_where_the_job_had_begun(
    sampler: Any, tmp_path: Path, begun: bool, late_s: float
) -> None:
    """A step announces itself as it begins: its message waits at the first sample, or there is none."""
    control = tmp_path / "control"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(str(control))
        if begun:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as step:
                step.sendto(b"tag step=first", str(control))
        launched_us = time.monotonic_ns() // 1000 - int(late_s * 1e6)
        arguments, folder = sampler.arguments(
            "--control",
            control,
            "--control-fd",
            str(bound.fileno()),
            "--launched",
            f"{launched_us}",
        )
        process = subprocess.Popen(arguments, pass_fds=[bound.fileno()])
    sampler.started.append(process)
    attached = Attached(folder, process, control)
    wait_for("its first sample", lambda: is_written(folder) and attached.samples)
    sampled_us = time.monotonic_ns() // 1000
    record = attached.end()
    first_s = float(attached.samples[0]["elapsed_s"])
    assert (late_s <= first_s <= (sampled_us - launched_us) / 1e6) if begun else first_s == 0
    # The two clocks are read one after the other, and a busy machine may do something in between.
    unsampled_s = record["elapsed_s"] - (record["end_unix_s"] - record["start_unix_s"])
    assert unsampled_s == pytest.approx(first_s, abs=2)
    assert record["complete"] is (first_s <= 1)
    if first_s > 1:
        assert f"its first sample {first_s:.1f} s" in record["incomplete_reason"]


def test_the_socket_is_the_owners_alone(sampler: Any) -> None:
    attached = sampler.attach()
    assert attached.control.stat().st_mode & 0o777 == 0o600
    attached.end()
    assert not attached.control.exists()


def test_send_to_nobody_exits_3(tmp_path: Path) -> None:
    done = subprocess.run(
        [find_node_program(), "send", "--control", tmp_path / "no.sock", "end"],
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert done.returncode == 3
    assert "no sampler listens to" in done.stderr


def test_send_refuses_a_message_it_does_not_know(sampler: Any) -> None:
    attached = sampler.attach()
    done = subprocess.run(
        [find_node_program(), "send", "--control", attached.control, "dance"],
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert done.returncode == 2
    assert "'dance' is none of root, cgroup, counted" in done.stderr
    attached.end()


def test_two_hundred_processes(sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--rate", "10")
    root = subprocess.Popen(
        ["bash", "-c", "for i in $(seq 200); do sleep 30 & done; wait"], stderr=subprocess.DEVNULL
    )
    attached.send(f"root {root.pid}")
    waiting("all of them", lambda: attached.column("processes")[-1] == 200)
    for child in psutil.Process(root.pid).children():
        child.kill()
    root.wait(90)
    record = attached.end()
    assert record["processes"]["max_processes"] == 200


def test_of_many_processes_what_each_did_last_is_read_though_it_sleeps(
    sampler: Any, waiting: Any
) -> None:
    children = 40  # of more than 32 I/O is read in turn, of more than 16 memory
    attached = sampler.attach("--rate", "20")
    root = start_root(children, child=LATER)
    attached.send(f"root {root.pid}")
    wait_ready(root, children)
    before = attached.totals()
    assert before["wchar_bytes"] < children << 20
    for process in psutil.Process(root.pid).children():
        process.send_signal(signal.SIGUSR1)
    wait_ready(root, children)
    written = before["wchar_bytes"] + (children << 20)
    waiting("all they wrote", lambda: attached.totals()["wchar_bytes"] >= written)
    memory = before["max_memory_bytes"] + (children << 22)
    waiting("all their memory", lambda: attached.totals()["max_memory_bytes"] >= memory)
    end_root(root, children)
    assert attached.end()["io"]["wchar_bytes"] < written + (1 << 20)


# Works, starts a child that works for as long, and ends once it is told to.
PROGRAM = """
import subprocess, sys, time
BURN = "import time\\nwhile time.process_time() < 0.5: pass"
exec(BURN)
print("ready", flush=True)
sys.stdin.readline()
subprocess.run([sys.executable, "-c", BURN])
while time.process_time() < 1: pass
print("ready", flush=True)
sys.stdin.readline()
"""


def test_a_program_that_runs_is_measured_with_its_descendants_until_it_ends(
    sampler: Any, tmp_path: Path
) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdin and program.stdout and program.stdout.readline() == "ready\n"
    file = tmp_path / "vm.pid"
    file.write_text(f"{program.pid}\n")
    attached = sampler.attach("--process-file", file, "--rate", "10")
    before_s = psutil.Process(program.pid).cpu_times()
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "ready\n"
    after_s = psutil.Process(program.pid).cpu_times()
    program.communicate("\n", timeout=60)
    assert attached.process.wait(60) == 0
    # Its own and its child's, nothing of what it had used before.
    used_s = sum(after_s) - sum(before_s)
    assert used_s > 0.9 and attached.record["cpu"]["cpu_s"] == pytest.approx(used_s, abs=0.15)
    assert attached.record["processes"]["max_processes"] == 2
    # What it did after the last sample that saw it nobody has counted.
    assert attached.record["incomplete_reason"].startswith("neither the kernel nor a cgroup")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--process", "4194304"), "--process 4194304: there is no process of that id"),
        (("--process", "0"), "--process '0': expected a whole number from 1 to 2147483647"),
        (("--process-file", "/no/such"), "cannot open --process-file /no/such: No such file"),
        (("--process", "1", "--watch", "1"), "--process and --watch exclude each other"),
        (("--process", "1", "--", "true"), "--pid, --process and a command exclude each other"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    sampler: Any, options: tuple[str, ...], words: str
) -> None:
    arguments, _ = sampler.arguments(*options)
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr
