"""The missing contents of an image: examined, and reported with the command that makes a better
one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steelyard.wrappers.launchers import image_contents, launcher_grammar

BOX = launcher_grammar.parse("podman:my-app:1,cpus=1")
Patch = pytest.MonkeyPatch


def entered_here(monkeypatch: Patch) -> None:
    """This machine in the container's place."""
    monkeypatch.setattr(image_contents, "enter_command", lambda launcher, programs: ["env"])


def test_the_machine_itself_lacks_nothing_and_a_program_that_nobody_has(
    monkeypatch: Patch, tmp_path: Path
) -> None:
    entered_here(monkeypatch)
    shell = Path(shutil.which("bash") or "").resolve()
    assert (
        image_contents.find_missing(BOX, image_contents.RequiredPrograms({"env": ""}, (shell,)))
        is None
    )
    wanted = image_contents.RequiredPrograms({"env": "", "none-such": "none-such-bin"}, (shell,))
    said = image_contents.find_missing(BOX, wanted)
    assert said == (
        "podman:my-app:1,cpus=1: the image lacks none-such: say `steelyard image make "
        "podman:my-app:1 --include=none-such-bin --force`, or another name"
    )


def test_where_it_does_not_start_nothing_is_said(monkeypatch: Patch) -> None:
    monkeypatch.setattr(image_contents, "enter_command", lambda launcher, programs: ["false"])
    assert (
        image_contents.find_missing(BOX, image_contents.RequiredPrograms({"none-such": ""}, ()))
        is None
    )
    assert (
        image_contents.find_missing(
            launcher_grammar.BARE, image_contents.RequiredPrograms({"none-such": ""}, ())
        )
        is None
    )
