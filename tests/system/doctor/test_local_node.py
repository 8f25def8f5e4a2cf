"""`steelyard-node doctor`: the report of a compute node without Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.doctor import local_node, openpbs, torque

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build/bin/steelyard-node"
PLUGIN = ROOT / "build/lib/spank_steelyard.so"
METERS = ROOT / "tests/data/meters"
IS_ROOT = os.geteuid() == 0


def look(name: str, *options: object) -> Check:
    """The one check of that name."""
    (check,) = local_node.query_program(PROGRAM, f"--only={name}", *map(str, options))
    return check


def plugstack(folder: Path, text: str) -> Path:
    path = folder / "plugstack.conf"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("tree", "state", "words"),
    [
        ("cray-ex", "ok", "cray-memory (cray, dram); the node's is the sum of cray-node"),
        ("grace-hopper", "ok", "the node's is the sum of hwmon-package-0"),
        ("perf-power", "ok", "perf-package-0, perf-dram-0, perf-package-1, perf-dram-1"),
        ("two-gpus", "warning", "gpu-1 (nvml, accelerator): none of them is the node's"),
    ],
)
def test_energy_tells_each_meter_and_which_make_the_nodes(
    tree: str, state: str, words: str
) -> None:
    check = look("energy", "--root", METERS / tree)
    assert check.state == state
    assert words in check.found


def test_energy_says_why_there_is_none(tmp_path: Path) -> None:
    check = look("energy", "--root", tmp_path)
    words = "no RAPL: /sys/class/powercap is absent: joules will be null"
    assert (check.state, check.found) == ("warning", words)


def test_energy_says_why_a_meter_cannot_be_read(tmp_path: Path) -> None:
    tree = Path(shutil.copytree(METERS / "amd-energy", tmp_path / "tree"))
    path = tree / "sys/class/hwmon/hwmon3/energy6_input"
    path.write_text("no number\n")
    check = look("energy", "--root", tree)
    assert check.state == "warning"
    assert "joules will be null here: hwmon: it holds no number; read by root" in check.found


def test_a_record_folder(tmp_path: Path) -> None:
    assert look("record folder", "--record-dir", tmp_path).state == "ok"
    assert list(tmp_path.iterdir()) == []  # what it tried is gone
    check = look("record folder", "--record-dir", "/proc")
    if IS_ROOT:  # that none can be made there is the worse of both
        assert (check.state, "cannot make a file in it" in check.found) == ("missing", True)
    else:
        assert (check.state, check.found) == ("warning", "/proc is a mount point")
    check = look("record folder", "--record-dir", tmp_path / "no")
    assert check.state == "warning"  # no scheduler here has our plugin
    assert check.found.endswith("No such file or directory")


@pytest.mark.skipif(not IS_ROOT, reason="root alone may try")
def test_a_record_folder_that_jobs_are_to_use_must_be_there_and_roots(tmp_path: Path) -> None:
    records = tmp_path / "records"
    conf = plugstack(tmp_path, f"optional /x/spank_steelyard.so record_dir={records}\n")
    assert look("record folder", "--plugstack", conf).state == "missing"
    records.mkdir()
    assert look("record folder", "--plugstack", conf).state == "ok"
    records.chmod(0o777)
    check = look("record folder", "--plugstack", conf)
    assert check.state == "missing"
    assert "may be written by others (mode 0777)" in check.found
    done = subprocess.run(
        [PROGRAM, "doctor", "--plugstack", conf], capture_output=True, check=False
    )
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("optional /x/spank_steelyard.so rate=1 admin_comment=no # a=b\n", "ok", ": /x/spank"),
        ("optional spank_steelyard.so\n", "ok", ": spank_steelyard.so"),
        ("required /x/spank_steelyard.so\n", "warning", "says `required`"),
        ("optional /x/spank_steelyard.so rate=often\n", "warning", ": rate: "),
        ("optional /x/spank_steelyard.so colour=red\n", "warning", ": colour: "),
        ("# optional /x/spank_steelyard.so\n", "warning", "has no line of spank_steelyard.so"),
        ("optional /x/other_spank_steelyard.so.old\n", "warning", "has no line of"),
    ],
)
def test_the_line_of_plugstack_conf(tmp_path: Path, text: str, state: str, words: str) -> None:
    conf = plugstack(tmp_path, text)
    check = look("plugstack line", "--plugstack", conf)
    assert (check.state, words in check.found, str(conf) in check.found) == (state, True, True)


def test_it_is_found_through_slurm_conf_and_what_that_includes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tmp_path / "d/steelyard.conf"
    ours.parent.mkdir()
    ours.write_text("optional /x/spank_steelyard.so\n")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    (tmp_path / "slurm.conf").write_text("ClusterName=x\n")
    conf = plugstack(tmp_path, f"include {tmp_path}/d/*.conf\n")
    assert look("plugstack line").found == f"{ours}: /x/spank_steelyard.so"
    conf.rename(tmp_path / "other")
    (tmp_path / "slurm.conf").write_text(f"plugstackConfig = {tmp_path}/other # ours\n")
    assert look("plugstack line").found == f"{ours}: /x/spank_steelyard.so"


def test_a_recorded_tree_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "etc/slurm").mkdir(parents=True)
    plugstack(tmp_path / "etc/slurm", "optional /x/spank_steelyard.so\n")
    check = look("plugstack line", "--root", tmp_path)
    assert check.found == "/etc/slurm/plugstack.conf: /x/spank_steelyard.so"
    names = {one.name for one in local_node.query_program(PROGRAM, f"--root={tmp_path}")}
    assert names == {"plugstack line", "cgroups", "energy"}  # nothing of this machine is tried


def test_the_plugin_is_loaded_as_slurm_does(tmp_path: Path) -> None:
    if not PLUGIN.exists():
        pytest.skip("no plugin: slurm/spank.h was missing when it was built")
    plugin = tmp_path / "spank_steelyard.so"
    shutil.copy(PLUGIN, plugin)
    conf = plugstack(tmp_path, f"optional {plugin}\n")
    check = look("plugin", "--plugstack", conf)
    header = Path("/usr/include/slurm/slurm_version.h").read_text()
    number = int(header.split("SLURM_VERSION_NUMBER")[1].split()[0], 16)
    release = f"{number >> 16}.{number >> 8 & 255:02}.{number & 255}"
    assert (check.state, f"loads, built for Slurm {release}; " in check.found) == ("ok", True)
    plugin.write_bytes(PLUGIN.read_bytes()[:20_000])
    assert look("plugin", "--plugstack", conf).state == "missing"
    plugin.write_bytes(b"")
    check = look("plugin", "--plugstack", conf)
    assert (check.state, "file too short" in check.found) == ("missing", True)


def test_the_program_that_writes_admin_comment_is_run(tmp_path: Path) -> None:
    program = tmp_path / "steelyard-slurmdb"
    words = f"optional /x/spank_steelyard.so node_program={tmp_path}/steelyard-node\n"
    conf = plugstack(tmp_path, words)
    check = look("accounting", "--plugstack", conf)
    assert (check.state, check.found) == ("warning", f"{program} is missing")
    program.write_text("#!/bin/sh\necho 'libslurm.so.38: cannot open' >&2; exit 127\n")
    program.chmod(0o755)
    check = look("accounting", "--plugstack", conf)
    assert (check.state, check.found) == ("warning", f"{program} does not run")
    program.write_text("#!/bin/sh\necho 'usage: steelyard-slurmdb'\n")
    assert look("accounting", "--plugstack", conf).state == "ok"


@pytest.mark.parametrize("release", [(22, 5, 8), (24, 11, 5)])
def test_the_release_of_a_packages_plugin_is_read_from_its_file(
    tmp_path: Path, release: tuple[int, int, int]
) -> None:
    """Packages link with -z now: dlopen(3) wants slurmstepd's functions at once."""
    plugin, source = tmp_path / "spank_steelyard.so", tmp_path / "plugin.c"
    number = release[0] << 16 | release[1] << 8 | release[2]
    source.write_text(
        "int spank_get_item(void *, int); int use(void *s) { return spank_get_item(s, 1); }\n"
        f"const unsigned before[4] = {{1, 2, 3, 4}}; const unsigned plugin_version = {number};\n"
    )
    argv = ["gcc", "-shared", "-fPIC", "-O2", "-Wl,-z,now,-z,relro", "-s", "-o", plugin, source]
    subprocess.run(argv, check=True)
    check = look("plugin", "--plugstack", plugstack(tmp_path, f"optional {plugin}\n"))
    text = f"{release[0]}.{release[1]:02}.{release[2]}"
    assert f"built for Slurm {text}" in check.found
    said = subprocess.run(["slurmd", "-V"], check=True, capture_output=True, text=True).stdout
    fits = f" {release[0]}.{release[1]:02}." in said
    assert check.state == ("ok" if fits else "missing")


