"""What our NPB kernels see of the node: the vectors they may use, and the memory they may take."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.jobscripts import registry

ROOT = Path(__file__).parents[3]
BIN = ROOT / "build/bin"
GIB = 1 << 30
# What GCC checks (i386-cpuinfo.h; psABI of x86-64, table 3.1), in Linux' names.
V3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
V4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

pytestmark = [
    pytest.mark.skipif(not shutil.which("mpicc"), reason="no mpicc (libopenmpi-dev)"),
]


def run(kernel: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / f"npb-{kernel}", *arguments],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


# --- vectors ---


def expected_vectors() -> str:
    """Return the vectors by the kernel's description of the processor, not by the program's own."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = set(re.findall(r"\S+", re.findall(r"^flags\s*:(.*)$", text, re.MULTILINE)[0]))
    if flags >= V3 | V4:
        return "x86-64-v4 512 bits"
    return "x86-64-v3 256 bits" if flags >= V3 else "default 128 bits"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="clones are for x86-64")
def test_the_vectors_of_this_processor_are_printed_and_written(tmp_path: Path) -> None:
    done = run("cg", "--class", "S", "--json", str(tmp_path / "cg.json"))
    assert done.returncode == 0, done.stderr
    level, bits, _ = expected_vectors().split()
    assert f"\n Vectors: {expected_vectors()}\n" in done.stdout
    assert re.search(rf"^ Vectors +=  *{expected_vectors()}$", done.stdout, re.MULTILINE)
    document = json.loads((tmp_path / "cg.json").read_text(encoding="utf-8"))
    assert document["vectors"] == {"level": level, "bits": int(bits)}
    (tmp_path / "out.0").write_text(done.stdout, encoding="utf-8")
    given: dict[str, object] = {"kernel": "cg", "class": "S"}
    found = {r.metric: r.value for r in registry.load("npb").parse(tmp_path, 0, given)}
    assert found["vector_bits"] == int(bits)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="clones are for x86-64")
def test_the_width_is_that_of_the_registers_in_the_code() -> None:
    """Of each level's versions of the loops, as the disassembler shows them."""
    if not shutil.which("objdump"):
        pytest.skip("no objdump (binutils)")
    code = subprocess.run(
        ["objdump", "-d", str(BIN / "npb-bt")], capture_output=True, text=True, check=True
    ).stdout
    used: dict[str, set[str]] = {"v4": set(), "v3": set(), "default": set()}
    level = ""
    for line in code.splitlines():
        if line.endswith(">:"):
            level = line.partition(".")[2].removeprefix("arch_x86_64_").removesuffix(">:")
        elif level in used:
            used[level] |= set(re.findall(r"%([xyz]mm)", line))
    assert "zmm" in used["v4"]
    assert "ymm" in used["v3"]
    assert "zmm" not in used["v3"]
    assert not used["default"] & {"ymm", "zmm"}


def test_is_has_no_wide_vectors() -> None:
    assert "\n Vectors: not used\n" in run("is", "--class", "S").stdout


# --- memory: recorded trees in the form of this machine's (version 1) and of the kernel's page
# cgroup-v2.rst, with other numbers ---

MOUNTS = {
    1: "35 31 0:32 {top} {at} rw,relatime - cgroup cgroup rw,memory\n",
    2: "31 23 0:28 {top} {at} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
}
AT = {1: "/sys/fs/cgroup/memory", 2: "/sys/fs/cgroup"}
LINES = {1: "5:devices:/\n4:memory:{path}\n1:cpu:/\n", 2: "0::{path}\n"}
FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
NO_LIMIT = {1: "9223372036854771712", 2: "max"}


