"""One process of a command at a time, whatever the record folder does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard.wrappers.base import cron_command_lock
from steelyard.wrappers.base.cron_command_lock import hold_command_lock
from steelyard.wrappers.base.errors import MissingError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where locks are, for root and others."""
    found = tmp_path / "locks"
    monkeypatch.setattr(cron_command_lock, "lock_folder", lambda: found)
    return found


def test_the_second_one_names_the_first(tmp_path: Path, folder: Path) -> None:
    with hold_command_lock("publish", [tmp_path]):
        who = rf"another `steelyard publish` of {tmp_path} is at work \(process {os.getpid()}\)"
        with pytest.raises(MissingError, match=who), hold_command_lock("publish", [tmp_path]):
            raise AssertionError("two at once")
    with hold_command_lock("publish", [tmp_path]):
        pass
    assert not list(folder.iterdir()), "no file is left"


def test_other_folders_and_other_commands_do_not_wait(tmp_path: Path) -> None:
    with (
        hold_command_lock("publish", [tmp_path]),
        hold_command_lock("sweep", [tmp_path]),
        hold_command_lock("publish", [tmp_path, tmp_path / "more"]),
    ):
        pass


def test_the_order_of_folders_does_not_matter(tmp_path: Path) -> None:
    two = [tmp_path / "a", tmp_path / "b"]
    with (
        hold_command_lock("publish", two),
        pytest.raises(MissingError, match="at work"),
        hold_command_lock("publish", two[::-1]),
    ):
        raise AssertionError("two at once")


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with (
        pytest.raises(MissingError, match="mode 0777; expected a folder of yours"),
        hold_command_lock("sweep", [tmp_path]),
    ):
        raise AssertionError("locked where others can write")


def test_a_link_in_its_place_is_refused(tmp_path: Path, folder: Path) -> None:
    folder.symlink_to(tmp_path)
    with pytest.raises(MissingError), hold_command_lock("sweep", [tmp_path]):
        raise AssertionError("locked behind a link")
