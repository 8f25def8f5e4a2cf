"""Starts of a job from its lines: repeats, reruns, deletions, arrays, and local times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.pbs import accounting_logs
from steelyard.analysis.sources.pbs.accounting import Pbs

DATA = Path(__file__).parents[3] / "data"
DAY = "11/22/2026"
BASE = 1795375655  # 19:27:35 UTC of that day
WHO = "user=u group=g jobname=j queue=b ctime=1795375655 qtime=1795375655 etime=1795375655"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.analysis.sources.pbs.pbs_commands.is_installed", lambda: False)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", str(tmp_path))
    return tmp_path


def at(second: int) -> str:
    return time.strftime("%m/%d/%Y %H:%M:%S", time.gmtime(BASE + second))


def start(second: int, job: str = "7.s", count: int = 1) -> str:
    return (
        f"{at(second)};S;{job};{WHO} start_count={count} start={BASE + second} owner=u@s "
        "exec_host=n1/0 Resource_List.walltime=00:01:00 "
    )


def end(second: int, began: int, status: int, job: str = "7.s", used: int = 0) -> str:
    return (
        f"{at(second)};E;{job};{WHO} start_count=1 start={BASE + began} owner=u@s exec_host=n1/0 "
        "Resource_List.walltime=00:01:00 session=5 total_execution_slots=1 unique_node_count=1 "
        f"end={BASE + second} Exit_status={status} resources_used.cput=1 "
        f"resources_used.walltime=00:00:{used:02d}"
    )


def rows(logs: Path, *lines: str, asked: str = "7") -> list[AccountingRow]:
    (logs / "20261122").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = list(Pbs().rows([asked]))
    assert all(isinstance(row, AccountingRow) for row in found)
    # The database's values give the same rows.
    assert [Pbs().parse_row(row.fields) for row in found] == found
    return found


QUEUED = f"{at(0)};Q;7.s;queue=b"


def told(found: list[AccountingRow]) -> Iterator[tuple[object, ...]]:
    for row in found:
        begun = None if row.start_unix_s is None else row.start_unix_s - BASE
        ended = None if row.end_unix_s is None else row.end_unix_s - BASE
        yield row.state, begun, ended, row.exit_code, row.restarts


def test_tries_of_a_prologue_are_one_start(logs: Path) -> None:
    lines = [start(n, count=n + 1) for n in range(3)]
    (row,) = rows(logs, QUEUED, *lines, end(9, 2, 0))
    assert list(told([row])) == [("completed", 2, 9, 0, 0)]
    assert '"starts": 3' in row.fields[-1]


def test_a_rerun_is_a_start_of_its_own(logs: Path) -> None:
    lines = [QUEUED, start(1), f"{at(5)};R;7.s;", start(6), end(9, 6, 3)]
    assert list(told(rows(logs, *lines))) == [
        ("requeued", 1, 5, None, 0), ("failed", 6, 9, 3, 1),
    ]  # fmt: skip


def test_a_job_that_had_ended_runs_again(logs: Path) -> None:
    """Torque allows it within keep_completed."""
    lines = [QUEUED, start(1), end(3, 1, 0), f"{at(5)};R;7.s;"]
    assert list(told(rows(logs, *lines)))[1][0] == "pending"
    assert list(told(rows(logs, *lines, start(6)))) == [
        ("completed", 1, 3, 0, 0), ("running", 6, None, None, 1),
    ]  # fmt: skip


def test_deleted_while_it_waited_and_while_it_ran(logs: Path) -> None:
    gone = f"{at(4)};D;7.s;requestor=root@s"
    (row,) = rows(logs, QUEUED, gone)
    assert list(told([row])) == [("cancelled", None, 4, None, 0)]
    assert row.reason == "deleted by root@s while it waited" and row.submit_unix_s == BASE
    (row,) = rows(logs, QUEUED, start(1), gone, end(5, 1, 271))
    assert list(told([row])) == [("cancelled", 1, 5, 143, 0)]
    assert row.reason == "deleted by root@s"
    (row,) = rows(logs, QUEUED, start(1), gone, end(5, 1, 0))
    assert list(told([row])) == [("cancelled", 1, 5, 0, 0)]  # OpenPBS, of one that had hardly begun
    (row,) = rows(logs, QUEUED, start(1), end(3, 1, 0), gone)
    assert list(told([row])) == [("completed", 1, 3, 0, 0)]


@pytest.mark.parametrize(("used", "state"), [(59, "timeout"), (30, "cancelled")])
def test_a_signal_at_the_end_of_its_time(logs: Path, used: int, state: str) -> None:
    assert rows(logs, QUEUED, start(1), end(60, 1, 271, used=used))[0].state == state


def test_an_end_without_the_days_before(logs: Path) -> None:
    assert list(told(rows(logs, end(5, 1, 0)))) == [("completed", 1, 5, 0, 0)]


def test_a_line_that_cannot_be_read_is_kept_with_its_job(logs: Path) -> None:
    (row,) = rows(logs, QUEUED, start(1), f"{at(5)};E;7.s;user=u group=g jobname=")
    assert row.state == "running" and '"unreadable_lines": 1' in row.fields[-1]
    assert f"{at(5)};E;7.s;user=u group=g jobname=" in row.fields[-1]
    (row,) = rows(logs, f"{at(5)};E;7.s;user=u")
    assert row.state == "lost" and "cannot be read: it lacks" in str(row.reason)
    assert row.submit_unix_s == BASE + 5


REFUSED = f"{at(3)};A;7.s;hook rejected request, requiring job to be deleted"


def test_a_hook_that_refuses_a_condition(logs: Path) -> None:
    """OpenPBS 23.06 reports it on the first node, without any S."""
    for lines in ([QUEUED, REFUSED], [QUEUED, start(1), REFUSED]):
        (row,) = rows(logs, *lines)
        assert (row.state, row.end_unix_s) == ("failed", BASE + 3)
        assert row.reason == f"the server gave it up: {REFUSED.partition('7.s;')[2]}"


def test_other_jobs_that_the_server_gives_up(logs: Path) -> None:
    (row,) = rows(logs, QUEUED, f"{at(3)};A;7.s;Job deleted as result of dependency on job 6.s")
    assert row.state == "cancelled"


def asked_qstat(monkeypatch: pytest.MonkeyPatch, **jobs: dict[str, str]) -> None:
    """qstat knows these jobs alone."""
    told = {f"{name[1:]}.s": job for name, job in jobs.items()}
    monkeypatch.setattr("steelyard.analysis.sources.pbs.pbs_commands.is_installed", lambda: True)
    monkeypatch.setattr(
        "steelyard.analysis.sources.pbs.pbs_commands.detect_dialect", lambda: "torque"
    )
    monkeypatch.setattr(
        "steelyard.analysis.sources.pbs.pbs_commands.query_jobs", lambda ids, limit: told
    )


def test_an_end_that_torque_never_wrote(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = {"job_state": "C", "exit_status": "0", "start_time": f"{BASE + 6}", "exec_host": "n1/0"}
    asked_qstat(monkeypatch, j7=over | {"ctime": f"{BASE}", "comp_time": f"{BASE + 9}"})
    found = rows(logs, QUEUED, start(1), end(3, 1, 0), f"{at(5)};R;7.s;", start(6))
    assert list(told(found)) == [("completed", 1, 3, 0, 0), ("completed", 6, 9, 0, 1)]
    assert [row.reported_by for row in found] == [None, "qstat"]


def test_what_qstat_no_longer_knows(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torque writes nothing of an array's tasks that are deleted while they wait."""
    asked_qstat(monkeypatch)
    assert [row.state for row in rows(logs, QUEUED)] == ["cancelled"]
    assert [row.state for row in rows(logs, QUEUED, start(1))] == ["lost"]
    asked_qstat(monkeypatch, j7={"job_state": "R"})
    assert [row.state for row in rows(logs, QUEUED, start(1))] == ["running"]


