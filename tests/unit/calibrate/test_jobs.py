"""Jobs of each batch system: what is submitted, and how their ends and outcomes are judged."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.calibrate.test_table import result

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import calibration, jobs
from steelyard.wrappers.calibrate.job_system import JobSystem, Report
from steelyard.wrappers.calibrate.known_loads import Result
from steelyard.wrappers.calibrate.pbs_jobs import PbsJobs
from steelyard.wrappers.calibrate.slurm_jobs import SlurmJobs
from steelyard.wrappers.calibrate.table import Cell, Table, Trouble
from steelyard.wrappers.schedulers.pbs import script
from steelyard.wrappers.schedulers.pbs.dialects import OpenPbs, Torque
from steelyard.wrappers.schedulers.retries import CommandError

LOAD, OPTIONS = Path("/d/a b/load"), ("-qshort", "--x=y")


def slurm() -> JobSystem:
    return SlurmJobs(LOAD, OPTIONS)


def torque() -> JobSystem:
    system = PbsJobs(LOAD, OPTIONS)
    system.dialect = Torque()
    return system


def openpbs() -> JobSystem:
    system = PbsJobs(LOAD, OPTIONS)
    system.dialect = OpenPbs()
    return system


EACH = pytest.mark.parametrize("make", [slurm, torque, openpbs])
Make = Callable[[], JobSystem]


@pytest.fixture(autouse=True)
def _without_our_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "encode_request", lambda words: ",".join(words).lstrip("-"))


@EACH
def test_every_launch_method_asks_for_a_rate_and_has_the_users_options(make: Make) -> None:
    system = make()
    methods = system.list_methods(quick=False)
    assert len({method.name for method in methods}) == len(methods) >= 26
    for method in methods:
        for line in method.lines:
            argv, script = system.command(method, line, Path("/d/e f"), "")
            assert set(OPTIONS) <= {*argv}
            assert any("sample-rate=" in word for word in argv)
            # A folder with a blank in its name: the shell must still find the load.
            words = shlex.split(script.splitlines()[-1]) if script else argv
            assert str(LOAD) in words or any(f"'{LOAD}'" in word for word in words)


@EACH
def test_quick_leaves_out_what_others_stand_for(make: Make) -> None:
    full, quick = (([m.name for m in make().list_methods(quick)]) for quick in (False, True))
    program = make().submit_program
    assert [name for name in full if name not in quick] == [
        "10 samples a second", f"{program}: 1 process", f"{program}: storage", f"{program}: memory",
    ]  # fmt: skip


def test_both_launch_the_same_loads() -> None:
    names = [
        {
            m.name.removeprefix(f"{system.submit_program}: ")
            for m in system.list_methods(quick=False)
        }
        for system in (slurm(), torque())
    ]
    both = names[0] & names[1]
    assert {
        "array", "two nodes, work on one", "shared node", "0 samples a second", "1 samples a second",
        "10 samples a second", "100 samples a second", "10 orphans", "SIGCHLD ignored",
        "500 processes of 1 ms",
    } <= both  # fmt: skip
    assert {"sbatch", "sbatch, srun in it", "srun alone", "srun alone, tagged", "het job",
            "salloc, srun twice", "--overlap", "requeue"} <= names[0] - both  # fmt: skip
    assert {"qsub", "qsub, pbsdsh", "two nodes, pbsdsh", "qrerun", "qdel"} <= names[1] - both


class Submitted(SlurmJobs):
    """A cluster that only records its commands."""

    restart_delay_s = 0.0

    def __init__(self, refuses: str = "") -> None:
        super().__init__(LOAD)
        self.refuses = refuses
        self.ran: list[list[str]] = []
        self.cancelled: list[str] = []
        self.answer: dict[str, list[Report]] = {}

    def run(self, argv: Collection[str], folder: Path | None = None) -> str:
        words = list(argv)
        self.ran.append(words)
        if self.refuses in words:
            raise CommandError(words[0], "not allowed")
        return f"{len(self.ran)};cluster\n"

    def cancel(self, jobs: Collection[str]) -> None:
        self.cancelled += jobs

    def query_reports(self, jobs: Collection[str]) -> Mapping[str, list[Report]]:
        return self.answer

    def find_node_for_two(self) -> str:
        return "n7"


def attempt(tmp_path: Path, system: JobSystem, name: str = "sbatch") -> jobs.Attempt:
    method = next(one for one in system.list_methods(quick=False) if one.name == name)
    folder = tmp_path / "method"
    return jobs.Attempt(jobs.Site(system, tmp_path, [tmp_path / "records"]), method, folder)


def leave(folder: Path, one: Result, number: int = 1) -> None:
    (folder / f"{one.job},{one.node},{number}.result").write_text(json.dumps(one.values))


def test_two_jobs_of_one_node_are_submitted_to_it(tmp_path: Path) -> None:
    system = Submitted()
    one = attempt(tmp_path, system, "shared node")
    one.submit()
    assert one.jobs == ["1", "2"] and all("--nodelist=n7" in words for words in system.ran)
    assert "meet=b:a" in (one.folder / system.ran[1][-1]).read_text()


def test_where_one_of_two_jobs_is_refused_the_other_is_cancelled(tmp_path: Path) -> None:
    system = Submitted(refuses="script.1")
    one = attempt(tmp_path, system, "shared node")
    one.submit()
    assert (one.done, system.cancelled) == (True, ["1"])
    assert list(one.make_cells()) == [
        Trouble("shared node", "Slurm would not do it: sbatch: not allowed")
    ]


def test_a_job_is_over_when_its_last_start_is(tmp_path: Path) -> None:
    one = attempt(tmp_path, Submitted())
    one.submit()
    leave(one.folder, result("1"))
    over, running = Report(True, 2.0), Report(False, 2.0)
    for reports in ({}, {"1": [running]}, {"1": [over, running]}, {"9": [over]}):
        one.update(reports)
        assert not one.done
    one.update({"1": [running, over], "9": [running]})
    assert one.done


def test_a_job_that_is_over_without_a_result_has_a_moment_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may not list it yet, a shared folder not show the result: it is seen again."""
    one, over = attempt(tmp_path, Submitted()), Report(True, 2.0)
    one.submit()
    now = 100.0
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now)
    for seconds, reports, done in (
        (0, {"1": [over]}, False),
        (4, {"1": [replace(over, is_over=False)]}, False),
        (4, {"1": [over]}, False),
        (4, {"1": [over]}, False),
        (4, {"1": [over]}, True),
    ):
        now += seconds
        one.update(reports)
        assert one.done is done


