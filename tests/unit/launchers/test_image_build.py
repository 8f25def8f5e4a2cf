"""`steelyard image make`: what is made where, what is refused, and what is left of one that ended
early. No mirror is asked: a script stands in mmdebstrap's place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import ConditionError, MissingError, UsageError
from steelyard.wrappers.launchers import image_build

FAKE = Path(__file__).with_name("fake_mmdebstrap.sh")
Patch = pytest.MonkeyPatch


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


def wish(text: str, kind: str | None = None) -> image_build.ImageRequest:
    """Return a request with the defaults."""
    return image_build.read_request(text, kind, "bookworm", (), None, False)


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
            image_build.read_request("/srv/x", None, suite, include, None, False)


def test_the_suite_is_this_machines_where_it_is_debian(tmp_path: Path) -> None:
    file = tmp_path / "os-release"
    file.write_text("ID=debian\nVERSION_CODENAME=trixie\n")
    assert image_build.local_suite(file) == "trixie"
    file.write_text("ID=fedora\nVERSION_CODENAME=x\n")
    assert image_build.local_suite(file) == image_build.local_suite(tmp_path / "none") == "bookworm"


def test_what_it_has_not_made_is_never_replaced(tmp_path: Path, notes: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    for name in (place, tmp_path / "link"):
        if name != place:
            name.symlink_to(place)
        with pytest.raises(UsageError, match="has not made it: name another place"):
            image_build.make_image(
                image_build.read_request(str(name), "apptainer", None, (), None, True), print
            )
    assert not notes.exists() and place.is_dir()


def test_what_is_not_installed_is_named_with_its_package(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="needs mmdebstrap, .*apt install mmdebstrap"):
        image_build.make_image(wish(f"{tmp_path}/root", "apptainer"), print)


def test_what_only_root_starts_is_refused_to_users(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConditionError, match="only root starts containers of systemd-nspawn"):
        image_build.make_image(wish(f"{tmp_path}/root"), print)


def test_a_users_files_are_made_in_a_namespace_of_theirs(monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    argv = image_build.command(wish("podman:x:1"), Path("/t/image.tar"))
    assert argv[:4] == ["unshare", "--user", "--map-root-user", "--map-auto"]
    assert argv[-2:] == ["bookworm", "/t/image.tar"] and "--kill-child" in argv
