"""`steelyard image make`: what is made where, what is refused, and what is left of one that ended
early. No mirror is asked: a script stands in mmdebstrap's place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import each_process
from tests.waiting import wait_for

from steelyard.wrappers.base.errors import ConditionError, MissingError, UsageError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.launchers import image

FAKE = Path(__file__).with_name("fake_mmdebstrap.sh")
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
can_unshare = subprocess.run(
    ["unshare", "--mount", "--pid", "--fork", "true"]
    if os.geteuid() == 0
    else [*image.AS_ROOT_OF_ONES_OWN, "true"],
    capture_output=True,
    check=False,
)
makes = pytest.mark.skipif(
    can_unshare.returncode != 0, reason="no namespaces here: neither root nor lines in /etc/subuid"
)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: Patch) -> Path:
    """The arguments that the script was given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mmdebstrap").symlink_to(FAKE)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("MMDEBSTRAP_NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "notes"


def wish(text: str, kind: str | None = None) -> image.Wish:
    """With nothing else said."""
    return image.wished(text, kind, "bookworm", (), None, False)


def parts(folder: Path) -> list[str]:
    """Of what is being made there."""
    return [path.name for path in folder.iterdir() if path.name.startswith(image.PART)]


@pytest.mark.parametrize(
    ("text", "kind", "launcher"),
    [
        ("podman:my-app:1", None, "podman:my-app:1"),
        ("my-app:1", "docker", "docker:my-app:1"),
        ("lxc:box", None, "lxc:box"),
        ("/srv/app", None, "systemd-nspawn:/srv/app"),
        ("/srv/app", "apptainer", "apptainer:/srv/app"),
    ],
)
def test_it_is_named_as_in_a_study(text: str, kind: str | None, launcher: str) -> None:
    assert wish(text, kind).launcher == launcher


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("my-app", "for which launcher? expected --for KIND or KIND:NAME"),
        ("unshare:x", "unshare has no images: expected one of docker, podman"),
        ("lxc:a/b", "expected lxc:NAME, the name of a container"),
        ("docker:-x", "expected docker:IMAGE"),
    ],
)
def test_what_is_no_name_is_told(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        wish(text)
    assert message in str(caught.value)


def test_packages_and_suites_are_words_not_options() -> None:
    for suite, include in (("--hook", ()), ("bookworm", ("$(x)",)), ("bookworm", ("-o",))):
        with pytest.raises(UsageError, match="is no name of a Debian suite or package"):
            image.wished("/srv/x", None, suite, include, None, False)


def test_the_suite_is_this_machines_where_it_is_debian(tmp_path: Path) -> None:
    file = tmp_path / "os-release"
    file.write_text("ID=debian\nVERSION_CODENAME=trixie\n")
    assert image.own_suite(file) == "trixie"
    file.write_text("ID=fedora\nVERSION_CODENAME=x\n")
    assert image.own_suite(file) == image.own_suite(tmp_path / "none") == "bookworm"


@makes
def test_a_folder_is_made_once_and_replaced_when_that_is_said(
    tmp_path: Path, notes: Path, capsys: Capture
) -> None:
    place = tmp_path / "root"
    words = ["image", "make", f"apptainer:{place}", "--include=iperf3,fio"]
    words += ["--benchmark=hpl", "--suite=trixie", "--mirror=http://m/debian", "--json"]
    assert cli.main(words) == 0
    told = notes.read_text().splitlines()
    assert told[:3] == ["--mode=root", "--variant=minbase", "--include=openmpi-bin,iperf3,fio,hpcc"]
    assert (told[3], told[5]) == ("trixie", "http://m/debian")
    document = json.loads(capsys.readouterr().out)
    assert (document["place"], document["suite"]) == (str(place), "trixie")
    assert document["size_bytes"] > 0
    mark = json.loads((place / image.MARK).read_text())
    assert mark["packages"] == ["openmpi-bin", "iperf3", "fio", "hpcc"]
    (place / "old").touch()
    assert cli.main(words) == 2
    assert "is there already: name another place, or add --force" in capsys.readouterr().err
    assert (place / "old").exists()
    assert cli.main([*words, "--force"]) == 0
    assert not (place / "old").exists() and (place / "etc/os-release").exists()
    assert parts(tmp_path) == []


def test_what_it_has_not_made_is_never_replaced(tmp_path: Path, notes: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    for name in (place, tmp_path / "link"):
        if name != place:
            name.symlink_to(place)
        with pytest.raises(UsageError, match="has not made it: name another place"):
            image.make(image.wished(str(name), "apptainer", None, (), None, True), print)
    assert not notes.exists() and place.is_dir()


@makes
@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ("lost", "Unable to locate package nonesuch: expected packages of Debian lost"),
        (
            "full",
            "tar: ./2: Cannot write: No space left on device: make room on the file system of",
        ),
    ],
)
def test_what_fails_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, notes: Path, suite: str, message: str
) -> None:
    asked = image.wished(str(tmp_path / "root"), "apptainer", suite, (), None, False)
    with pytest.raises(MissingError) as caught:
        image.make(asked, print)
    assert message in str(caught.value)
    assert not (tmp_path / "root").exists() and parts(tmp_path) == []
    assert notes.exists()


def slow_ones(folder: Path) -> list[int]:
    """Processes of one that is being made below a folder."""
    mark = f"={folder}/{image.PART}".encode()
    return [pid for pid, environment in each_process("environ") if mark in environment]


@makes
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_one_that_is_killed_ends_with_all_it_started(
    tmp_path: Path, notes: Path, sign: signal.Signals
) -> None:
    command = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "image", "make"]
    command += [f"apptainer:{tmp_path}/root", "--suite=slow"]
    half: Callable[[], object] = lambda: notes.exists() and list(tmp_path.glob(".*/*"))
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
        wait_for("it is half made", half)
        child.send_signal(sign)
    wait_for("nothing of it runs on", lambda: not slow_ones(tmp_path))
    assert child.returncode == (143 if sign == signal.SIGTERM else -9)
    assert not (tmp_path / "root").exists()
    assert len(parts(tmp_path)) == (sign == signal.SIGKILL)
    assert cli.main(["image", "make", f"apptainer:{tmp_path}/root"]) == 0  # the next tidies up
    assert parts(tmp_path) == []


def test_what_is_not_installed_is_named_with_its_package(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="needs mmdebstrap, .*apt install mmdebstrap"):
        image.make(wish(f"{tmp_path}/root", "apptainer"), print)


def test_what_only_root_starts_is_refused_to_users(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConditionError, match="only root starts containers of systemd-nspawn"):
        image.make(wish(f"{tmp_path}/root"), print)


def test_a_users_files_are_made_in_a_namespace_of_theirs(monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    argv = image.command(wish("podman:x:1"), Path("/t/image.tar"))
    assert argv[:4] == ["unshare", "--user", "--map-root-user", "--map-auto"]
    assert argv[-2:] == ["bookworm", "/t/image.tar"] and "--kill-child" in argv
