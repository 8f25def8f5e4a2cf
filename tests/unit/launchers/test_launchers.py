"""The grammar of launchers, what is refused and what is missed, the command lines, run --in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.wrappers.base.errors import ConditionError, UsageError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.launchers import launcher as launchers
from steelyard.wrappers.launchers import needs as launcher_checks
from steelyard.wrappers.study import study

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
WIDE = "iperf3"  # its one client has all nodes


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("bare", "bare"),
        ("unshare", "unshare"),
        ("docker:debian:12", "docker:debian:12"),
        ("podman:quay.io/a/b@sha256:0a", "podman:quay.io/a/b@sha256:0a"),
        ("unshare,network=host,containers=1", "unshare"),
        (
            "unshare,memory=1024MiB,cpus=2,containers=8,network=bridge",
            "unshare,network=bridge,containers=8,cpus=2,memory=1GiB",
        ),
        ("unshare,memory=500MB", "unshare,memory=500000000"),
        ("apptainer:/images/a b.sif,cpus=1", "apptainer:/images/a b.sif,cpus=1"),
        ("lxc:box,network=macvlan", "lxc:box,network=macvlan"),
        ("systemd-nspawn:/srv/root", "systemd-nspawn:/srv/root"),
    ],
)
def test_a_launcher_has_one_canonical_text(text: str, canonical: str) -> None:
    found = launchers.parse(text)
    assert found.text == canonical
    assert launchers.parse(canonical) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is no launcher: known: bare, unshare, docker:IMAGE"),
        ("dockr:a", "did you mean 'docker'?"),
        ("docker", "expected docker:IMAGE, an image, such as debian:12"),
        ("docker:--privileged", "expected docker:IMAGE"),
        ("docker:a b", "expected docker:IMAGE"),
        ("unshare:x", "unshare takes no name"),
        ("bare,cpus=1", "bare takes no options"),
        ("apptainer:docker://debian:12", "say `apptainer pull /PATH.sif docker://debian:12` once"),
        ("apptainer:a.sif", "the absolute path"),
        ("lxc:../x", "the name of a container"),
        ("systemd-nspawn:/a/../etc", "the absolute path of a root folder"),
        ("unshare,cpu=1", "did you mean 'cpus'?"),
        ("unshare,cpus", "'cpus' is no option of a launcher"),
        ("unshare,cpus=0", "cpus=0: allowed is a whole number from 1 to"),
        ("unshare,cpus=²", "allowed is a whole number"),
        ("unshare,cpus=1,cpus=2", "cpus stands there twice"),
        ("unshare,containers=9", "containers=9: allowed is a whole number from 1 to 8"),
        ("unshare,memory=1MiB", "memory=1MiB: allowed is a size such as 2GiB"),
        ("unshare,memory=2G", "memory=2G: allowed is a size"),
        ("unshare,network=wifi", "network=wifi: allowed is host, bridge, macvlan, phys"),
        ("unshare,network=macvlan", "unshare has no network=macvlan: nothing would give"),
        ("systemd-nspawn:/r,network=macvlan", "systemd-nspawn has no network=macvlan"),
    ],
)
def test_what_is_no_launcher_is_one_line_that_names_it(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        launchers.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_run_sh_is_told_the_pieces() -> None:
    assert launchers.variables(launchers.BARE) == {}
    assert launchers.variables(launchers.parse("docker:a:1,cpus=2,memory=1GiB,containers=3")) == {
        "SY_LAUNCHER": "docker:a:1,containers=3,cpus=2,memory=1GiB",
        "SY_LAUNCHER_KIND": "docker",
        "SY_LAUNCHER_IMAGE": "a:1",
        "SY_LAUNCHER_NETWORK": "host",
        "SY_LAUNCHER_CONTAINERS": "3",
        "SY_LAUNCHER_CPUS": "2",
        "SY_LAUNCHER_MEMORY_BYTES": str(2**30),
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("bare", None),
        ("unshare,network=bridge,cpus=1", None),
        ("docker:a,network=macvlan,memory=1GiB", None),
        ("lxc:box", "only root starts containers of lxc"),
        ("systemd-nspawn:/r", "only root starts containers of systemd-nspawn"),
        ("podman:a,network=macvlan", "only root's podman can make a macvlan device"),
        ("apptainer:/a.sif,network=bridge", "only root's apptainer makes networks"),
        ("unshare,memory=1GiB", "only root can limit the memory of all processes together"),
    ],
)
def test_what_only_root_may_is_refused_to_users_with_the_reason(text: str, why: str | None) -> None:
    launcher = launchers.parse(text)
    assert launcher_checks.refusal(launcher, 0) is None
    said = launcher_checks.refusal(launcher, 1000)
    assert said is None if why is None else said is not None and why in said


def answering(monkeypatch: Patch, code: int, stderr: str, *only: str) -> None:
    """Programs are all there; those whose arguments hold `only` answer so, others well."""

    def ask(*argv: str) -> subprocess.CompletedProcess[str]:
        fails = all(word in argv for word in only)
        return subprocess.CompletedProcess(argv, code if fails else 0, "", stderr if fails else "")

    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(launcher_checks, "ask", ask)


@pytest.mark.parametrize(
    ("text", "only", "stderr", "message"),
    [
        ("docker:a:1", ["inspect"], "Error: No such image: a:1", "say `docker pull a:1`"),
        ("podman:a:1", ["inspect"], "a:1: image not known", "say `podman pull a:1`"),
        (
            "docker:a:1",
            ["version"],
            "permission denied while trying to connect to the Docker daemon socket",
            "put you into the group docker",
        ),
        ("docker:a:1", ["version"], "Cannot connect to the Docker daemon", "does not answer"),
        ("docker:a:1,network=macvlan", ["never"], "", "network create --driver=macvlan"),
        ("lxc:box", ["lxc-info"], "", "say `steelyard image make lxc:box`"),
        ("systemd-nspawn:/nowhere", [], "", "say `steelyard image make systemd-nspawn:/nowhere`"),
        ("apptainer:/nowhere.sif", [], "", "say `apptainer pull /nowhere.sif"),
        ("unshare,cpus=4096", [], "", "cpus=4096, and this machine lets us use"),
    ],
)
def test_what_a_machine_lacks_is_told_with_what_to_do(
    monkeypatch: Patch, text: str, only: list[str], stderr: str, message: str
) -> None:
    answering(monkeypatch, 1, stderr, *only)
    said = launcher_checks.lacking(launchers.parse(text))
    assert said is not None
    assert said.startswith(f"{text}: ")
    assert message in said


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("docker:a", "docker.io"),
        ("podman:a", "apt install podman"),
        ("apptainer:/a", "not in Debian 12"),
        ("lxc:a", "apt install lxc"),
        ("systemd-nspawn:/a", "apt install systemd-container"),
        ("unshare", "apt install util-linux"),
    ],
)
def test_a_program_that_is_not_there_is_named_with_its_package(
    monkeypatch: Patch, text: str, program: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert program in str(launcher_checks.lacking(launchers.parse(text)))
    assert launcher_checks.lacking(launchers.BARE) is None


def test_a_user_is_refused_before_anything_runs(monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConditionError, match="only root starts containers of lxc"):
        launcher_checks.check_here(launchers.parse("lxc:box"))


# --- the command lines of all of them; tried for real: tests/unit/jobscripts/test_launcher.py ---

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
sy_launcher_has_capability() { :; }
sy_launcher_make_cgroup() { SY_LAUNCHER_CGROUP=/mine; }
sy_left_mark() { :; }; id() { printf '0'; }; stat() { printf 'tmpfs'; }; sy_launcher_variables() { :; }
sy_launcher_command && printf '%s\\n' "${SY_LAUNCHER_COMMAND[*]}"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root's command lines")
@pytest.mark.parametrize("text", GOLDEN)
def test_command_lines(tmp_path: Path, text: str) -> None:
    library = tmp_path / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "bash", library, tmp_path],
        env={"PATH": os.environ["PATH"], **launchers.variables(launchers.parse(text))},
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
    script = '. "$1"; sy_launcher_paths; printf "%s\\n" "${SY_LAUNCHER_PATHS[@]}"'
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
    """In a checkout it lies in build/lib, beside build/bin."""
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
    sy_launcher_answer end && printf '%s' "$answer"
    sy_launcher_answer end || printf ' gone'
    """
    library = tmp_path / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    words = ["bash", "-c", script, "bash", str(library)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=90)
    assert (done.stdout, done.stderr) == ("7 1 2 gone", "")


