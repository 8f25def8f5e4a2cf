"""The reader of sacct, with the output of three releases of Slurm (tests/data/sacct/*/ORIGIN)."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.sources import sacct, slurm_field_values
from steelyard.analysis.sources.accounting import SEPARATOR, AccountingRow, StepRow
from steelyard.analysis.sources.slurm_field_values import expand_nodes

RECORDED = Path(__file__).parents[2] / "data" / "sacct"
RELEASES = ("22.05", "24.11", "26.05")
DATA = RECORDED / "22.05"
ASKED = tuple(name for name in sacct.FIELDS if name not in sacct.OPTIONAL)  # 22.05 does not have it


def asked_of(release: str) -> list[str]:
    """Return the fields that were requested of sacct when its release was recorded."""
    known = set((RECORDED / release / "helpformat.txt").read_text(encoding="utf-8").split())
    later = {"SLUID", "OriginalSLUID"}  # requested since a later version
    return [n for n in sacct.FIELDS if n not in later and (n in known or n not in sacct.OPTIONAL)]


@pytest.fixture(scope="module", params=RELEASES)
def rows(request: pytest.FixtureRequest) -> list[AccountingRow]:
    """Return the same jobs as recorded from each release."""
    path = RECORDED / request.param / "jobs.txt"
    with path.open(encoding="utf-8", newline="\n") as file:
        return list(sacct.parse_lines(file, asked_of(request.param)))


def job(rows: list[AccountingRow], job_id: str) -> list[AccountingRow]:
    """Return the rows of a job by sacct's JobID, in the order of the file."""
    return [row for row in rows if row.fields[0] == job_id]


@pytest.mark.parametrize("release", RELEASES)
def test_all_needed_fields_exist_in_every_release(release: str) -> None:
    known = set((RECORDED / release / "helpformat.txt").read_text(encoding="utf-8").split())
    lacking = {"Restarts"} if release == "22.05" else set()
    assert set(sacct.FIELDS) - known == lacking | lacking_sluids(release)


def lacking_sluids(release: str) -> set[str]:
    since = {"SLUID": "24.11", "OriginalSLUID": "26.05"}
    return {name for name, first in since.items() if release < first}


def test_a_plain_job(rows: list[AccountingRow]) -> None:
    (row,) = job(rows, "1")
    assert (row.state, row.reason, row.exit_code) == ("completed", None, 0)
    assert (row.name, row.nodes, row.step) == ("ok", ("n1",), None)
    assert row.submit_unix_s is not None and row.submit_unix_s > 1.79e9
    assert row.end_unix_s is not None and row.start_unix_s is not None
    assert row.elapsed_s == row.end_unix_s - row.start_unix_s
    steps = [r.step for r in rows if r.job_id == "1" and r.step is not None]
    assert steps == ["batch", "extern", "0"]


def test_array_tasks_have_ids_of_their_own(rows: list[AccountingRow]) -> None:
    tasks = {r.array_task_id: r for r in rows if r.array_job_id == "2" and r.step is None}
    assert {t: (r.state, r.exit_code) for t, r in tasks.items()} == {
        "0": ("completed", 0),
        "1": ("failed", 3),
        "2": ("failed", 137),
        "3": ("completed", 0),
    }
    assert len({r.job_id for r in tasks.values()}) == 4
    assert tasks["3"].job_id == "2"  # the last task takes the array's id


def test_names_may_hold_the_usual_delimiter_and_line_breaks(rows: list[AccountingRow]) -> None:
    assert job(rows, "3")[0].name == "a|b,c d"
    assert job(rows, "12")[0].name == "line\nbreak"
    comment = job(rows, "6")[0].admin_comment
    assert comment == '{"steelyard":1,"tags":{"k":"v|w"}}\nsecond line'


def test_a_time_limit(rows: list[AccountingRow]) -> None:
    (row,) = job(rows, "4")
    assert (row.state, row.reason) == ("timeout", "the time limit of 1 min was reached")
    assert row.exit_code is None  # Slurm prints 0:0
    assert row.elapsed_s is not None and row.elapsed_s >= 60


def test_a_job_cancelled_while_it_ran(rows: list[AccountingRow]) -> None:
    (row,) = job(rows, "6")
    assert (row.state, row.reason, row.exit_code) == ("cancelled", "cancelled by user id 0", None)
    assert row.start_unix_s is not None and row.nodes


def test_a_job_cancelled_before_its_start_has_none(rows: list[AccountingRow]) -> None:
    (row,) = job(rows, "7")
    says = [row.fields[sacct.INDEX[name]] for name in ("Start", "End")]
    assert says[0] in (says[1], "None")  # 22.05 repeats the end
    assert (row.state, row.start_unix_s, row.elapsed_s, row.nodes) == ("cancelled", None, None, ())


