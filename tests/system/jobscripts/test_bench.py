"""Job templates executed for real: mounts, HPL.dat, fio, IOzone, commands, clients in turn."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.jobscripts import registry

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests/data"


def program(folder: Path, name: str, body: str) -> None:
    """Make a replacement of a program that this machine cannot have."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def tags(study: Study, attempt: str = "local.1") -> dict[str, str]:
    text = (study.attempt(attempt) / "tags.0").read_text(encoding="utf-8")
    return dict(line.split("=", 1) for line in text.splitlines())


MOUNTS = [
    (
        "/mnt/l lustre 10.0.0.1@tcp:/work rw,flock",
        {"type": "lustre", "name": "lustre", "stripe_count": "4", "source": "10.0.0.1@tcp:/work"},
    ),
    (
        r"/nfs\x20home nfs srv:/a\x20b rw,vers=3,proto=tcp,nolock",
        {"name": "nfs", "version": "3", "point": "/nfs home", "source": "srv:/a b"},
    ),
    (
        "/pvfs pvfs2 tcp://h:3334/orangefs rw",
        {"type": "pvfs2", "name": "orangefs", "stripe_count": "2", "stripe_size_bytes": "65536"},
    ),
    ("/g fuse.glusterfs h:/vol rw,user_id=0", {"name": "glusterfs"}),
    ("/c ceph h:6789:/ rw,acl", {"name": "ceph", "server": "h:6789"}),
    (
        "/c fuse.ceph-fuse ceph-fuse rw",
        {"name": "ceph", "layout": "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=a"},
    ),
    ("/b beegfs_nodev beegfs rw", {"name": "beegfs"}),
    ("/x xfs /dev/sdb1 rw,noatime", {"name": "xfs", "options": "rw,noatime"}),
]


@pytest.mark.parametrize(("line", "expected"), MOUNTS, ids=[line for line, _ in MOUNTS])
def test_what_is_mounted_becomes_tags(
    study: Study, tmp_path: Path, line: str, expected: dict[str, str]
) -> None:
    program(tmp_path / "bin", "findmnt", f"printf '%s\\n' '{line}'")
    program(tmp_path / "bin", "lfs", "[[ \"$1 $2\" == 'getstripe -d' ]] && echo 4")
    program(tmp_path / "bin", "pvfs2-viewdist", f"cat {DATA}/mounts/orangefs-fuse/viewdist")
    layout = "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=a"
    program(tmp_path / "bin", "getfattr", f"printf '{layout}'")
    study.body('sy_tag_mount "$SY_SCRATCH"')
    done = study.run(PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert (done.returncode, done.stderr) == (0, "")
    found = tags(study)
    assert {f"mount.{key}": value for key, value in expected.items()}.items() <= found.items()
    assert ("mount.stripe_count" in found) == ("stripe_count" in expected)
    assert ("mount.layout" in found) == (expected["name"] == "ceph")


def test_the_real_mount_is_what_findmnt_says(study: Study) -> None:
    study.body('sy_tag_mount "$SY_SCRATCH"')
    assert study.run().returncode == 0
    asked = ["findmnt", "-nro", "FSTYPE,TARGET", "--target", str(study.scratch)]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    assert [tags(study)["mount.type"], tags(study)["mount.point"]] == said


def test_the_mounts_own_part_of_mountstats_is_kept(study: Study, tmp_path: Path) -> None:
    program(tmp_path / "bin", "findmnt", "echo '/nfs nfs4 nfs:/ rw,vers=4.2'")
    study.body('sy_save_mount_counters "$SY_SCRATCH" before')
    (tmp_path / "root/proc/self").mkdir(parents=True)
    shutil.copy(DATA / "mounts/nfs4/mountstats", tmp_path / "root/proc/self")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = study.run(PATH=path, SY_MOUNT_ROOT=str(tmp_path / "root"))
    assert done.returncode == 0
    lines = (study.attempt() / "mount.0.before").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "device nfs:/ mounted on /nfs with fstype nfs4 statvers=1.1"
    assert sum(line.startswith("device ") for line in lines) == 1
    assert any(line.strip().startswith("WRITE:") for line in lines)


def test_lustres_counters_come_from_lctl_where_no_file_is_readable(
    study: Study, tmp_path: Path
) -> None:
    program(tmp_path / "bin", "findmnt", "echo '/l lustre h:/work rw'")
    program(tmp_path / "bin", "lfs", "[[ $1 == getname ]] && echo work-ffff0001 /l")
    wanted = "get_param -n llite.work-ffff0001.stats"
    program(tmp_path / "bin", "lctl", f"[[ $* == '{wanted}' ]] && cat {DATA}/mounts/lustre/before")
    study.body('sy_save_mount_counters "$SY_SCRATCH" before')
    assert study.run(PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}").returncode == 0
    kept = (study.attempt() / "mount.0.before").read_text(encoding="utf-8")
    assert kept == (DATA / "mounts/lustre/before").read_text(encoding="utf-8")


ALL_AT_ONCE = (
    'cd "$SY_ATTEMPT_DIR"; : >"here.$SY_CLIENT"; '
    "until [[ -e here.0 && -e here.1 && -e here.2 ]]; do sleep 0.01; done"
)


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_clients_one_after_another(study: Study, mode: str) -> None:
    """Parallel ones meet, sequential ones never do; whose waiting is in no time of the run."""
    command = ALL_AT_ONCE if mode == "parallel" else "sleep 0.1"
    study.write(registry.load("app"), 3, command=command)
    done = study.run(SY_MODE=mode)
    assert done.returncode == 0, done.stderr
    times = [study.clock(client)[0] for client in range(3)]
    if mode == "parallel":
        assert max(start for start, _ in times) < min(end for _, end in times)
    else:
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(times))
        assert max(end - start for start, end in times) < times[-1][1] - times[0][0]
    assert study.elapsed_is_the_longest_clients(3)