# --- studies and `steelyard run` ---


def level_of(job: str, level: str, benchmark: str) -> study.Study:
    """A study with one launcher."""
    text = f'[job]\n{job}\n[factors]\nlauncher = ["{level}"]\n[[benchmark]]\nuse = "{benchmark}"\n'
    return study.parse(text.encode(), Path("s.toml"))


def test_a_client_of_several_nodes_has_one_container_on_each() -> None:
    """They meet on the nodes' own network; more of them would be more clients."""
    assert registry.load(WIDE).span == "job"
    for benchmark in (WIDE, "npb"):
        assert level_of("nodes = 2", "unshare", benchmark).factors["launcher"] == ("unshare",)
        with pytest.raises(UsageError, match="has one container on each: add ranks=across"):
            level_of("nodes = 2", "unshare,containers=2", benchmark)
        with pytest.raises(UsageError, match="on 2 nodes reach each other by the nodes' own"):
            level_of("nodes = 2", "docker:a,network=bridge", benchmark)
    with pytest.raises(UsageError, match=f"the benchmark {WIDE} starts programs"):
        level_of("nodes = 1", "unshare,containers=2", WIDE)
    assert level_of("nodes = 1", "docker:a,network=bridge,containers=2", "npb")


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """`steelyard run`: exit code, stdout, stderr."""
    code = cli.main(["run", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


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


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("dcker:a", 2, "--in: 'dcker' is no launcher"),
        ("systemd-nspawn:/nowhere", 3, "systemd-nspawn:/nowhere: "),
    ],
)
def test_run_says_what_is_wrong_with_a_launcher(
    capsys: Capture, text: str, code: int, message: str
) -> None:
    found, _, err = run(capsys, "--in", text, "--", "true")
    assert found == (4 if os.geteuid() and code == 3 else code)
    assert message in err


