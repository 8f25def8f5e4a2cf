"""What a run notes of its program, its scheduler and its MPI when nothing is measured any more."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.jobscripts import registry

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

SOLVER = """\
#!/bin/bash
[[ $1 == --version ]] || exec true
printf '\\n  \\nsolver 2.1 (%s)\\nCopyright\\n' "$(date +%s%6N)"
"""


@pytest.fixture
def solver(tmp_path: Path) -> Path:
    path = tmp_path / "bin/my-solver"
    path.parent.mkdir()
    path.write_text(SOLVER, encoding="utf-8")
    path.chmod(0o755)
    return path


def lines(study: Study, name: str) -> list[str]:
    path = study.attempt() / name
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def tags(study: Study) -> dict[str, str]:
    pairs = (line.partition("=") for line in lines(study, "tags.0"))
    return {key: value for key, _, value in pairs}


def programs(study: Study) -> dict[str, str]:
    found = map(json.loads, lines(study, "environment.0"))
    return {one["path"]: one["sha256"] for one in found if one["kind"] == "program"}


def run_app(study: Study, clients: int = 1, **parameters: object) -> int:
    """The run's exit code."""
    path = f"{study.folder.parent / 'bin'}:{os.environ['PATH']}"
    study.write(registry.load("app"), clients, **parameters)
    return study.run(PATH=path).returncode


def test_the_program_of_a_command_is_known_to_the_byte(study: Study, solver: Path) -> None:
    assert run_app(study, command=f"OMP_NUM_THREADS=2 '{solver}' --input 3; ls >/dev/null") == 0
    digest = hashlib.sha256(SOLVER.encode()).hexdigest()
    assert tags(study) == {
        "app.program": str(solver),
        "app.program_bytes": str(len(SOLVER)),
        "app.program_sha256": digest,
    }
    first = Path("/usr/bin/ls").resolve()
    assert programs(study) == {
        str(solver): digest,
        str(first): hashlib.sha256(first.read_bytes()).hexdigest(),
    }


def test_its_version_is_the_first_words_that_it_prints_and_in_no_time(
    study: Study, solver: Path
) -> None:
    assert run_app(study, command="my-solver", version="--version", clients=2) == 0
    version = tags(study)["app.version"]
    assert version.startswith("solver 2.1 (")
    asked_us = int(version.removeprefix("solver 2.1 (").rstrip(")"))
    assert all(study.clock(client)[0][1] <= asked_us for client in (0, 1))
    assert study.elapsed_is_the_longest_clients(2)
    assert lines(study, "tags.1") == []  # one for the run


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("echo release 7; exit 3", "release 7"),  # a command line; some programs fail after it
        ("--nothing", None),
        ("exit 1", None),
        ("printf 'a\\tb\\001c\\n' >&2", "a b c"),
    ],
)
def test_a_version_that_is_not_printed_is_no_tag(
    study: Study, solver: Path, version: str, expected: str | None
) -> None:
    assert run_app(study, command=f"{solver}", version=version) == 0
    assert tags(study).get("app.version") == expected
    assert study.result()["state"] == "completed"


def test_a_version_that_does_not_end_holds_no_job(study: Study, solver: Path) -> None:
    """What it left in the background kept the pipe open: the job waited for it up to its time limit."""
    pid = solver.with_name("pid")
    version = f"sleep 987654 & echo $! >'{pid}'"
    assert run_app(study, command=f"{solver}", version=version) == 0
    assert "app.version" not in tags(study)
    assert study.result()["state"] == "completed"
    words = Path("/proc", pid.read_text(encoding="utf-8").strip(), "cmdline")
    assert not words.exists() or words.read_bytes() == b""  # of a zombie


def test_a_version_has_a_moment(study: Study, solver: Path) -> None:
    """The job's end waits for it, and for mpirun's."""
    limit, launcher = solver.with_name("timeout"), solver.with_name("mpirun")
    for path, words in (
        (limit, 'echo "$3" >>"$0.said"; exec /usr/bin/timeout "$@"'),
        (launcher, ":"),
    ):
        path.write_text(f"#!/bin/bash\n{words}\n", encoding="utf-8")
        path.chmod(0o755)
    assert run_app(study, command=f"mpirun -n 4 {solver}", version="sleep 987654") == 0
    assert study.result()["state"] == "completed"
    assert limit.with_name("timeout.said").read_text(encoding="utf-8").split() == ["2", "2"]


@pytest.mark.parametrize("command", ["x=1", "cd / && :", "[[ 'a b' ]]"])
def test_a_command_without_a_program_that_is_found_has_no_such_tags(
    study: Study, command: str
) -> None:
    assert run_app(study, command=command, version="--version") == 0
    assert tags(study) == {}


def test_a_command_by_mpirun_has_the_version_of_mpi(study: Study, solver: Path) -> None:
    launcher = solver.with_name("mpirun")
    launcher.write_text("#!/bin/bash\n[[ $1 != --version ]] || echo 'mpirun (Open MPI) 5.0.3'\n")
    launcher.chmod(0o755)
    assert run_app(study, command=f"mpirun -n 4 {solver}", version="--version") == 0
    found = tags(study)
    assert found["mpirun.version"] == "mpirun (Open MPI) 5.0.3"
    assert found["app.program"] == str(solver)  # not what started it
    assert found["app.version"].startswith("solver 2.1")
    assert programs(study).keys() == {str(solver), str(launcher)}


def test_a_run_that_failed_notes_nothing(study: Study, solver: Path) -> None:
    assert run_app(study, command=f"{solver}; exit 3", version="--version") == 1
    assert tags(study) == {}


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to x\n", "mpirun (Open MPI) 4.1.4"),
        (
            "HYDRA build details:\n    Version:           4.0.2\n    Release Date: x\n",
            "HYDRA 4.0.2",
        ),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005\nCopyright\n",
            "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005",
        ),
        ("", None),
    ],
)
def test_the_version_of_mpi_is_a_line(
    study: Study, tmp_path: Path, printed: str, version: str | None
) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text(f"#!/bin/bash\n[[ $1 != --version ]] || printf '%s' '{printed}'\n")
    launcher.chmod(0o755)
    study.body(f"sy_mpi_run 2 '{launcher}' true")
    assert study.run().returncode == 0
    assert tags(study).get("mpirun.version") == version


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("pbs_version = 23.06.06", "PBS 23.06.06"),
        ("Version: 6.1.3\nCommit: 5af9b0", "Torque 6.1.3"),
        ("torque wrapper of Slurm 22.05", None),
        ("", None),
    ],
)
def test_the_version_of_pbs_is_that_of_its_qstat(
    study: Study, tmp_path: Path, printed: str, version: str | None
) -> None:
    qstat = tmp_path / "qstat"
    qstat.write_text(f"#!/bin/bash\n[[ $* == --version ]] && printf '%s\\n' '{printed}'\n")
    qstat.chmod(0o755)
    study.body('sy_tag_nonempty v "$(sy_pbs_version)"')
    assert study.run(PBS_O_PATH=str(tmp_path)).returncode == 0
    assert tags(study).get("v") == version
