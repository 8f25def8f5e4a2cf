"""Conditions of the network in --run-dir go into the job's record."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.programs import find_node_program

CONDITIONS = {"requested": "delay=50ms", "applied": "delay=50ms", "valid": True, "undone": True}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "netem").mkdir(mode=0o700, parents=True)
    return folder


def leave(run_dir: Path, name: str, document: dict[str, Any]) -> Path:
    path = run_dir / "netem" / name
    path.with_suffix(".tmp").write_text(json.dumps(document))
    path.with_suffix(".tmp").rename(path)
    return path


def test_finished_conditions_are_taken_with_their_tag(sampler: Any, run_dir: Path) -> None:
    mine = leave(run_dir, "n7.1.done.json", CONDITIONS)
    others = leave(run_dir, "n7.11.done.json", CONDITIONS)
    _, measured = sampler.run(["true"], "--run-dir", run_dir, "--node", "n7", "--tag", "a=b")
    record = measured.record
    assert record["network_conditions"] == CONDITIONS
    assert record["tags"] == {"a": "b", "network": "delay=50ms"}
    assert "network_conditions" not in record["missing"]
    assert (mine.exists(), others.exists()) == (False, True)


def test_containers_of_a_job_that_nobody_has_seen_are_noted(sampler: Any, run_dir: Path) -> None:
    """On a shared node, where the kernel does not count."""
    leave(run_dir, "n7.1.done.json", CONDITIONS | {"scope": "job"})
    _, measured = sampler.run(["true"], "--run-dir", run_dir, "--node", "n7", "--bpf", "no")
    conditions = measured.record["network_conditions"]
    assert conditions["valid"] is True
    assert "containers" in conditions["notes"][0]


def test_nothing_was_asked_for(sampler: Any, run_dir: Path) -> None:
    _, measured = sampler.run(["true"], "--run-dir", run_dir)
    assert measured.record["network_conditions"] is None
    assert measured.record["missing"]["network_conditions"] == "none were asked for"
    assert measured.record["tags"] == {}


def test_what_was_asked_for_and_refused_is_told_as_that(sampler: Any, run_dir: Path) -> None:
    attached = sampler.attach("--run-dir", run_dir, "--node", "n7")
    for field in ("network_conditions", "cache"):
        attached.send(f"unmet {field} asked for, not in place yet: --{field}")
        attached.send(f"unmet {field} refused: --{field}: no")
    record = attached.end()
    for field in ("network_conditions", "cache"):
        assert record[field] is None
        assert record["missing"][field] == f"refused: --{field}: no"


def test_what_is_had_after_all_takes_the_place_of_a_refusal(sampler: Any, run_dir: Path) -> None:
    attached = sampler.attach("--run-dir", run_dir, "--node", "n7")
    attached.send("unmet network_conditions asked for, not in place yet: --netem=delay=50ms")
    leave(run_dir, "n7.1.done.json", CONDITIONS)
    record = attached.end()
    assert record["network_conditions"] == CONDITIONS
    assert "network_conditions" not in record["missing"]


def test_without_a_run_dir_the_reason_says_so(sampler: Any) -> None:
    _, measured = sampler.run(["true"])
    assert measured.record["network_conditions"] is None
    assert "--run-dir" in measured.record["missing"]["network_conditions"]


def test_a_link_is_not_followed(sampler: Any, run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(json.dumps(CONDITIONS))
    (run_dir / "netem/n7.1.done.json").symlink_to(tmp_path / "elsewhere")
    _, measured = sampler.run(["true"], "--run-dir", run_dir, "--node", "n7")
    assert measured.record["network_conditions"] is None


@pytest.fixture
def device() -> Iterator[tuple[str, ...]]:
    """A network namespace with a device of its own; the words that lead into it."""
    name = f"sy-sampler-{os.getpid()}-c"
    words: list[tuple[str, ...]] = [
        ("link", "add", "sy-t0", "type", "veth", "peer", "name", "sy-t1"),
        ("addr", "add", "10.9.5.1/24", "dev", "sy-t0"),
        ("link", "set", "sy-t0", "up"),
        ("link", "set", "sy-t1", "up"),
    ]
    try:
        subprocess.run(["ip", "netns", "add", name], check=True, timeout=90)
        for line in words:
            subprocess.run(["ip", "-n", name, *line], check=True, timeout=90)
        yield ("nsenter", f"--net=/run/netns/{name}")
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, timeout=90)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: removes a device of its own")
def test_a_device_that_is_made_again_has_no_count(
    sampler: Any, device: tuple[str, ...], waiting: Any
) -> None:
    """Its counters froze at what they were when it was removed, and were taken for the job's."""
    space = f"sy-sampler-{os.getpid()}-c"
    attached = sampler.attach("--rate", "20", prefix=("ip", "netns", "exec", space))
    waiting("a first sample", lambda: attached.column("rx_bytes:sy-t0"))
    for line in (("del", "sy-t0"), ("add", "sy-t0", "type", "veth", "peer", "name", "sy-t1")):
        subprocess.run(["ip", "-n", space, "link", *line], check=True, timeout=90)
    before = len(attached.samples)
    waiting("a sample after", lambda: len(attached.samples) > before + 1)
    record = attached.end()
    devices = record["network"]["devices"]
    place = [one["name"] for one in devices].index("sy-t0")
    assert (devices[place]["rx_bytes"], devices[place]["tx_bytes"]) == (None, None)
    why = record["missing"][f"network.devices.{place}.rx_bytes"]
    assert why.startswith("the counter of sy-t0 could not be read to the end")
    if devices[place]["counted"]:
        assert record["network"]["rx_bytes"] is None
        assert record["missing"]["network.rx_bytes"] == why


