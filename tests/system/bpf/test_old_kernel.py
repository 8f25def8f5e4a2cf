"""What older kernels refuse: to call bpf(2) without CAP_BPF (before Linux 5.19, as most distributions
have it set)."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_for

from ..sampler.conftest import Attached
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414
from .conftest import PROGRAM
from .test_sampler import attach as attach  # noqa: PLC0414
from .test_sampler import go
from .test_sampler import root as root  # noqa: PLC0414
from .test_ticks import CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, rights

CAP_BPF = 39  # linux/capability.h
WITHOUT = ("setpriv", "--bounding-set=-bpf")  # root of a container whose runtime is older


@pytest.fixture(autouse=True)
def old_kernel(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path_factory.mktemp("old") / "old_kernel.so"
    source = Path(__file__).parent / "old_kernel.c"
    subprocess.run(
        ["gcc", "-D_GNU_SOURCE", "-Wall", "-shared", "-fPIC", "-o", library, source], check=True
    )
    monkeypatch.setenv("LD_PRELOAD", str(library))


def status(*prefix: str) -> dict[str, Any]:
    done = subprocess.run(
        [*prefix, PROGRAM, "status", "--json"], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("rate", ["0", "1", "10"])
def test_the_sampler_keeps_the_right_to_read(
    attach: Callable[..., Attached],
    root: Callable[..., subprocess.Popen[str]],
    rate: str,
) -> None:
    """And where nobody is looked into any more, no other."""
    process = root("ignore", 100, 100)
    job = attach("--rate", rate, "--pid", str(process.pid))
    job.totals()
    looks = 1 << CAP_SYS_PTRACE | 1 << CAP_DAC_READ_SEARCH
    assert rights(job.child_pid) & ~looks == 1 << CAP_BPF
    assert rate != "0" or rights(job.child_pid) == 1 << CAP_BPF
    if rate == "10":
        wait_for("samples of the timer", lambda: len(job.samples) > 10)
    truth = go(process)
    record = job.end()
    assert record["io"]["source"] == "bpf", record["missing"].get("bpf.missed_ends")
    assert {name: record["io"][name] for name in truth} == truth
    assert record["bpf"]["ticks"] > 5 or rate != "10"


def test_it_is_tried_as_a_sampler_does_it(able: None) -> None:
    found = status()
    assert (found["supported"], found["needs_cap_bpf"]) == (True, True)
    assert found["message"] == (
        "the kernel counts what jobs use; samplers keep the right CAP_BPF, without which this "
        "kernel refuses bpf(2) (kernel.unprivileged_bpf_disabled)"
    )


def test_where_there_is_no_such_right_to_keep(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]]
) -> None:
    """Root can load, but no job is counted: status and record report that."""
    found = status(*WITHOUT)
    assert found["supported"] is False
    assert re.fullmatch(
        r"the kernel does not take process \d+: Operation not permitted, with no more rights than "
        r"a sampler keeps",
        found["message"],
    )
    process = root("wait", 10, 100)
    job = attach("--rate", "10", before=WITHOUT)
    job.send(f"root {process.pid}")
    job.totals()
    go(process)
    record = job.end()
    assert record["io"]["source"] == "processes"
    assert record["missing"]["bpf.missed_ends"] == (
        f"the kernel does not take process {process.pid}: Operation not permitted"
    )
