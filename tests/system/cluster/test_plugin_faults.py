"""A plugin or a node program that is missing, broken or of another release: jobs run, unweighed, and
the node stays; what `required` does instead (docs/admin.md)."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.throwaway_lab import Lab, until

SOURCE = """
#include <stdint.h>
#include <sys/types.h>
#include <slurm/spank.h>
#undef SLURM_VERSION_NUMBER
#define SLURM_VERSION_NUMBER 0x170b00
SPANK_PLUGIN(steelyard, 1)
int of_a_library(void);
int slurm_spank_exit(spank_t s, int c, char **v) { (void)s; (void)c; (void)v; return CALL; }
"""


def compiled(folder: Path, name: str, source: str, *options: str) -> Path:
    target = folder / name
    argv = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(target), *options]
    subprocess.run(argv, input=source, text=True, check=True, timeout=60)
    return target


def missing(_plugin: Path, folder: Path) -> Path:
    return folder / "none.so"


def truncated(plugin: Path, folder: Path) -> Path:
    target = folder / "cut.so"
    target.write_bytes(plugin.read_bytes()[:20000])
    return target


def empty(_plugin: Path, folder: Path) -> Path:
    target = folder / "empty.so"
    target.touch()
    return target


def of_another_release(_plugin: Path, folder: Path) -> Path:
    return compiled(folder, "other.so", SOURCE.replace("CALL", "0"))


def without_its_library(_plugin: Path, folder: Path) -> Path:
    library = compiled(folder, "libnone.so", "int of_a_library(void) { return 0; }")
    source = SOURCE.replace("CALL", "of_a_library()")
    made = compiled(folder, "alone.so", source, f"-L{folder}", "-Wl,--no-as-needed", "-lnone")
    library.unlink()
    return made


BROKEN: dict[Callable[[Path, Path], Path], str] = {
    missing: "none.so",
    empty: "empty.so",
    of_another_release: "Incompatible plugin version",
    without_its_library: "libnone.so",
}


@contextmanager
def line(lab: Lab, change: Callable[[str], str]) -> Iterator[None]:
    """plugstack.conf changed, as a node has it whose files are not those of the others."""
    path = lab.cluster.dir / "etc" / "plugstack.conf"
    before = path.read_text()
    path.write_text(change(before))
    try:
        yield
    finally:
        path.write_text(before)


def held_job(lab: Lab) -> str:
    """Submitted where all is well."""
    return lab.sbatch("-H", "-w", "n1", "--tag=a=b", script="touch ran; exit 0")


def release(lab: Lab, job: str) -> None:
    assert lab.run("scontrol", "release", job).returncode == 0


def log(lab: Lab) -> str:
    return (lab.cluster.dir / "log" / "slurmd.n1.log").read_text()


def plugin_of(text: str) -> str:
    return next(word for word in text.split() if word.endswith(".so"))


def is_idle(lab: Lab) -> bool:
    return lab.run("sinfo", "-h", "-n", "n1", "-o", "%T").stdout.strip() == "idle"


@pytest.mark.parametrize("broken", BROKEN, ids=lambda way: way.__name__)
def test_without_the_plugin_jobs_run_and_the_log_tells(
    lab: Lab, tmp_path: Path, broken: Callable[[Path, Path], Path]
) -> None:
    job = held_job(lab)
    logged = len(log(lab))
    with line(lab, lambda old: old.replace(p := plugin_of(old), str(broken(Path(p), tmp_path)))):
        release(lab, job)
        lab.wait_state(job, "COMPLETED")
        assert lab.sacct(job, "ExitCode") == [["0:0"]]
        done = lab.run("srun", "-w", "n1", "echo", "it runs")
        assert (done.returncode, done.stdout) == (0, "it runs\n"), done.stderr
    assert not list(lab.folder(job).glob("*"))
    until(lambda: is_idle(lab), "the node stays")
    assert BROKEN[broken] in log(lab)[logged:], log(lab)[logged:]


def state_of_node(lab: Lab) -> str:
    return lab.run("sinfo", "-h", "-n", "n1", "-o", "%T").stdout.strip()


def without_core_files(lab: Lab) -> None:
    """slurmstepd dies of a signal: where this test runs is no place for what it leaves."""
    for daemon in lab.cluster.state.list_running():
        if daemon.name == "slurmd.n1":
            resource.prlimit(daemon.pid, resource.RLIMIT_CORE, (0, resource.RLIM_INFINITY))


def test_a_plugin_that_is_cut_short_holds_the_job_and_the_node_stays(
    lab: Lab, tmp_path: Path
) -> None:
    """The dynamic linker is killed when it reads after the file's end: no process could answer."""
    job = held_job(lab)
    logged = len(log(lab))
    without_core_files(lab)
    with line(lab, lambda old: old.replace(p := plugin_of(old), str(truncated(Path(p), tmp_path)))):
        release(lab, job)
        until(
            lambda: lab.job(job)["Reason"] == "launch_failed_requeued_held",
            "it is held",
            seen=lambda: f"{lab.job(job)}\n{log(lab)[logged:]}",
        )
    assert not (lab.work / "ran").exists()
    until(lambda: is_idle(lab), "the node stays")
    lab.run("scancel", job)
    assert lab.records(lab.srun("-w", "n1"), 1)[0]["complete"], "and all is well again"