def test_waiting_array_tasks_stand_in_one_row(rows: list[AccountingRow]) -> None:
    waiting = [r for r in rows if r.array_job_id == "22" and r.waits_in_array]
    assert [(r.state, r.waiting_tasks) for r in waiting] == [("pending", (1, 2, 3))]
    assert waiting[0].start_unix_s is None and waiting[0].end_unix_s is None
    (rest,) = [r for r in rows if r.array_job_id == "8"]
    assert (rest.state, rest.waiting_tasks) == ("cancelled", (3, 4))


def test_long_lists_of_waiting_tasks_are_whole(rows: list[AccountingRow]) -> None:
    (long,) = [r for r in rows if r.array_job_id == "19"]
    assert long.waiting_tasks == (*range(0, 301, 3), 400, 401, 402, 1000)
    (stepped,) = [r for r in rows if r.array_job_id == "20"]
    assert stepped.waiting_tasks == (1, 3, 5, 7, 9)


def test_a_list_cut_short_is_known_as_such() -> None:
    key = slurm_field_values.split_job_id("19_[0,3,6,...]")
    assert key is not None and key.waits_in_array and key.waiting_tasks == ()


def test_every_start_of_a_requeued_job_has_its_row(rows: list[AccountingRow]) -> None:
    assert [r.state for r in job(rows, "16")] == ["requeued", "requeued", "completed"]
    starts = [r.start_unix_s for r in job(rows, "16")]
    assert None not in starts and starts == sorted(start or 0.0 for start in starts)
    again = job(rows, "5")
    assert [r.state for r in again] == ["requeued", "cancelled"]
    assert again[1].start_unix_s is None


def test_newer_releases_count_the_restarts(rows: list[AccountingRow]) -> None:
    counts = [r.restarts for r in job(rows, "16")]
    assert counts in ([0, 1, 2], [None, None, None])  # the field is there since 24.11


def test_a_job_whose_node_went_down(rows: list[AccountingRow]) -> None:
    failed = [r for r in rows if r.name == "nodefail" and r.step is None]
    if rows[0].restarts is not None:  # 22.05 was recorded before this job was among them
        assert [(r.state, r.reason) for r in failed] == [("node_fail", "a node failed")]


def test_components_of_a_heterogeneous_job(rows: list[AccountingRow]) -> None:
    both = [r for r in rows if r.fields[0] in ("9+0", "9+1")]
    assert [(r.job_id, r.het_offset, r.array_job_id) for r in both] == [
        ("9", 0, None),
        ("10", 1, None),
    ]


def test_a_running_job_has_no_end_and_no_exit_code(rows: list[AccountingRow]) -> None:
    (row,) = job(rows, "21")
    assert (row.state, row.end_unix_s, row.exit_code) == ("running", None, None)
    assert row.start_unix_s is not None


def test_two_nodes(rows: list[AccountingRow]) -> None:
    (row,) = job(rows, "11")
    assert len(set(row.nodes)) == 2 and set(row.nodes) < {"n1", "n2", "n3", "n4"}


def test_a_row_comes_back_from_its_fields(rows: list[AccountingRow]) -> None:
    reader = sacct.Sacct()
    assert [reader.parse_row(row.fields) for row in rows] == rows


