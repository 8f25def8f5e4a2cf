"""bench/soak.py: what it looks for can be found."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[3] / "bench"
JOB_ID = 4711


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    import soak

    return soak


def is_flat(checks: ModuleType, values: list[int]) -> bool:
    jobs = list(range(0, 500 * len(values), 500))
    return bool(checks.is_flat(checks.growth(jobs, values), values, jobs[-1]))


def test_memory_is_flat_or_it_grows_or_shrinks(checks: ModuleType) -> None:
    noise = [0, 7, -5, 3, -8, 6, -2, 4, -7, 1] * 2
    assert is_flat(checks, [9000] * 20)
    assert is_flat(checks, [9000 + n for n in noise])
    assert is_flat(checks, [5000, 7000, 8900, 8990, *(9000 + n for n in noise)]), "its warm-up"
    assert not is_flat(checks, [9000 + n + 25 * i for i, n in enumerate(noise)]), "51 bytes a job"
    assert not is_flat(checks, [9000 + n - 25 * i for i, n in enumerate(noise)])
    assert not is_flat(checks, [7 + i // 4 for i in range(20)]), "descriptors"
    assert not is_flat(checks, [7 + i for i in range(20)]), (
        "one more at every look, without a spread"
    )


def test_a_record_that_is_not_this_jobs_or_not_whole_is_found(
    checks: ModuleType, tmp_path: Path
) -> None:
    job = checks.Job(JOB_ID, "COMPLETED", "0:0", ("n1",), "")
    folder = tmp_path / str(JOB_ID)
    folder.mkdir()
    written = checks.written_bytes(JOB_ID)

    def fault(job_id: int = JOB_ID, complete: bool = True, wchar_bytes: int = written + 1) -> str:
        document = {"format": "steelyard-record", "version": 1, "node": "n1", "complete": complete,
                    "job": {"job_id": str(job_id)}, "io": {"wchar_bytes": wchar_bytes}}  # fmt: skip
        (folder / "n1.5.json").write_text(json.dumps(document))
        return str(checks.fault(folder, "n1", job))

    assert "no samples" in fault()
    (folder / "n1.5.csv").touch()
    assert fault() == "None"
    assert "complete: False" in fault(complete=False)
    assert "of job 4712" in fault(job_id=JOB_ID + 1)
    assert "-1 bytes" in fault(wchar_bytes=written - 1)
    assert "+89 bytes" in fault(wchar_bytes=written + 89)
    assert checks.faulty_records(tmp_path, [job]).keys() == {f"{JOB_ID}.n1"}
    (folder / "n1.5.json").unlink()
    assert checks.faulty_records(tmp_path, [job]) == {f"{JOB_ID}.n1": "0 records"}


def test_jobs_that_failed_or_have_no_comment_are_counted(checks: ModuleType) -> None:
    whole = '{"steelyard":{"nodes":2,"cpu_s":1}}'
    part = '{"steelyard":{"nodes":2,"nodes_measured":1}}'
    jobs = [
        checks.Job(1, state, code, ("n1", "n2"), comment)
        for state, code, comment in (
            ("COMPLETED", "0:0", whole), ("COMPLETED", "1:0", part), ("NODE_FAIL", "0:0", "")
        )
    ]  # fmt: skip
    assert [job.harmed for job in jobs] == [False, True, True]
    assert checks.without_comment(jobs) == 2
