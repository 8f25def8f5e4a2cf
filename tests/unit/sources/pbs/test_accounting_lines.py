"""Generated records in both dialects come back whole, or are reported; nothing stops the reading."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.analysis.sources.pbs import accounting_lines
from steelyard.analysis.sources.pbs.accounting_lines import Line, LineReader, Unreadable

from .records import OPENPBS, STAMP, TORQUE, Record, records

DATA = Path(__file__).parents[3] / "data"
EVERY = [(dialect, kind) for dialect in (TORQUE, OPENPBS) for kind in "SE"] + [(OPENPBS, "Q")]
MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None,
    derandomize=True,
)  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(("dialect", "kind"), EVERY)
def test_a_record_comes_back_whole_or_is_reported(dialect: str, kind: str) -> None:
    told = {"whole": 0, "doubtful": 0, "unreadable": 0}
    at_once = {True: 0, False: 0}

    @MANY
    @given(records(dialect, kind))
    def check(record: Record) -> None:
        at_once[is_as_a_closer_look_finds(record)] += not record.raw
        found = LineReader(dialect).read(record.line())
        if isinstance(found, Unreadable):
            assert found.text == record.line() and found.reason
            told["unreadable"] += 1
            return
        assert (found.stamp, found.kind, found.job_id) == (STAMP, kind, "7[3].srv")
        wrong = {
            name
            for name in found.fields.keys() | record.fields.keys()
            if found.fields.get(name) != record.fields.get(name)
        }
        assert wrong <= found.doubts, (record.line(), found.fields)
        assert not wrong & accounting_lines.SURE
        told["doubtful" if wrong else "whole"] += 1

    check()
    assert told["whole"] > 9 * (told["doubtful"] + told["unreadable"]), told
    assert at_once[True] > at_once[False], at_once


def is_as_a_closer_look_finds(record: Record) -> bool:
    """Whether it is read without one; then nothing differs."""
    text = record.line().split(";", 3)[3].removesuffix(" ")
    simple = (
        accounting_lines.join_torque_fields(text)
        if record.dialect == TORQUE
        else accounting_lines.split_quoted_fields(text)
    )
    doubts = simple and accounting_lines.find_plain_doubts(
        tuple(simple), record.kind, record.dialect
    )
    if simple is None or doubts is None:
        return False
    found = accounting_lines.split(text, record.kind, record.dialect)
    assert (simple, found.doubts - doubts) == (found.fields, frozenset())
    return True


USED = "resources_used.steelyard_used"
ENDED = {
    "user": "u", "group": "g", "account": "a b", "project": "p", "jobname": "j", "queue": "q",
    "ctime": "1", "qtime": "2", "etime": "3", "start": "4", "exec_host": "n1/0",
    "Resource_List.netem": "x", "session": "5", "end": "6", "Exit_status": "0",
    "resources_used.foo": "1", USED: '{"n1": {"energy_j": 1.5}}', "run_count": "1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "doubtful"),
    [
        ({}, None),
        ({"account": 'the "good" one'}, None),
        ({"account": "x queue=y"}, None),
        ({"project": "c d"}, {"account", "project"}),
        ({"project": 'x"'}, {"account", "project"}),
        ({"project": "a b=c"}, {"account", "project", "b"}),
        ({"Resource_List.netem": "loss b=c"}, {"Resource_List.netem", "b"}),
        ({USED: '{"n1": {"why": "it\'s"}}'}, None),
        ({USED: '{"n1": {"netem": "delay=5ms loss=1%"}}'}, None),
        ({USED: '{"n1": {"tags": "}\' x=1"}}'}, {USED, "x"}),
        ({USED: '{"n1": 1}\' x=2}'}, {USED, "x"}),
        ({USED: '{"n1 b=1"}'}, {USED, "b"}),
        ({"resources_used.foo": '{"a": 1}'}, {"resources_used.foo", USED}),
        ({"resources_used.foo": "c d", USED: '{"n1": {"why": "\\"x\\" y=1"}}'},
         {"resources_used.foo", USED, "y"}),
    ],
)  # fmt: skip
def test_what_another_reading_has_otherwise_is_told(
    values: dict[str, str], doubtful: set[str] | None
) -> None:
    record = Record(OPENPBS, "E", ENDED | values)
    found = LineReader(OPENPBS).read(record.line())
    assert isinstance(found, Line)
    assert found.doubts == (doubtful or set()), found.fields
    certain = record.fields.keys() - found.doubts
    assert {n: found.fields[n] for n in certain} == {n: record.fields[n] for n in certain}
    is_as_a_closer_look_finds(record)


def test_an_object_that_no_hook_has_written_is_no_value() -> None:
    line = Record(OPENPBS, "E", ENDED | {USED: "x"}).line()
    found = LineReader(OPENPBS).read(line.replace("netem=x", "netem='{\"a\": 1}'"))
    assert isinstance(found, Unreadable)


def read_lines(lines: Iterable[str]) -> list[Line | Unreadable]:
    """Return all records of a log."""
    reader = LineReader(None)
    return [reader.read(record) for record in accounting_lines.join_broken_lines(lines)]


@given(st.lists(st.text(max_size=80), max_size=20))
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
def test_nothing_stops_the_reading(texts: list[str]) -> None:
    good = f"{STAMP};D;1.srv;requestor=u@h"
    found = read_lines([*texts, good])
    assert all(isinstance(one, Line | Unreadable) for one in found)
    assert found[-1] == Line(STAMP, "D", "1.srv", {"requestor": "u@h"})


@pytest.mark.thorough
@given(records(OPENPBS, "E"), st.integers(0, 400))
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
def test_a_line_cut_short_never_tells_another_end(record: Record, length: int) -> None:
    found = LineReader(OPENPBS).read(record.line()[:length])
    if isinstance(found, Line) and found.kind == "E" and "end" in found.fields:
        assert record.fields["end"].startswith(found.fields["end"])
        assert record.fields["Exit_status"].startswith(found.fields["Exit_status"])


RECORDED = [
    "torque/accounting-mixed.log",
    "torque/accounting-prologue-retry-loop.log",
    "openpbs/accounting-1-classic-pelog.log",
]


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_line_is_read(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    found = read_lines(text.split("\n"))
    assert [one for one in found if isinstance(one, Unreadable)] == []
    assert len(found) == text.count("\n") + (not text.endswith("\n"))


def test_recorded_values_with_blanks_semicolons_and_quotes() -> None:
    with (DATA / RECORDED[2]).open(encoding="utf-8") as log:
        found = {
            one.job_id: one.fields
            for one in read_lines(log)
            if isinstance(one, Line) and one.kind == "E"
        }
    assert found["12.vm"]["account"] == "acct with space"
    assert found["13.vm"]["account"] == "acct;semi=1"
    assert found["14.vm"]["account"] == 'acct,comma"quote'
    assert found["33.vm"]["project"] == "proj with space"
    assert found["35.vm"]["Resource_List.netem"] == "delay 10ms loss 1%"


HEAD = f"{STAMP};S;41.vm;user=u group=g account="
TAIL = (
    " jobname=j queue=b ctime=1795375655 qtime=1795375655 etime=1795375655 start_count=1 "
    "start=1795375656 owner=u@h exec_host=vm/3 Resource_List.walltime=01:00:00 "
)


@pytest.mark.parametrize(
    "account", ["x", "a b", "x jobname=y queue=z", "a=b c;d", 'q"u', '""', "nl\nnext"]
)
def test_what_torque_wrote_of_an_account(account: str) -> None:
    (found,) = read_lines((HEAD + account + TAIL).split("\n"))
    assert isinstance(found, Line)
    assert (found.fields["account"], found.fields["jobname"]) == (account, "j")


TIMES, END = "ctime=1 qtime=1 etime=1 start=1", "end=1 Exit_status=0"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no accounting at all", "fewer than three"),
        (f"{STAMP};E;1.vm", "fewer than three"),
        ("2026-11-22 19:27:36;E;1.vm;x", "expected MM/DD/YYYY"),
        (f"{STAMP};E;1.vm;user=u group=g", "it lacks Exit_status, ctime"),
        (f"{STAMP};E;1.vm;user=u group=g queue=q jobname=j {TIMES} {END}", "in no order"),
        (f"{STAMP};E;1.vm;user=u group=g jobname=j queue=q {TIMES} {END} {END}", "in no order"),
    ],
)  # fmt: skip
def test_why_a_line_cannot_be_read(line: str, reason: str) -> None:
    found = LineReader(TORQUE).read(line)
    assert isinstance(found, Unreadable) and reason in found.reason and found.text == line


def test_what_a_starting_job_cannot_have_is_its_users_text() -> None:
    line = f"{HEAD}x{TAIL}Resource_List.other= Exit_status=0 "
    found = LineReader(TORQUE).read(line)
    assert isinstance(found, Line)
    assert found.fields["Resource_List.other"] == " Exit_status=0"
    assert "Exit_status" not in found.fields


def test_a_field_of_a_later_version_is_kept() -> None:
    line = f"{STAMP};S;1.vm;user=u group=g project=p jobname=j queue=q ctime=1 qtime=1 etime=1 "
    found = LineReader(OPENPBS).read(line + "start=1 new_field=5 exec_host=a/0 Other.thing=7 ")
    assert isinstance(found, Line)
    assert (found.fields["new_field"], found.fields["Other.thing"]) == ("5", "7")


def test_a_line_as_large_as_a_file_is_soon_given_up() -> None:
    line = f"{HEAD}{'Resource_List.a=1 ' * 50_000}{TAIL}"
    assert isinstance(LineReader(TORQUE).read(line), Line | Unreadable)
