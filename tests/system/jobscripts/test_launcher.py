"""Runs inside containers: real ones of unshare and docker, the command lines of the others."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.processes import each_process, of_process
from tests.unit.somebody import open_way
from tests.waiting import wait_for

from steelyard.jobscripts import registry

from .launcher_lab import (
    DOCKER,
    OWN,
    containers,
    docker,
    groups_of_ended_runs,
    needs_root,
    of_ended_runs,
    out,
    processes,
    tags,
    told,
)

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study


def test_the_whole_of_sy_client_is_executed_inside(study: Study, launcher: str) -> None:
    study.body(
        'printf "%s\\n" "$(id -u)" "$PWD" "$SY_SCRATCH" "$SY_CLIENT/$SY_CLIENTS"\n'
        'read -r pid _ </proc/self/stat; ((pid < 200)) && echo "own processes"\n'
        'read -r -d "" hosts </etc/hosts; [[ $hosts == *localhost* && ${PATH@a} == x ]] && echo "names"\n'
        "echo words >&2; return 7"
    )
    assert study.run(**told(launcher)).returncode == 1
    uid, folder, scratch, client, processes_, names = out(study)
    assert (int(uid), client, processes_) == (os.geteuid(), "0/1", "own processes")
    assert names == "names"  # MPI asks for its own and finds its programs by an exported PATH
    assert folder == scratch
    assert "words" in study.errors().splitlines()
    found = study.result()
    assert (found["exit_codes"], found["state"]) == ([7], "failed")
    assert found["elapsed_s"] > 0
    assert not list(study.scratch.iterdir())
    noted = tags(study)
    assert noted["launcher"] == launcher
    assert float(noted["launcher_start_s"]) > 0
    assert noted["launcher_measured"] == ("no" if launcher == DOCKER else "yes")
    assert containers(study) == []


def test_job_settings_hold_inside_a_container(study: Study, launcher: str) -> None:
    """Warm-up, time-out and retries."""
    count = 'echo x >>"$SY_STUDY_DIR/count"; mapfile -t n <"$SY_STUDY_DIR/count"; n=${#n[@]}\n'
    study.body(count + 'ls_=(*); echo "execution $n ${ls_[*]}"; : >left; ((n != 2)) || sleep 60')
    done = study.run(SY_WARM_UP="1", SY_TIME_OUT_S="1.5", SY_RETRIES="1", **told(launcher))
    assert done.returncode == 0
    attempt = study.attempt()
    assert out(study) == ["execution 4 *"]
    assert (attempt / "warm-up.1/out.0").read_text() == "execution 3 *\n"
    assert (attempt / "try.1/out.0").read_text() == "execution 2 *\n"
    assert study.result()["tries"] == [
        {"state": "timeout", "reason": "stopped after its time-out of 1.5 s"}
    ]


def test_a_stopped_run_is_told_inside_and_leaves_no_container(study: Study, launcher: str) -> None:
    study.body('trap "echo told" TERM; echo here; sleep 61.01' + OWN + "; echo after; return 3")
    with study.start(**told(launcher)) as child:
        wait_for("the benchmark runs", lambda: bool(processes("61.01" + OWN)))
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=90) == 143
    assert set(out(study)) == {"here", "told", "after"}
    assert study.result()["exit_codes"] == [3]
    assert processes("61.01" + OWN) == []
    assert containers(study) == []


def test_a_run_killed_with_9_leaves_no_container(study: Study, launcher: str) -> None:
    study.body("echo here; trap '' TERM; sleep 61.02" + OWN)
    with study.start(**told(launcher)) as child:
        wait_for("the benchmark runs", lambda: bool(processes("61.02" + OWN)))
        os.killpg(child.pid, signal.SIGKILL)
    wait_for("the container's processes are gone", lambda: not processes("61.02" + OWN))
    wait_for("the container is gone", lambda: not containers(study))


@pytest.mark.parametrize("launcher", ["unshare", "docker"], indirect=True)
def test_a_container_that_ends_by_itself_is_no_result(study: Study, launcher: str) -> None:
    study.body("sleep 61.03" + OWN)
    with study.start(**told(launcher)) as child:
        wait_for("the benchmark runs", lambda: bool(processes("61.03" + OWN)))
        if launcher == DOCKER:
            docker("kill", *containers(study))
        else:
            (pid,) = first_of(study)
            os.kill(pid, signal.SIGKILL)
        assert child.wait(timeout=90) == 1
    found = study.result()
    assert found["exit_codes"] == [None]
    assert "ended before the benchmark did" in found["reason"]


def first_of(study: Study) -> list[int]:
    """The first process of each of the study's containers of unshare."""
    found = []
    for pid, words in each_process("cmdline"):
        status = of_process(pid, "status").splitlines()
        inner = [line for line in status if line.startswith(b"NSpid:")]
        if str(study.folder).encode() in words and inner and inner[0].split()[2:] == [b"1"]:
            found.append(pid)
    return found


