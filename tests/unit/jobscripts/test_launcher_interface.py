"""The shell library's interface to kinds of containers: each kind is one file that implements it."""

from __future__ import annotations

import re

from steelyard.jobscripts import registry
from steelyard.wrappers.launchers import launcher_grammar

FILES = {path.stem: path.read_text() for path in registry.LIBRARY.glob("launchers/*.sh")}
INTERFACE = (registry.LIBRARY / "launcher_interface.sh").read_text(encoding="utf-8")
WORDS = set(re.findall(r"^#   ([a-z_]+)  +", INTERFACE, re.MULTILINE))
ENGINES = {"docker", "podman"}


def test_every_word_is_asked_and_has_an_answer() -> None:
    asked = set(re.findall(r"sy_kind ([a-z_]+)", registry.library()))
    defaults = set(re.findall(r"^sy_child_([a-z_]+)\(\)", INTERFACE, re.MULTILINE))
    assert asked == defaults == WORDS


def test_every_launcher_has_a_file_that_starts_it() -> None:
    kinds = {kind.removeprefix("systemd-") for kind in launcher_grammar.NAMED} - {"bare"}
    assert set(FILES) == kinds - ENGINES | {"engine"}
    for kind, text in FILES.items():
        assert f"\nsy_{kind}_command() {{" in text
