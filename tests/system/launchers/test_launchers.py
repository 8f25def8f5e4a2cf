"""The grammar of launchers, what is refused and what is missed, the command lines, run --in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.launchers.test_launchers import run

from steelyard.jobscripts import registry
from steelyard.wrappers.launchers import launcher_grammar

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
GOLDEN = {
    "apptainer:/a b.sif,network=bridge,cpus=2,memory=1GiB": (
        "env SY_ROLE=inside CGROUP taskset --cpu-list 0,1 apptainer exec --pid --ipc --no-home "
        "--scratch /dev/shm --pwd /scratch --net --network bridge "
        '--mount type=bind,"source=/s,t""x","destination=/s,t""x" '
        '--mount type=bind,"source=/scratch","destination=/scratch" '
        '/a b.sif bash /s,t"x/runs/r/run.sh'
    ),
    "lxc:box,network=macvlan,memory=1GiB": (
        "env SY_ROLE=inside taskset --cpu-list 0,1 setsid lxc-execute --name=steelyard-1-2 "
        "--rcfile=/lxc/box/config --define=lxc.mount.auto=proc:mixed "
        '--define=lxc.mount.entry=/s,t"x s,t"x none bind,create=file 0 0 '
        "--define=lxc.mount.entry=/scratch scratch none bind,create=file 0 0 "
        "--define=lxc.mount.entry={folder}/hosts.0 etc/hosts none bind,ro,create=file 0 0 "
        "--define=lxc.mount.entry=tmpfs dev/shm tmpfs mode=1777,size=1073741824,create=dir 0 0 "
        "--define=lxc.environment=SY_ROLE "
        "--define=lxc.cgroup.memory.limit_in_bytes=1073741824 "
        '--define=lxc.cgroup2.memory.max=1073741824 -- bash /s,t"x/runs/r/run.sh'
    ),
    "systemd-nspawn:/root": (
        "env SY_ROLE=inside taskset --cpu-list 0,1 systemd-nspawn --quiet --directory=/root "
        "--read-only --volatile=overlay --register=no --keep-unit --as-pid2 --kill-signal=SIGTERM "
        "--console=pipe --machine=steelyard-1-2 --chdir=/scratch --setenv=SY_ROLE=inside "
        '--bind=/s,t"x:/s,t"x --bind=/scratch:/scratch --bind-ro={folder}/hosts.0:/etc/hosts '
        '/bin/bash /s,t"x/runs/r/run.sh'
    ),
    "unshare": (
        "env SY_ROLE=inside taskset --cpu-list 0,1 unshare --mount --pid --fork --kill-child "
        '--mount-proc --ipc --uts sh -c mount -t tmpfs -o "mode=1777,size=$0" tmpfs /dev/shm && '
        'exec "$@" 1000 bash /s,t"x/runs/r/run.sh'
    ),
    "podman:a:1,network=bridge,memory=64MiB": (
        "env SY_ROLE=inside podman run --interactive --rm --pull=never --name=steelyard-1-2 "
        '--label=steelyard.study=/s,t"x --label=steelyard.run=r --label=steelyard.owner=1:2 '
        "--user=0:0 --workdir=/scratch --network=bridge --shm-size=67108864 "
        "--env=SY_ROLE --cpuset-cpus=0,1 --memory=67108864 --memory-swap=67108864 "
        '--mount=type=bind,"source=/s,t""x","target=/s,t""x" '
        '--mount=type=bind,"source=/scratch","target=/scratch" '
        '--entrypoint=bash a:1 /s,t"x/runs/r/run.sh'
    ),
}
SCRIPT = """
. "$1"
SY_STUDY_DIR='/s,t"x' SY_RUN_ID=r SY_SCRATCH=/scratch SY_LAUNCHER_CPUSET=0,1 SY_THIS_NODE=n1
SY_LAUNCHER_NAME=steelyard-1-2 SY_LAUNCHER_OWNER=1:2 SY_CLIENT=0 SY_ATTEMPT_DIR=$2
lxc-config() { printf '/lxc'; }; lxc-info() { printf 'macvlan'; }; podman() { :; }
sy_launcher_shm_bytes() { printf '%d' "${SY_LAUNCHER_MEMORY_BYTES:-1000}"; }
sy_apptainer_has_capability() { :; }
sy_launcher_make_cgroup() { SY_LAUNCHER_CGROUP=/mine; }
sy_leftover_mark() { :; }; id() { printf '0'; }; stat() { printf 'tmpfs'; }; sy_launcher_list_variables() { :; }
sy_launcher_make_command && printf '%s\\n' "${SY_LAUNCHER_COMMAND[*]}"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root's command lines")
@pytest.mark.parametrize("text", GOLDEN)
def test_command_lines(tmp_path: Path, text: str) -> None:
    library = tmp_path / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "bash", library, tmp_path],
        env={
            "PATH": os.environ["PATH"],
            **launcher_grammar.launcher_variables(launcher_grammar.parse(text)),
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    )
    said = done.stdout.strip().replace(" --cgroup-manager=cgroupfs", "")
    said = said.replace('sh -c echo $$ >"$0" && exec "$@" /mine/cgroup.procs', "CGROUP")
    assert said.replace(str(tmp_path), "{folder}") == GOLDEN[text]


