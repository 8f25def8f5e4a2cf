"""What `steelyard publish` writes, and what it does not touch; the writer is simulated."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.unit.collect import study as HELP
from tests.unit.publish.test_publish import look, row

from steelyard.analysis.sources import sacct
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.publish import publish

NOW = 1_700_000_000.0
START = NOW - 1000


def test_a_dry_run_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    HELP.write_record(tmp_path / "7", "n1", time.time() - 1000, "7")
    start = str(int(time.time()) - 1000)
    found = row(Start=start, End=str(int(start) + 20))
    monkeypatch.setattr(sacct.Sacct, "read_starts", lambda *_: [found])
    monkeypatch.setenv("STEELYARD_SLURMDB", "/nowhere/steelyard-slurmdb")
    asked = ["publish", "--record-dir", str(tmp_path), "--json"]
    assert cli.main([*asked, "--dry-run"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["written"], [wish["job_id"] for wish in told["planned"]]) == (0, [7])
    assert cli.main(asked) == 3


def test_what_slurmdbd_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "slurmdb"
    program.write_text(
        '#!/bin/sh\nIFS= read -r line; printf \'%s\' "$line" >$0.said; echo \'{"error":"no right"}\'\n'
        'echo \'{"unchanged":"text"}\'; echo \'{"modified":0}\'; echo \'{"modified":1}\'\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("STEELYARD_SLURMDB", str(program))
    jobs = [str(number) for number in range(7, 12)]
    for job in jobs:
        HELP.write_record(tmp_path / job, "n1", START, job)
    found = look(tmp_path, *map(row, jobs))
    publish.write_comments(found)
    assert found.failed == {"7": "no right", "11": "no answer"}
    assert (found.unchanged, found.complete, found.written) == ({"8": "text"}, 1, 1)
    assert json.loads((tmp_path / "slurmdb.said").read_text())["job_id"] == 7
    program.write_text("#!/bin/sh\necho 'away' >&2; exit 3\n")
    with pytest.raises(MissingError, match="nothing was written: away"):
        publish.write_comments(found)