def test_what_a_benchmark_notes_of_itself_is_not_timed(study: Study) -> None:
    """Once, before the warm-ups; what fails there does not fail the run."""
    text = 'echo ran; }\nsy_setup() { sleep 0.1; sy_tag noted "$(date +%s%6N)"; echo said; return 3'
    study.body(text)
    assert study.run(SY_WARM_UP="1").returncode == 0
    assert int(tags(study)["noted"]) <= study.clock()[0][0]
    assert study.elapsed_is_the_longest_clients()
    assert (study.attempt() / "out.0").read_text(encoding="utf-8") == "ran\n"


def test_a_command_runs_in_scratch_and_its_end_is_the_clients(study: Study) -> None:
    study.write(registry.load("app"), 1, command='pwd; echo "$SY_CLIENT"; exit 7')
    assert study.run().returncode == 1
    assert study.result()["exit_codes"] == [7]
    first = (study.attempt() / "out.0").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(str(study.scratch))


INPUT: list[tuple[str, object, str, str]] = [
    ("pmap", "column", "PMAP", "1"),
    ("pfact", "left", "PFACTs", "0"),
    ("nbmin", 8, "NBMINs", "8"),
    ("ndiv", 3, "NDIVs", "3"),
    ("rfact", "right", "RFACTs", "2"),
    ("bcast", "longM", "BCASTs", "5"),
    ("depth", 0, "DEPTHs", "0"),
    ("swap", "long", "SWAP", "1"),
    ("swap_threshold", 80, "swapping", "80"),
    ("l1", "no-transposed", "L1", "1"),
    ("u", "no-transposed", "U", "1"),
    ("equilibration", False, "Equilibration", "0"),
    ("alignment", 4, "memory", "4"),
    ("threshold", 8.0, "threshold", "8.0"),
    ("nb", 96, "NBs", "96"),
]


def test_every_line_of_hpl_dat_is_a_parameter(study: Study, tmp_path: Path) -> None:
    program(tmp_path / "bin", "xhpl", "cat HPL.dat")
    given = {key: value for key, value, _, _ in INPUT}
    study.write(registry.load("hpl"), 1, xhpl=str(tmp_path / "bin/xhpl"), **given)
    assert study.run().returncode == 0
    lines = (study.attempt() / "out.0").read_text(encoding="utf-8").splitlines()
    found = {line.split()[1]: line.split()[0] for line in lines[4:31]}
    expected = {word: value for _, _, word, value in INPUT}
    assert expected.items() <= found.items()
    assert (study.attempt() / "hpl.0.dat").read_text(encoding="utf-8").splitlines() == lines