def test_required_drains_the_node(lab: Lab, tmp_path: Path) -> None:
    """So that nobody takes it for the better word."""
    job = held_job(lab)
    logged = len(log(lab))
    none = str(tmp_path / "none.so")
    with line(lab, lambda o: o.replace("optional", "required").replace(plugin_of(o), none)):
        release(lab, job)
        until(lambda: state_of_node(lab) in ("drained", "draining"), "Slurm drains the node")
        assert "none.so. Aborting." in log(lab)[logged:], log(lab)[logged:]
        lab.run("scancel", job)
        refused = lab.run("srun", "-w", "n1", "true")
        assert refused.returncode != 0
        assert "Failed to load plugin" in refused.stderr
    assert not (lab.work / "ran").exists()
    until(lambda: state_of_node(lab) == "drained", "nothing of it runs")
    assert lab.run("scontrol", "update", "NodeName=n1", "State=resume").returncode == 0
    until(lambda: is_idle(lab), "it is taken back by hand")


def not_executable(folder: Path) -> Path:
    target = folder / "plain"
    target.write_text("#!/bin/sh\nexit 0\n")
    target.chmod(0o644)
    return target


def of_another_version(folder: Path) -> Path:
    """Return a program of another version, which does not know the request."""
    target = folder / "other"
    target.write_text("#!/bin/sh\necho \"steelyard-node $1: '$2': unknown option\" >&2\nexit 2\n")
    target.chmod(0o755)
    return target


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (lambda folder: folder / "none", "cannot run node_program="),
        (not_executable, "cannot run node_program="),
        (of_another_version, "unknown option"),
    ],
    ids=["missing", "not executable", "of another version"],
)
def test_without_the_node_program_jobs_run_and_the_log_tells(
    lab: Lab, tmp_path: Path, program: Callable[[Path], Path], told: str
) -> None:
    tmp_path.chmod(0o755)
    logged = len(log(lab))
    path = program(tmp_path)

    def other(old: str) -> str:
        words = [
            f"node_program={path}" if w.startswith("node_program=") else w for w in old.split()
        ]
        return " ".join(words) + "\n"

    with line(lab, other):
        job = lab.sbatch("-w", "n1", "--tag=a=b", script="touch ran")
        lab.wait_state(job, "COMPLETED")
        assert lab.sacct(job, "ExitCode") == [["0:0"]]
        asked = lab.run("srun", "-w", "n1", "--netem=rate=10mbit,dev=sy-none", "true")
        assert asked.returncode == 4, asked.stderr
    until(lambda: is_idle(lab), "the node stays")
    until(lambda: told in log(lab)[logged:], "the log has it", 10, lambda: log(lab)[logged:])
