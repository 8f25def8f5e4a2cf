"""docs/data-protection.md: its commands for an admin erase a user, and no other."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path

import duckdb
from tests.unit.cluster.sacct_lab import Lab, lab

from ..cluster_up.test_collect import ask, run, several

__all__ = ["lab"]
PAGE = Path(__file__).resolve().parents[3] / "docs/data-protection.md"


def test_the_statements_erase_one_user_from_the_database_and_its_files(lab: Lab) -> None:
    several(lab)
    other = lab.job("20", 0.5 * 86400, User="bob")
    lab.record("20", other)
    run(lab)
    lab.jobs = {key: job for key, job in lab.jobs.items() if job["User"] == "bob"}
    lab.write()  # slurmdbd has forgotten the others
    (sql,) = re.findall(r"<<'SQL'\n(.*?)\n +SQL\n", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with duckdb.connect(str(lab.dir / "cluster.duckdb")) as base:
        base.execute(textwrap.dedent(sql))
    run(lab)
    assert ask(lab, 'SELECT job_id, "user" FROM jobs') == [("20", "bob")]
    for table in ("records", "gaps"):
        assert set(ask(lab, f"SELECT DISTINCT job_id FROM {table}")) <= {("20",)}
    files = f"{lab.dir}/parquet/jobs/*/*.parquet"
    assert duckdb.execute(f"SELECT job_id FROM '{files}'").fetchall() == [("20",)]


def test_the_packs_of_a_group_go_and_others_stay(tmp_path: Path) -> None:
    packs = tmp_path / "2026-11/23.packs"
    packs.mkdir(parents=True)
    mine, theirs = "records-1000-0440-1", "records-11000-0440-1"
    for name in (mine, theirs):
        for ending in (".parquet", ".jobs"):
            (packs / f"{name}{ending}").touch()
    (line,) = re.findall(r"find (.* -path .*)", PAGE.read_text(encoding="utf-8"))
    line = line.replace("/shared/steelyard/records", str(tmp_path)).replace("$(id -g ada)", "1000")
    subprocess.run(["sh", "-c", f"find {line}"], check=True)
    assert sorted(path.name for path in packs.iterdir()) == [f"{theirs}.jobs", f"{theirs}.parquet"]
