"""The pages as a site, and the Debian packages that the lists of setup/ name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_tools_named_in_setup_lists_are_debian_packages() -> None:
    """A misspelt package would stop every fresh machine."""
    names = [
        line.partition("#")[0].strip()
        for file in ("run.txt", "bpf.txt", "test.txt")
        for line in (ROOT / "setup" / file).read_text(encoding="utf-8").splitlines()
    ]
    known = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}\n", *filter(None, names)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert set(known.stdout.split()) == {"installed"}, known.stderr


@pytest.mark.slow
def test_the_site_is_built_and_every_link_of_it_leads_somewhere(tmp_path: Path) -> None:
    """Anchors within pages too, which Sphinx knows and we do not."""
    command = [sys.executable, "-P", "-m", "sphinx", "-q", "-W", "-E", "-c", ROOT / "docs/site"]
    done = subprocess.run(
        [*command, "-d", tmp_path / "doctrees", ROOT / "docs", tmp_path / "html"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "What does it cost my job" in (tmp_path / "html/index.html").read_text(encoding="utf-8")