ARRAY = f"{at(0)};Q;8[].s;{WHO.replace('group=g', 'group=g project=p')} array_indices=0-4:2 "


def test_tasks_of_an_array_that_have_not_started(logs: Path) -> None:
    (row,) = rows(logs, ARRAY, asked="8[].s")
    assert (row.waits_in_array, row.waiting_tasks) == (True, (0, 2, 4))
    task = start(1, "8[2].s").replace("owner=u@s ", "").replace("start_count=1 ", "")
    found = rows(logs, ARRAY, task, asked="8")
    assert [(r.job_id, r.state, r.array_job_id, r.waiting_tasks) for r in found] == [
        ("8[].s", "pending", "8[].s", (0, 4)),
        ("8[2].s", "running", "8[].s", ()),
    ]
    found = rows(logs, ARRAY, task, f"{at(3)};D;8[].s;requestor=u@s", asked="8")
    assert [r.state for r in found] == ["cancelled", "running"]


def test_two_days_and_another_job_of_that_id_before(logs: Path) -> None:
    (logs / "20251122").write_text(f"{start(1)}\n".replace("2026", "2025"), encoding="utf-8")
    (logs / "20261121").write_text(f"{QUEUED}\n{start(1)}\n", encoding="utf-8")
    assert list(told(rows(logs, end(9, 1, 0)))) == [("completed", 1, 9, 0, 0)]


