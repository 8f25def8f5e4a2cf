"""A job's GPUs, from the reports of its tasks; their joules against those of the library."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from .gpu_lab import BUSES, TREE, Gpus, gpus

__all__ = ["gpus"]  # a fixture


FIRST, SECOND = (f"GPU-5d3e7a10-0000-4000-8000-00000000000{n}" for n in (0, 1))
BOTH = "nvidia0,nvidia1"
JOULES = (123.45, 6.78)  # which the two GPUs use


def measured(
    gpus: Gpus, sampler: Any, waiting: Any, *said: str, exclusive: str = "no"
) -> dict[str, Any]:
    """The record of a job of Slurm's whose tasks have said that."""
    attached = sampler.attach(
        "--root", gpus.tree, "--rate", "20", "--job", "scheduler=slurm",
        "--job", f"exclusive={exclusive}",
    )  # fmt: skip
    attached.send(*(f"gpus {text}" for text in said), "tag said=all")
    waiting("a first reading", lambda: attached.samples and attached.samples[-1]["energy_j:gpu-1"])
    for gpu, base in enumerate((7_000_000_000, 9_000_000_000)):
        gpus.set(gpu, str(base + round(JOULES[gpu] * 1000)))
    columns = [f"energy_j:gpu-{gpu}" for gpu in range(2)]
    waiting("all joules", lambda: {attached.column(c)[-1] for c in columns} == set(JOULES))
    told = attached.totals()["gpu_energy_j"]  # as AdminComment has it
    record = dict(attached.end())
    assert told == record["energy"]["gpu_energy_j"]
    return record


def owned(record: dict[str, Any]) -> list[bool | None]:
    return [zone["of_job"] for zone in record["energy"]["zones"]]


def swap_minors(tree: Path) -> None:
    """The second GPU on the bus is /dev/nvidia0."""
    for minor, bus in enumerate(reversed(BUSES)):
        path = tree / "proc" / "driver" / "nvidia" / "gpus" / bus / "information"
        lines = path.read_text().splitlines()
        kept = [line for line in lines if not line.startswith("Device Minor")]
        path.write_text("\n".join([*kept, f"Device Minor: \t {minor}", ""]))


@pytest.mark.parametrize(
    ("said", "own", "source"),
    [
        (["1 - -"], [False, True], "index"),
        (["0 - -", "0 - -", "1 - -"], [True, True], "index"),
        ([f"0 {BOTH} -"], [True, False], "index"),
        (["1 nvidia0 nvidia1"], [True, False], "device"),  # what the kernel says goes first
        ([f"{SECOND} - -"], [False, True], "uuid"),
        ([f"- - {BOTH}"], [False, False], "device"),
        ([f"0,1 {BOTH} -"], [True, True], "device"),
        (["0 - -", f"- {BOTH} -"], [True, False], "index"),  # a step without GPUs
    ],
)
def test_joules_are_those_of_the_jobs_own(
    gpus: Gpus, sampler: Any, waiting: Any, said: list[str], own: list[bool], source: str
) -> None:
    record = measured(gpus, sampler, waiting, *said)
    assert [zone["energy_j"] for zone in record["energy"]["zones"]] == list(JOULES)
    assert owned(record) == own
    used = sum(joules for joules, is_own in zip(JOULES, own, strict=True) if is_own)
    assert record["energy"]["gpu_energy_j"] == used
    assert record["energy"]["gpus"] == {"of_node": 2, "of_job": sum(own), "source": source}
    assert record["complete"] is True


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([], "it was not reported which"),
        ([f"- {BOTH} -"], "it was not reported which"),
        ([f"shared {BOTH} -"], "the job has a part of a GPU"),
        (["0 - -", "shared - -"], "the job has a part of a GPU"),
        (["2 - -"], "no meter knows"),
        ([f"GPU-{'0' * 8} - -"], "no meter knows"),
        (["0,0 - -"], "no meter knows"),
        ([f"0 - {BOTH}"], "may not be opened"),
    ],
)
def test_what_is_not_known_is_null_with_the_reason(
    gpus: Gpus, sampler: Any, waiting: Any, said: list[str], why: str
) -> None:
    record = measured(gpus, sampler, waiting, *said)
    assert owned(record) == [None, None]
    assert record["energy"]["gpu_energy_j"] is None
    assert record["energy"]["gpus"] == {"of_node": 2, "of_job": None, "source": None}
    for path in ("gpu_energy_j", "gpus.of_job", "zones.0.of_job"):
        assert why in record["missing"][f"energy.{path}"]


def test_two_orders_that_differ_are_not_guessed(gpus: Gpus, sampler: Any, waiting: Any) -> None:
    swap_minors(gpus.tree)
    record = measured(gpus, sampler, waiting, f"0 {BOTH} -")
    assert owned(record) == [None, None]
    assert "in an order that is not known" in record["missing"]["energy.gpu_energy_j"]


def test_a_device_is_itself_in_any_order(gpus: Gpus, sampler: Any, waiting: Any) -> None:
    swap_minors(gpus.tree)
    record = measured(gpus, sampler, waiting, "0 nvidia0 nvidia1")
    assert owned(record) == [False, True]  # the second on the bus
    assert record["energy"]["gpu_energy_j"] == JOULES[1]


