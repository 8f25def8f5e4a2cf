"""A benchmark in containers of several nodes: where its programs run, with which environment, and that
each node has one container, which was started before the benchmark. The nodes are this machine."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import wait_for

from .launcher_lab import OWN, ROOT, out, processes, told
from .pbs_lab import Recorded

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

# A scheduler's functions for them (jobscripts/lib/scheduler.sh). A task of the other node has its own
# environment, and a signal for its step reaches its shell. It has its own TMPDIR, too: two daemons of
# Open MPI on one machine make the same session folder, and one of them may fail.
SCHEDULER = """
sy_local_set_client() { SY_CLIENT=${SY_CLIENT:-0} SY_THIS_NODE=${SY_LOCAL_NODE:-a} SY_STEP=${SY_LOCAL_STEP:--}; }
sy_local_nodes() { printf '%s\\n' a b; }
sy_local_is_this_node() { [[ $1 == "$SY_THIS_NODE" ]]; }
sy_local_node_address() { [[ $1 == b ]] && echo 127.0.0.2 || echo 127.0.0.1; }
sy_local_is_command() { [[ $1 == sy_local_task || $1 == kill ]]; }
sy_local_command() { sy_local_outside "$@"; }
sy_local_on_node() { sy_local_outside sy_local_task "$@"; }
sy_local_stop_step() { sy_local_outside kill -s TERM "$1"; }
sy_local_outside() { if [[ -n ${SY_OUTSIDE:-} ]]; then sy_exec_request "$SY_OUTSIDE" "$@"; else "$@"; fi; }
sy_local_task() {
    mkdir -p "${SY_STUDY_DIR%/*}/$1"
    TMPDIR=${SY_STUDY_DIR%/*}/$1 bash -c 'SY_LOCAL_NODE=$1 SY_LOCAL_STEP=$$ exec "${@:2}"' - "$@"
}
"""
# The start of the container's first process is in clock ticks after boot: proc(5).
WHERE = """\
read -r first </proc/1/stat && read -r -a first <<<"${first##*) }"
printf '%s %s %s %s\\n' "$(readlink /proc/self/ns/pid)" "$SY_THIS_NODE" "${first[19]}" "${MINE:-}"
"""
SERVER = """\
trap 'echo ended >>"$1"; exit 0' TERM
echo "ready $$ x"
sleep 99 & wait
"""
TICKS = os.sysconf("SC_CLK_TCK")


def body(study: Study, text: str) -> None:
    library = study.folder / "lib/steelyard.sh"
    library.write_text(library.read_text(encoding="utf-8") + SCHEDULER, encoding="utf-8")
    (study.folder / "where.sh").write_text(WHERE)
    study.body(text)


@pytest.mark.parametrize("level", ["unshare", "unshare,cpus=1"])
def test_each_node_has_one_container_with_the_benchmarks_environment(
    study: Study, level: str
) -> None:
    """Whatever is started on a node is in it: nothing of its start is in the measured time."""
    body(
        study,
        "export MINE='a  b'\n"
        'for node in a b b; do sy_on_node $node bash "$SY_STUDY_DIR/where.sh"; done\n'
        # As a program that is no shell does.
        'sy_on_node_script "$SY_SCRATCH/on_node.sh"\n'
        "bash on_node.sh b bash -c 'printf o; printf e >&2; exit 7'; echo $?",
    )
    done = study.run(**told(level))
    assert done.returncode == 0, study.errors()
    *lines, last = out(study)
    spaces, nodes, starts, words = zip(*(line.split(" ", 3) for line in lines), strict=True)
    assert (nodes, words, last) == (("a", "b", "b"), ("a  b",) * 3, "o7")
    here = str(Path("/proc/self/ns/pid").readlink())
    assert spaces[1] == spaces[2] and len({here, *spaces}) == 3
    _, (measured_from_us, _) = study.clock()
    assert all(int(start) * 1_000_000 // TICKS <= measured_from_us for start in starts)
    assert study.errors() == "e"
    assert list(study.scratch.iterdir()) == []


def test_a_server_on_the_other_node_is_stopped_and_its_container_stays(study: Study) -> None:
    """By the word that it is started with; what it writes at its end arrives."""
    (study.folder / "server.sh").write_text(
        'trap \'echo ended >>"$1"; exit 0\' TERM\necho "ready $$ x"\nsleep 99 & wait'
    )
    body(
        study,
        'sy_server_start b 60 bash "$SY_STUDY_DIR/server.sh" "$SY_STUDY_DIR/server.out"\n'
        'sy_server_stop; cat "$SY_STUDY_DIR/server.out"; sy_on_node b bash "$SY_STUDY_DIR/where.sh"',
    )
    done = study.run(**told("unshare"))
    assert done.returncode == 0, study.errors()
    ended, line = out(study)
    assert (ended, line.split()[1]) == ("ended", "b")


@pytest.fixture(scope="module")
def folder_of_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With what an exec helper needs."""
    at = tmp_path_factory.mktemp("root")
    programs = ("env", "mkdir", "mkfifo", "mktemp")
    subprocess.run([ROOT / "tests/make_image.sh", at / "tar", *programs], check=True, timeout=60)
    (at / "root").mkdir(mode=0o755)
    subprocess.run(["tar", "-C", at / "root", "-xf", at / "tar"], check=True, timeout=60)
    (at / "root/etc/os-release").write_text("ID=test\n")  # systemd-nspawn looks for it
    return at


@pytest.fixture(params=["unshare", "docker", "systemd-nspawn", "lxc"])
def level(request: pytest.FixtureRequest, folder_of_programs: Path) -> Iterator[str]:
    """Each launcher that can be had here, with these programs."""
    at, name = folder_of_programs, f"steelyard-nodes-{os.getpid()}"
    if request.param == "unshare":
        yield "unshare"
        return
    if os.geteuid() != 0 or shutil.which(request.param.replace("lxc", "lxc-execute")) is None:
        pytest.skip(f"{request.param} needs root and its package")
    if request.param == "docker":
        if subprocess.run(["docker", "version"], capture_output=True, check=False).returncode:
            pytest.skip("docker does not answer on this machine: start dockerd")
        subprocess.run(["docker", "import", at / "tar", name], check=True, timeout=60)
        yield f"docker:{name}"
        subprocess.run(["docker", "rmi", "--force", name], check=True, timeout=60)
    elif request.param == "lxc":
        folder = Path("/var/lib/lxc", name)
        folder.mkdir(parents=True)
        (folder / "config").write_text(
            f"lxc.rootfs.path = dir:{at / 'root'}\nlxc.mount.auto = proc:mixed sys:ro\n"
        )
        yield f"lxc:{name}"
        shutil.rmtree(folder)
    else:
        yield f"systemd-nspawn:{at / 'root'}"


def test_what_is_started_on_the_other_node_is_confined_as_on_the_first(
    study: Study, level: str
) -> None:
    """By the kernel's words: a filter of system calls or a capability changes what is measured."""
    keys = "^(Cap|NoNewPrivs|Seccomp|Cpus_allowed_list|Uid|Gid|Groups)"
    script = (
        f'while read -r line; do [[ ! $line =~ {keys} ]] || echo "$line"; done </proc/self/status'
    )
    (study.folder / "confined.sh").write_text(f"{script}\ncat /proc/self/limits\n")
    text = 'for node in a b; do sy_on_node $node bash "$SY_STUDY_DIR/confined.sh"; echo ==; done'
    body(study, text)
    done = study.run(**told(f"{level},cpus=1"))
    assert done.returncode == 0, study.errors()
    first, second, _ = "\n".join(out(study)).split("==")
    assert first.strip() == second.strip() and "CapEff" in first
    if level.startswith(("docker", "systemd-nspawn")):
        assert "Seccomp:\t2" in first  # as these do unless they are told not to


def test_a_warm_up_runs_on_both_nodes_too(study: Study) -> None:
    body(study, 'sy_on_node b bash "$SY_STUDY_DIR/where.sh"')
    done = study.run(SY_WARM_UP="1", **told("unshare"))
    assert done.returncode == 0, study.errors()
    texts = [path.read_text() for path in sorted(study.attempt().rglob("out.0"))]
    assert [text.split()[1] for text in texts] == ["b", "b"]
    assert texts[0] == texts[1], "another container"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_nothing_runs_on_the_other_node(study: Study, how: signal.Signals) -> None:
    body(study, "sy_on_node b sleep 66.5" + OWN)
    with study.start(**told("unshare")) as child:
        wait_for("it measures", lambda: processes("66.5" + OWN))
        if how == signal.SIGTERM:
            child.terminate()
            assert child.wait(timeout=90) == 143
        else:
            os.killpg(child.pid, how)
    wait_for("nothing of it runs", lambda: not processes("66.5" + OWN))
    assert how == signal.SIGKILL or list(study.scratch.iterdir()) == []
    # The benchmark's environment is nowhere in the study's folder.
    assert not list(study.attempt().glob("request.*"))


ACROSS = "unshare,containers=2,ranks=across"


@pytest.mark.parametrize(
    ("mpirun", "level"),
    [*itertools.product(("mpirun", "mpirun.mpich"), ("bare", "unshare")), ("mpirun", ACROSS)],
)
def test_ranks_have_the_environment_that_the_benchmark_exports(
    study: Study, mpirun: str, level: str
) -> None:
    """In each container, as the ranks of a bare run on one node."""
    if shutil.which(mpirun) is None:
        pytest.skip("apt install openmpi-bin mpich")
    (study.folder / "rank.sh").write_text(
        'printf "%s %s\\n" "$(readlink /proc/self/ns/pid)" "$OMP_NUM_THREADS"'
    )
    text = f'export OMP_NUM_THREADS=3; sy_mpi_run 2 {mpirun} bash "$SY_STUDY_DIR/rank.sh"'
    if "across" in level:
        study.body(text)
    else:
        body(study, text)
    done = study.run(**told(level))
    assert done.returncode == 0, study.errors()
    spaces, threads = zip(*(line.split() for line in out(study)), strict=True)
    assert (len(set(spaces)), threads) == (1 if level == "bare" else 2, ("3", "3"))


@pytest.mark.parametrize("dialect", ["torque", "openpbs"])
def test_a_server_in_a_container_of_the_other_node_of_a_job_of_pbs(
    study: Study, tmp_path: Path, dialect: str
) -> None:
    """It is stopped by its own task: the container, which another task has, stays."""
    job = Recorded(dialect, {"torque": ("vmb", "vm"), "openpbs": ("opbs1", "opbs2")}[dialect],
                   tmp_path, {"torque": "99.vm", "openpbs": "139.opbs"}[dialect])  # fmt: skip
    environment = job.environment(**told("unshare"))
    (tmp_path / "bin/getent").write_text('#!/bin/bash\necho "127.0.0.1 STREAM"\n')
    (tmp_path / "bin/getent").chmod(0o755)
    (study.folder / "server.sh").write_text(SERVER)
    (study.folder / "where.sh").write_text(WHERE)
    study.body(
        'node=$(sy_nodes | tail -n 1); where() { sy_on_node "$node" bash "$SY_STUDY_DIR/where.sh"; }\n'
        'where; sy_server_start "$node" 60 bash "$SY_STUDY_DIR/server.sh" "$SY_STUDY_DIR/server.out"\n'
        'sy_server_stop; cat "$SY_STUDY_DIR/server.out"; where; sy_on_node "$node" bash -c "exit 7"; echo $?'
    )
    done = study.run(**environment)
    attempt = study.attempt(f"{job.job_id}.0")
    assert (done.returncode, done.stderr) == (0, ""), (attempt / "err.0").read_text()
    before, ended, after, code = (attempt / "out.0").read_text().splitlines()
    assert (before, ended, code) == (after, "ended", "7")
    assert before.split()[1] == job.nodes[1]
    assert not [*attempt.glob("task.*"), *attempt.glob("request.*"), *study.scratch.iterdir()]
