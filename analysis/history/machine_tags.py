"""Defines which tags describe a machine, and their labels, for comparisons between days.

A tag's key is the dotted path in the probe's document (docs/formats.md part 3) or the key of the
table `tags`. Three kinds of tags exist. A *machine tag* is a property of the node or of its
software that stays the same from job to job until an administrator changes it. A *program tag*
describes what was measured (base/benchmark_traits). Every other tag belongs to one run or one boot:
where it ran, when, under which condition. `read_machine_tags()` makes the machine tags of a record
comparable as text: devices, mounts and the kernel's command line become one tag each, and parts
that vary without meaning are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.analysis.base.benchmark_traits import is_program_tag

State = dict[str, str | None]  # by key; None: not known

# Fields of the probe and the record, in the order in which a reader looks for a cause.
LABELS = {
    "kernel.release": "kernel",
    "kernel.version": "kernel build",
    "os.name": "operating system",
    "cpu.microcode": "microcode",
    "bios.version": "BIOS",
    "bios.date": "BIOS date",
    "cpu.governor": "CPU governor",
    "cpu.boost": "turbo",
    "cpu.max_hz": "maximum CPU frequency",
    "cpu.smt": "hyperthreading",
    "memory.transparent_huge_pages": "transparent huge pages",
    "memory.huge_pages_bytes": "preallocated huge pages",
    "memory.numa_balancing": "NUMA balancing",
    "memory.numa_nodes": "NUMA nodes",
    "memory.memory_bytes": "memory",
    "memory.swap_bytes": "swap",
    "clock.source": "clock source",
    "tcp.congestion_control": "TCP congestion control",
    "tcp.default_qdisc": "default qdisc",
    "scheduler.version": "scheduler",
    "libc.version": "C library",
    "modules.nvidia": "NVIDIA driver",
    "modules.amdgpu": "AMD GPU driver",
    "modules.lustre": "Lustre client",
    "modules.beegfs": "BeeGFS client",
    "mpirun.version": "MPI",
    "cvmfs.version": "CVMFS client",
    "steelyard": "Steelyard",
    "node_type": "node type",
    "virtualization.vm.name": "virtual machine",
    "virtualization.container.name": "container",
    "virtualization.cloud.name": "cloud",
    "virtualization.detail": "hypervisor detail",
    "cpu.model": "processor",
    "cpu.vendor": "processor vendor",
    "cpu.cpus_online": "CPUs online",
    "cpu.sockets": "sockets",
    "cpu.cores": "cores",
    "cpu.threads_per_core": "threads per core",
    "energy.covers": "parts that energy covers",
    "cpu.source": "source of CPU time",
    "memory.source": "source of memory",
    "io.source": "source of I/O",
}
# Families of keys: the rest of the key after the prefix is part of the name.
FAMILIES = {
    "cpu.vulnerabilities.": "mitigation of",
    "kernel.option.": "kernel option",
    "modules.": "kernel module",
    "device.": "network device",
    "mounted.": "mount",
    "mount.": "file system's",
}
# Keys of the record itself; all others in LABELS belong to the probe or are tags.
OF_RECORD = ("steelyard", "energy.covers", "cpu.source", "memory.source", "io.source")
# A change of the key is part of every change of the value.
IMPLIED_BY = {
    "kernel.version": "kernel.release",
    "bios.date": "bios.version",
    "cpu.vendor": "cpu.model",
}
# Keys of one run, one placement or one boot, and keys that the study defines.
RUN_TAGS = frozenset(
    {
        *("format", "version", "hostname", "machine_id", "boot_id", "missing"),
        *("study", "block", "network", "cache", "clients", "mode", "launcher"),
        *("network.server", "network.loopback", "server_node", "client_nodes"),
        *("mount.point", "mount.counters"),
        *("launcher_start_s", "launcher_container", "launcher_addresses", "launcher_cpus"),
        *("launcher_memory_bytes", "launcher_condition", "launcher_rto_min", "launcher_device"),
        *("filesystems", "meters", "clock.available", "tcp.available", "kernel.cmdline"),
    }
)
RUN_FAMILIES = ("virtualization.", "network_conditions.")
# Options of the kernel's command line that can slow a job. No other option is compared, because a
# command line also names disks, images and addresses.
KERNEL_OPTIONS = frozenset(
    {
        *("mitigations", "spectre_v2", "spectre_v2_user", "spec_store_bypass_disable", "l1tf"),
        *("mds", "tsx", "tsx_async_abort", "mmio_stale_data", "retbleed", "srbds", "pti", "nopti"),
        *("nospectre_v1", "nospectre_v2", "gather_data_sampling", "reg_file_data_sampling"),
        *("spec_rstack_overflow", "kvm.mitigate_smt_rsb", "nosmt", "maxcpus", "nr_cpus"),
        *("isolcpus", "nohz", "nohz_full", "rcu_nocbs", "irqaffinity", "skew_tick", "preempt"),
        *("nmi_watchdog", "nowatchdog", "nosoftlockup", "audit", "clocksource", "tsc", "hpet"),
        *("idle", "intel_idle.max_cstate", "processor.max_cstate", "intel_pstate", "amd_pstate"),
        *("cpufreq.default_governor", "transparent_hugepage", "hugepages", "hugepagesz"),
        *("default_hugepagesz", "numa", "numa_balancing", "mem", "memmap", "crashkernel"),
        *("init_on_alloc", "init_on_free", "slub_debug", "page_poison", "debug_pagealloc"),
        *("iommu", "intel_iommu", "amd_iommu", "iommu.passthrough", "iommu.strict", "selinux"),
        *("apparmor", "security", "lsm", "psi", "swapaccount", "cgroup_disable", "pci"),
        *("systemd.unified_cgroup_hierarchy", "elevator", "lockdown", "kasan", "kfence"),
    }
)
# Network file systems, by the kernel's type or FUSE's type, and those of local disks.
SERVED = frozenset(
    {
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "9p", "virtiofs"),
        *("pvfs2", "orangefs", "wekafs", "panfs", "afs", "gfs2", "ocfs2", "fuse.quobyte"),
        *("fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.cvmfs2", "fuse.juicefs"),
    }
)
# Clients that mount as plain "fuse", by the start of their source: CERN's and the Rust client of
# CVMFS, and OrangeFS.
SERVED_BY_SOURCE = ("cvmfs2", "cernvmfs", "pvfs2fuse#")
OF_DISKS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs"})
# Mount options that a server or a boot chooses each time.
UNSTEADY_OPTION = re.compile(r"(?:clientaddr|addr|port|mountport|fd|user_id|group_id|subvolid)=.*")
GIB = 2**30


def is_machine_tag(key: str) -> bool:
    """Return whether a change of this tag is a change of the machine or of its software.

    Keys that no part of Steelyard writes come from a user or a site, and count.
    """
    if key in LABELS:
        return True
    if key in RUN_TAGS or is_program_tag(key):
        return False
    return key.startswith(tuple(FAMILIES)) or not key.startswith(RUN_FAMILIES)


def tag_label(key: str) -> str:
    """Return a readable name: `kernel`, `mitigation of spectre_v2`; for a user's tag its key."""
    if key in LABELS:
        return LABELS[key]
    for prefix, label in FAMILIES.items():
        if key.startswith(prefix):
            return f"{label} {key.removeprefix(prefix)}"
    return key