def test_containers_side_by_side_are_clients_with_processors_of_their_own(
    study: Study, launcher: str
) -> None:
    study.body('nproc; echo "$SY_CLIENT of $SY_CLIENTS"', 3)
    assert study.run(**told(f"{launcher},containers=3,cpus=1")).returncode == 0
    have = sorted(os.sched_getaffinity(0))
    for client in range(3):
        assert out(study, client) == ["1", f"{client} of 3"]
        assert tags(study, client)["launcher_cpus"] == str(have[client % len(have)])
    found = study.result()
    assert (found["clients"], found["exit_codes"]) == (3, [0, 0, 0])


def test_more_processors_than_there_are_are_refused(study: Study) -> None:
    study.body("true")
    assert study.run(**told("unshare,cpus=4000")).returncode == 1
    assert "cpus=4000, but this job has " in study.result()["reason"]


@needs_root
def test_memory_is_limited_for_all_processes_together(study: Study, launcher: str) -> None:
    study.body(
        "head -c 150000000 /dev/zero | tail -c 140000000 | tail -c 1; return ${PIPESTATUS[1]}"
    )
    assert study.run(**told(f"{launcher},memory=64MiB")).returncode == 1
    assert study.result()["exit_codes"] == [137]
    wait_for("no group is left", lambda: not groups_of_ended_runs())


@needs_root
def test_a_network_of_its_own_reaches_the_node_and_is_removed(study: Study) -> None:
    study.body("ip -oneline -4 address show; ip route show default")
    assert study.run(**told("unshare,network=bridge")).returncode == 0
    text = "\n".join(out(study))
    assert "eth0    inet 10.213." in text
    assert "default via 10.213." in text
    # Concurrent runs that were killed leave theirs for a moment.
    spaces = Path("/run/netns")
    wait_for("none is left", lambda: not of_ended_runs(spaces.glob("steelyard-[0-9]*-*")))


@needs_root
def test_what_a_killed_run_left_is_removed_by_the_next(study: Study) -> None:
    study.body("sleep 61.375" + OWN)
    with study.start(**told("unshare,network=bridge")) as child:
        wait_for("it measures", lambda: processes("61.375" + OWN))
        spaces = set(Path("/run/netns").glob("steelyard-[0-9]*-*"))
        os.killpg(child.pid, signal.SIGKILL)
    wait_for("it has ended", lambda: not processes("61.375" + OWN))
    wait_for("its client is gone", lambda: of_ended_runs(spaces))
    left = of_ended_runs(spaces)
    study.body("true")
    assert study.run(**told("unshare")).returncode == 0
    assert not [path for path in left if path.exists()]


def test_dockers_orphans_of_the_study_are_removed_by_its_next_run(study: Study, image: str) -> None:
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    name = DOCKER.partition(":")[2]
    ids = []
    for folder, owner in (
        (study.folder, "1:1"),
        (study.folder, f"{os.getpid()}:{ticks}"),
        ("/other.study", "1:1"),
    ):
        words = ("run", "--detach", "--rm", f"--label=steelyard.study={folder}")
        started = docker(*words, f"--label=steelyard.owner={owner}", name, "sleep", "600")
        ids.append(started.strip())
    try:
        study.body("true")
        assert study.run(**told(DOCKER)).returncode == 0
        left = docker("ps", "-q", "--no-trunc").split()
        assert [one in left for one in ids] == [False, True, True]
    finally:
        subprocess.run(["docker", "rm", "--force", *ids], check=False, capture_output=True)