def test_figures_are_those_of_all_clients_or_none(tmp_path: Path) -> None:
    from steelyard.wrappers.run import inside as run_inside

    ended = '{"format": "steelyard-run", "version": 1, "elapsed_s": 1.5, "exit_codes": %s}'
    (tmp_path / "result.json").write_text(ended % "[0, null, 3]")
    for client, seconds in ((0, 1.25), (1, 1.0)):
        text = f"elapsed_s={seconds}\ncpu_s=0.5\nuser_s=0.4\nsystem_s=0.1\nrchar_bytes=7\n"
        (tmp_path / f"weighed.{client}").write_text(text)
        tags = f"launcher_weighed=no\nlauncher_start_s={client}.5\n"
        (tmp_path / f"tags.{client}").write_text(tags)
    found = run_inside.read(tmp_path)
    assert (found.elapsed_s, found.exit_code) == (1.5, None)
    assert set(found.values().values()) == {None}  # the third was killed
    assert not run_inside.has_its_processes(found.tags)
    (tmp_path / "result.json").write_text(ended % "[0, 3]")
    found = run_inside.read(tmp_path)
    assert found.values() == {
        "elapsed": 1.25, "start": 1.5, "cpu": 1.0, "user": 0.8, "system": 0.2, "read calls": 14.0,
        "write calls": None, "from storage": None, "to storage": None,
    }  # fmt: skip
    (tmp_path / "tags.0").write_text("launcher_weighed=yes\n")
    found = run_inside.read(tmp_path)
    assert run_inside.has_its_processes(found.tags) and found.values()["start"] is None


def test_the_default_is_no_limit() -> None:
    assert launchers.Launcher().text == "bare"