class Tree:
    """A machine with 64 GiB available, and groups of a version."""

    def __init__(
        self, root: Path, version: int, path: str = "/slurm/job_7", top: str = "/"
    ) -> None:
        self.root, self.version = root, version
        self.at = AT[version]
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/meminfo").write_text("MemFree: 1 kB\nMemAvailable: 67108864 kB\n")
        (root / "proc/self/cgroup").write_text(LINES[version].format(path=path))
        mounts = "22 1 8:1 / / rw - ext4 /dev/vda rw\n" + MOUNTS[version]
        (root / "proc/self/mountinfo").write_text(mounts.format(top=top, at=self.at))

    def group(self, path: str, limit: int | None, used: int = 0, cache: int = 0) -> None:
        names = FILES[self.version]
        folder = self.root / self.at.lstrip("/") / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / names[0]).write_text(NO_LIMIT[self.version] if limit is None else f"{limit}\n")
        (folder / names[1]).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"cache 5\n{names[2]} {cache}\nother 7\n")

    def run(self) -> subprocess.CompletedProcess[str]:
        """Class W of FT: 0.03 GB, a moment."""
        return run("ft", "--class", "W", NPB_ROOT=str(self.root))

    def refusal(self) -> str:
        done = self.run()
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("npb-ft: class W on 1 ranks needs ")
        return done.stderr.partition(" per rank, ")[2]


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_its_own_group_refuses_a_run(tmp_path: Path, version: int) -> None:
    tree = Tree(tmp_path, version)
    tree.group("/slurm", None)
    tree.group("/slurm/job_7", 10_000_000)
    assert tree.refusal() == (
        f"found 0.0 GB (left by the limit of {AT[version]}/slurm/job_7): "
        "use more nodes or a smaller class\n"
    )
    tree.group("/slurm/job_7", GIB)
    assert tree.run().returncode == 0


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("group", ["/slurm", ""])
def test_the_limits_of_all_groups_above_count(tmp_path: Path, version: int, group: str) -> None:
    tree = Tree(tmp_path, version)
    tree.group("/slurm/job_7", GIB)
    tree.group("/slurm", None)
    tree.group(group, 10_000_000)
    assert f"(left by the limit of {AT[version]}{group})" in tree.refusal()


@pytest.mark.parametrize("version", [1, 2])
def test_what_others_use_is_not_left_and_page_cache_is(tmp_path: Path, version: int) -> None:
    tree = Tree(tmp_path, version)
    tree.group("/slurm/job_7", GIB, used=GIB - 10_000_000)
    assert "found 0.0 GB (left by the limit" in tree.refusal()
    tree.group("/slurm/job_7", GIB, used=GIB - 10_000_000, cache=GIB // 2)
    assert tree.run().returncode == 0


@pytest.mark.parametrize("version", [1, 2])
def test_no_limit_and_no_groups_are_none(tmp_path: Path, version: int) -> None:
    tree = Tree(tmp_path, version)
    assert tree.run().returncode == 0
    tree.group("/slurm/job_7", None)
    assert tree.run().returncode == 0


@pytest.mark.parametrize(
    ("path", "top", "folder"),
    [
        ("/docker/4f", "/docker/4f", ""),  # a container that sees its own group as the mount
        ("/docker/4f/job", "/docker/4f", "/job"),
        ("/docker/4fold", "/docker/4f", ""),
        ("/../other", "/", ""),  # a name space of groups
    ],
)
def test_a_group_is_found_below_what_is_mounted(
    tmp_path: Path, path: str, top: str, folder: str
) -> None:
    tree = Tree(tmp_path, 2, path, top)
    tree.group(folder, 10_000_000)
    assert f"(left by the limit of {AT[2]}{folder})" in tree.refusal()


def test_the_nodes_own_memory_is_named(tmp_path: Path) -> None:
    tree = Tree(tmp_path, 2)
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 9999 kB\n")
    assert (
        tree.refusal()
        == "found 0.0 GB (available on the node): use more nodes or a smaller class\n"
    )


@pytest.fixture
def group() -> Iterator[Path]:
    """A real one of 200 MB below this process's, of version 1 or 2."""
    paths = re.findall(
        r"^\d+:(memory)?:(/.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE
    )
    for name, path in sorted(paths, reverse=True):  # version 1 has the controller if it is there
        top = Path(AT[1] if name else AT[2]) / path.lstrip("/") / f"steelyard-test-{os.getpid()}"
        limit = top / FILES[1 if name else 2][0]
        try:
            top.mkdir()
        except OSError:
            continue
        try:
            limit.write_text("200000000")
            yield top
            return
        except OSError:
            continue
        finally:
            emptied(top)
    pytest.skip("no control group with a limit of memory can be made here")


def emptied(top: Path) -> None:
    """Gone, once the kernel has seen the last process end."""
    for _ in range(100):
        try:
            top.rmdir()
        except OSError:
            subprocess.run(["sleep", "0.05"], check=True)
        else:
            return


def test_a_real_group_refuses_what_it_would_kill(group: Path) -> None:
    """Class A of FT takes 0.28 GB; it ended with SIGKILL here, after the heading."""
    inside = f"echo $$ >{group}/cgroup.procs || exit 9; exec {BIN}/npb-ft --class"
    done = subprocess.run(
        ["bash", "-c", f"{inside} A"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"(left by the limit of {group}): use more nodes" in done.stderr
    done = subprocess.run(
        ["bash", "-c", f"{inside} S"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