def test_the_program_of_jobs_is_run(tmp_path: Path) -> None:
    program = tmp_path / "steelyard-node"
    check = look("program of jobs", "--node-program", program)
    assert (check.state, check.found.endswith("does not run")) == ("missing", True)
    program.write_text("#!/bin/sh\necho steelyard-node 0.0.1\n")
    program.chmod(0o755)
    check = look("program of jobs", "--node-program", program)
    assert (check.state, check.advice) == (
        "warning",
        "install one release of Steelyard on all nodes",
    )


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"cgroup.controllers": "cpuset cpu memory\n"}, "version 2"),
        ({"cgroup.controllers": "cpu io\n"}, "version 2, without the controller memory"),
        ({"cpuacct/cpuacct.usage": "1\n"}, "version 1"),
        ({}, "none: CPU and memory of a job come from its processes"),
    ],
)
def test_which_cgroups_there_are(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert look("cgroups", "--root", tmp_path).found == words


# --- what the kernel counts -------------------------------------------------------------------

SAYS = "the kernel counts what jobs use"


def said(**more: Any) -> dict[str, Any]:
    return {"supported": True, "root": True, "message": SAYS} | more


def bpf_that_says(folder: Path, answer: dict[str, Any] | None) -> Path:
    """Make a steelyard-bpf with a given answer, in the configured folder of steelyard-node."""
    program = folder / "steelyard-bpf"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(answer) if answer else 'no'}'\n")
    program.chmod(0o755)
    return folder / "steelyard-node"


