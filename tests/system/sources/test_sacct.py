"""The reader of sacct, with the output of three releases of Slurm (tests/data/sacct/*/ORIGIN)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.unit.sources.test_sacct import fail
from tests.unit.sources.test_sacct import rows as rows  # noqa: PLC0414 - a fixture
from tests.unit.sources.test_sacct import stub as stub  # noqa: PLC0414 - a fixture

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import sacct

ASKED = tuple(name for name in sacct.FIELDS if name not in sacct.OPTIONAL)  # 22.05 does not have it


def test_what_sacct_is_asked(stub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCT_FORMAT", "jobid")
    rows = list(sacct.Sacct(str(stub)).rows(["1", "2"]))
    assert len(rows) > 50
    calls = (stub.parent / "log").read_text(encoding="utf-8").splitlines()
    assert calls == [
        "UTC %s 0 unset --helpformat",
        f"UTC %s 0 unset -P --noconvert -D -n --delimiter=\x1f --format={','.join(ASKED)} -j 1,2",
    ]


REFUSED = (  # the message of 22.05.8 without slurmdbd
    "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to "
    "host:127.0.0.1:1: Connection refused\nsacct: error: Sending PersistInit msg: Connection "
    "refused\nsacct: error: Problem talking to the database: Connection refused\n"
)


def test_a_lost_slurmdbd_is_asked_again(stub: Path) -> None:
    fail(stub, 2, REFUSED)
    assert list(sacct.Sacct(str(stub), tries=3, pause_s=0).rows(["1"]))


def test_a_slurmdbd_that_stays_away_is_told_in_the_end(stub: Path) -> None:
    fail(stub, 99, REFUSED)
    with pytest.raises(MissingError, match=r"Connection refused.*Is slurmdbd running"):
        list(sacct.Sacct(str(stub), tries=3, pause_s=0).rows(["1"]))
    assert len((stub.parent / "log").read_text(encoding="utf-8").splitlines()) == 3


def test_what_cannot_get_better_is_asked_once(stub: Path) -> None:
    fail(stub, 99, "Slurm accounting storage is disabled\n")
    with pytest.raises(MissingError, match="accounting storage is disabled"):
        list(sacct.Sacct(str(stub), tries=3, pause_s=0).rows(["1"]))
    assert len((stub.parent / "log").read_text(encoding="utf-8").splitlines()) == 1


def test_a_sacct_that_hangs_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "sacct"
    program.write_text("#!/bin/bash\nexec sleep 60\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(MissingError, match=r"no answer in 0\.2 s"):
        list(sacct.Sacct(str(program), time_out_s=0.2, tries=1).rows(["1"]))


def test_a_line_break_in_a_comment_is_part_of_it(tmp_path: Path) -> None:
    """`steelyard publish` requests it last, and one job with such a comment stopped it."""
    program = tmp_path / "sacct"
    cells = {"JobID": "7", "JobIDRaw": "7", "State": "COMPLETED", "AdminComment": "one\ntwo"}
    program.write_text(
        "#!/usr/bin/env python3\nimport sys\n"
        "asked = next(a for a in sys.argv if a.startswith('--format='))[9:].split(',')\n"
        f"print(chr(31).join({cells!r}[name] for name in asked))\n"
        f"print(chr(31).join({cells!r}[name] for name in asked))\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    found = sacct.Sacct(str(program), tries=1).read_starts(["State", "AdminComment"], "-a")
    assert [row.admin_comment for row in found] == ["one\ntwo"] * 2


@pytest.mark.skipif(shutil.which("sacct") is None, reason="sacct (slurm-client) is not installed")
def test_the_real_sacct_without_slurmdbd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=x\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1\n"
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
        "AccountingStoragePort=1\nAuthType=auth/munge\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("SLURM_CONF", str(conf))
    assert os.environ["SLURM_CONF"]
    with pytest.raises(MissingError, match="sacct does not answer"):
        list(sacct.Sacct(tries=1, time_out_s=30).rows(["1"]))
