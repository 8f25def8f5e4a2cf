"""The probe's verdict on every recorded or made tree of tests/data/trees, and on damaged ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.facts import json_fields

HERE = Path(__file__).resolve().parents[1]
TREES = HERE.parent / "data" / "trees"
PROGRAM = os.environ.get("STEELYARD_NODE") or str(
    HERE.parent.parent / "build" / "bin" / "steelyard-node"
)
NAMES = sorted(path.parent.name for path in TREES.glob("*/ORIGIN"))

Document = dict[str, Any]


def probe(root: Path) -> Document:
    done = subprocess.run(
        [PROGRAM, "probe", "--root", str(root)],
        check=False,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr}"
    document: Document = json.loads(done.stdout)
    return document


def layer(document: Document, name: str) -> list[str | None]:
    found = document["virtualization"][name]
    return [found["name"], found["confidence"]]


def verdict(document: Document) -> Document:
    """The document in the words of expected.json."""
    return {
        "node_type": document["node_type"],
        "vm": layer(document, "vm"),
        "container": layer(document, "container"),
        "cloud": layer(document, "cloud"),
        "detail": document["virtualization"]["detail"],
        "network": {device["name"]: device["kind"] for device in document["network"]},
        "uplinks": sorted(d["name"] for d in document["network"] if d["counted"]),
        "rapl_counted": [zone["path"] for zone in document["meters"] if zone["counted"]],
        "filesystems": [mount["mount_point"] for mount in document["filesystems"]],
    }


def nulls(value: object, path: str = "") -> list[str]:
    """Dotted paths of all nulls of a document."""
    if value is None:
        return [path]
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    return [n for key, item in entries for n in nulls(item, f"{path}.{key}" if path else str(key))]


def unexplained(document: Document) -> list[str]:
    return [path for path in nulls(document) if path not in document["missing"]]


def test_there_are_trees_and_each_is_complete() -> None:
    assert len(NAMES) > 40
    folders = sorted(path.name for path in TREES.iterdir() if path.is_dir())
    assert folders == NAMES
    assert all((TREES / name / "expected.json").is_file() for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_on_a_tree_is_the_expected_one(name: str) -> None:
    expected = json.loads((TREES / name / "expected.json").read_text())
    document = probe(TREES / name)
    found = verdict(document)
    parts = ("cpu", "memory", "bios", "os", "modules")
    fields = {key: expected.pop(key) for key in parts if key in expected}
    assert {key: found[key] for key in expected} == expected
    for part, wanted in fields.items():
        assert {key: document[part][key] for key in wanted} == wanted
    assert unexplained(document) == []
    assert json_fields.compare("probe", document) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_witness_has_source_value_and_name(name: str) -> None:
    document = probe(TREES / name)
    for part in ("vm", "container", "cloud"):
        for witness in document["virtualization"][part]["evidence"]:
            assert set(witness) == {"source", "value", "name"}
            path = witness["source"].split(" ")[0].rstrip(",")
            assert (TREES / name / path.lstrip("/")).exists() or os.path.lexists(
                TREES / name / path.lstrip("/")
            ), f"{path} is no file of the tree"


def test_an_empty_tree_gives_nulls_with_reasons_and_no_zeros(tmp_path: Path) -> None:
    document = probe(tmp_path)
    assert unexplained(document) == []
    assert document["node_type"] is None
    assert set(document["memory"].values()) == {None}
    assert set(document["cpu"].values()) == {None}
    assert set(document["bios"].values()) | set(document["os"].values()) == {None}
    assert document["modules"] is None  # not known is not the same as none loaded
    for part in ("network", "filesystems", "meters", "clock.available", "tcp.available"):
        assert part in document["missing"]


def copy_tree(name: str, to: Path) -> Path:
    return Path(shutil.copytree(TREES / name, to / name, symlinks=True))


@pytest.mark.parametrize(
    ("file", "field"),
    [
        ("proc/meminfo", "memory.memory_bytes"),
        ("proc/cpuinfo", "cpu.model"),
        ("sys/devices/system/cpu/online", "cpu.cpus_online"),
        ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "cpu.max_hz"),
        ("sys/class/net/ens1f0/mtu", "network.4.mtu"),
        ("sys/class/net/ens1f0/speed", "network.4.speed_bits_per_s"),
        ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "meters.0.max_energy_range_j"),
        ("sys/class/powercap/intel-rapl:0/name", "meters.0.name"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "clock.source"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "cpu.boost"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "memory.transparent_huge_pages"),
        ("proc/sys/kernel/numa_balancing", "memory.numa_balancing"),
        ("sys/devices/system/node/online", "memory.numa_nodes"),
        ("sys/class/dmi/id/bios_version", "bios.version"),
        ("etc/os-release", "os.name"),
        ("sys/module/nvidia/version", "modules.nvidia"),
    ],
)
def test_a_file_taken_away_makes_its_field_null_with_a_reason(
    file: str, field: str, tmp_path: Path
) -> None:
    tree = copy_tree("physical", tmp_path)
    assert field not in nulls(probe(tree))
    (tree / file).unlink()
    document = probe(tree)
    assert field in nulls(document)
    assert document["missing"][field]


def test_a_zone_that_cannot_be_read_says_why_and_still_counts(tmp_path: Path) -> None:
    tree = copy_tree("physical", tmp_path)
    energy = tree / "sys/class/powercap/intel-rapl:0/energy_uj"
    energy.write_text("no number\n")
    document = probe(tree)
    zone = document["meters"][0]
    assert (zone["name"], zone["readable"], zone["counted"]) == ("package-0", False, True)
    assert "energy_uj" in document["missing"]["meters.0.readable"]


def test_inner_zones_are_found_beside_and_inside_the_outer_ones_but_once(tmp_path: Path) -> None:
    tree = copy_tree("physical", tmp_path)
    zones = tree / "sys/class/powercap"
    shutil.copytree(zones / "intel-rapl:0:0", zones / "intel-rapl:0/intel-rapl:0:0")
    paths = [zone["path"] for zone in probe(tree)["meters"]]
    assert len(paths) == 4
    parents = {zone["path"]: zone["parent"] for zone in probe(tree)["meters"]}
    assert parents["/sys/class/powercap/intel-rapl:0"] == ""
    assert parents["/sys/class/powercap/intel-rapl:1:0"] == "/sys/class/powercap/intel-rapl:1"


def test_speeds_are_in_bits_per_second() -> None:
    devices = {device["name"]: device for device in probe(TREES / "physical")["network"]}
    assert devices["eno1"]["speed_bits_per_s"] == 10**9
    assert devices["ib0"]["speed_bits_per_s"] == 10**11
    assert devices["vnet0"]["speed_bits_per_s"] is None


@pytest.mark.parametrize(
    "speed", ["-1\n", "4294967295\n", "0\n", "fast\n", "", "99999999999999999999\n"]
)
def test_a_speed_that_the_driver_does_not_know_is_null(speed: str, tmp_path: Path) -> None:
    tree = copy_tree("physical", tmp_path)
    (tree / "sys/class/net/eno1/speed").write_text(speed)
    devices = {device["name"]: device for device in probe(tree)["network"]}
    assert devices["eno1"]["speed_bits_per_s"] is None


def test_values_that_are_empty_or_no_numbers_are_null(tmp_path: Path) -> None:
    tree = copy_tree("physical", tmp_path)
    (tree / "proc/cpuinfo").write_text("model name\t:\nvendor_id\t: \n")
    (tree / "proc/meminfo").write_text("MemTotal: many kB\nSwapTotal: -5 kB\n")
    document = probe(tree)
    assert document["cpu"]["model"] is None
    assert document["cpu"]["vendor"] is None
    assert {document["memory"][f"{part}_bytes"] for part in ("memory", "swap", "huge_pages")} == {
        None
    }
    assert unexplained(document) == []


@pytest.mark.parametrize(
    ("files", "boost"),
    [
        ({"intel_pstate/no_turbo": "0\n"}, "on"),
        ({"intel_pstate/no_turbo": "1\n", "cpufreq/boost": "1\n"}, "off"),  # the driver's own
        ({"cpufreq/boost": "1\n"}, "on"),
        ({"cpufreq/boost": "0\n"}, "off"),
        ({"cpufreq/boost": "\n"}, None),
        ({}, None),
    ],
)
def test_turbo_is_that_of_the_driver(
    files: dict[str, str], boost: str | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        path = tmp_path / "sys/devices/system/cpu" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    document = probe(tmp_path)
    assert document["cpu"]["boost"] == boost
    assert ("cpu.boost" in document["missing"]) == (boost is None)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NAME=x\nPRETTY_NAME='Alpine Linux v3.19'\n", "Alpine Linux v3.19"),
        ("PRETTY_NAME=Gentoo\n", "Gentoo"),
        ('PRETTY_NAME=""\n', None),
        ('PRETTY_NAME="\n', None),
        ("PRETTY_NAME=", None),
        ("VERSION=12\n", None),
    ],
)
def test_the_name_of_the_system_is_read_as_a_shell_would(
    text: str, name: str | None, tmp_path: Path
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(text)
    assert probe(tmp_path)["os"]["name"] == name


def test_without_modules_none_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "sys/module/kernel").mkdir(parents=True)
    document = probe(tmp_path)
    assert document["modules"] == {}
    assert "modules" not in document["missing"]


def test_the_c_library_is_this_machines_only(tmp_path: Path) -> None:
    document = probe(tmp_path)
    assert document["libc"]["version"] is None
    assert document["missing"]["libc.version"] == "read from a recorded tree"
    here = probe(Path("/"))["libc"]["version"]
    assert here == os.confstr("CS_GNU_LIBC_VERSION")


def test_options_of_network_file_systems_are_kept() -> None:
    mounts = {m["mount_point"]: m for m in probe(TREES / "physical")["filesystems"]}
    assert "vers=4.2" in mounts["/home"]["options"].split(",")
    assert mounts["/home"]["source"] == "fs1.example.org:/export/home"
    assert mounts["/scratch space"]["type"] == "lustre"
    assert "flock" in mounts["/scratch space"]["options"].split(",")
    assert mounts["/opt"]["options"].split(",")[0] == "ro"
    assert "rw" not in mounts["/opt"]["options"].split(",")


def test_bytes_that_are_no_utf8_do_not_break_the_document(tmp_path: Path) -> None:
    tree = copy_tree("physical", tmp_path)
    with (tree / "proc/self/mountinfo").open("ab") as mountinfo:
        mountinfo.write(b"99 25 8:9 / /mnt/\xff\xfe\\303\\244\\377 rw - ext4 /dev/sdz\xc3 rw\n")
    mount = probe(tree)["filesystems"][-1]
    assert mount["mount_point"] == "/mnt/\ufffd\ufffdä\ufffd"
    assert mount["source"] == "/dev/sdz\ufffd"


def test_links_of_a_tree_do_not_lead_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/hostname").symlink_to("/etc/passwd")
    assert probe(tmp_path)["hostname"] is None


def damage(change: Callable[[bytes], bytes], tree: Path) -> None:
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize("name", ["physical", "docker", "xen-dom0", "uml", "kvm-power", "openvz"])
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"\0" * 5000,
        lambda data: b"\xff" * 70000,
        lambda data: b"9" * 9000,
        lambda data: data.replace(b"\n", b""),
        lambda data: data.replace(b" ", b""),
        lambda data: b"\n: - ,-,:\n" + data[::-1],
    ],
    ids=["half", "empty", "nuls", "high", "digits", "one-line", "no-blanks", "reversed"],
)
def test_damaged_trees_still_give_a_whole_document(
    name: str, change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    tree = copy_tree(name, tmp_path)
    damage(change, tree)
    document = probe(tree)
    assert document["format"] == "steelyard-probe"
    assert unexplained(document) == []
