"""A study whose runs are executed bare, in private namespaces and in docker's containers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.throwaway_lab import Lab, until

ROOT = Path(__file__).parents[3]
IMAGE = f"steelyard-test:lab-{os.getpid()}"
STUDY = """
[study]
name = "boxes"
repeat = 1
[job]
time_limit = "00:02:00"
[factors]
launcher = [{launchers}]
[[benchmark]]
use = "filesystem"
test = "small_file_write"
write_files = {files}
iterations = {iterations}
"""


def docker(*words: str) -> str:
    """Return docker's stdout."""
    done = subprocess.run(
        ["docker", *words], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str | None]:
    """A launcher with an image that is there; None where docker does not answer."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "version"], capture_output=True, check=False).returncode
    ):
        yield None
        return
    tar = tmp_path_factory.mktemp("image") / "image.tar"
    subprocess.run([ROOT / "tests/make_image.sh", tar], check=True, timeout=60)
    docker("import", str(tar), IMAGE)
    yield f"docker:{IMAGE}"
    docker("rmi", "--force", IMAGE)


@pytest.fixture
def image(engine: str | None) -> str:
    """Make an image for tests of the engine."""
    if engine is None:
        pytest.skip("docker does not answer on this machine: apt install docker.io, start dockerd")
    return engine


def write_study(lab: Lab, *launchers: str, files: int = 20, iterations: int = 1) -> str:
    """Write a study with these launchers; return its file's name."""
    listed = ", ".join(f'"{launcher}"' for launcher in launchers)
    text = STUDY.format(launchers=listed, files=files, iterations=iterations)
    (lab.work / "boxes.toml").write_text(text, encoding="utf-8")
    return "boxes.toml"


def label(lab: Lab) -> str:
    """Return docker's filter for the study's containers; others may run concurrently."""
    return f"label=steelyard.study={(lab.work / 'boxes.study').absolute()}"


def test_a_study_with_launchers_from_submission_to_database(lab: Lab, engine: str | None) -> None:
    """Every run in its container, its clients as many as there are containers, all measured."""
    clients = {"bare": 1, "unshare,containers=2": 2}
    measured = {"unshare,containers=2": "yes"}
    if engine is not None:
        two = f"{engine},network=bridge,containers=2,cpus=1"
        clients |= {engine: 1, two: 2}
        measured |= {engine: "no", two: "no"}
    study = write_study(lab, *clients)
    lab.steelyard("submit", study)
    lab.wait_study(study)
    lab.collect(study)
    found = lab.rows(
        "boxes",
        "SELECT condition->>'launcher' AS launcher, state, clients, len(nodes), "
        "count(DISTINCT client) FROM runs JOIN attempts USING (run_id, attempt, state) "
        "JOIN results USING (run_id, attempt) WHERE value > 0 GROUP BY ALL ORDER BY ALL",
    )
    assert found == sorted((name, "completed", n, 1, n) for name, n in clients.items())
    noted = lab.rows(
        "boxes",
        "SELECT condition->>'launcher', max(value) FROM tags JOIN runs USING (run_id) "
        "WHERE key = 'launcher_measured' GROUP BY ALL",
    )
    assert dict(noted) == measured
    kept = lab.rows("boxes", "SELECT count(*), count(*) FILTER (complete) FROM records")
    assert kept == [(len(clients), len(clients))]
    if engine is not None:
        assert docker("ps", "-aq", "--filter", label(lab)) == ""


def test_a_cancelled_study_leaves_no_container(lab: Lab, image: str) -> None:
    """`steelyard cancel` while the container works."""
    study = write_study(lab, image, files=1000, iterations=500)
    lab.steelyard("submit", study)
    until(lambda: docker("ps", "-q", "--filter", label(lab)), "the container is there")
    lab.steelyard("cancel", study)
    until(lambda: not docker("ps", "-aq", "--filter", label(lab)), "the container is gone")
    lab.wait_nodes("idle", "mixed", what="Slurm has ended the job")
