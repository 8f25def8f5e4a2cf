"""`steelyard show` with a record folder whose file system does not respond."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hung_folder import Mounted, needed

from steelyard.wrappers.show import job_data


def test_a_record_folder_that_does_not_answer_is_left_out_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed()
    monkeypatch.setattr(job_data, "ANSWER_LIMIT_S", 1.0)
    records, other = tmp_path / "records", tmp_path / "other"
    other.mkdir()
    mounted = Mounted(tmp_path / "behind", records)
    try:
        mounted.hang()
        assert job_data.choose_record_dirs([records, other]) == [other]
        assert f"the record folder {records} has not answered within 1 s" in capsys.readouterr().err
        mounted.answer()
        monkeypatch.setattr(job_data, "ANSWER_LIMIT_S", 60.0)
        assert job_data.choose_record_dirs([records, other]) == [records, other]
        assert capsys.readouterr().err == ""
    finally:
        mounted.end()
