"""What the page's lines for a removal leave of an installation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMANDS = ROOT / "tests/packages/commands.py"
OURS = re.compile(r"(?<![\w.])/(?=(?:usr/local|etc|run|sys/fs/bpf)/)")


def removal(page: str, heading: str) -> list[str]:
    argv = [sys.executable, COMMANDS, ROOT / "docs" / page, heading]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node with all that packaging/install.sh and `install.sh user` put below /usr/local."""
    environment = {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "DESTDIR": str(tmp_path),
        "PREFIX": "/usr/local",
    }
    subprocess.run(
        [ROOT / "packaging/install.sh", "packaged"],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    command = tmp_path / "usr/local/lib/steelyard/python/bin/steelyard"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    (tmp_path / "usr/local/bin").mkdir()
    (tmp_path / "usr/local/bin/steelyard").symlink_to(command)
    for folder in ("run/steelyard/netem", "sys/fs/bpf/steelyard/links"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def test_nothing_is_left_but_what_the_page_names(node: Path) -> None:
    assert (node / "usr/local/share/doc/steelyard/netem.md").read_text() == (
        ROOT / "docs/netem.md"
    ).read_text()
    for line in removal("admin.md", "Removing it"):
        assert line.startswith(("rm -rf /", "rm -f /"))
        done = subprocess.run(
            ["sh", "-c", OURS.sub(f"{node}/", line)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
    left = {str(p.relative_to(node)) for p in node.rglob("*") if not p.is_dir() or p.is_symlink()}
    assert left == set()
    folders = {str(p.relative_to(node)) for p in node.rglob("steelyard*")}
    assert folders == {"var/lib/steelyard", "var/spool/steelyard"}
    text = (ROOT / "docs/admin.md").read_text().partition("| what stays |")[2]
    assert all(f"/{folder}" in text for folder in folders)


@pytest.mark.parametrize(("how", "calls"), [("remove", "unload\n"), ("upgrade", "")])
def test_the_removal_of_the_package_unloads_what_counts(
    tmp_path: Path, how: str, calls: str
) -> None:
    program = tmp_path / "steelyard-bpf"
    program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n')
    program.chmod(0o755)
    script = (ROOT / "packaging/deb/steelyard-node.prerm").read_text()
    text = script.replace("/usr/libexec/steelyard/steelyard-bpf", str(program))
    assert text != script
    subprocess.run(["sh", "-c", text, "prerm", how], check=True)
    log = tmp_path / "calls"
    assert (log.read_text() if log.exists() else "") == calls
