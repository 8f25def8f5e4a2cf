"""A sampler for which the kernel counts: its record has what the job has done, whatever became of
its processes."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..sampler.conftest import Attached, Sampler
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414
from .conftest import PROGRAM

Weighed = tuple[dict[str, Any], dict[str, Any]]


@pytest.fixture
def attach(able: None, sampler: Sampler, tmp_path: Path) -> Callable[..., Attached]:
    """Its own bpf filesystem, where nobody else looks."""
    place = tmp_path / "bpffs"
    place.mkdir()
    script = f'mount -t bpf bpf {place}; exec "$@"'
    prefix = ("unshare", "--mount", "bash", "-c", script, "sampler")

    def start(*options: str, program: Path = PROGRAM) -> Attached:
        base = ("--bpf", str(program), "--bpf-base", f"{place}/steelyard")
        return sampler.attach(*options, *base, prefix=prefix)

    return start


@pytest.fixture
def root(load: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A process that is no part of the job: when told to, it starts the load as its child."""
    started = []

    def start(how: str, children: int, burn_us: int) -> subprocess.Popen[str]:
        script = f"read; {load} {how} {children} {burn_us}; read"
        process = subprocess.Popen(
            ["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def go(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Let it work: what the load says that it has done."""
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    truth = json.loads(process.stdout.readline())
    assert isinstance(truth, dict)
    return truth


@pytest.mark.parametrize("how", ["wait", "ignore", "orphan", "thread"])
def test_every_byte_is_in_the_record(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], how: str
) -> None:
    process = root(how, 300, 1000)
    job = attach("--pid", str(process.pid), "--rate", "10")
    truth = go(process)
    record = job.end()
    assert record["complete"] is True, record["why_incomplete"]
    assert record["io"]["source"] == record["cpu"]["source"] == "bpf"
    assert 0 <= record["bpf"]["missed_ends"] <= 700, "tasks: 300, and of orphans the parents"
    assert {name: record["io"][name] for name in truth} == truth
    assert 0.3 < record["cpu"]["cpu_s"] < 1.5
    split = record["cpu"]["user_s"] + record["cpu"]["system_s"]
    assert split == pytest.approx(record["cpu"]["cpu_s"], abs=2e-6)


def test_what_a_job_goes_on_to_use_is_in_its_samples(attach: Callable[..., Attached]) -> None:
    """Of a process that lives, without what it had used before the sampler began."""
    dd = "dd if=/dev/zero of=/dev/null bs=1000 count=300 status=none"
    inner = f"while read _; do {dd}; echo done; done"
    process = subprocess.Popen(
        ["bash", "-c", f"bash -c '{inner}'; true"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        job = attach("--pid", str(process.pid), "--rate", "10")
        assert job.totals()["rchar_bytes"] == 0, "what it read before is not the job's"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        assert 300_000 <= job.totals()["rchar_bytes"] < 330_000
        assert job.end()["io"]["source"] == "bpf"
    finally:
        process.kill()
        process.communicate()


def test_without_the_program_samples_tell(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = root("wait", 30, 1000)
    job = attach("--pid", str(process.pid), program=tmp_path / "missing")
    go(process)
    record = job.end()
    assert record["io"]["source"] == record["cpu"]["source"] == "processes"
    assert record["bpf"]["missed_ends"] is None
    why = f"{tmp_path}/missing: No such file or directory"
    assert record["missing"]["bpf.missed_ends"] == why


def test_a_program_that_cannot_load(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = root("wait", 30, 1000)
    job = attach("--pid", str(process.pid), program=Path("/bin/false"))
    go(process)
    record = job.end()
    assert record["bpf"]["missed_ends"] is None
    why = "/bin/false cannot load it: `steelyard-bpf status` says why"
    assert record["missing"]["bpf.missed_ends"] == why


def test_nothing_is_pinned_after_the_last_job(
    sampler: Sampler, able: None, root: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """The first sampler loads, the second shares, the last unpins."""
    place = tmp_path / "bpffs"
    place.mkdir()
    base = place / "steelyard"
    subprocess.run(["mount", "-t", "bpf", "bpf", place], check=True)
    try:
        process = root("wait", 30, 1000)
        options = ("--bpf", PROGRAM, "--bpf-base", base, "--pid", str(process.pid))
        first, second = (sampler.attach(*options) for _ in range(2))
        (folder,) = base.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        truth = go(process)
        assert first.end()["io"]["rchar_bytes"] == truth["rchar_bytes"]
        assert folder.exists()
        assert second.end()["io"]["rchar_bytes"] == truth["rchar_bytes"]
        assert list(base.iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("late", [False, True])
def test_a_root_told_of_too_late(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], late: bool
) -> None:
    """Children of its may have ended before: the kernel's count is not the job's."""
    process = root("ignore", 400, 2000)
    job = attach("--rate", "10")
    assert process.stdin
    assert process.stdout
    if not late:
        job.send(f"root {process.pid}")
        job.totals()  # it has heard of it
    process.stdin.write("\n")
    process.stdin.flush()
    if late:
        time.sleep(0.3)
        job.send(f"root {process.pid}")
    truth = json.loads(process.stdout.readline())
    record = job.end()
    assert (record["io"]["source"] == "bpf") is not late
    assert (record["io"]["wchar_bytes"] == truth["wchar_bytes"]) is not late
    assert (record["bpf"]["missed_ends"] is None) is late
    why = "it was told of a step when a program of the step's had begun"
    assert record["missing"].get("bpf.missed_ends") == (why if late else None)