def test_an_unknown_state_is_no_success() -> None:
    fields = dict.fromkeys(sacct.FIELDS, "") | {
        "JobID": "1",
        "JobIDRaw": "1",
        "State": "ABDUCTED",
        "Start": "1795000000",
        "End": "1795000001",
        "NodeList": "n1",
    }
    row = sacct.parse_row(list(fields.values()))
    assert row is not None and row.state == "failed" and "ABDUCTED" in (row.reason or "")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1795250183", 1795250183.0),
        ("2026-11-21T08:36:23", 1795250183.0),
        ("Unknown", None),
        ("None", None),
        ("", None),
        ("0", None),
    ],
)
def test_times(text: str, seconds: float | None) -> None:
    assert sacct.parse_unix_s(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1_", "1_[3", "1.", "1 2", "١"])
def test_what_is_no_job_id(text: str) -> None:
    assert slurm_field_values.split_job_id(text) is None


def test_an_answer_cut_short_is_not_taken_for_whole() -> None:
    text = (DATA / "jobs.txt").read_text(encoding="utf-8")
    lines = text[: len(text) // 2].rsplit(sacct.DELIMITER, 3)[0].splitlines(keepends=True)
    with pytest.raises(MissingError, match="in the middle of a line"):
        list(sacct.parse_lines(lines, ASKED))


def fields_of(row: AccountingRow | StepRow) -> tuple[str, ...]:
    return tuple(row.text.split(SEPARATOR)) if isinstance(row, StepRow) else row.fields


def test_steps_not_looked_into_are_the_same_rows(rows: list[AccountingRow]) -> None:
    lines = [sacct.DELIMITER.join(row.fields) + "\n" for row in rows]
    light = list(sacct.parse_lines_without_steps(lines, sacct.FIELDS))
    assert [(r.job_id, r.step, fields_of(r)) for r in light] == [
        (r.job_id, r.step, r.fields) for r in rows
    ]
    jobs = [r for r in light if isinstance(r, AccountingRow)]
    assert jobs == [r for r in rows if r.step is None]
    assert len(jobs) < len(light)


def test_steps_of_a_release_without_the_last_field_have_it_empty() -> None:
    text = (DATA / "jobs.txt").read_text(encoding="utf-8")
    full = list(sacct.parse_lines(text.splitlines(keepends=True), ASKED))
    light = list(sacct.parse_lines_without_steps(text.splitlines(keepends=True), ASKED))
    assert [fields_of(r) for r in light] == [r.fields for r in full]


def test_a_line_with_too_many_fields_is_told() -> None:
    line = sacct.DELIMITER.join(["1"] * (len(ASKED) + 1)) + "\n"
    with pytest.raises(MissingError, match="was not understood"):
        list(sacct.parse_lines([line], ASKED))
    with pytest.raises(MissingError, match="was not understood"):
        list(sacct.parse_lines_without_steps([line.replace("1", "1.batch")], ASKED))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-2]", ["n1", "n2"]),
        ("n[1-2,07-09],login", ["n1", "n2", "n07", "n08", "n09", "login"]),
        ("r[0-1]n[1,3]", ["r0n1", "r0n3", "r1n1", "r1n3"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
        ("", []),
    ],
)
def test_node_lists(text: str, names: list[str]) -> None:
    assert expand_nodes(text) == names


@pytest.mark.parametrize("text", ["n[1-", "n[x]", "n[1-2", "n]1[", "n[1-999999999]", "n[]"])
def test_wrong_node_lists(text: str) -> None:
    with pytest.raises(UsageError):
        expand_nodes(text)


# --- calling the program ----------------------------------------------------------------------


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[Path]:
    """A sacct that answers from the recording, logs its calls, and refuses what it does not know."""
    program = tmp_path / "sacct"
    program.write_text(
        f"""#!/bin/bash
printf '%s\\n' "$TZ $SLURM_TIME_FORMAT $SLURM_BITSTR_LEN ${{SACCT_FORMAT-unset}} $*" >>{tmp_path}/log
if [[ -e {tmp_path}/fail ]]; then
    read -r n <{tmp_path}/fail
    if ((n > 0)); then
        echo $((n - 1)) >{tmp_path}/fail
        cat {tmp_path}/message >&2
        exit 1
    fi
fi
case $1 in
--helpformat) cat {DATA}/helpformat.txt ;;
-P) cat {DATA}/jobs.txt ;;
*) echo "stub: unknown call $*" >&2; exit 1 ;;
esac
""",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    yield program


def test_no_question_without_jobs(stub: Path) -> None:
    assert list(sacct.Sacct(str(stub)).rows([])) == []
    assert not (stub.parent / "log").exists()


def fail(stub: Path, times: int, message: str) -> None:
    (stub.parent / "fail").write_text(f"{times}\n", encoding="utf-8")
    (stub.parent / "message").write_text(message, encoding="utf-8")


def test_what_slurm_says_twenty_times_is_told_once() -> None:
    lines = [
        f"sacct: error: get_addr_info: getaddrinfo() failed: Name or service not known: No error, "
        f"attempt number {n}"
        for n in range(-4, 6)
    ]
    lines += ["sacct: error: get_addr_info: getaddrinfo() fAiled: Name or service not known"]
    lines += ['sacct: error: slurm_set_addr: Unable to resolve "db"', ""] * 2
    assert sacct.shorten_message("\n".join(lines)) == (
        "get_addr_info: getaddrinfo() failed: Name or service not known; "
        'slurm_set_addr: Unable to resolve "db"'
    )
    assert len(sacct.shorten_message("\n".join(f"{n:x}" * 9 for n in range(999)))) == 500


@pytest.mark.parametrize(
    ("line", "serious"),
    [
        ("sacct: error: Sending PersistInit msg: Connection refused", True),
        ("sacct: error: Problem talking to the database: Connection refused", True),
        ("sacct: error: slurmdbd: Unable to contact host", True),
        ("sacct: error: _parse_next_key: Parsing error at unrecognized key: Foo", False),
        ("sacct: error: plugin_load_from_file: dlopen(/usr/lib/spank.so): no such file", False),
        ("sacct: warning: the database is old", False),
    ],
)
def test_an_error_that_is_not_of_the_accounting_leaves_its_answer_whole(
    line: str, serious: bool
) -> None:
    assert sacct.is_error_line(line) == serious


def test_without_slurm_the_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="slurm-client"):
        list(sacct.Sacct(str(tmp_path / "sacct")).rows(["1"]))
