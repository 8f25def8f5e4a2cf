"""What a run's programs used, as steelyard-time wrote it beside the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.collect.run_output_import import read_client_usage


@pytest.mark.parametrize("line", ["left_behind=1", "unwaited_cpu_s=0.060000"])
def test_nothing_is_known_where_a_program_misses_processes(tmp_path: Path, line: str) -> None:
    """A daemon's 0.06 s of CPU is less than what the job's record may have more than the shells."""
    complete = "exit_code=0\ncpu_s=0.300000\nlargest_process_bytes=1000\n"
    (tmp_path / "usage.0.1").write_text(complete)
    assert read_client_usage(tmp_path, 0)["cpu_s"] == 0.3
    (tmp_path / "usage.0.2").write_text(f"{complete}{line}\n")
    assert read_client_usage(tmp_path, 0) == {}
