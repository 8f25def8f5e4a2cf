"""How ranks on several nodes are started: by which mpirun, which way, and how many on which node."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.jobscripts import registry

from .pbs_lab import Recorded

if TYPE_CHECKING:
    from .conftest import Study

DATA = Path(__file__).parents[2] / "data/launchers"
OPEN_MPI = "openmpi-4.1.4.version.txt"
WITH_TM = "openmpi-4.1.6-tm.ompi_info.txt"
WITHOUT_TM = "openmpi-4.1.4.ompi_info.txt"
HYDRA = "hydra-4.0.2.version.txt"
# Only the recorded nodes' names are needed here: they resolve on the machines of the record alone.
BODY = (
    "sy_node_address() { echo 127.0.0.1; }; sy_prefix_length() { echo 24; }\n"
    "sy_without_scheduler\nsy_mpi_run {ranks} mpirun program argument"
)
# What it was called with, and which variables of the job it saw.
MPIRUN = """\
#!/bin/bash
[[ $1 != --version ]] || exec cat {version}
printf '%s\\0' "$@" >{log}.words
compgen -v PBS_ >{log}.variables || :
"""


@pytest.fixture(params=["torque", "openpbs"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Recorded:
    if request.param == "torque":
        return Recorded("torque", ("vmb", "vm"), tmp_path, "99.vm")
    return Recorded("openpbs", ("opbs1", "opbs2"), tmp_path, "139.opbs")


@dataclasses.dataclass
class Called:
    """A run of four ranks, and what its mpirun was called with."""

    code: int
    errors: str
    words: list[str]
    variables: set[str]
    tags: dict[str, str]
    folder: Path

    def value(self, *option: str) -> str:
        """Return the text after these words."""
        at = [i for i in range(len(self.words)) if (*self.words[i : i + len(option)],) == option]
        assert len(at) == 1, (option, self.words)
        return self.words[at[0] + len(option)]


def script(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def call(
    study: Study, job: Recorded, version: str, info: str | None, ranks: int = 4,
    environment: dict[str, str] | None = None, more: str = "",
) -> Called:  # fmt: skip
    programs = job.work / "mpi"
    programs.mkdir()
    log = job.work / "mpirun"
    script(programs / "mpirun", MPIRUN.format(version=DATA / version, log=log) + more)
    if info is not None:
        script(programs / "ompi_info", f"#!/bin/sh\n[ $1 = --parsable ] && cat {DATA / info}\n")
    study.body(BODY.replace("{ranks}", str(ranks)))
    given = job.environment() if environment is None else environment
    done = study.run(**{**given, "PATH": f"{programs}:{given['PATH']}"})
    attempt = study.attempt(f"{job.job_id}.0")
    words = Path(f"{log}.words")
    seen = Path(f"{log}.variables")
    tags = (attempt / "tags.0").read_text(encoding="utf-8").splitlines()
    return Called(
        done.returncode,
        (attempt / "err.0").read_text(encoding="utf-8"),
        words.read_text().split("\0")[:-1] if words.exists() else [],
        set(seen.read_text().split()) if seen.exists() else set(),
        dict(line.split("=", 1) for line in tags),
        attempt,
    )


def test_an_mpirun_with_tm_asks_the_server_itself(study: Study, job: Recorded) -> None:
    called = call(study, job, OPEN_MPI, WITH_TM)
    assert (called.code, called.errors) == (0, "")
    assert called.tags["mpi.start"] == "tm"
    assert (called.value("--mca", "plm"), called.value("--mca", "ras")) == ("tm", "tm")
    assert called.value("--host") == f"{job.nodes[0]}:2,{job.nodes[1]}:2"
    assert called.value("-np") == "4"
    assert called.words[-2:] == ["program", "argument"]
    asked = {"PBS_JOBID", "PBS_NODEFILE", "PBS_JOBCOOKIE", "PBS_NODENUM", "PBS_TASKNUM"}
    assert called.variables >= asked | {"PBS_MOMPORT", "PBS_ENVIRONMENT"}
    assert not list(called.folder.glob("mpi-agent.*"))


@pytest.mark.parametrize(
    ("info", "variables"),
    [(WITHOUT_TM, {}), (None, {}), (WITH_TM, {"STEELYARD_MPI_TM": "no"})],
    ids=["built without", "nobody tells", "not wanted"],
)
def test_else_its_daemons_are_tasks_of_ours(
    study: Study, job: Recorded, info: str | None, variables: dict[str, str]
) -> None:
    called = call(study, job, OPEN_MPI, info, environment={**job.environment(), **variables})
    assert (called.code, called.errors) == (0, "")
    assert called.tags["mpi.start"] == "pbsdsh"
    assert (called.value("--mca", "plm"), called.value("--mca", "ras")) == ("rsh", "^slurm,tm")
    assert called.value("--host") == f"{job.nodes[0]}:2,{job.nodes[1]}:2"
    agent = called.value("--mca", "plm_rsh_agent")
    # By name, with its folder in PATH: Open MPI takes a path with blanks apart.
    assert agent == "mpi-agent.0" and (called.folder / agent).is_file()
    assert called.variables == set()


def test_one_component_of_the_two_is_not_enough(
    study: Study, job: Recorded, tmp_path: Path
) -> None:
    lines = (DATA / WITH_TM).read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "info").write_text("".join(x for x in lines if not x.startswith("mca:ras:tm:")))
    called = call(study, job, OPEN_MPI, str(tmp_path / "info"))
    assert called.tags["mpi.start"] == "pbsdsh"


def test_the_way_is_told_where_there_is_only_ssh(study: Study, job: Recorded) -> None:
    assert (
        call(study, job, OPEN_MPI, WITHOUT_TM, environment=job.environment(tm=False)).tags[
            "mpi.start"
        ]
        == "ssh"
    )


def test_mpich_starts_its_proxies_as_tasks_too(study: Study, job: Recorded) -> None:
    """What Hydra says to its launcher is recorded: node, and a command line for a shell."""
    sister = job.nodes[1]
    more = f"while [[ $1 != -launcher-exec ]]; do shift; done; \"$2\" {sister} '\"echo\"' 'on $PBS_NODENUM'\n"
    called = call(study, job, HYDRA, None, ranks=3, more=more)
    assert (called.code, called.errors) == (0, "")
    assert called.value("-hosts") == f"{job.nodes[0]}:2,{sister}:1"
    assert (called.value("-launcher"), called.value("-rmk")) == ("rsh", "user")
    assert called.tags["mpi.start"] == "pbsdsh"
    assert (called.folder / "out.0").read_text(encoding="utf-8") == "on 1\n"
    assert job.started() == ["2"]


def test_mpich_does_not_wait_for_a_proxy_that_never_began(study: Study, job: Recorded) -> None:
    """Hydra would, as long as the job lives (4.0.2)."""
    more = 'while [[ $1 != -launcher-exec ]]; do shift; done; "$2" nowhere true; exec sleep 60\n'
    called = call(study, job, HYDRA, None, ranks=3, more=more)
    assert called.code == 1
    assert "node nowhere is none of this job's" in called.errors
    assert study.result(f"{job.job_id}.0")["exit_codes"] == [143]


def test_another_mpirun_is_refused_with_words(study: Study, job: Recorded, tmp_path: Path) -> None:
    (tmp_path / "version").write_text("mpirun 1.0\n")
    called = call(study, job, str(tmp_path / "version"), None)
    assert (called.code, called.words) == (1, [])
    assert "mpirun is neither Open MPI's nor MPICH's" in called.errors


def shares(tmp_path: Path, node_file: str, ranks: int) -> subprocess.CompletedProcess[str]:
    """HOST:RANKS for a job with that node file."""
    (tmp_path / "steelyard.sh").write_text(registry.library(), encoding="utf-8")
    (tmp_path / "nodefile").write_text("".join(f"{node}\n" for node in node_file.split()))
    text = (
        '. "$1/steelyard.sh"; SY_SCHEDULER=pbs PBS_NODEFILE=$1/nodefile; '
        "SY_PBS_NODES=$(sy_pbs_distinct_nodes) SY_PBS_SLOTS=$(sy_pbs_slot_list); "
        "SY_THIS_NODE=${SY_PBS_NODES%% *} SY_THIS_NODE=${SY_THIS_NODE#*:}; "
        'mapfile -t nodes < <(sy_nodes); sy_mpi_share_ranks "$2" && sy_mpi_format_hosts'
    )
    return subprocess.run(
        ["bash", "-c", text, "-", tmp_path, str(ranks)],
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("node_file", "ranks", "expected"),
    [
        ("a a b b", 4, "a:2,b:2"),
        ("a b a b", 4, "a:2,b:2"),
        ("a a b", 3, "a:2,b:1"),  # nodes=1:ppn=2+1:ppn=1
        ("b a a", 3, "b:1,a:2"),  # the one with room for it gets one more
        ("a a b", 2, "a:1,b:1"),
        ("a a a b b", 4, "a:2,b:2"),
        ("a b", 3, "a:2,b:1"),  # without ppn nothing is said of slots
        ("a b", 8, "a:4,b:4"),
        ("a b c", 4, "a:2,b:1,c:1"),
        ("a b c", 2, "a:1,b:1"),
        ("n1.x.y n1.x.y n2.x.y", 3, "n1.x.y:2,n2.x.y:1"),
    ],
)
def test_equal_shares_that_fit_the_slots(
    tmp_path: Path, node_file: str, ranks: int, expected: str
) -> None:
    done = shares(tmp_path, node_file, ranks)
    assert (done.stdout, done.stderr) == (expected, "")


@pytest.mark.parametrize(
    ("node_file", "ranks", "slots"),
    [
        ("a a b", 4, {"a 2", "b 1"}),
        ("a a a b", 4, {"a 3", "b 1"}),
        ("a a b b", 5, {"a 2", "b 2"}),
        ("a a b c", 5, {"a 2", "b 1", "c 1"}),
    ],
)
def test_what_does_not_fit_is_refused_with_words(
    tmp_path: Path, node_file: str, ranks: int, slots: set[str]
) -> None:
    done = shares(tmp_path, node_file, ranks)
    assert (done.returncode, done.stdout) == (2, "")
    said = re.fullmatch(
        rf"steelyard: {ranks} ranks in equal shares on {len(slots)} nodes do not fit into the "
        r"job's slots \((.*)\): ask for as many processors on each node as it gets ranks\n",
        done.stderr,
    )
    assert said and set(said[1].split(", ")) == slots
