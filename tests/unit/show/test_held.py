"""What a job held and used by the scheduler's account, held against what Slurm's seff computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.analysis.job.job_lookup import Start, group_starts
from steelyard.analysis.sources import sacct, slurm_allocation
from steelyard.analysis.sources.accounting import AccountingRow, Allocation
from steelyard.analysis.sources.pbs.accounting import Pbs

DATA = Path(__file__).parents[2] / "data"
FOLDER = DATA / "sacct" / "held"
ASKED = [name for name in sacct.FIELDS if name not in sacct.OPTIONAL]  # 22.05 has none of them


def found() -> list[Start]:
    with (FOLDER / "jobs.txt").open(encoding="utf-8", newline="\n") as file:
        return group_starts(sacct.parse_lines_without_steps(file, ASKED))


def held_of(start: Start) -> Allocation:
    return sacct.Sacct().read_allocation(start.row, start.steps)


def by_id(job: str) -> Allocation:
    return next(held_of(s) for s in found() if job in (s.row.task_id, s.row.job_id))


def seff() -> Iterator[tuple[str, float, float]]:
    """Job, CPU and memory efficiency in percent, as contribs/seff/seff computes them: TotalCPU of
    CPUs × elapsed; of the steps the largest sum of its tasks' memory, of what was allocated."""
    jobs: dict[str, list[list[str]]] = {}
    for line in (FOLDER / "seff.txt").read_text().splitlines():
        cells = line.split("|")
        jobs.setdefault(cells[0].partition(".")[0], []).append(cells)
    for name, (job, *steps) in jobs.items():
        walltime = int(job[1]) * int(job[2])
        minutes, _, seconds = job[3].rpartition(":")
        cpu_s = 60 * float(minutes.rpartition(":")[2]) + float(seconds)
        used = [int(part[4:]) for s in steps for part in s[5].split(",") if part[:4] == "mem="]
        (held,) = (part for part in job[4].split(",") if part.startswith("mem="))
        mib = float(held[4:-1])
        if walltime and cpu_s and used:
            yield name, 100 * cpu_s / walltime, 100 * max(used) / mib / 2**20


def test_it_is_what_seff_computes() -> None:
    told = {name: (cpu, memory) for name, cpu, memory in seff()}
    assert set(told) == {"1", "2", "7", "8"}
    for start in found():
        if start.row.job_id not in told:
            continue
        held, (cpu, memory) = held_of(start), told[start.row.job_id]
        assert held.cpus and held.cpu_s and held.memory_bytes and start.row.elapsed_s
        assert 100 * held.cpu_s / (held.cpus * start.row.elapsed_s) == pytest.approx(cpu, rel=1e-9)
        assert held.resident_low_bytes and held.resident_high_bytes
        low, high = held.resident_low_bytes, held.resident_high_bytes
        # sacct prints kilobytes of the largest task.
        assert low / held.memory_bytes <= memory / 100 * 1.001
        assert high / held.memory_bytes >= memory / 100 * 0.999


@pytest.mark.parametrize(
    ("job", "cpus", "cpus_requested", "memory", "limit_s", "shares_request"),
    [
        ("1", 2, 2, 4 << 30, 7200, False),
        ("2", 2, 2, 4 << 30, 600, False),
        ("3_0", 1, 1, 1 << 30, 525600 * 60, True),
        ("5", 1, 1, 1 << 30, None, True),
        ("7", 2, 1, 1 << 30, 525600 * 60, False),  # a node given whole
        ("9", 1, 1, 600 << 20, 1200, False),
    ],
)
def test_what_was_held(
    job: str,
    cpus: int,
    cpus_requested: int,
    memory: int,
    limit_s: float | None,
    shares_request: bool,
) -> None:
    held = by_id(job)
    assert (held.partition, held.account) == ("main", "root")
    assert (held.cpus, held.cpus_requested, held.memory_bytes) == (cpus, cpus_requested, memory)
    assert (held.time_limit_s, held.shares_request) == (limit_s, shares_request)
    assert (limit_s is None) == (held.missing.get("time_limit_s") == "there is none")


def test_of_a_job_that_runs_no_cpu_time_is_known() -> None:
    """sacct prints 0 until its steps end."""
    assert by_id("9").cpu_s is None


def test_a_cluster_that_hands_out_no_memory_says_so() -> None:
    with (DATA / "sacct/22.05/jobs.txt").open(encoding="utf-8", newline="\n") as file:
        start = next(iter(group_starts(sacct.parse_lines_without_steps(file, ASKED))))
    held = sacct.Sacct().read_allocation(start.row, start.steps)
    assert held.memory_bytes is None and held.cpus == 1
    assert held.missing["memory_bytes"] == slurm_allocation.NO_MEMORY


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:06.431", 6.431),
        ("01:02:03", 3723),
        ("2-01:02:03", 176523),
        ("", None),
        ("INVALID", None),
    ],
)
def test_times_of_sacct(text: str, seconds: float | None) -> None:
    assert slurm_allocation.parse_duration_s(text) == seconds


def told(**changed: str) -> tuple[AccountingRow, Allocation]:
    """Return the allocation of a job with some cells of its line changed."""
    cells = list(next(s.row for s in found()).fields)
    for name, text in changed.items():
        cells[sacct.INDEX[name]] = text
    row = sacct.parse_row(cells)
    assert row is not None
    return row, slurm_allocation.read_allocation(row, sacct.FIELDS, [])


