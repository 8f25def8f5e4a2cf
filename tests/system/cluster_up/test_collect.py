"""A cluster's own database: what comes into it, what does not, and what happens again."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import duckdb
import pytest
from tests.unit.cluster.sacct_lab import DAY_S, NOW, Lab, lab

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.cluster import database, day_files
from steelyard.analysis.cluster.collect import Collected, collect
from steelyard.analysis.sources.cluster_sacct import ClusterSacct
from steelyard.analysis.sources.record_folders import format_day
from steelyard.wrappers.commands import cli

__all__ = ["lab"]


def run(lab: Lab, now: float = NOW, **more: Any) -> Collected:
    accounting = ClusterSacct(tries=1)
    if not lab.dir.exists():  # thirty days are thirty questions
        more = {"since_unix_s": now - 4 * DAY_S} | more
    return collect(lab.dir, accounting, [lab.records], now=lambda: now, **more)


def ask(lab: Lab, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(lab.dir / database.FILE_NAME), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def content(lab: Lab) -> dict[str, list[str]]:
    """All that is known of jobs, in the database and in its Parquet files."""
    tables = {t: sorted(map(repr, ask(lab, f"FROM {t}"))) for t in ("jobs", "records", "gaps")}
    files = f"{lab.dir}/parquet/jobs/*/*.parquet"
    query = f"SELECT * EXCLUDE (day) FROM read_parquet('{files}') ORDER BY job_id, submit_unix_s"
    tables["parquet"] = [repr(row) for row in duckdb.execute(query).fetchall()]
    assert day_files.read_mark(lab.dir / "parquet") is not None
    return tables


def several(lab: Lab) -> None:
    """Jobs of three days, one of them requeued, one that runs, one that waits, one cancelled."""
    for number, ago_s in enumerate((2.5 * DAY_S, 1.5 * DAY_S, 0.5 * DAY_S, 1000), 1):
        lab.record(str(number), lab.job(str(number), ago_s))
    first = lab.job("9", 3000, State="REQUEUED")
    second = lab.job("9", 2000, Restarts="1")
    lab.record("9", first, energy={"energy_j": 7.0})
    lab.record("9", second, energy={"energy_j": 9.0})
    lab.record("10", lab.job("10", 100, State="RUNNING", End="Unknown"), complete=False)
    lab.job("11", 50, State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned")
    lab.job("12", 40, State="CANCELLED by 7", Start="None", NodeList="None assigned")


def test_all_jobs_come_once_with_what_they_used(lab: Lab) -> None:
    several(lab)
    done = run(lab)
    assert (done.new, done.running, done.jobs) == (8, 1, 8)
    rows = ask(
        lab, "SELECT job_id, state, energy_j, cpu_s FROM jobs ORDER BY job_id::INT, submit_unix_s"
    )
    assert rows == [
        *((["1", "2", "3", "4"][n], "completed", 123.5, 5.0) for n in range(4)),
        ("9", "requeued", 7.0, 5.0), ("9", "completed", 9.0, 5.0),
        ("10", "running", None, None), ("12", "cancelled", None, None),
    ]  # fmt: skip
    ((reason,),) = ask(lab, "SELECT missing->>'energy_j' FROM jobs WHERE job_id = '10'")
    assert reason == "it has not ended"
    exported = duckdb.execute(
        f"SELECT count(*) FROM read_parquet('{lab.dir}/parquet/jobs/*/*.parquet')"
    ).fetchall()
    assert exported == [(7,)]  # what runs is not in them


def test_again_doubles_nothing_and_reads_nothing_anew(lab: Lab) -> None:
    several(lab)
    run(lab)
    before = content(lab)
    done = run(lab)
    # 12 never ran, 10 still does: of both nothing is read; the others are settled.
    assert (done.new, done.changed, done.records, done.days) == (0, 0, 0, 0)
    assert content(lab) == before


def test_a_job_that_ends_meanwhile_is_taken_up_next_time(lab: Lab) -> None:
    start = lab.job("5", 100, State="RUNNING", End="Unknown")
    path = lab.record("5", start, complete=False, end_unix_s=None)
    assert (run(lab).running, ask(lab, "SELECT is_over FROM jobs")) == (1, [(False,)])
    lab.jobs.clear()
    lab.job("5", 100)
    lab.write()
    done = run(lab, NOW + 10)  # the record is not whole yet
    assert [gap[2] for gap in done.gaps] == ["incomplete_record"]
    assert ask(lab, "SELECT energy_j, is_settled FROM jobs") == [(None, False)]
    path.unlink()
    lab.record("5", start)
    run(lab, NOW + 20)
    assert ask(lab, "SELECT energy_j, is_settled FROM jobs") == [(123.5, True)]


def test_an_open_job_that_the_accounting_forgot_is_lost_not_removed(lab: Lab) -> None:
    lab.job("5", 100, State="RUNNING", End="Unknown")
    run(lab)
    lab.jobs.clear()
    lab.write()
    assert run(lab, NOW + 60).lost == 1
    ((state, reason),) = ask(lab, "SELECT state, reason FROM jobs")
    assert state == "lost" and "no longer knows" in reason
    assert run(lab, NOW + 120).lost == 0


def test_slurmdbd_away_loses_no_time(lab: Lab) -> None:
    lab.job("1", 5 * DAY_S + 100)
    assert run(lab, NOW - 5 * DAY_S).new == 1
    lab.job("2", 3 * DAY_S)
    (lab.base / "away").touch()
    with pytest.raises(MissingError, match="sacct does not answer"):
        run(lab, NOW - 2 * DAY_S)
    (lab.base / "away").unlink()
    assert run(lab).new == 1
    # `--since` an hour ago includes the time in between.
    lab.job("3", 0.5 * DAY_S)
    assert run(lab, NOW + 5, since_unix_s=NOW - 3600).new == 1


def test_a_name_is_nobody_elses_line(lab: Lab) -> None:
    """Line breaks, and delimiters that are known to be used with sacct."""
    forged = "\x1f".join(["x"] * 19 + ["\n77", "77", "forged", "c", "root"])
    lab.job("1", JobName=f"two\nlines|{forged}")
    run(lab)
    ((job_id, name, user),) = ask(lab, 'SELECT job_id, name, "user" FROM jobs')
    assert (job_id, user) == ("1", "ada") and name.startswith("two\nlines|x")


def test_one_folder_is_of_one_cluster(lab: Lab) -> None:
    lab.job("1")
    run(lab)
    lab.jobs.clear()
    lab.job("1", Cluster="other")
    with pytest.raises(UsageError, match="give each cluster its own folder"):
        run(lab, NOW + 60)
    assert ask(lab, "SELECT cluster FROM jobs") == [("c",)]


def test_run_twice_at_once_the_second_says_one_line(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.job("1")
    with database.open_database(lab.dir):
        assert cli.main(["collect", "--cluster", str(lab.dir)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "another `steelyard collect --cluster` is at work" in err


# --- killed --------------------------------------------------------------------------------------


# --- records that are odd ------------------------------------------------------------------------

COMMENT = {
    "nodes": 1, "exclusive": True, "energy_j": 123.5, "cpu_s": 5.0, "rchar_bytes": 100,
    "wchar_bytes": 200, "read_bytes": 300, "write_bytes": 400, "max_memory_bytes": 3000,
}  # fmt: skip


def comment(**changed: object) -> str:
    return json.dumps({"steelyard": COMMENT | changed})


def told(lab: Lab, *names: str) -> tuple[Any, ...]:
    (row,) = ask(lab, f"SELECT {', '.join(names)} FROM jobs")
    return row


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"{", "record"),
        (b'{"format": "steelyard-record", "version": 9, "node": "n1"}', "record_version"),
        (
            b'{"format": "steelyard-record", "version": 1, "node": "n2", "complete": true}',
            "changed",
        ),
    ],
)
def test_a_record_that_cannot_be_used_is_one_line(lab: Lab, text: bytes, kind: str) -> None:
    path = lab.record("1", lab.job("1"))
    path.write_bytes(text)
    lab.record("2", lab.job("2"))
    done = run(lab)
    assert [(gap[0], gap[2]) for gap in done.gaps] == [("1", kind)]
    rows = ask(lab, "SELECT job_id, energy_j, cpu_s, sources->>'cpu_s' FROM jobs ORDER BY job_id")
    assert rows == [("1", None, 4.0, "accounting"), ("2", 123.5, 5.0, "records")]


def test_a_record_that_its_user_made_smaller_is_not_believed(lab: Lab) -> None:
    """The accounting, written by root, has precedence; without it nothing replaces the record."""
    own = {"cpu": {"cpu_s": 0.25}, "energy": {"energy_j": 1.0}}
    lab.record("1", lab.job("1", AdminComment=comment(write_bytes=None)), **own)
    done = run(lab)
    assert told(lab, "energy_j", "cpu_s", "read_bytes", "write_bytes") == (123.5, 5.0, 300.0, None)
    assert told(lab, "missing->>'write_bytes'") == ("its record contradicts the accounting",)
    words = "energy_j is 1 by its records, 123.5 by AdminComment"
    assert words in told(lab, "marks")[0]
    assert ("1", None, "contradiction", words) in done.gaps


def test_a_record_with_less_cpu_than_slurm_counted_is_not_believed(lab: Lab) -> None:
    lab.record("1", lab.job("1", TotalCPU="00:09.500"))
    run(lab)
    assert told(lab, "cpu_s", "energy_j", "memory_used_bytes") == (9.5, None, None)


def test_a_total_that_cannot_be_overrules_no_record(lab: Lab) -> None:
    """2 CPUs have 40 s in 20 s. Slurm 18.08 reported 46 times that, instead of the record's 5 s."""
    lab.record("1", lab.job("1", TotalCPU="30:51.000"))
    lab.job("2", TotalCPU="30:51.000")
    done = run(lab)
    rows = ask(lab, "SELECT cpu_s, energy_j, len(marks) FROM jobs ORDER BY job_id")
    assert rows == [(5.0, 123.5, 0), (None, None, 0)]
    why = "sacct's TotalCPU is 1851 s, more than the 2 CPUs it was given have in 20 s"
    assert {("1", None, "impossible", why), ("2", None, "impossible", why)} <= set(done.gaps)