def paths_inside(library: Path, **variables: str) -> list[str]:
    """What the library finds to be brought into a container."""
    library.write_text(registry.library(), encoding="utf-8")
    script = '. "$1"; sy_launcher_collect_paths; printf "%s\\n" "${SY_LAUNCHER_PATHS[@]}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", library],
        env={"PATH": os.environ["PATH"], "SY_STUDY_DIR": "/s", "SY_SCRATCH": "/t", **variables},
        capture_output=True, text=True, check=True, timeout=90,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_what_a_command_line_names_is_there_inside(tmp_path: Path) -> None:
    """A program with arguments, its input; not the image's own, not what is not there."""
    for name in ("solver", "case1", "case 2", "in*"):
        (tmp_path / name).touch()
    at = str(tmp_path)
    line = (
        f"{at}/solver 99 --input={at}/case1 <'{at}/in*' >{at}/new; /bin/sh /usr/bin/env / {at}/c*"
    )
    found = paths_inside(tmp_path / "lib.sh", SY_PARAM_COMMAND=line, SY_PARAM_DATA=f"{at}/case 2")
    assert found == ["/s", "/t", f"{at}/solver", f"{at}/case1", f"{at}/in*", f"{at}/case 2"]


def test_the_profiler_finds_its_library_inside(tmp_path: Path) -> None:
    """In a checkout it is in build/lib, next to build/bin."""
    (tmp_path / "build/bin").mkdir(parents=True)
    (tmp_path / "build/lib").mkdir()
    program = tmp_path / "build/bin/steelyard-mpiprof"
    program.touch()
    (tmp_path / "build/lib/libsteelyard-mpiprof.so").touch()
    found = paths_inside(tmp_path / "lib.sh", STEELYARD_MPIPROF=str(program))
    assert found == ["/s", "/t", str(tmp_path / "build/lib"), str(tmp_path / "build/bin")]


def test_an_answer_that_comes_in_pieces_is_one_answer(tmp_path: Path) -> None:
    """On a busy node the wait for more ends in the middle of a line."""
    script = """
    . "$1"
    SY_SIGNAL=
    exec {SY_LAUNCHER_IN}< <(printf 'noise\\nen'; sleep 0.5; printf 'd 7 1'; sleep 0.3; echo ' 2')
    sy_launcher_read_answer end && printf '%s' "$answer"
    sy_launcher_read_answer end || printf ' gone'
    """
    library = tmp_path / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    words = ["bash", "-c", script, "bash", str(library)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=90)
    assert (done.stdout, done.stderr) == ("7 1 2 gone", "")


def test_run_in_a_container(capsys: Capture, tmp_path: Path, monkeypatch: Patch) -> None:
    """In this folder, its words and its exit code passed on, only its own time counted."""
    monkeypatch.chdir(tmp_path)
    script = 'read -r pid _ </proc/self/stat; ((pid < 200)) && echo "inside $PWD"'
    words = ("--in", "unshare,containers=2", "--json", "-o", str(tmp_path / "kept"), "--")
    code, out, err = run(capsys, *words, "bash", "-c", script)
    assert code == 0
    assert err.splitlines().count(f"inside {tmp_path}") == 2
    (one,) = json.loads(out)["commands"][0]["runs"]
    assert one["exit_code"] == 0
    (record,) = (tmp_path / "kept/run-001").rglob("*.json")
    record_data = json.loads(record.read_bytes())
    assert one["values"]["elapsed"] < record_data["elapsed_s"]
    assert record_data["tags"]["launcher"] == "unshare,containers=2"


def test_run_passes_on_how_the_command_ended(capsys: Capture) -> None:
    code, out, _ = run(capsys, "--in", "unshare", "--", "bash", "-c", "exit 7")
    assert code == 7
    assert "run 1 failed (exit code 7)" in out


IGNORES = """
import signal, os
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    import time
    while time.process_time() < 0.6: pass
    os._exit(0)
try:
    os.wait()
except ChildProcessError:
    pass
"""


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ((sys.executable, "-c", IGNORES), "nobody waited for processes that used 0."),
        (("sh", "-c", "sleep 60 &"), "processes that the command left behind ran on when it ended"),
    ],
)
def test_cpu_of_processes_that_nobody_waits_for_is_missed_in_a_container(
    capsys: Capture, command: tuple[str, ...], why: str
) -> None:
    """As root it said 0.001 s of CPU where a child of a parent that ignores SIGCHLD used 0.3 s."""
    _, out, _ = run(capsys, "--in", "unshare", "--json", "--", *command)
    (found,) = json.loads(out)["commands"][0]["runs"]
    assert (
        found["values"]["cpu"] is found["values"]["wchar_bytes"] is found["values"]["user"] is None
    )
    assert found["missing"]["cpu"].startswith(why)
    assert "elapsed" not in found["missing"]
