"""Records are found where they are stored flat, by day, or both."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from steelyard.analysis.sources import record_folders

DAY_S = 86400
MIDNIGHT = 1795478400  # 2026-11-24 00:00 UTC


def leave(record_dir: Path, job_id: str, start: int, *, day: str = "", node: str = "n1") -> Path:
    path = record_dir / day / job_id / f"{node}.{start}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"node": "{node}"}}')
    return path


@pytest.mark.parametrize("unix_s", [0, 951782399, 951782400, MIDNIGHT - 0.5, MIDNIGHT, 1.8e9])
def test_the_day_is_that_of_the_calendar_in_utc(unix_s: float) -> None:
    truth = datetime.datetime.fromtimestamp(unix_s, datetime.UTC)
    assert record_folders.format_day(unix_s) == truth.strftime("%Y-%m/%d")


@pytest.mark.parametrize("unix_s", [float("-inf"), float("inf"), -1e30])
def test_a_day_of_no_calendar(unix_s: float) -> None:
    assert len(record_folders.format_day(unix_s)) == len("2026-11/23")


@pytest.mark.parametrize("off_s", [-2 * DAY_S, -DAY_S, -1, 0, 1, DAY_S, 2 * DAY_S])
def test_a_node_whose_clock_is_up_to_two_days_off(tmp_path: Path, off_s: int) -> None:
    start = MIDNIGHT + off_s
    path = leave(tmp_path, "7", start, day=record_folders.format_day(start))
    found = record_folders.find_job_folders(tmp_path, "7", (MIDNIGHT, MIDNIGHT + 5))
    assert found == [path.parent]


def test_a_job_of_several_days_and_starts(tmp_path: Path) -> None:
    days = ["2026-11/23", "2026-11/25", "2026-12/01"]
    paths = [leave(tmp_path, "7", MIDNIGHT, day=day) for day in days]
    window = (MIDNIGHT, MIDNIGHT + 8 * DAY_S)
    assert record_folders.find_job_folders(tmp_path, "7", window) == [p.parent for p in paths]


def test_the_days_of_clocks_that_were_never_set(tmp_path: Path) -> None:
    leave(tmp_path, "7", 5, day="1970-01/01")
    leave(tmp_path, "8", MIDNIGHT, day="2026-11/24")
    for window in (None, (MIDNIGHT, MIDNIGHT), (0.0, float("inf"))):
        (found,) = record_folders.find_job_folders(tmp_path, "7", window)
        assert found == tmp_path / "1970-01/01/7"
    assert record_folders.find_job_folders(tmp_path, "9", (MIDNIGHT, MIDNIGHT)) == []
    assert record_folders.find_job_folders(tmp_path / "absent", "9") == []


@pytest.mark.parametrize(
    ("window", "most"),
    [
        ((MIDNIGHT, MIDNIGHT + 5), 5),
        ((MIDNIGHT, float("inf")), 46),
        ((MIDNIGHT - 100 * DAY_S, MIDNIGHT), 105),
    ],
)
def test_a_job_without_a_record_is_not_looked_for_in_every_day(
    tmp_path: Path, window: tuple[float, float], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(-900, 100):
        (tmp_path / record_folders.format_day(MIDNIGHT + number * DAY_S)).mkdir(parents=True)
    looked: list[Path] = []
    real = record_folders.record_packs.find_packs
    monkeypatch.setattr(
        record_folders.record_packs,
        "find_packs",
        lambda day, job: looked.append(day) or real(day, job),
    )
    assert record_folders.find_job_folders(tmp_path, "7", window) == []
    assert 0 < len(looked) <= most
    first, last = window[0] - 2 * DAY_S, min(window[1], window[0] + 40 * DAY_S) + 2 * DAY_S
    if window[1] != float("inf"):
        last = window[1] + 2 * DAY_S
    names = {"/".join(day.parts[-2:]) for day in looked}
    count = round((last - first) / DAY_S)
    days = {record_folders.format_day(first + number * DAY_S) for number in range(count + 1)}
    assert names == days | {record_folders.format_day(last)}


def test_the_flat_layout_is_found_as_well(tmp_path: Path) -> None:
    flat, by_day = leave(tmp_path, "7", 100), leave(tmp_path, "7", MIDNIGHT, day="2026-11/24")
    assert record_folders.find_job_folders(tmp_path, "7") == [flat.parent, by_day.parent]
    assert record_folders.list_job_ids(tmp_path) == {"7"}


def test_every_record_of_a_time(tmp_path: Path) -> None:
    leave(tmp_path, "6", MIDNIGHT - 1, day="2026-11/23")
    leave(tmp_path, "7", MIDNIGHT, day="2026-11/24")
    leave(tmp_path, "7", MIDNIGHT, day="2026-11/24", node="n2.domain")
    leave(tmp_path, "9", MIDNIGHT + 3)
    (tmp_path / "2026-11/24/7/n1.5.csv").write_text("no record")
    (tmp_path / record_folders.MARK).write_text("")

    def found(*window: float) -> list[str]:
        records = record_folders.iterate_records(tmp_path, *window)
        return [f"{r.job_id} {r.path.name} {r.read().decode()[10:12]}" for r in records]

    of_7 = [f"7 n1.{MIDNIGHT}.json n1", f"7 n2.domain.{MIDNIGHT}.json n2"]
    assert found() == [f"6 n1.{MIDNIGHT - 1}.json n1", *of_7, f"9 n1.{MIDNIGHT + 3}.json n1"]
    assert found(MIDNIGHT, MIDNIGHT + 3) == of_7