def test_an_interrupted_job_is_interrupted_once_and_started_again_at_once(tmp_path: Path) -> None:
    system = Submitted()
    one = attempt(tmp_path, system, "requeue")
    one.submit()
    one.update({})
    assert len(system.ran) == 1
    leave(one.folder, result("1"))
    for _ in range(3):
        one.update({})
    assert system.ran[1] == ["scontrol", "requeue", "1"]
    assert system.ran[2:] == [["scontrol", "update", "StartTime=now", "JobId=1"]] * 2
    assert (one.folder / "again").exists()


def test_an_interruption_that_is_refused_is_not_possible_here(tmp_path: Path) -> None:
    system = Submitted(refuses="requeue")
    one = attempt(tmp_path, system, "requeue")
    one.submit()
    leave(one.folder, result("1"))
    one.update({})
    assert system.cancelled == ["1"]
    (trouble,) = one.make_cells()
    assert trouble == Trouble("requeue", "Slurm would not do it: scontrol: not allowed")


@EACH
def test_a_launch_method_without_a_result_has_its_reason(tmp_path: Path, make: Make) -> None:
    system = make()
    name = system.submit_program
    one = attempt(tmp_path, system, name)
    one.folder.mkdir()
    (one.folder / "out").write_text("sh: ./load: not found\n")
    assert list(one.make_cells()) == [Trouble(name, "its jobs had not ended after 600 s", True)]
    one.done = True
    (lost,) = one.make_cells()
    assert lost == Trouble(name, "0 of 1 loads left a result: sh: ./load: not found", True)
    one.refused = "no queue"
    assert list(one.make_cells()) == [Trouble(name, f"{system.title} would not do it: no queue")]


def test_a_job_without_a_record_is_a_failure(tmp_path: Path) -> None:
    one = attempt(tmp_path, Submitted())
    one.folder.mkdir()
    one.done = True
    leave(one.folder, result("1"))
    (trouble,) = (entry for entry in one.make_cells() if not isinstance(entry, Cell))
    assert trouble.failed and "job 1 left no record in" in trouble.reason


def test_tasks_of_an_array_are_of_its_submission() -> None:
    assert jobs.belongs_to("12[3].srv", ["12[].srv"])
    assert jobs.belongs_to("12[].srv", ["12[].srv"])
    assert jobs.belongs_to("12.srv", ["12.srv"]) and jobs.belongs_to("12", {"12"})
    assert not jobs.belongs_to("12[3].srv", ["12.srv", "1[].srv"]) and not jobs.belongs_to(
        "12", {"1"}
    )


def test_components_of_a_het_job_are_known_by_their_nodes() -> None:
    reports = {"20": [Report(True, 1, ("n1",))], "21": [Report(True, 1, ("n3", "n4"))]}
    assert jobs.find_job(Result("20", "n1", {}), reports) == "20"
    assert jobs.find_job(Result("20", "n4", {}), reports) == "21"
    assert jobs.find_job(Result("20", "0", {}), reports) == "20"


@pytest.mark.parametrize(
    ("name", "title", "why"),
    [
        ("slurm", "Slurm", "scontrol is not on this machine"),
        ("pbs", "PBS", "qsub is not in PATH"),
    ],
)
def test_a_batch_system_that_is_missing_is_listed_and_where_it_was_named_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, title: str, why: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(calibration, "measure_local_runs", lambda *_: None)
    values = {"quick": True, "only": "", "containers": [], "options": ()}
    request = calibration.Request(None, record_dirs=(Path("/r"),), patience_s=1.0, **values)  # type: ignore[arg-type]
    table = Table()
    calibration.fill_table(request, tmp_path, table, lambda _: None)
    (trouble,) = (one for one in table.troubles if one.launch_method == f"jobs of {title}")
    assert why in trouble.reason and not trouble.failed
    with pytest.raises(MissingError, match=why):
        calibration.fill_table(replace(request, scheduler=name), tmp_path, Table(), lambda _: None)
