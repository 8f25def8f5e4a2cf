"""Who is moved into a job's cgroup is the job's from then on, to the byte."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..sampler.conftest import Attached, Sampler
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414
from .conftest import PROGRAM, Inside, answer, tell
from .test_sampler import attach as attach  # noqa: PLC0414

TOP = Path("/sys/fs/cgroup")
Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture(params=["cpuacct", "systemd", "unified", ""])
def group(request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty group of one hierarchy: with controllers, with none but a name, of version 2."""
    yield from made(TOP / request.param)


@pytest.fixture
def any_group() -> Iterator[Path]:
    places = (TOP / name for name in ("cpuacct", "unified", ""))
    yield from made(next(place for place in places if (place / "cgroup.procs").exists()))


def made(mount: Path) -> Iterator[Path]:
    if not (mount / "cgroup.procs").exists():
        pytest.skip(f"no hierarchy of cgroups is mounted on {mount}")
    path = mount / f"steelyard-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as err:
        pytest.skip(f"no cgroup can be made there: {err}")
    yield path
    for inner in (*path.glob("*/"), path):
        inner.rmdir()


@pytest.fixture
def measure(attach: Callable[..., Attached]) -> Callable[..., Attached]:
    """Measure a job that is known by its cgroup only."""

    def start(group: Path) -> Attached:
        job = attach("--rate", "10")
        job.send(f"cgroup /{group.name}")
        job.totals()  # it has the group
        return job

    return start


def ended(job: Attached, truth: dict[str, Any], threads: int) -> dict[str, Any]:
    record = job.end()
    assert record["complete"] is True, record["incomplete_reason"]
    assert record["io"]["source"] == "bpf", record["missing"]["bpf.missed_ends"]
    assert {name: record["io"][name] for name in truth} == truth
    assert threads * 0.001 <= record["cpu"]["cpu_s"] + 0.0042 * record["bpf"]["missed_ends"] < 2
    return record


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    truth = json.loads(answer(process))
    assert isinstance(truth, dict)
    return truth


@pytest.mark.parametrize("how", ["ignore", "orphan"])
def test_who_is_moved_in_from_outside(
    measure: Callable[..., Attached], started: Started, load: Path, group: Path, how: str
) -> None:
    """Its children from then on count, too, whoever waits for them; its earlier usage does not."""
    process = started(str(load), how, "100", "1000", "moved")
    assert answer(process) == "ready\n"
    job = measure(group)
    (group / "cgroup.procs").write_text(str(process.pid))
    tell(process)
    ended(job, told(process), 100)


def test_every_thread_of_it(
    measure: Callable[..., Attached], started: Started, load: Path, any_group: Path
) -> None:
    process = started(str(load), "crowd", "300", "1000", "moved")
    assert answer(process) == "ready\n"
    job = measure(any_group)
    (any_group / "cgroup.procs").write_text(str(process.pid))
    tell(process)
    ended(job, told(process), 300)


def test_a_group_below_the_jobs(
    measure: Callable[..., Attached], started: Started, load: Path, any_group: Path
) -> None:
    (any_group / "inner").mkdir()
    process = started(str(load), "wait", "30", "1000", "moved")
    assert answer(process) == "ready\n"
    job = measure(any_group)
    (any_group / "inner/cgroup.procs").write_text(str(process.pid))
    tell(process)
    assert ended(job, told(process), 30)["bpf"]["by_cgroup"] is True


def test_who_is_in_it_when_it_is_told_of(
    measure: Callable[..., Attached], started: Started, load: Path, any_group: Path
) -> None:
    process = started(str(load), "ignore", "30", "1000", "moved")
    assert answer(process) == "ready\n"
    (any_group / "cgroup.procs").write_text(str(process.pid))
    job = measure(any_group)
    tell(process)
    ended(job, told(process), 30)


def test_who_is_moved_out_stays_the_jobs(
    measure: Callable[..., Attached], started: Started, load: Path, any_group: Path
) -> None:
    """So do its descendants: a user cannot leave the job's count by moving a process."""
    process = started(str(load), "ignore", "300", "1000", "moved")
    assert answer(process) == "ready\n"
    job = measure(any_group)
    for procs in (any_group / "cgroup.procs", any_group.parent / "cgroup.procs"):
        procs.write_text(str(process.pid))
    tell(process)
    assert ended(job, told(process), 300)["cpu"]["source"] == "bpf", "the group has seen none of it"


def test_who_is_born_in_it(measure: Callable[..., Attached], started: Started, load: Path) -> None:
    """clone3(2) into a group of version 2: nobody is moved, and the parent is not the job's."""
    for group in made(TOP / ("unified" if (TOP / "unified").exists() else "")):
        job = measure(group)
        told(started(str(load), "born", "50", "1000", str(group)))
        ended(job, {"rchar_bytes": 250_000, "wchar_bytes": 500_000}, 50)


def test_who_goes_on_to_another_job(
    sampler: Sampler, able: None, started: Started, load: Path, any_group: Path, tmp_path: Path
) -> None:
    """What it did until then is the first one's, the rest the other's."""
    place = tmp_path / "bpffs"
    place.mkdir()
    groups = [any_group / name for name in ("one", "other")]
    subprocess.run(["mount", "-t", "bpf", "bpf", place], check=True)
    try:
        options = ("--bpf", PROGRAM, "--bpf-base", place / "steelyard")
        one, other = (sampler.attach(*options) for _ in groups)
        for job, group in zip((one, other), groups, strict=True):
            group.mkdir()
            job.send(f"cgroup /{any_group.name}/{group.name}")
            job.totals()
        process = started(
            str(load), "ignore", "50", "1000", str(groups[0] / "cgroup.procs"), "moved"
        )
        assert answer(process) == "ready\n"
        (groups[1] / "cgroup.procs").write_text(str(process.pid))
        tell(process)
        ended(other, told(process), 50)
        # "0" into the group, its own work and a child's, "ready"
        ended(one, {"rchar_bytes": 10_000, "wchar_bytes": 1 + 20_000 + 6}, 2)
        assert list((place / "steelyard").iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def test_count_takes_a_group_too(
    inside: Inside, load: Path, any_group: Path, tmp_path: Path
) -> None:
    """The load's children and itself, but for what it did before it was moved; the command is one
    more process."""
    command = f"{load} wait 40 0 {any_group}/cgroup.procs"
    done = inside(
        f"cd {tmp_path}; mkfifo gate; (read _ <gate; exec {command}) & "
        f"$BPF count --base $BASE --cgroup /{any_group.name} -- "
        "bash -c 'echo >gate; while kill -0 '$!' 2>&-; do sleep 0.05; done'; wait"
    )
    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout.splitlines()[-1])
    assert 400_000 < counted["wchar_bytes"] < 402_000