@pytest.mark.parametrize("said", [[], ["shared - -"]])
def test_of_a_job_that_was_alone_all_are_its_own(
    gpus: Gpus, sampler: Any, waiting: Any, said: list[str]
) -> None:
    record = measured(gpus, sampler, waiting, *said, exclusive="yes")
    assert record["energy"]["gpu_energy_j"] == sum(JOULES)
    assert record["energy"]["gpus"] == {"of_node": 2, "of_job": 2, "source": "exclusive"}


def test_one_that_could_not_be_read_makes_no_sum(gpus: Gpus, sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--root", gpus.tree, "--rate", "20", "--job", "scheduler=slurm")
    attached.send("gpus 0,1 - -", "tag said=all")
    waiting("a first reading", lambda: attached.samples and attached.samples[-1]["energy_j:gpu-1"])
    gpus.set(1, "error 3")
    gpus.set(0, "7000001000")
    waiting("an empty cell", lambda: attached.column("energy_j:gpu-1")[-1:] == [None])
    assert attached.totals()["gpu_energy_j"] is None
    record = attached.end()
    assert owned(record) == [True, True]
    assert record["energy"]["gpu_energy_j"] is None
    assert record["missing"]["energy.gpu_energy_j"] == "NVML: Not Supported"


def test_a_node_without_accelerators_says_so(sampler: Any, tmp_path: Path) -> None:
    attached = sampler.attach("--root", tmp_path, "--rate", "20")
    assert "gpu_energy_j" not in attached.totals()
    record = attached.end()
    assert record["energy"]["gpus"] == {"of_node": 0, "of_job": None, "source": None}
    assert "no meter of an accelerator" in record["missing"]["energy.gpu_energy_j"]


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("0 dri/renderD129 dri/renderD128", [False, True]),
        ("0,1 dri/renderD128,dri/renderD129 -", [True, True]),
        ("0 dri/renderD128,dri/renderD129 -", [None, None]),  # which order is not known
    ],
)
def test_amds_are_known_by_their_devices(
    sampler: Any, tmp_path: Path, said: str, own: list[bool | None]
) -> None:
    tree = Path(shutil.copytree(TREE.parent / "two-amd-gpus", tmp_path / "tree"))
    attached = sampler.attach("--root", tree, "--rate", "20", "--job", "scheduler=slurm")
    attached.send(f"gpus {said}", "tag said=all")
    assert owned(attached.end()) == own


def test_of_more_meters_than_can_be_read_nobody_knows_which(sampler: Any, tmp_path: Path) -> None:
    card = TREE.parent / "two-amd-gpus" / "sys" / "class" / "drm" / "card0"
    for number in range(65):
        shutil.copytree(card, tmp_path / "tree" / "sys" / "class" / "drm" / f"card{number}")
    options = ("--job", "scheduler=slurm", "--job", "exclusive=yes")
    record = sampler.attach("--root", tmp_path / "tree", *options).end()
    assert record["energy"]["gpus"] == {"of_node": None, "of_job": None, "source": None}
    assert set(owned(record)) == {None}
    for path in ("gpu_energy_j", "gpus.of_node", "zones.0.of_job"):
        assert "not every meter" in record["missing"][f"energy.{path}"]


def node_conf(tree: Path, text: str) -> None:
    folder = tree / "etc" / "steelyard"
    folder.mkdir(parents=True)
    (folder / "node.conf").write_text(text)


@pytest.mark.parametrize(
    ("text", "watts"),
    [
        ("idle_power 62\n", 62.0),
        ("# by IPMI\n\n  idle_power gpu* 310.5\nidle_power c[1-4] 62 # old\nidle_power 1\n", 62.0),
        ("idle_power c1 0", 0.0),
    ],
)
def test_the_administrators_idle_power_stands_in_the_record(
    sampler: Any, tmp_path: Path, text: str, watts: float
) -> None:
    node_conf(tmp_path / "tree", text)
    record = sampler.attach("--root", tmp_path / "tree", "--node", "c1").end()
    assert record["energy"]["idle_w"] == watts
    assert record["energy"]["idle_source"] == "/etc/steelyard/node.conf"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "no administrator has said it (/etc/steelyard/node.conf)"),
        ("idle_power gpu* 310", "/etc/steelyard/node.conf says no idle_power of this node"),
        ("idle_power 62\nidle_power x -5", "/etc/steelyard/node.conf, line 2: expected"),
        ("idle_power 62 W", "line 1: expected idle_power WATTS"),
        ("idle_power nan", "line 1: expected idle_power WATTS"),
        ("idle_power", "line 1: expected idle_power WATTS"),
        ("idle_power 1000001", "at most 1000000"),
        ("idle_watts 62", "line 1: unknown key idle_watts"),
        ("idle_power 62\n" + "#" * 70000, "longer than 65535 bytes"),
    ],
)
def test_a_faulty_idle_power_is_null_with_one_line(
    sampler: Any, tmp_path: Path, text: str | None, why: str
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    if text is not None:
        node_conf(tree, text)
    record = sampler.attach("--root", tree, "--node", "c1").end()
    assert record["energy"]["idle_w"] is None
    assert why in record["missing"]["energy.idle_w"]
    assert "\n" not in record["missing"]["energy.idle_w"]