@pytest.mark.parametrize(
    ("alloc", "gpus", "why"),
    [
        ("billing=2,cpu=2,gres/gpu:a100=2,gres/gpu=2,mem=1G,node=1", 2, None),  # named twice
        ("billing=8,cpu=8,gres/gpu:a100=2,mem=64G,node=1", 2, None),  # tracked by type only
        ("cpu=8,gres/gpu:a100=2,gres/gpu:h100=1,mem=64G,node=1", 3, None),
        ("cpu=8,gres/gpu=0,mem=64G,node=1", 0, None),
        ("billing=8,cpu=8,mem=64G,node=1", None, "does not track gres/gpu"),
        ("cpu=8,gres/shard=4,mem=64G,node=1", None, "parts of GPUs (AllocTRES: gres/shard=4)"),
        ("", None, None),  # nothing is reported of a pending job
    ],
)
def test_gpus_that_no_tres_names_are_not_known(
    alloc: str, gpus: int | None, why: str | None
) -> None:
    _, held = told(AllocTRES=alloc)
    assert held.gpus == gpus
    said = held.missing.get("gpus")
    assert said is None if why is None else why in str(said)


@pytest.mark.parametrize(
    ("total", "cpu_s"),
    [
        ("1-16:59:47", None),  # 4629 % of two CPUs, as Slurm 18.08 added it up
        ("53:45.000", None),  # a little above 2 x 1595 s
        ("53:08.000", 3188.0),  # 100 %
    ],
)
def test_more_cpu_time_than_the_cpus_have_is_not_believed(total: str, cpu_s: float | None) -> None:
    _, held = told(TotalCPU=total, ElapsedRaw="1594", AllocTRES="cpu=2,mem=16G,node=1")
    assert held.cpu_s == cpu_s
    why = held.missing.get("cpu_s")
    assert why is None if cpu_s else "more than the 2 CPUs it was given have in 1594 s" in str(why)


def test_time_that_a_job_was_suspended_is_told() -> None:
    start = 1_795_000_010
    cells = {"Start": str(start), "End": str(start + 4200)}
    assert told(**cells, ElapsedRaw="600")[0].suspended_s == 3600.0
    assert told(**cells, ElapsedRaw="4199")[0].suspended_s == 0.0
    assert told(Start=str(start), End="Unknown", ElapsedRaw="600")[0].suspended_s is None


@pytest.fixture
def pbs_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", str(tmp_path))
    monkeypatch.setattr("steelyard.analysis.sources.pbs.pbs_commands.is_installed", lambda: False)
    yield "", tmp_path


@pytest.mark.parametrize(
    ("log", "account", "cpu_s", "used"),
    [
        ("openpbs/accounting-1-classic-pelog.log", "acct1", 2, None),  # mem=0kb: not looked at
        ("torque/accounting-mixed.log", "acct1", 3, 44048 << 10),
    ],
)
def test_of_pbs_what_its_log_tells(
    pbs_rows: tuple[str, Path], log: str, account: str, cpu_s: float, used: int | None
) -> None:
    (pbs_rows[1] / "20261121").write_bytes((DATA / log).read_bytes())
    (row,) = Pbs().rows(["0.vm"])
    assert isinstance(row, AccountingRow)
    held = Pbs().read_allocation(row, [])
    assert (held.partition in ("workq", "batch"), held.account) == (True, account)
    assert (held.cpus, held.nodes, held.time_limit_s) == (1, 1, 120)
    assert (held.cpu_s, held.resident_low_bytes) == (cpu_s, used)
    assert held.memory_bytes is None and "Resource_List.mem" in held.missing["memory_bytes"]


@pytest.mark.parametrize(("walltime", "cpu_s"), [("00:00:00", None), ("00:00:30", 29.0)])
def test_cpu_time_of_one_sister_is_not_the_jobs(
    pbs_rows: tuple[str, Path], walltime: str, cpu_s: float | None
) -> None:
    """OpenPBS: 30 s on two nodes, walltime 0, and the CPU time of one of them."""
    asked = "user=u1 group=g1 project=_pbs_project_default jobname=a queue=workq ctime=1795240010 "
    asked += "qtime=1795240010 etime=1795240010 "
    begun = f"{asked}start=1795240020 exec_host=n1/0+n2/0 exec_vnode=(n1:ncpus=1)+(n2:ncpus=1) "
    begun += "Resource_List.ncpus=2 Resource_List.nodect=2 Resource_List.select=2:ncpus=1 "
    used = "session=0 end=1795240050 Exit_status=0 resources_used.cput=00:00:29 "
    used += f"resources_used.mem=0b resources_used.walltime={walltime} run_count=1"
    (pbs_rows[1] / "20261121").write_text(
        f"11/21/2026 05:46:50;Q;72.srv;{asked}\n11/21/2026 05:47:00;S;72.srv;{begun}\n"
        f"11/21/2026 05:47:30;E;72.srv;{begun}{used}\n"
    )
    (row,) = Pbs().rows(["72.srv"])
    assert isinstance(row, AccountingRow)
    held = Pbs().read_allocation(row, [])
    assert (row.elapsed_s, row.state, held.cpus) == (30, "completed", 2)
    assert (held.cpu_s, held.resident_low_bytes) == (cpu_s, None)
    assert ("cpu_s" in held.missing) is (cpu_s is None)


def test_the_jobs_of_a_user_are_found_in_the_logs_of_pbs(pbs_rows: tuple[str, Path]) -> None:
    log = DATA / "openpbs/accounting-1-classic-pelog.log"
    (pbs_rows[1] / "20261121").write_bytes(log.read_bytes())
    ids = Pbs().list_recent_jobs("labpbs", 1795240000)
    assert "0.vm" in ids and "8[].vm" in ids and len(ids) == len(set(ids)) > 5
    assert not any(text.startswith("8[1]") for text in ids)  # the array represents its tasks
    assert Pbs().list_recent_jobs("nobody", 1795240000) == []
    assert Pbs().list_recent_jobs("labpbs", 1795240000 + 5 * 86400) == []
