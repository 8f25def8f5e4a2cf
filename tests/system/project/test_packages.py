"""What is packed, and by which words it is laid down: what costs no package of Debian's to look at."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMANDS = ROOT / "tests/packages/commands.py"


def page(*headings: str) -> list[str]:
    argv = [sys.executable, COMMANDS, ROOT / "docs/admin.md", *headings]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()


def test_the_page_has_what_the_packages_tests_type() -> None:
    """Under the very headings that tests/packages/inside.sh names."""
    text = (ROOT / "tests/packages/inside.sh").read_text()
    named = re.search(r"headings=\(\[dist\]='([^']+)' \[deb\]=\"([^\"]+)\"\)", text)
    assert named is not None
    assert "steelyard-*/install.sh node" in page(named[1])
    assert any(line.startswith("apt-get install -y ./build/deb/") for line in page(named[2]))
    for heading in ("The command steelyard", "Switch it on", "Check that it works"):
        assert f"'{heading}'" in text
        assert page(heading)
    assert "steelyard show JOBID" in page("Check that it works")  # its comment is gone


def test_the_release_of_slurm_is_that_of_the_headers(tmp_path: Path) -> None:
    script = ROOT / "packaging/dist/slurm_release.sh"
    (tmp_path / "slurm").mkdir()
    header = tmp_path / "slurm/slurm_version.h"
    for number, release in {"0x160508": "22.05", "0x180b05": "24.11", "0x1a0505": "26.05"}.items():
        header.write_text(f"#define SLURM_VERSION_NUMBER {number}\n")
        done = subprocess.run([script, tmp_path], check=True, capture_output=True, text=True)
        assert done.stdout == f"{release}\n"
    done = subprocess.run([script, tmp_path / "none"], capture_output=True, text=True, check=False)
    assert (done.returncode, "libslurm-dev" in done.stderr) == (3, True)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout of git")
def test_what_is_packed_is_what_git_has(tmp_path: Path) -> None:
    subprocess.run([ROOT / "packaging/dist/copy_sources.sh", tmp_path / "source"], check=True)
    packed = tmp_path / "source"
    assert (packed / "VERSION").read_text() == (ROOT / "VERSION").read_text()
    assert (packed / "packaging/deb/rules").stat().st_mode & 0o111
    assert not (packed / "build").exists() and not (packed / ".git").exists()
