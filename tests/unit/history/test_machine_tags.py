"""Which tags are the machine's, what they are called, and how a record's probe becomes comparable."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from steelyard.analysis.history.machine_tags import (
    IMPLIED_BY,
    LABELS,
    format_installed_memory,
    is_machine_tag,
    read_machine_tags,
    tag_label,
)

ROOT = Path(__file__).parents[3]
GIB = 2**30


@pytest.fixture(scope="module")
def record() -> dict[str, object]:
    (path,) = (ROOT / "tests/data/records/complete").glob("*.json")
    document: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("kernel.release", "kernel"),
        ("cpu.microcode", "microcode"),
        ("cpu.governor", "CPU governor"),
        ("cpu.vulnerabilities.spectre_v2", "mitigation of spectre_v2"),
        ("kernel.option.isolcpus", "kernel option isolcpus"),
        ("modules.nvidia", "NVIDIA driver"),
        ("modules.mlx5_core", "kernel module mlx5_core"),
        ("device.eth0.speed_bits_per_s", "network device eth0.speed_bits_per_s"),
        ("mount.options", "file system's options"),
        ("steelyard", "Steelyard"),
        ("site_image", "site_image"),  # a user's or a site's own tag
    ],
)
def test_properties_of_a_machine_have_a_name(key: str, label: str) -> None:
    assert is_machine_tag(key)
    assert tag_label(key) == label


@pytest.mark.parametrize(
    "key",
    [
        *("study", "block", "network", "cache", "clients", "launcher"),  # of the study
        *("hostname", "machine_id", "boot_id", "virtualization.vm.confidence"),
        *("server_node", "network.server", "launcher_start_s", "launcher_container"),
        *("kernel.cmdline", "meters", "filesystems"),
        *("npb.version", "npb.vectors", "app.program_sha256", "app.version"),  # what was measured
    ],
)
def test_what_belongs_to_a_run_is_none(key: str) -> None:
    assert not is_machine_tag(key)


def test_no_two_keys_share_a_name_and_what_is_implied_is_known() -> None:
    assert len(set(LABELS.values())) == len(LABELS)
    assert IMPLIED_BY.keys() | set(IMPLIED_BY.values()) <= LABELS.keys()


def test_every_tag_that_job_scripts_write_is_judged() -> None:
    """A new tag of jobscripts/ is judged on purpose: this list is compared with the scripts."""
    keys = {
        key
        for path in (ROOT / "jobscripts").rglob("*.sh")
        for key in re.findall(
            r"sy_tag(?:_nonempty)? ([a-z][\w.]*)", path.read_text(encoding="utf-8")
        )
    }
    machine = {
        "cvmfs.version",
        *("blas", "launcher_image_id", "launcher_measured", "launcher_mpi_single_copy"),
        *("launcher_network", "mount.bricks", "mount.layout", "mount.name", "mount.options"),
        *("mount.server", "mount.source", "mount.stripe_count", "mount.stripe_size_bytes"),
        *(
            "mount.type",
            "mount.version",
            "mpi.bind",
            "mpi.containers",
            "mpi.start",
            "mpirun.version",
            "network.congestion_control",
        ),
        "scheduler.version",
    }
    assert {key for key in keys if is_machine_tag(key)} == machine


def test_a_real_record_becomes_text(record: dict[str, object]) -> None:
    found = read_machine_tags(record)
    assert found["kernel.release"] == "6.18.44-fc-v669"
    assert found["kernel.option.mitigations"] == "auto,no_guest_host,no_guest_guest"
    assert found["kernel.option.psi"] == "1"
    assert "kernel.option.quiet" not in found
    assert found["cpu.cpus_online"] == "2"
    assert found["cpu.governor"] is None  # the record has its reason
    assert found["memory.memory_bytes"] == "24 GiB"
    assert found["device.eth0.driver"] == "virtio_net"
    assert not [key for key in found if key.startswith("device.docker0")]  # no uplink
    assert found["mounted./"] is not None and found["mounted./"].startswith("ext4 rw")
    assert found["steelyard"] == "0.1.0"
    assert found["cpu.source"] == "processes"
    assert "energy.covers" not in found  # that version wrote none
    assert not found.keys() & {"boot_id", "hostname", "machine_id", "format", "version"}
    assert all(isinstance(value, str) for value in found.values() if value is not None)


def test_mounts_of_servers_are_compared_without_what_a_server_chooses() -> None:
    options = "rw,vers=4.2,rsize=1048576,clientaddr=10.0.0.7,addr=10.0.0.1,port=2049"
    mounts = [
        {"mount_point": "/home", "type": "nfs4", "source": "srv:/home", "options": options},
        {"mount_point": "/scratch", "type": "xfs", "source": "/dev/sdb1", "options": "rw,noatime"},
        {"mount_point": "/var/x", "type": "xfs", "source": "/dev/sdb1", "options": "rw"},
        {"mount_point": "/cvmfs/a", "type": "fuse", "source": "cvmfs2", "options": "ro,fd=4"},
        {"mount_point": "/cvmfs/b", "type": "fuse", "source": "cernvmfs", "options": "ro"},
        {"mount_point": "/pvfs", "type": "fuse", "source": "pvfs2fuse#tcp://h/a", "options": "rw"},
        {"mount_point": "/run/user/7", "type": "tmpfs", "source": "tmpfs", "options": "rw"},
        {"mount_point": "/home/ada/x", "type": "fuse.sshfs", "source": "ada@h:", "options": "rw"},
    ]
    found = read_machine_tags({"probe": {"filesystems": mounts}})
    assert found == {
        "mounted./home": "nfs4 srv:/home rw,vers=4.2,rsize=1048576",
        "mounted./scratch": "xfs rw,noatime",
        "mounted./cvmfs/a": "fuse cvmfs2 ro",
        "mounted./cvmfs/b": "fuse cernvmfs ro",
        "mounted./pvfs": "fuse pvfs2fuse#tcp://h/a rw",
    }


@pytest.mark.parametrize("document", [{}, {"probe": None}, {"probe": {"network": [3, None]}}])
def test_a_record_without_a_probe_has_no_tags(document: dict[str, object]) -> None:
    assert read_machine_tags(document) == {}


@pytest.mark.parametrize(
    ("gib", "words"),
    [(125.6, "128 GiB"), (124.9, "128 GiB"), (503.5, "512 GiB"), (376.2, "384 GiB")]
    + [(93.1, "96 GiB"), (1007.0, "1024 GiB"), (344.0, "352 GiB"), (15.6, "16 GiB")],
)
def test_memory_is_what_is_installed(gib: float, words: str) -> None:
    """A kernel keeps 1.5 to 3 % of it; a lost module of 32 of 384 GiB is seen."""
    assert format_installed_memory(round(gib * GIB)) == words