@pytest.mark.parametrize(
    ("answer", "asked", "state", "words"),
    [
        (said(), "yes", "ok", f"{SAYS}; bpf=yes: of jobs, too"),
        (said(), "no", "ok", f"{SAYS}; bpf=no: I/O of processes that no sample sees"),
        (said(message=f"{SAYS}, slowly"), "yes", "ok", f"{SAYS}, slowly; bpf=yes: of jobs, too"),
        (
            said(supported=False, message="no BTF"),
            "yes",
            "warning",
            "no BTF; bpf=yes: I/O of processes",
        ),
        (said(supported=False, message="no BTF"), "no", "ok", "no BTF; bpf=no"),
        (said(supported=False, root=False), "yes", "ok", "only root can try"),
        (None, "yes", "warning", "does not answer"),
    ],
)
def test_what_the_kernel_counts(
    tmp_path: Path, answer: dict[str, Any] | None, asked: str, state: str, words: str
) -> None:
    program = bpf_that_says(tmp_path, answer)
    check = look("kernel counts", "--node-program", program, "--bpf", asked)
    assert check.state == state
    assert words in check.found
    assert bool(check.advice) is (check.found.split("; ")[-1] != "bpf=yes: of jobs, too")


def test_the_program_itself_is_asked() -> None:
    program = ROOT / "build/bin/steelyard-bpf"
    if not program.exists():
        pytest.skip("no steelyard-bpf: libbpf-dev or clang was missing when it was built")
    done = subprocess.run([program, "status"], capture_output=True, text=True, check=False)
    check = look("kernel counts", "--bpf=yes", "--node-program", PROGRAM)
    assert ("of jobs, too" in check.found) is (done.returncode == 0)