def qdiscs(prefix: tuple[str, ...]) -> str:
    return subprocess.run(
        [*prefix, "tc", "qdisc", "show", "dev", "sy-t0"],
        check=True, capture_output=True, text=True, timeout=90,
    ).stdout  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: shapes a device of its own")
def test_conditions_of_a_killed_step_are_undone(
    sampler: Any, run_dir: Path, device: tuple[str, ...]
) -> None:
    before = qdiscs(device)
    step = subprocess.Popen(["sleep", "60"])
    try:
        subprocess.run(
            [*device, find_node_program(), "netem", "apply", f"--run-dir={run_dir}", "--node=n7",
             "--job-id=1", "--uid=0", "--no-policy", f"--watch={step.pid}", "--",
             "rate=10mbit,to=10.9.5.0/24"],
            check=True, capture_output=True, timeout=30,
        )  # fmt: skip
        assert "tbf" in qdiscs(device)
        attached = sampler.attach("--run-dir", run_dir, "--node", "n7", "--watch", str(step.pid),
                                  prefix=device)  # fmt: skip
    finally:
        step.kill()
        step.wait()
    assert attached.process.wait(30) == 0
    record = attached.record
    assert record["complete"] is False
    assert record["tags"]["network"] == "rate=10mbit,to=10.9.5.0/24"
    assert record["network_conditions"]["undone"] is True
    assert record["network_conditions"]["undone_by"] == "sampler"
    assert qdiscs(device) == before
    assert list((run_dir / "netem").glob("*.json")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: shapes a device of its own")
def test_conditions_that_cannot_be_undone_are_named(
    sampler: Any, run_dir: Path, device: tuple[str, ...]
) -> None:
    subprocess.run(
        [*device, find_node_program(), "netem", "apply", f"--run-dir={run_dir}", "--node=n7",
         "--job-id=1", "--uid=0", "--no-policy", "--", "rate=10mbit,to=10.9.5.0/24"],
        check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    # From another network namespace: its devices cannot be reached from here.
    _, measured = sampler.run(["true"], "--run-dir", run_dir, "--node", "n7")
    record = measured.record
    assert record["network_conditions"] is None
    assert "another network namespace" in record["missing"]["network_conditions"]
    assert (run_dir / "netem/n7.1.json").exists()  # for whoever can
