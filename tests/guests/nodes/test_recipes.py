"""The recipes of docs/recipes, command by command, with small numbers in their studies."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from tests.throwaway_lab import Lab

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs/recipes"
STUDY = re.compile(r"^```toml\n# (\S+\.toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    \$ (.*)$", re.MULTILINE)
FEW = {"repeat = 20": "repeat = 1", "repeat = 10": "repeat = 1"}
FILES = '"small_file_write"]\nsize = "1MiB"\ncopy_files = 5\nwrite_files = 5'
SMALL = {
    "container": FEW | {', "podman:localhost/my-app:1"]': "]", "--repeat 10": "--repeat 2"},
    "distance": FEW
    | {
        '"delay=5ms", "delay=20ms", "delay=50ms"]': '"delay=20ms"]',
        '"small_file_write"]': FILES,
    },
    "nfs": FEW
    | {
        "/scratch": "/tmp",
        "/nfs": "/var/tmp",
        '"cold", ': "",
        '"small_file_write"]': FILES,
    },
    "kernel": FEW
    | {
        "kernel-6.12": "physical",
        "kernel-6.1": "virtual",
        '"6.12"': f'"{os.uname().release}"',
        '["cg", "ft"]': '["cg"]',
        'class = "A"': 'class = "S"',
        '"small_file_write"]': '"small_file_write"]\nwrite_files = 5',
    },
    "scaling": {
        "repeat  = 10\nblocks  = 10": "repeat  = 1\nblocks  = 1",
        # Daemons of Open MPI on one machine sometimes make one folder at once.
        "tasks_per_node = 2\n": "tasks_per_node = 1\nretries = 3\n",
        "--ntasks-per-node=2": "--ntasks-per-node=1",
        'class  = "B"': 'class  = "S"',
    },
    "virtual-node": FEW
    | {
        '["ep", "cg"]': '["cg"]',
        'class = "A"': 'class = "S"',
        '"small_file_write"]': '"small_file_write"]\nwrite_files = 5',
    },
}
# What is done once for a machine, by the fixtures or by another test here.
DONE = re.compile(
    r"steelyard (cluster (up|shell)|image make)\b|mmdebstrap |docker |podman |mkdir |tar "
)


def text_of(page: str, words: dict[str, str]) -> str:
    """The page, with these words in place of others, each of which must be there."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    for old, new in words.items():
        found = old in text
        assert found or old in FEW, f"{page} has no {old}"
        text = text.replace(old, new)
    return text


def follow(lab: Lab, page: str) -> None:
    """Execute the page's commands from its top to its end."""
    app = lab.work / "my-app"
    app.write_text("#!/bin/sh\nexec sleep 0.01\n")
    app.chmod(0o755)
    text = text_of(page, {**SMALL[page], **({"/home/me/my-app": str(app)} if page in OWN else {})})
    for name, study in STUDY.findall(text):
        (lab.work / name).write_text(study, encoding="utf-8")
    done = [command for command in COMMAND.findall(text) if not DONE.match(command)]
    assert done
    for command in done:
        execute(lab, command)


OWN = ("container", "kernel", "scaling")


def execute(lab: Lab, command: str) -> None:
    """As typed: `steelyard` is on the PATH. A study's jobs end a moment after its last result."""
    if command.startswith("steelyard collect "):
        lab.collect(command.split()[-1])
        return
    shown = lab.run("bash", "-c", f'PATH="{Path(sys.executable).parent}:$PATH"\n{command}')
    assert shown.returncode == 0, f"{command}\n{shown.stdout}{shown.stderr}"


def answers(lab: Lab, study: str) -> set[str]:
    """Return the conditions that completed."""
    rows = lab.rows(study, "SELECT condition_label, state, reason FROM runs")
    assert rows
    assert all(state == "completed" for _, state, _ in rows), rows
    return {label for label, _, _ in rows}


# Which study answers, and which conditions it has run.
ANSWERS = {
    "container": ("container", {"launcher=bare", "launcher=unshare"}),
    "nfs": ("disks", {"directory=/tmp cache=warm", "directory=/var/tmp cache=warm"}),
    "scaling": ("nodes", {"nodes=1", "nodes=2", "nodes=4"}),
    "virtual-node": ("virtual", {"node_type=physical", "node_type=virtual"}),
}


@pytest.mark.parametrize("page", ANSWERS)
def test_a_recipe_answers(lab: Lab, page: str) -> None:
    follow(lab, page)
    study, conditions = ANSWERS[page]
    assert answers(lab, study) == conditions


def test_how_far_away_data_may_be(virtual_lab: Lab) -> None:
    follow(virtual_lab, "distance")
    assert answers(virtual_lab, "distance") == {"network=delay=0ms", "network=delay=20ms"}


def test_whether_the_new_kernel_is_slower(virtual_lab: Lab) -> None:
    """The guests have another one than their host."""
    follow(virtual_lab, "kernel")
    levels = {"kernel_release=6.1", f"kernel_release={os.uname().release}"}
    assert answers(virtual_lab, "kernel") == levels


def test_every_recipe_is_followed_here() -> None:
    assert (
        {path.stem for path in PAGES.glob("*.md")} - {"index"}
        == set(SMALL)
        == {*ANSWERS, "distance", "kernel"}
    )
