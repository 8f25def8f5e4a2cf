"""A command of root: the kernel counts it by default, whoever waits for its processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..sampler.conftest import Sampler
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414

RUN = (sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run", "-o")
# A private bpf filesystem at the usual path, and nothing left there.
PLACE = 'mount -t bpf bpf /sys/fs/bpf; "$@"; code=$?; find /sys/fs/bpf/steelyard* -type f | wc -l >&2; exit $code'
Measure = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture(params=["sample", "run"])
def measure(
    request: pytest.FixtureRequest, able: None, sampler: Sampler, tmp_path: Path, load: Path
) -> Measure:
    """What the load has done, and the record of it."""
    is_run = request.param == "run"

    def run(how: str, *, bpf: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
        if is_run:
            argv: list[str | Path] = [*RUN, tmp_path / "out", *([] if bpf else ["--no-bpf"])]
        else:
            argv, _ = sampler.arguments("--rate", "10", *([] if bpf else ["--bpf", "no"]))
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-c", PLACE, "-", *argv, "--", load, how, "300", "1000"],
            capture_output=True, text=True, check=True, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.stderr.split()[-1] == "0", "all was unloaded"
        (path,) = (
            path
            for folder in (tmp_path / "out", tmp_path / "records")
            for path in folder.rglob("*.json")
            if '"steelyard-record"' in path.read_text()
        )
        return json.loads(done.stdout.splitlines()[0]), json.loads(path.read_bytes())

    return run


@pytest.mark.parametrize("how", ["wait", "ignore", "orphan", "thread"])
def test_every_byte_is_in_the_record(measure: Measure, how: str) -> None:
    truth, record = measure(how)
    assert record["complete"] is True, record["incomplete_reason"]
    assert {name: record["io"][name] for name in truth} == truth
    assert record["bpf"]["missed_ends"] is not None, record["missing"]
    assert record["cpu"]["unseen_s"] == 0
    assert 0.3 < record["cpu"]["cpu_s"] < 1.5
    if how == "ignore":  # wait4(2) reports nothing of these
        assert record["io"]["source"] == record["cpu"]["source"] == "bpf"


def test_it_is_not_where_it_is_not_wanted(measure: Measure) -> None:
    truth, record = measure("ignore", bpf=False)
    assert "bpf" not in record
    assert record["io"]["source"] == "reaped"
    assert record["io"]["wchar_bytes"] < truth["wchar_bytes"]
    assert record["missing"]["cpu.unseen_s"]


# What its parent still waits for would end its time later than it ends: some 8 ms of `true` were that.
SIBLINGS = "read -r ids < /proc/$PPID/task/$PPID/children; for id in $ids; do [ $id = $$ ] || cat /proc/$id/comm; done"


def test_nobody_but_the_sampler_is_waited_for_while_a_command_runs(
    able: None, sampler: Sampler
) -> None:
    argv, _ = sampler.arguments("--rate", "10")
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", PLACE, "-", *argv, "--", "sh", "-c", SIBLINGS],
        capture_output=True, text=True, check=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    (record,) = (json.loads(path.read_bytes()) for path in sampler.base.rglob("*.json"))
    assert record["bpf"]["missed_ends"] is not None, record["missing"]  # the kernel has counted
    assert done.stdout.split() == ["steelyard-node"]
