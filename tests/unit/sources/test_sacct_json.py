"""`sacct --json` says what `sacct -P` says, field by field, or is not used; recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources import sacct, sacct_json
from steelyard.analysis.sources.accounting import StepRow

RECORDED = Path(__file__).parents[2] / "data" / "sacct" / "json"
WHOLE = ("26.05",)


def asked(release: str) -> list[str]:
    return (RECORDED / release / "asked").read_text(encoding="utf-8").strip().split(",")


def answer(release: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RECORDED / release / "jobs.json").read_bytes())
    return document


def by_lines(release: str) -> dict[tuple[str, str], dict[str, str]]:
    """Every line of `sacct -P`, by raw id (with the step) and submission."""
    names = asked(release)
    with (RECORDED / release / "jobs.txt").open(encoding="utf-8", newline="\n") as file:
        lines = [line.split(sacct.DELIMITER) for line in sacct.whole_lines(file, len(names))]
    cells = [dict(zip(names, line, strict=True)) for line in lines]
    return {(line["JobIDRaw"], line.get("SLUID", "")): line for line in cells}


def by_json(release: str) -> dict[tuple[str, str], dict[str, str]]:
    """The same, by JSON, through what the reader yields."""
    found = {}
    for job in answer(release)["jobs"]:
        for row in sacct_json.rows_of(job):
            text = row.text.split(sacct.DELIMITER) if isinstance(row, StepRow) else row.fields
            cells = dict(zip(sacct.FIELDS, text, strict=True))
            found[cells["JobIDRaw"], cells["SLUID"]] = {n: cells[n] for n in asked(release)}
    return found


@pytest.mark.parametrize("release", WHOLE)
def test_every_field_of_every_line_is_the_same(release: str) -> None:
    lines = by_lines(release)
    assert by_json(release) == lines
    assert len(lines) > 50


@pytest.mark.parametrize("release", WHOLE)
def test_each_start_has_a_sluid_of_its_own(release: str) -> None:
    starts = [key for key in by_json(release) if "." not in key[0]]
    again = {raw for raw, _ in starts if sum(raw == other for other, _ in starts) > 1}
    assert len(again) == 2 and len({sluid for _, sluid in starts}) == len(starts)


class Recorded(sacct_json.SacctJson):
    """Answers with a recorded release; notes what it was asked."""

    def __init__(self, release: str, drop: str | None = None) -> None:
        super().__init__()
        self.release, self.drop, self.questions = release, drop, list[str]()

    def run(self, arguments: Any, output: int, times: str | None = "%s") -> None:
        """A question, as sacct would answer it."""
        self.questions.append(arguments[0])
        if arguments[0] == "--helpformat":
            text = " ".join(asked(self.release))
        elif arguments[0] == "--json":
            assert times is None
            document = answer(self.release)
            for job in document["jobs"][-1:]:
                job.pop(self.drop, None)
            text = json.dumps(document)
        else:
            text = (RECORDED / self.release / "jobs.txt").read_bytes().decode()
        with open(output, "w", encoding="utf-8", newline="\n", closefd=False) as file:
            file.write(text)


def ids(reader: Recorded) -> list[str]:
    return sorted(row.job_id for row in reader.rows(["1"]) if not isinstance(row, StepRow))


def test_an_answer_that_lacks_something_is_not_used_at_all() -> None:
    """22.05 tells every exit code as 0; that and 24.11 no SLUID; or a part of one job is not there."""
    whole = Recorded("26.05")
    expected = ids(whole)
    assert whole.questions == ["--json"]
    for reader in (Recorded("22.05"), Recorded("24.11"), Recorded("26.05", drop="restart_cnt")):
        found = ids(reader)
        assert reader.questions == ["--json", "--helpformat", "-P"]
        by_line = {line["JobIDRaw"] for line in by_lines(reader.release).values()}
        assert set(found) == {job for job in by_line if "." not in job}
        assert found == expected or reader.release != "26.05"


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_what_is_lacking(release: str) -> None:
    assert {sacct_json.lacking(job) for job in answer(release)["jobs"]} == {"sluid"}


def test_24_11_lacks_the_sluid_and_says_all_else() -> None:
    """But for a code above 128, of which its lines take 128 off: the job's exit was 137."""
    found = {}
    for job in answer("24.11")["jobs"]:
        job["sluid"] = ""
        for row in sacct_json.rows_of(job):
            text = row.text.split(sacct.DELIMITER) if isinstance(row, StepRow) else row.fields
            cells = dict(zip(sacct.FIELDS, text, strict=True))
            key = cells["JobIDRaw"], cells["Submit"]
            assert key not in found
            found[key] = {name: cells[name] for name in asked("24.11") if name != "SLUID"}
    lines = {(line["JobIDRaw"], line["Submit"]): line for line in by_lines("24.11").values()}
    assert found.keys() == lines.keys()
    other = [
        (line["JobName"], name, line[name], found[key][name])
        for key, line in lines.items()
        for name in found[key]
        if line[name] != found[key][name]
    ]
    assert other == [("a|b,c d", "ExitCode", "9:0", "137:0"), ("batch", "ExitCode", "9:0", "137:0")]
    assert all(line["SLUID"] for line in lines.values())


def test_codes_of_22_05_are_why() -> None:
    lines = by_lines("22.05").values()
    told = {line["JobIDRaw"]: line["ExitCode"] for line in lines if line["JobName"] == "a|b,c d"}
    ((raw, code),) = told.items()
    (job,) = (job for job in answer("22.05")["jobs"] if str(job["job_id"]) == raw)
    assert (code, job["exit_code"]["return_code"]) == ("9:0", 0)  # it was 137


@pytest.mark.parametrize(
    ("bitmap", "tasks"),
    [("0xF", "0-3"), ("0x5", "0,2"), ("1-3,7", "1-3,7"), ("0xE%2", "1-3%2"), ("", "")],
)
def test_tasks_that_wait(bitmap: str, tasks: str) -> None:
    assert sacct_json.waiting(bitmap) == tasks


@pytest.mark.parametrize(
    ("seconds", "micros", "shown"),
    [
        (0, 999, "00:00:00"), (0, 1000, "00:00.001"), (61, 0, "00:01:01"), (61, 250_000, "01:01.250"),
        (3600, 999_999, "01:00:00"), (90061, 1, "1-01:01:01"), (0, 3_700_000, "00:03.700"),
    ],
)  # fmt: skip
def test_cpu_times(seconds: int, micros: int, shown: str) -> None:
    """As src/sacct/print.c writes them."""
    assert sacct_json.clock({"seconds": seconds, "microseconds": micros}) == shown