def test_time_that_a_job_was_suspended_is_a_gap(lab: Lab) -> None:
    start = lab.job("1", elapsed_s=4200, ElapsedRaw="600")
    lab.record("1", start)
    done = run(lab)
    assert ("1", None, "suspended", "it was suspended for 3600 s, which only its records have") in (
        done.gaps
    )
    assert told(lab, "elapsed_s", "marks") == (600.0, [])


@pytest.mark.parametrize(("total", "value"), [("00:05.700", 5.0), ("00:01.000", 5.0)])
def test_a_record_within_the_bounds_counts(lab: Lab, total: str, value: float) -> None:
    lab.record("1", lab.job("1", TotalCPU=total, AdminComment=comment(cpu_s=4.5)))
    run(lab)
    assert told(lab, "cpu_s", "energy_j", "len(marks)") == (value, 123.5, 0)


@pytest.mark.skipif(os.getuid() != 0, reason="gives a file to another user: needs root")
def test_a_file_that_its_user_has_had_in_hand_is_marked(lab: Lab) -> None:
    path = lab.record("1", lab.job("1"))
    os.chown(path, 65534, 65534)
    path.chmod(0o640)
    os.utime(path, (1e9, 1e9))
    done = run(lab)
    assert [gap[2] for gap in done.gaps] == ["touched"]
    (marks,) = told(lab, "marks")
    assert len(marks) == 2
    assert "can be written by its owner" in marks[0] and "was touched" in marks[1]


