"""show, collect --cluster, top and metrics of packed jobs: to equality what they are of loose files."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from tests.system.cluster_up.test_collect import ask, run, several
from tests.unit.cluster.sacct_lab import Lab, lab
from tests.unit.collect.study import DATA

from steelyard.wrappers.commands import cli

__all__ = ["lab"]
SHOWN = ("9", *map(str, range(20, 27)))  # with samples; 9 was requeued
RECORDED = sorted((DATA / "records").glob("*/*.csv"))


@pytest.fixture
def site(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Jobs with recorded samples, and some whose samples are not as the sampler writes them."""
    several(lab)
    odd = [b"", b"elapsed_s,cpu_s\n1.000000,2.0", b"elapsed_s,rx_bytes\n1.000000,007\n"]
    contents = [path.read_bytes() for path in RECORDED] + odd
    for number, samples in enumerate(contents, 20):
        path = lab.record(
            str(number), lab.job(str(number), 100_000 + number, 900), complete=number % 2 > 0
        )
        path.with_suffix(".csv").write_bytes(samples)
    (lab.records / "21" / path.with_suffix(".csv").name).unlink(missing_ok=True)
    monkeypatch.setattr("time.time", lambda: 1_795_500_000.0)
    return lab


def answers(
    site: Lab, capsys: pytest.CaptureFixture[str], shown: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return each command's output, in JSON if possible, without the folder of unpacked files."""
    shutil.rmtree(site.dir, ignore_errors=True)
    run(site)
    columns = {"jobs": "*", "records": "* EXCLUDE (file)", "gaps": "*"}
    found: dict[str, Any] = {
        table: sorted(map(repr, ask(site, f"SELECT {which} FROM {table}")))
        for table, which in columns.items()
    }
    where = ["--record-dir", str(site.records), "--json"]
    asked = {job_id: ["show", job_id, *where] for job_id in shown}
    asked |= {"top": ["top", "--database", str(site.dir), "--since", "2026-11-01", "--json"]}
    asked |= {"metrics": ["metrics", "--database", str(site.dir)]}
    for name, words in asked.items():
        code = cli.main(words)
        out = capsys.readouterr().out
        # The first line of the metrics names the database, which is a new one.
        found[name] = (code, out.splitlines()[1:] if name == "metrics" else json.loads(out))
    return found


def test_every_answer_is_the_same(site: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    loose = answers(site, capsys, SHOWN)
    assert site.pack() > 0
    assert not list(site.records.rglob("*.json"))
    packed = answers(site, capsys, SHOWN)
    assert [name for name in loose if loose[name] != packed[name]] == []
    assert loose["20"][1]["nodes"] != loose["22"][1]["nodes"]


def test_thinned_samples_change_no_total(site: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    loose = answers(site, capsys)
    site.pack(every_s=0)
    thinned = answers(site, capsys)
    for name in ("jobs", "records", "gaps", "top", "metrics"):
        assert loose[name] == thinned[name]