def test_a_parameters_folder_is_there_inside(study: Study, image: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "here").write_text("seen\n")
    text = 'cat "$SY_PARAM_DIRECTORY/here"; echo written >"$SY_PARAM_DIRECTORY/back"'
    benchmark = dataclasses.replace(
        registry.load("filesystem"), template=f"sy_client() {{\n{text}\n}}\n"
    )
    study.write(benchmark, 1, directory=str(data))
    assert study.run(**told(DOCKER)).returncode == 0
    assert out(study) == ["seen"]
    assert (data / "back").read_text() == "written\n"


def test_ranks_copy_twice_where_a_filter_keeps_them_from_each_others_memory(
    study: Study, image: str
) -> None:
    """Docker's filter has no CAP_SYS_PTRACE; a run of unshare has no filter."""
    study.body('echo "${SY_MPI_SINGLE_COPY:-as ever}"')
    assert study.run(**told(DOCKER)).returncode == 0
    assert (out(study), tags(study)["launcher_mpi_single_copy"]) == (["none"], "none")
    if "\nSeccomp:\t0\n" in Path("/proc/self/status").read_text():
        assert study.run(**told("unshare")).returncode == 0
        assert (study.attempt("local.2") / "out.0").read_text() == "as ever\n"


def test_podman_runs_it_too(study: Study, image_tar: Path, tmp_path: Path) -> None:
    """With a configuration for machines without CAP_SYS_RESOURCE and with two kinds of cgroups."""
    conf = tmp_path / "containers.conf"
    limits = '["nproc=1000:1000", "nofile=1000:1000"]'
    engine = '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n'
    conf.write_text(f"[containers]\ndefault_ulimits = {limits}\n{engine}")
    environment = {**os.environ, "CONTAINERS_CONF": str(conf)}
    name = f"localhost/steelyard-test-{os.getpid()}:unit"

    def podman(*words: str) -> int:
        if shutil.which("podman") is None:
            return 127
        return subprocess.run(
            ["podman", *words], env=environment, capture_output=True, check=False, timeout=120
        ).returncode

    if podman("import", str(image_tar), name) or podman("run", "--rm", name, "bash", "-c", ":"):
        pytest.skip("podman cannot run a container on this machine: apt install podman runc")
    try:
        study.body("nproc; return 7")
        told_ = told(f"podman:{name},cpus=1")
        assert study.run(CONTAINERS_CONF=str(conf), **told_).returncode == 1
        assert (out(study), study.result()["exit_codes"]) == (["1"], [7])
        assert tags(study)["launcher_measured"] == "yes"
        assert podman("container", "exists", tags(study)["launcher_container"]) != 0
    finally:
        podman("rmi", "--force", name)


def test_an_image_that_is_not_there_is_told_with_what_to_do(study: Study, image: str) -> None:
    study.body("true")
    assert study.run(**told("docker:steelyard-test:none")).returncode == 1
    assert "say there docker pull steelyard-test:none" in study.result()["reason"]


def test_an_ordinary_user_has_unshare_with_a_loopback_only(study: Study) -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing: apt install util-linux")
    study.body(
        'id -u; ip -br link; read -r _ caps < <(grep CapEff /proc/self/status); echo "$caps"'
    )
    if os.geteuid() == 0:
        open_way(study.folder)
        for path in (study.scratch, *study.folder.rglob("*")):
            os.chown(path, 65534, 65534)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run(
        [*(nobody if os.geteuid() == 0 else []), *study.command()],
        env={**study.environment, **told("unshare,network=bridge")},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    uid, *links, capabilities = out(study)
    assert int(uid) == (os.geteuid() or 65534)
    assert [line.split()[0] for line in links] == ["lo"]
    assert int(capabilities, 16) == 0
    assert tags(study)["launcher_network"] == "loopback"


def test_systemd_nspawn_ends_without_a_word_and_leaves_no_folder(study: Study, nspawn: str) -> None:
    """With /run on a disk it complained about its own folder there, and left it."""
    study.body("echo $HOSTNAME")
    assert study.run(**told(nspawn)).returncode == 0
    assert study.errors() == ""
    assert not Path("/run/systemd/nspawn/propagate", out(study)[0]).exists()