def test_a_record_that_is_changed_later_says_what_it_said_first(lab: Lab) -> None:
    path = lab.record("1", lab.job("1", NodeList="n[1-2]"))
    run(lab)
    assert told(lab, "energy_j", "whole_records") == (None, 1)
    path.write_bytes(path.read_bytes().replace(b"123.5", b"12.5"))
    start = float(next(iter(lab.jobs.values()))["Start"])
    lab.record("1", start, "n2")
    done = run(lab, NOW + 60)
    assert [(gap[1], gap[2]) for gap in done.gaps] == [("n1", "changed")]
    assert told(lab, "energy_j", "cpu_s", "is_settled", "len(marks)") == (247.0, 10.0, True, 1)
    path.unlink()  # an admin's clean-up takes nothing back
    run(lab, NOW + 120, since_unix_s=NOW - DAY_S)
    assert told(lab, "energy_j", "whole_records") == (247.0, 2)


def test_a_start_with_the_submit_time_of_the_one_before_has_its_own_records_alone(lab: Lab) -> None:
    """Requeued over midnight: the first start was collected, on other nodes, by another answer."""
    submit = {"Submit": str(int(NOW - 9000))}
    first = lab.job("1", 5000, State="NODE_FAIL", NodeList="n[1-2]", **submit)
    lab.record("1", first, "n1", complete=False)
    lab.record("1", first, "n2", energy={"energy_j": 50.0})
    run(lab)
    lab.jobs.clear()
    lab.record("1", lab.job("1", 1000, NodeList="n3", Restarts="1", **submit), "n3")
    run(lab, NOW + 60)
    assert told(lab, "energy_j", "cpu_s", "whole_records", "is_settled") == (123.5, 5.0, 1, True)


