"""The seam of the shell library: what differs between schedulers is in one file for each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.jobscripts import registry

FILES = sorted((registry.LIBRARY / "schedulers").glob("*.sh"))
HEAD = (registry.LIBRARY / "scheduler.sh").read_text(encoding="utf-8")
WORDS = set(re.findall(r"^#   ([a-z_]+)  ?", HEAD, re.MULTILINE))
# Open MPI's own names of what it must not take for granted.
NOT_ASKED = "--mca ras '^slurm,tm'"
ASKED = re.compile(
    r"sy_(?:every_)?scheduler ([a-z_]+)|sy_\$\{name\}_([a-z_]+)|sy_\$\{SY_SCHEDULER\}_([a-z_]+)"
)


def common() -> dict[str, str]:
    """Return the files that know no scheduler."""
    library = [*registry.LIBRARY.glob("*.sh"), *registry.LIBRARY.glob("launchers/*.sh")]
    paths = [*library, *registry.FOLDER.glob("*/job.sh")]
    return {path.name: path.read_text(encoding="utf-8").replace(NOT_ASKED, "") for path in paths}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scheduler_answers_every_word_and_no_other(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(rf"^sy_{path.stem}_([a-z_]+)\(\)", text, re.MULTILINE)) == WORDS
    assert f"\nSY_SCHEDULERS+=({path.stem})\n" in text


def test_every_word_is_asked_and_told() -> None:
    found = {word for text in common().values() for words in ASKED.findall(text) for word in words}
    assert found - {""} == WORDS


def test_nobody_else_knows_a_scheduler() -> None:
    asks_for_a_name = re.compile(r"SY_SCHEDULER\}? *(==|!=|=~)")
    assert re.search(asks_for_a_name, "[[ $SY_SCHEDULER == slurm ]]")
    names = "|".join(path.stem for path in FILES if path.stem != "local")
    knows = re.compile(rf"{asks_for_a_name.pattern}|(?i:{names})|\b(srun|scontrol|scancel)\b")
    for name, text in common().items():
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        assert [line for line in lines if knows.search(line)] == [], name