@pytest.mark.skipif(not IS_ROOT, reason="files must be root's")
def test_a_node_of_torque(tmp_path: Path) -> None:
    """The doctor uses the program that our prologue names, and its pbs.conf."""
    program, config = bpf_that_says(tmp_path, said()), tmp_path / "pbs.conf"
    (tmp_path / "mom_priv").mkdir()
    script = tmp_path / "mom_priv/prologue"
    script.write_text(f"#!/bin/sh\n{torque.OURS.decode()}\nPROGRAM={program}\nCONFIG={config}\n")
    config.write_text("rate=1\nbpf=no\n")
    check = look("kernel counts", *torque.read_settings(tmp_path))
    assert (check.state, check.advice) == ("ok", f"take bpf=no out of {config}: docs/sampler.md")
    config.write_text("rate=often\n")
    assert look("PBS settings", *torque.read_settings(tmp_path)).state == "warning"
    script.write_text("#!/bin/sh\n")
    assert torque.read_settings(tmp_path) == []


@pytest.mark.skipif(not IS_ROOT, reason="files must be root's")
@pytest.mark.parametrize(
    ("told", "words"), [({}, "bpf=yes"), ({"bpf": "no"}, "bpf=no"), ({"config": "conf"}, "bpf=no")]
)
def test_a_node_of_openpbs(tmp_path: Path, told: dict[str, str], words: str) -> None:
    """The hook's own configuration, else the node's file."""
    program = bpf_that_says(tmp_path, said())
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "conf").write_text("bpf=no\n")
    told = {
        **told,
        "config": str(tmp_path / told.get("config", "none")),
        "node_program": f"{program}",
    }
    (tmp_path / "mom_priv/hooks").mkdir(parents=True)
    (tmp_path / "mom_priv/hooks/steelyard.CF").write_text(json.dumps(told))
    check = look("kernel counts", *openpbs.read_settings(tmp_path))
    assert words in check.found
    assert ("openpbs.json" in check.advice) is ("bpf" in told)
    program.chmod(0o777)
    assert openpbs.read_settings(tmp_path) == []


# --- the whole answer -------------------------------------------------------------------------


def test_people_read_what_programs_read() -> None:
    told = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True, check=False)
    checks = local_node.query_program(PROGRAM)
    lines = [line for line in told.stdout.splitlines() if not line.startswith(" " * 9)]
    assert [line.split(None, 1)[1].split(": ")[0] for line in lines] == [c.name for c in checks]
    assert all(check.state == "ok" or len(check.advice) > 10 for check in checks)
    assert told.returncode == (3 if any(check.state == "missing" for check in checks) else 0)


def test_a_program_that_does_not_answer_is_an_answer(tmp_path: Path) -> None:
    (check,) = local_node.query_program(tmp_path / "none")
    assert (check.name, check.state) == ("node program", "missing")
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho \"steelyard-node: unknown command 'doctor'\" >&2; exit 2\n")
    old.chmod(0o755)
    (check,) = local_node.query_program(old)
    assert "unknown command 'doctor'" in check.found


def test_wrong_usage_says_what_is_right() -> None:
    for words in (["--bpf=maybe"], ["--colour"], ["more"], ["--only=nothing"], ["--root=/no/such"]):
        done = subprocess.run([PROGRAM, "doctor", *words], capture_output=True, check=False)
        assert (done.returncode, bool(done.stderr)) == (2, True), words