def test_n_from_a_share_of_memory_fills_it(study: Study, tmp_path: Path) -> None:
    program(tmp_path / "bin", "xhpl", "sed -n 6p HPL.dat")
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemFree: 1 kB\nMemTotal:       1048576 kB\n", encoding="ascii")
    for clients, name in ((1, "local.1"), (2, "local.2")):  # two on one machine: half for each
        xhpl = str(tmp_path / "bin/xhpl")
        study.write(registry.load("hpl"), clients, xhpl=xhpl, memory="80%", nb=100)
        assert study.run(SY_MEMINFO=str(meminfo)).returncode == 0
        n = int((study.attempt(name) / "out.0").read_text(encoding="utf-8").split()[0])
        most = 0.8 * 2**30 / clients
        assert n % 100 == 0
        assert 8 * n**2 <= most < 8 * (n + 100) ** 2


@pytest.mark.skipif(shutil.which("hpcc") is None, reason="hpcc is missing: apt-get install hpcc")
def test_the_blas_that_hpcc_loads_is_a_tag(study: Study) -> None:
    study.write(registry.load("hpcc"), 1, n=100)
    assert study.run().returncode == 0
    blas = Path(tags(study)["blas"])
    assert "blas" in blas.name
    assert blas == blas.resolve(strict=True)
    found = {r.metric for r in registry.load("hpcc").parse(study.attempt(), 0, {"n": 100})}
    assert {"hpl_tflops", "starstream_triad", "mpifft_gflops"} <= found


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is missing: apt-get install fio")
def test_fio_for_real_and_its_folder_is_gone(study: Study, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    given = {"rw": "randrw", "size": "256KiB", "bs": "4KiB", "directory": str(place)}
    study.write(registry.load("fio"), 1, iodepth=4, **given)
    assert study.run().returncode == 0
    found = {
        r.metric: r.value
        for r in registry.load("fio").parse(study.attempt(), 0, {**given, "iodepth": 4})
    }
    assert found["bandwidth"] == found["read_bandwidth"] + found["write_bandwidth"]
    assert list(place.iterdir()) == []
    study.write(registry.load("fio"), 1, **{**given, "directory": "/nonexistent"})
    assert study.run().returncode == 1
    assert "cannot make a folder in /nonexistent" in study.result("local.2")["reason"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"processes": 2, "tests": "0 2", "size": "1MiB", "direct": True},
            "-i 0 -i 2 -e -c -I -t 2 -s 1024k -r 64k -F W/iozone.0 W/iozone.1",
        ),
        (
            {"mode": "auto", "sync": False, "size": "1MiB", "most_size": "2MiB"},
            "-i 0 -i 1 -a -z -n 1024k -g 2048k -y 64k -q 64k -f W/iozone",
        ),
    ],
)
def test_iozones_command_line(
    study: Study, tmp_path: Path, given: dict[str, object], words: str
) -> None:
    program(tmp_path / "bin", "iozone", 'echo "${@//$PWD/W}"')
    study.write(registry.load("iozone"), 1, iozone=str(tmp_path / "bin/iozone"), **given)
    assert study.run().returncode == 0
    assert (study.attempt() / "out.0").read_text(encoding="utf-8") == f"{words}\n"


@pytest.mark.parametrize("name", ["hpl", "hpcc"])
def test_a_program_that_fails_before_it_writes_is_told_in_its_own_words(
    study: Study, tmp_path: Path, name: str
) -> None:
    program(tmp_path / "bin", "hpcc", "echo MPI_INIT failed >&2; exit 15")
    study.write(registry.load(name), 1, n=100)
    assert study.run(PATH=f"{tmp_path}/bin:{os.environ['PATH']}").returncode == 1
    assert study.result()["reason"].endswith("exited with 15: MPI_INIT failed")
