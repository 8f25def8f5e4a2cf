"""Counters of CVMFS without a client (tests/system/cvmfs has real ones): folders have its attributes.

Their names and forms are those of the client's own source, cvmfs/magic_xattr.cc (commit 01030e82).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.jobscripts import cvmfs, registry
from steelyard.jobscripts.app import parse as app
from steelyard.jobscripts.errors import FailedError, OutputError

JOB_SCRIPTS = Path(registry.__file__).parent


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "cms.cern.ch"
    folder.mkdir()
    try:
        tell(folder, rx=10, ndownload=2, nopen=40, nioerr=0, hitrate="80.000")
    except OSError as error:
        pytest.skip(f"no extended attributes on {tmp_path}: {error}")
    yield folder


def tell(folder: Path, **counts: object) -> None:
    for key, value in counts.items():
        os.setxattr(folder, f"user.{key}", str(value).encode())


def read(folder: Path, when: str, *repositories: Path) -> subprocess.CompletedProcess[str]:
    """Read the counters by the function of job scripts."""
    (folder / "lib.sh").write_text(registry.library(), encoding="utf-8")
    script = '. "$1"; shift; sy_save_cvmfs_counters "$@"'
    return subprocess.run(
        ["bash", "-c", script, "-", folder / "lib.sh", when, *repositories],
        env={**os.environ, "SY_ATTEMPT_DIR": str(folder), "SY_CLIENT": "0"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_what_was_fetched_and_which_share_the_cache_had(tmp_path: Path, repository: Path) -> None:
    """Until then 10 requests, 2 of them downloads; in the run 190 requests, 48 of them."""
    assert read(tmp_path, "before", repository).returncode == 0
    tell(repository, rx=300010, ndownload=50, nopen=100, nioerr=1, hitrate="75.000")
    assert read(tmp_path, "after", repository).returncode == 0
    found = {result.metric: result.value for result in cvmfs.results(tmp_path, 0)}
    assert found == {
        "cvmfs_fetched_bytes": 300000 * 1024,
        "cvmfs_downloads": 48,
        "cvmfs_opens": 60,
        "cvmfs_io_errors": 1,
        "cvmfs_hit_rate": pytest.approx(1 - 48 / 190),
    }


def test_the_clients_version_is_a_tag_once(tmp_path: Path, repository: Path) -> None:
    assert read(tmp_path, "before", repository).returncode == 0
    assert not (tmp_path / "tags.0").exists()  # one without figures
    tell(repository, version="2.11.2.0")
    for when in ("before.2", "after.2"):
        assert read(tmp_path, when, repository).returncode == 0
    assert (tmp_path / "tags.0").read_text(encoding="utf-8") == "cvmfs.version=2.11.2.0\n"


@pytest.mark.parametrize(
    ("before", "after", "rate"),
    [
        ({"ndownload": 0, "hitrate": "n/a"}, {"ndownload": 9, "hitrate": "10.000"}, 0.1),
        ({"ndownload": 0, "hitrate": "n/a"}, {"ndownload": 0, "hitrate": "n/a"}, None),
        ({"ndownload": 9, "hitrate": "99.997"}, {"ndownload": 10, "hitrate": "99.997"}, 0.99997),
        # One more of 300 millions: three decimals do not show it.
        ({"ndownload": 9999, "hitrate": "99.997"}, {"ndownload": 10000, "hitrate": "99.997"}, None),
        ({"ndownload": 9, "hitrate": "99.000"}, {"ndownload": 9, "hitrate": "100.000"}, None),
    ],
)
def test_a_rate_that_rounding_leaves_open_is_not_told(
    tmp_path: Path,
    repository: Path,
    before: dict[str, object],
    after: dict[str, object],
    rate: float | None,
) -> None:
    for when, counts in (("before", before), ("after", after)):
        tell(repository, **counts)
        read(tmp_path, when, repository)
    found = {result.metric: result.value for result in cvmfs.results(tmp_path, 0)}
    assert found.get("cvmfs_hit_rate") == (None if rate is None else pytest.approx(rate))


def test_a_repository_that_was_mounted_anew_gives_no_figures(
    tmp_path: Path, repository: Path
) -> None:
    read(tmp_path, "before", repository)
    tell(repository, rx=0)
    read(tmp_path, "after", repository)
    with pytest.raises(OutputError, match="rx has shrunk: the repository was mounted anew"):
        cvmfs.results(tmp_path, 0)


def test_a_folder_that_is_no_repository_is_said(tmp_path: Path) -> None:
    done = read(tmp_path, "before", tmp_path)
    assert done.returncode == 3
    assert "expected folders of mounted CVMFS repositories, found: OSError" in done.stderr
    assert read(tmp_path, "before").returncode == 0
    assert cvmfs.results(tmp_path, 1) == []


def run_app(folder: Path, command: str, iterations: int, *repositories: Path) -> int:
    """The benchmark `app` by its job script, as run.sh would."""
    script = registry.library() + (JOB_SCRIPTS / "app/job.sh").read_text() + "\nsy_client\n"
    (folder / "run.sh").write_text(script, encoding="utf-8")
    return subprocess.run(
        ["bash", folder / "run.sh"], check=False, stdout=subprocess.DEVNULL,
        env={**os.environ, "SY_ATTEMPT_DIR": str(folder), "SY_CLIENT": "0",
             "SY_PARAM_COMMAND": command, "SY_PARAM_ITERATIONS": str(iterations),
             "SY_PARAM_CVMFS": " ".join(map(str, repositories))},
    ).returncode  # fmt: skip


def test_what_a_first_run_and_what_following_ones_fetch(tmp_path: Path, repository: Path) -> None:
    """The command of iteration 1 fetched 4 MiB, the others 1 MiB each."""
    command = (
        "from os import environ, getxattr, setxattr; import sys; f = sys.argv[1]; "
        "grown = 4096 if getxattr(f, 'user.rx') == b'10' else 1024; "
        "setxattr(f, 'user.rx', str(int(getxattr(f, 'user.rx')) + grown).encode())"
    )
    line = f'{sys.executable} -c "{command}" {repository}'
    assert run_app(tmp_path, line, 3, repository) == 0
    found = app.parse(tmp_path, 0, {"figures": "{}", "iterations": 3})
    fetched = {r.iteration: r.value for r in found if r.metric == "cvmfs_fetched_bytes"}
    assert fetched == {1: 4096 * 1024, 2: 1024 * 1024, 3: 1024 * 1024}
    assert [r.iteration for r in found if r.metric == "seconds"] == [1, 2, 3]


def test_an_iteration_that_fails_is_the_last_one(tmp_path: Path) -> None:
    assert run_app(tmp_path, f"echo x >>{tmp_path}/n; [ $(wc -l <{tmp_path}/n) -lt 2 ]", 3) == 1
    assert (tmp_path / "n").read_text() == "x\nx\n"
    (tmp_path / "out.0").touch()
    with pytest.raises(FailedError, match="the command ended with 1"):
        app.parse(tmp_path, 0, {"figures": "{}", "iterations": 3})
    lines = (tmp_path / "app.0").read_text().splitlines(keepends=True)
    (tmp_path / "app.0").write_text(lines[0])
    with pytest.raises(OutputError, match="expected 3 lines, found 1"):
        app.parse(tmp_path, 0, {"figures": "{}", "iterations": 3})
