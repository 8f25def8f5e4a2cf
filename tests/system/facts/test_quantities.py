"""facts/quantities.def: C and Python read the same, and it is in itself without contradiction."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from steelyard.facts import json_fields
from steelyard.facts.quantities import COLUMNS, TOTALS

ROOT = Path(__file__).resolve().parents[3]


def test_what_the_sampler_writes_is_what_is_read(tmp_path: Path) -> None:
    """The columns of its file, the totals of its record and of its answer."""
    node = ROOT / "build" / "bin" / "steelyard-node"
    subprocess.run(
        [node, "sample", f"--record-dir={tmp_path}", "--job-id=1", "--", "true"], check=True
    )
    (samples,) = tmp_path.glob("1/*.csv")
    header = samples.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert header[: len(COLUMNS)] == [column.name for column in COLUMNS]
    (path,) = tmp_path.glob("1/*.json")
    record = json.loads(path.read_bytes())
    for total in TOTALS.values():
        at = record
        for part in total.path.split("."):
            at = at[part]
        assert at is None or isinstance(at, float if total.is_real else int), total.path
    assert json_fields.compare("record", record) == []


def test_the_pages_have_the_tables_of_today() -> None:
    done = subprocess.run(
        [sys.executable, "docs/tables.py", "--check"],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_page_with_another_table_is_told(tmp_path: Path) -> None:
    """And what is written is what is then found right."""
    (tmp_path / "tables.py").write_bytes((ROOT / "docs" / "tables.py").read_bytes())
    page = tmp_path / "netem.md"
    text = (ROOT / "docs" / "netem.md").read_text(encoding="utf-8")
    page.write_text(text.replace("`delay=50ms` |", "`delay=51ms` |"), encoding="utf-8")
    check = [sys.executable, tmp_path / "tables.py", "--check"]
    done = subprocess.run(check, check=False, capture_output=True, text=True)
    assert done.returncode == 1 and "netem.md: tables differ" in done.stderr
    subprocess.run(check[:-1], check=True)
    assert page.read_text(encoding="utf-8") == text
