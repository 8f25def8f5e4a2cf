"""An administrator's own meter: a file that a program of theirs writes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.programs import find_node_program

PLACE = "run/steelyard-meters/site"


def put(tree: Path, text: str, name: str = "node.meter", uid: int | None = None) -> Path:
    """As a writer should: another file takes the place of the one before."""
    folder = tree / PLACE
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder.parent, folder):
        path.chmod(0o755)
    new = folder / f"{name}.new"
    new.write_text(text)
    new.chmod(0o644)
    if uid is not None:
        os.chown(new, uid, uid)
    return new.replace(folder / name)


def watts(value: float, **more: Any) -> str:
    at = more.pop("at", time.monotonic())
    rest = "".join(f"{key} {word}\n" for key, word in more.items())
    return f"covers node\nwatts {value:.3f}\nat {at:.6f}\nperiod 0.2\n{rest}"


@contextmanager
def written(
    tree: Path,
    text: Callable[[float], str],
    period_s: float = 0.2,
    name: str = "node.meter",
    uid: int | None = None,
) -> Iterator[list[float]]:
    """Each period; the moments at which it was."""
    stop, moments = threading.Event(), [time.monotonic()]
    put(tree, text(moments[0]), name, uid)

    def run() -> None:
        while not stop.wait(period_s):
            moments.append(time.monotonic())
            put(tree, text(moments[-1]), name, uid)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield moments
    finally:
        stop.set()
        thread.join()


def meters(tree: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [find_node_program(), "probe", "--root", tree], capture_output=True, check=True, timeout=90
    )
    document = json.loads(done.stdout)
    found: list[dict[str, Any]] = document["meters"]
    for number, meter in enumerate(found):
        meter["why"] = document["missing"].get(f"meters.{number}.readable", "")
    return found


def test_power_that_rises_evenly_is_integrated_by_its_own_times(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    """100 W and 50 W more each second, reported five times per second."""

    def power(at: float) -> str:
        return watts(100 + 50 * (at - began), at=at)

    began = time.monotonic()
    tree = tmp_path / "tree"
    with written(tree, power) as moments:
        attached = sampler.attach("--root", tree, "--rate", "10")
        start = time.monotonic()
        waiting("joules", lambda: any(attached.column("energy_j")))
        written_before = len(moments)
        waiting("ten more moments", lambda: len(moments) >= written_before + 10)
        end = time.monotonic()
        record = attached.end()
        last = time.monotonic() - moments[-1]
    (zone,) = record["energy"]["zones"]
    assert (zone["meter"], zone["covers"], zone["measures"]) == ("file", "node", "power")
    assert (zone["name"], zone["period_s"]) == ("file-node", 0.2)
    assert record["energy"]["integrated"] is True
    assert record["energy"]["energy_j"] == zone["energy_j"]
    took_s = zone["elapsed_s"]
    assert end - start <= took_s <= record["elapsed_s"] + start - began
    # Its mean power is that of its middle, without the lag of a period (10 W). At the end the last power
    # that was written holds.
    since_s = (zone["energy_j"] / took_s - 100) / 50 - took_s / 2
    assert -0.12 - last**2 / (2 * took_s) <= since_s <= start - began + 0.12


def test_joules_are_differences_and_their_wraps_undone(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    tree = tmp_path / "tree"

    def joules(at: float) -> str:
        # A range of 10 s: a machine that is busy for longer between two readings has lost a wrap.
        value = 990 + 100 * (at - began)
        head = f"covers package\nunit 1\njoules {value % 1000:.6f}\nrange 1000\n"
        return f"{head}at {at:.6f}\nperiod 0.1\n"

    began = time.monotonic()
    with written(tree, joules, 0.1) as moments:
        attached = sampler.attach("--root", tree, "--rate", "10")
        waiting("joules of a second", lambda: (attached.column("energy_j")[-1] or 0) > 100)
        record = attached.end()
    (zone,) = record["energy"]["zones"]
    assert (zone["unit"], zone["covers"], zone["max_energy_range_j"]) == (1, "package", 1000)
    assert zone["wraps"] >= 1
    between = (100 * (after - before) for before, after in combinations(moments, 2))
    assert min(abs(joules - zone["energy_j"]) for joules in between) < 1e-3
    assert zone["energy_j"] > 100


def test_who_stops_writing_leaves_no_value(sampler: Any, tmp_path: Path, waiting: Any) -> None:
    tree = tmp_path / "tree"
    with written(tree, lambda at: watts(100, at=at)):
        attached = sampler.attach("--root", tree, "--rate", "10")
        waiting("joules", lambda: any(attached.column("energy_j")))
    waiting("an empty cell", lambda: not attached.samples[-1]["energy_j"])
    record = attached.end()
    assert record["energy"]["energy_j"] is None
    assert "no longer answers" in record["missing"]["energy.energy_j"]


def test_a_writer_that_is_started_anew_goes_on(sampler: Any, tmp_path: Path, waiting: Any) -> None:
    tree = tmp_path / "tree"
    with written(tree, lambda at: watts(100, at=at)):
        attached = sampler.attach("--root", tree, "--rate", "10")
        waiting("joules", lambda: any(attached.column("energy_j")))
    there = time.monotonic()
    (tree / PLACE / "node.meter").unlink()
    (tree / PLACE).rmdir()
    time.sleep(0.5)
    gone_s = time.monotonic() - there
    with written(tree, lambda at: watts(100, at=at)):
        samples = len(attached.samples)
        waiting("joules again", lambda: any(attached.column("energy_j")[samples:]))
        record = attached.end()
    (zone,) = record["energy"]["zones"]
    assert zone["energy_j"] == pytest.approx(100 * zone["elapsed_s"], rel=1e-4)
    assert zone["elapsed_s"] > gone_s


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected watts or joules"),
        ("covers node\nwatts 5\njoules 5\nat 1\n", "not both"),
        ("covers node\nwatts 5\n", "does not say at"),
        ("watts 5\nat 1\n", "does not say covers"),
        ("covers rack\nwatts 5\nat 1\n", "covers is 'rack'"),
        ("covers other\nwatts 5\nat 1\n", "covers is 'other'"),
        ("covers accelerator\nunit 0\nwatts 5\nat 1\n", "covers is 'accelerator'"),
        ("covers node\nwatts -5\nat 1\n", "watts is '-5'"),
        ("covers node\nwatts 5 W\nat 1\n", "watts is '5 W'"),
        ("covers node\nwatts nan\nat 1\n", "watts is 'nan'"),
        ("covers node\nwatts 1e3\nat 1\n", "watts is '1e3'"),
        ("covers node\nwatts 9999999999999999999\nat 1\n", "watts is '99"),
        ("covers node\nwatts\nat 1\n", "watts is ''"),
        ("covers node\nwatt 5\nat 1\n", "'watt' is none of"),
        ("covers node\nwatts 5\nwatts 6\nat 1\n", "said twice"),
        ("covers node\nwatts 5\nat 1\nperiod 0\n", "period"),
        ("covers node\nwatts 5\nat 1\nperiod 3600\n", "period"),
        ("covers node\nwatts 5\nat 1\nrange 9\n", "a range is of joules"),
        ("covers package\nunit -1\nwatts 5\nat 1\n", "unit is '-1'"),
        ("covers node\nwatts 5\nat 1\n", "s old"),
        ("covers node\nwatts 5\nat 999999999999\n", "CLOCK_MONOTONIC"),
        ("\1\2", "is none of"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    put(tmp_path, text)
    (meter,) = meters(tmp_path)
    assert not meter["readable"]
    assert why in meter["why"] and "\n" not in meter["why"]


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (link, "symbolic link"),
        (fifo, "must be a file"),
        (lambda path: path.chmod(0o666), "written by nobody else"),
        (lambda path: path.parent.chmod(0o777), "folder may be written by others"),
        (lambda path: path.parent.parent.chmod(0o777), "chmod go-w"),
        pytest.param(
            lambda path: os.chown(path, 1, 1), "must be a file of who owns its folder",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for chown"),
        ),
        pytest.param(
            lambda path: os.chown(path.parent.parent, 1, 1), "must be root's",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for chown"),
        ),
    ],
)  # fmt: skip
def test_what_others_could_have_put_there_is_not_read(
    tmp_path: Path, spoil: Callable[[Path], None], why: str
) -> None:
    path = put(tmp_path, watts(100, at=time.monotonic()))
    (meter,) = meters(tmp_path)
    assert meter["readable"] and meter["counted"], "the positive control"
    spoil(path)
    (meter,) = meters(tmp_path)
    assert not meter["readable"]
    assert why.casefold() in (meter["why"]).casefold()


def test_of_two_files_of_the_node_one_counts(sampler: Any, tmp_path: Path, waiting: Any) -> None:
    tree = tmp_path / "tree"
    with (
        written(tree, lambda at: watts(100, at=at), name="a.meter"),
        written(tree, lambda at: watts(150, at=at), name="b.meter"),
    ):
        attached = sampler.attach("--root", tree, "--rate", "10")
        waiting("joules", lambda: any(attached.column("energy_j")))
        waiting("of the other", lambda: any(attached.column("energy_j:file-b")))
        energy = attached.end()["energy"]
    assert [(zone["name"], zone["counted"]) for zone in energy["zones"]] == [
        ("file-a", True), ("file-b", False),
    ]  # fmt: skip
    first, second = (zone["energy_j"] for zone in energy["zones"])
    assert energy["energy_j"] == first
    assert first == pytest.approx(100 * energy["zones"][0]["elapsed_s"], rel=1e-4)
    assert second == pytest.approx(150 * energy["zones"][1]["elapsed_s"], rel=1e-4)


def test_it_stands_beside_rapl_and_is_not_added(sampler: Any, tree: Any) -> None:
    put(tree.root, watts(100))
    tree.add("intel-rapl:0", "package-0", 262143328850)
    attached = sampler.attach("--root", tree.root, "--rate", "10")
    tree.set("intel-rapl:0", 3_000_000)
    record = attached.end()
    assert record["energy"]["energy_j"] == 3
    assert [zone["counted"] for zone in record["energy"]["zones"]] == [True, False]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for chown")
def test_whoever_root_has_given_a_folder_writes_there(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    tree = tmp_path / "tree"
    os.chown(put(tree, watts(100), uid=1).parent, 1, 1)
    with written(tree, lambda at: watts(100, at=at), uid=1):
        attached = sampler.attach("--root", tree, "--rate", "10")
        waiting("joules", lambda: any(attached.column("energy_j")))
        (zone,) = attached.end()["energy"]["zones"]
    assert zone["energy_j"] == pytest.approx(100 * zone["elapsed_s"], rel=1e-4)