def test_another_server_and_another_number_are_not_meant(logs: Path) -> None:
    lines = [start(1), start(1, "7.other"), start(1, "77.s"), start(1, "7[1].s")]
    assert [r.job_id for r in rows(logs, *lines, asked="7.s")] == ["7.s", "7[1].s"]


# --- local time: Europe/Berlin, where the clocks go back on 25 October 2026 at 3:00 -----------

SUMMER, WINTER = 7200, 3600
TURN = 1792890000  # 01:00 UTC of that day


def local(unix_s: int, ahead: int) -> str:
    return time.strftime("%m/%d/%Y %H:%M:%S", time.gmtime(unix_s + ahead))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_the_repeated_hour(logs: Path, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletions have no time but the local one; the same stamp, an hour apart."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        first, second = TURN - 1800, TURN + 1800  # both 02:30 on the server
        lines = [
            start(0).replace(at(0), local(first - 60, SUMMER)).replace(str(BASE), str(first - 60)),
            f"{local(first, SUMMER)};D;1.s;requestor=a@s",
            f"{local(second - 900, WINTER)};Q;3.s;queue=b",
            f"{local(second, WINTER)};D;2.s;requestor=a@s",
        ]
        assert lines[1][:19] == lines[3][:19] == "10/25/2026 02:30:00"
        (logs / "20261025").write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
        ends = {r.job_id: r.end_unix_s for job in "12" for r in Pbs().rows([job])}  # type: ignore[union-attr]
        assert ends == {"1.s": first, "2.s": second}
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_without_any_record_that_tells_the_zone_is_this_machines(logs: Path) -> None:
    (row,) = rows(logs, f"{at(3)};D;7.s;requestor=a@s")
    expected = time.mktime((*time.gmtime(BASE + 3)[:8], -1))
    assert row.end_unix_s == expected


def test_where_the_logs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEELYARD_PBS_ACCOUNTING", raising=False)
    place = tmp_path / "home/server_priv/accounting"
    place.mkdir(parents=True)
    (tmp_path / "pbs.conf").write_text(f"PBS_SERVER=s\nPBS_HOME={tmp_path}/home\n", "utf-8")
    monkeypatch.delenv("PBS_HOME", raising=False)
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    assert accounting_logs.find_log_folder() == place
