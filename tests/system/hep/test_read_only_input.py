"""An input on a file system that cannot be written to, as a CVMFS repository or an exported
archive."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.hep.conftest import RECIPE, Study

from steelyard.jobscripts.hep import input_files

# A read-only view of FOLDER in a mount namespace; prints what the rest of the script finds there.
VIEW = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" -c "$3" "$1"'
PLACE = """
import os, sys
from pathlib import Path
from steelyard.jobscripts.hep import input_files, page_cache
from tests.system.hep.conftest import RECIPE
folder = Path(sys.argv[1])
path, known = input_files.prepare_input({**RECIPE, "data": str(folder)}, folder / "no such scratch folder")
print(path.name, known["recipe"]["events"], page_cache.cached_share(path))
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


def placed(folder: Path) -> subprocess.CompletedProcess[str]:
    argv = ["unshare", "-m", "sh", "-c", VIEW, "sh", folder, sys.executable, PLACE]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_an_input_on_a_read_only_file_system_is_used_and_not_read_beforehand(
    tmp_path: Path,
) -> None:
    """Reading it to check it would fill the caches that the first iteration is to find empty."""
    known = input_files.keep_file(tmp_path, RECIPE)
    path = tmp_path / known["file"]
    os.chown(path, 1, 1)  # a client may show files as its own user's; root still sees their pages
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    done = placed(tmp_path)
    name, events, share = done.stdout.split() or pytest.fail(done.stderr)
    assert (name, int(events)) == (path.name, RECIPE["events"])
    assert float(share) < 0.5


def test_an_input_that_cannot_be_made_there_is_named(tmp_path: Path) -> None:
    done = placed(tmp_path)
    name = input_files.file_name(RECIPE)
    assert f"{tmp_path} is read-only: expected {name} and {name}.json in it" in done.stderr


def test_the_file_system_of_the_input_is_a_tag_of_the_run(study: Study) -> None:
    folder = study.folder / "data"
    study.completed("roottree", data=str(folder))
    lines = (study.attempt / "tags.0").read_text(encoding="utf-8").splitlines()
    tags = dict(line.split("=", 1) for line in lines)
    argv = ["findmnt", "-no", "FSTYPE,TARGET", "--target", folder]
    found = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert [tags.get("mount.type"), tags.get("mount.point")] == found
