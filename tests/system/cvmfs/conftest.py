"""A repository of a few files, made once for the tests of this folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.system.cvmfs.repository import CHUNK_BYTES, Repository, publish

NAME = "lab.steelyard.test"
NESTED = ("/release", "/release/v2/lib")


@dataclass(frozen=True)
class Published:
    """A published repository and its content."""

    source: Path
    repository: Repository


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Publish two revisions.

    They have nested catalogs in two levels, a file of three chunks, and two names of one content.
    """
    folder = tmp_path_factory.mktemp("cvmfs")
    source = folder / "source"
    (source / "release/v2/lib/deep").mkdir(parents=True)
    (source / "release/v2/lib/deep/data").write_bytes(os.urandom(2 * CHUNK_BYTES + 12345))
    (source / "release/v2/lib/one").write_text("the same\n", encoding="utf-8")
    (source / "two").write_text("the same\n", encoding="utf-8")
    (source / "empty").touch()
    program = source / "release/program"
    program.write_text("#!/bin/sh\necho it runs\n", encoding="utf-8")
    program.chmod(0o755)
    publish(NAME, source, folder / "repository", NESTED)
    (source / "release/v2/lib/größe").write_text("not ASCII\n", encoding="utf-8")
    (source / "release/latest").symlink_to("v2/lib")
    return Published(source, publish(NAME, source, folder / "repository", NESTED))
