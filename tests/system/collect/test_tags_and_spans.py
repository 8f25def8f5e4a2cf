"""What a run's script notes reaches the database: tags, programs, tries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

query = HELP.query
SUM = "0" * 64


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def folder_of(study: Any, name: str = "timeout") -> Path:
    """Return the folder of the one attempt of a run."""
    (folder,) = (study.dir / "runs" / HELP.run_id(name)).iterdir()
    return Path(folder)


def note(folder: Path, **files: str) -> None:
    (folder / "client.0").write_text("ready n9 0\nend 0 1 2 3 4\n")
    for name, text in files.items():
        (folder / f"{name}.0").write_text(text)


def test_tags_of_the_script_stand_beside_those_of_the_record(study: Any) -> None:
    folder = folder_of(study, "twonodes")
    note(folder, tags="mount.type=nfs4\nodd=a=b\nno tag\n=x\ncut=sho")
    study.collect()
    rows = query(study, "SELECT node, key, value FROM tags WHERE node = 'n9' ORDER BY key")
    assert rows == [("n9", "mount.type", "nfs4"), ("n9", "odd", "a=b")]
    ((others,),) = query(study, "SELECT count(*) FROM tags WHERE node <> 'n9'")
    assert others > 0


def test_programs_and_libraries_stand_once_per_node(study: Any) -> None:
    line = f'{{"kind":"program","path":"/usr/bin/hpcc","sha256":"{SUM}"}}\n'
    note(folder_of(study, "twonodes"), environment=line + line + 'no JSON\n{"kind":1}\n[]\n')
    study.collect()
    rows = query(study, "SELECT node, kind, path, sha256 FROM environment")
    assert rows == [("n9", "program", "/usr/bin/hpcc", SUM)]


def test_parts_of_its_time_stand_once_and_only_whole_lines(study: Any) -> None:
    folder = folder_of(study, "twonodes")
    line = '{"span":"iteration","iteration":%s,"begin_unix_s":%s,"end_unix_s":%s}\n'
    right, backward, nothing = line % (1, 10.5, 20.5), line % (2, 9, 8), line % (3, "NaN", 8)
    note(folder, spans=right + right + backward + nothing + 'no JSON\n[]\n{"span":"cut","b')
    (folder / "spans.run").write_text(
        '{"span":"idle_before","begin_unix_s":1,"end_unix_s":2}\n'
        '{"span":"No word","begin_unix_s":1,"end_unix_s":2}\n'
    )
    study.collect()
    rows = query(study, "SELECT * EXCLUDE (run_id, attempt) FROM spans ORDER BY begin_unix_s")
    assert rows == [("idle_before", 1, 1.0, 2.0), ("iteration", 1, 10.5, 20.5)]


def test_tries_are_counted(study: Any) -> None:
    row = study.row("11")
    folder = folder_of(study, "twonodes")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    failed = [{"state": "failed", "reason": "bad luck"}]
    study.attempt(HELP.run_id("twonodes"), row, tries=failed)
    study.collect()
    rows = query(study, "SELECT tries FROM attempts WHERE tries IS NOT NULL")
    assert rows == [(2,)]


@pytest.mark.parametrize("measured", ["yes", "no", "unknown"])
def test_totals_of_processes_that_were_elsewhere_are_null(study: Any, measured: str) -> None:
    """What a container's daemon started is not in the job's record; the node's bytes are."""
    note(folder_of(study, "twonodes"), tags=f"launcher_measured={measured}\n")
    row = study.row("11")
    for node in row.nodes:  # the job was alone: the node's bytes are its own
        study.record(row, node, job={"scheduler": "slurm", "job_id": "11", "exclusive": True})
    study.collect()
    found = dict(
        query(
            study,
            "SELECT metric, value IS NOT NULL FROM measurements "
            f"WHERE run_id = '{HELP.run_id('twonodes')}'",
        )
    )
    of_processes = ("cpu_s", "max_memory_bytes", "rchar_bytes", "wchar_bytes", "read_bytes")
    assert {found[metric] for metric in of_processes} == {measured == "yes"}
    assert found["rx_bytes"]
    assert found["elapsed_s"]


def test_noise_in_an_output_becomes_notes_and_changes_no_figure(study: Any) -> None:
    study.collect()
    right = query(study, "SELECT * FROM results ORDER BY ALL")
    assert right
    line = "[1795275243.363293] [n1:42:0]  mpool.c:38   UCX  WARN  object was not returned to mpool"
    folder = folder_of(study, "twonodes")
    with (folder / "out.0").open("ab") as out:
        out.write(line.encode() + b" \xb0\n")
    done = study.collect()
    assert query(study, "SELECT * FROM results ORDER BY ALL") == right
    assert query(study, "SELECT run_id, client, kind, line, text FROM notes ORDER BY kind") == [
        (HELP.run_id("twonodes"), 0, "bytes", 6, f"{line} \ufffd"),
        (HELP.run_id("twonodes"), 0, "noise", 6, f"{line} \ufffd"),
    ]
    assert done.notes == 2
    study.collect()
    assert query(study, "SELECT count(*) FROM notes") == [(2,)]
