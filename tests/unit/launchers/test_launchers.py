"""The grammar of launchers, what is refused and what is missed, the command lines, run --in."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.wrappers.base.errors import ConditionError, UsageError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.launchers import launcher_checks, launcher_grammar
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
    found = launcher_grammar.parse(text)
    assert found.text == canonical
    assert launcher_grammar.parse(canonical) == found


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
        ("unshare,cpus=1,cpus=2", "cpus is given twice"),
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
        launcher_grammar.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_run_sh_is_told_the_pieces() -> None:
    assert launcher_grammar.launcher_variables(launcher_grammar.BARE) == {}
    assert launcher_grammar.launcher_variables(
        launcher_grammar.parse("docker:a:1,cpus=2,memory=1GiB,containers=3")
    ) == {
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
    launcher = launcher_grammar.parse(text)
    assert launcher_checks.refusal_reason(launcher, 0) is None
    said = launcher_checks.refusal_reason(launcher, 1000)
    assert said is None if why is None else said is not None and why in said


def answering(monkeypatch: Patch, code: int, stderr: str, *only: str) -> None:
    """Programs are all there; those whose arguments hold `only` answer so, others well."""

    def ask(*argv: str) -> subprocess.CompletedProcess[str]:
        fails = all(word in argv for word in only)
        return subprocess.CompletedProcess(argv, code if fails else 0, "", stderr if fails else "")

    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(launcher_checks, "run_quickly", ask)


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
    said = launcher_checks.find_missing(launcher_grammar.parse(text))
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
    assert program in str(launcher_checks.find_missing(launcher_grammar.parse(text)))
    assert launcher_checks.find_missing(launcher_grammar.BARE) is None


def test_a_user_is_refused_before_anything_runs(monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConditionError, match="only root starts containers of lxc"):
        launcher_checks.check_on_this_machine(launcher_grammar.parse("lxc:box"))


# --- the command lines of all of them; tried for real: tests/system/jobscripts/test_launcher.py ---


# --- studies and `steelyard run` ---


def level_of(job: str, level: str, benchmark: str) -> study.Study:
    """Return a study with one launcher."""
    text = f'[job]\n{job}\n[factors]\nlauncher = ["{level}"]\n[[benchmark]]\nuse = "{benchmark}"\n'
    return study.parse_study(text.encode(), Path("s.toml"))


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
    """Execute `steelyard run`; return its exit code, stdout and stderr."""
    code = cli.main(["run", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


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
    from steelyard.wrappers.run import container_run as run_inside

    ended = '{"format": "steelyard-run", "version": 1, "elapsed_s": 1.5, "exit_codes": %s}'
    (tmp_path / "result.json").write_text(ended % "[0, null, 3]")
    for client, seconds in ((0, 1.25), (1, 1.0)):
        text = f"elapsed_s={seconds}\ncpu_s=0.5\nuser_s=0.4\nsystem_s=0.1\nrchar_bytes=7\n"
        (tmp_path / f"measured.{client}").write_text(text)
        tags = f"launcher_measured=no\nlauncher_start_s={client}.5\n"
        (tmp_path / f"tags.{client}").write_text(tags)
    found = run_inside.read_run(tmp_path)
    assert (found.elapsed_s, found.exit_code) == (1.5, None)
    assert set(found.values().values()) == {None}  # the third was killed
    assert not run_inside.measures_processes(found.tags)
    (tmp_path / "result.json").write_text(ended % "[0, 3]")
    found = run_inside.read_run(tmp_path)
    assert found.values() == {
        "elapsed": 1.25, "start": 1.5, "cpu": 1.0, "user": 0.8, "system": 0.2, "rchar_bytes": 14.0,
        "wchar_bytes": None, "read_bytes": None, "write_bytes": None,
    }  # fmt: skip
    (tmp_path / "tags.0").write_text("launcher_measured=yes\n")
    found = run_inside.read_run(tmp_path)
    assert run_inside.measures_processes(found.tags) and found.values()["start"] is None


def test_the_default_is_no_limit() -> None:
    assert launcher_grammar.Launcher().text == "bare"