def read_machine_tags(record: Mapping[str, Any]) -> State:
    """Return the machine tags of a record as text; None if unknown (`missing` has the reason).

    A key that an older Steelyard did not write is absent.
    """
    probe = record.get("probe")
    found: State = dict(flatten(probe)) if isinstance(probe, Mapping) else {}
    for key in OF_RECORD:
        found |= flatten_one(key, record)
    if isinstance(probe, Mapping):
        found |= dict(kernel_options(probe))
        found |= dict(devices(probe))
        found |= dict(mounts(probe))
    memory = found.get("memory.memory_bytes")
    if memory is not None:
        found["memory.memory_bytes"] = format_installed_memory(int(memory))
    return {key: value for key, value in found.items() if is_machine_tag(key)}


def flatten(document: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str | None]]:
    """Return dotted keys and values as text, without lists and `missing`."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            if before or key != "missing":
                yield from flatten(value, f"{before}{key}.")
        elif not isinstance(value, list):
            yield f"{before}{key}", format_value(value)


def flatten_one(path: str, document: Mapping[str, Any]) -> State:
    """Return the value at a dotted path; empty if the document has none."""
    *parents, name = path.split(".")
    for parent in parents:
        document = document.get(parent, {})
        if not isinstance(document, Mapping):
            return {}
    return {path: format_value(document[name])} if name in document else {}


def format_value(value: object) -> str | None:
    """Format a JSON value; a list of words becomes one text."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value if value is None or isinstance(value, str) else json.dumps(value)


def kernel_options(probe: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the relevant options of the kernel's command line; repeated options are joined."""
    line = flatten_one("kernel.cmdline", probe).get("kernel.cmdline") or ""
    options: dict[str, list[str]] = {}
    for word in line.partition(" -- ")[0].split():
        name, equals, value = word.partition("=")
        if name.replace("-", "_") in KERNEL_OPTIONS:
            options.setdefault(name, []).append(value if equals else "set")
    for name, values in options.items():
        yield f"kernel.option.{name}", ",".join(values)


def devices(probe: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Return driver, speed and MTU of the node's uplinks."""
    for device in entries(probe, "network"):
        if device.get("counted") is True:
            for key in ("driver", "speed_bits_per_s", "mtu"):
                yield f"device.{device.get('name')}.{key}", format_value(device.get(key))


def mounts(probe: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return mounted file systems: network ones with source and options, local ones without source.

    The names of disks change. For a disk with several mount points only the first counts; the
    others are views of it.
    """
    disks = set()
    for mount in entries(probe, "filesystems"):
        kind, source = str(mount.get("type")), str(mount.get("source"))
        if kind in OF_DISKS:
            if source in disks:
                continue
            disks.add(source)
            fields = [kind]
        elif kind in SERVED or (kind == "fuse" and source.startswith(SERVED_BY_SOURCE)):
            fields = [kind, source]
        else:
            continue
        options = str(mount.get("options")).split(",")
        steady = [option for option in options if not UNSTEADY_OPTION.fullmatch(option)]
        yield f"mounted.{mount.get('mount_point')}", " ".join([*fields, ",".join(steady)])


def entries(probe: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return a list of objects; empty if the probe has none."""
    found = probe.get(name)
    return (
        [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []
    )


def format_installed_memory(size_bytes: int) -> str:
    """Return the installed memory, `128 GiB` for 125.6: kernels reserve a varying amount.

    It is rounded up to 1/16 of the power of two below: 3 to 6 %, less than one memory module in
    sixteen.
    """
    unit = max(1, 2 ** (max(size_bytes, 1).bit_length() - 5))
    rounded = -(-size_bytes // unit) * unit
    return f"{rounded / GIB:.4g} GiB"