def test_a_node_whose_clock_is_a_day_off_is_told(lab: Lab) -> None:
    start = lab.job("1")
    lab.record("1", start - DAY_S)
    done = run(lab)
    ((job, node, kind, reason),) = done.gaps
    assert (job, node, kind) == ("1", "n1", "clock_off")
    assert "begins 86400 s before the job did" in reason
    assert told(lab, "energy_j", "cpu_s", "sources->>'cpu_s'") == (None, 4.0, "accounting")


def test_what_shared_its_node_has_no_joules_of_its_own(lab: Lab) -> None:
    job = {"scheduler": "slurm", "job_id": "1", "cluster": "c", "exclusive": False}
    lab.record("1", lab.job("1", AdminComment=comment(exclusive=False)), job=job)
    run(lab)
    assert told(lab, "energy_j", "missing->>'energy_j'") == (
        None,
        "of the whole node, which the job shared",
    )


def test_purged_records_leave_what_root_wrote(lab: Lab) -> None:
    lab.job("1", AdminComment=comment())
    run(lab)
    assert told(lab, "energy_j", "memory_used_bytes", "sources->>'energy_j'") == (
        123.5,
        3000.0,
        "admin_comment",
    )


def test_records_by_day_are_found_too(lab: Lab) -> None:
    (lab.records / ".steelyard-records").write_text("", encoding="utf-8")
    start = lab.job("1")
    path = lab.record("1", start)
    day = lab.records / format_day(start)
    day.mkdir(parents=True)
    path.parent.rename(day / "1")
    run(lab)
    assert told(lab, "energy_j", "is_settled") == (123.5, True)


def test_packed_records_count_as_loose_ones_do(lab: Lab) -> None:
    start = lab.job("1")
    path = lab.record("1", start)
    assert lab.pack() == 1 and not path.exists()
    done = run(lab)
    assert (told(lab, "energy_j", "is_settled", "len(marks)"), done.gaps) == ((123.5, True, 0), [])
    (pack,) = lab.records.rglob("records-*.parquet")
    pack.write_bytes(b"PAR1")
    lab.job("1", 3000, Restarts="1")
    done = run(lab, NOW + 60)
    assert [gap[2] for gap in done.gaps] == ["record"] and "cannot be read" in done.gaps[0][3]


@pytest.mark.skipif(os.getuid() != 0, reason="records must be a user's who is not us")
def test_a_packed_record_that_its_user_had_in_hand_is_marked_as_it_was_loose(lab: Lab) -> None:
    path = lab.record("1", lab.job("1"))
    for file in path.parent.iterdir():
        file.chmod(0o640)
        os.utime(file, (NOW - 2900,) * 2)
        os.chown(file, 65534, 0)
    run(lab)
    ((loose,),) = [told(lab, "marks")]
    assert len(loose) == 3
    assert lab.pack() == 1 and not path.exists()
    shutil.rmtree(lab.dir)
    assert [gap[2] for gap in run(lab).gaps] == ["touched"]
    ((packed,),) = [told(lab, "marks")]
    assert [mark.split(" s ")[0][:30] for mark in packed] == [
        mark.split(" s ")[0][:30] for mark in loose
    ]
