"""Counters for Prometheus: names, values, never decreasing, no more lines than allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.analysis.cluster.collect import collect
from steelyard.analysis.cluster.prometheus_metrics import SAMPLE, escape_label, unescape_label
from steelyard.analysis.sources.cluster_sacct import ClusterSacct
from steelyard.wrappers.commands import cli

from .sacct_lab import NOW, Lab, lab

__all__ = ["lab"]
FILE = "steelyard.prom"
ODD = 'e"v\\e\n1'


def gather(lab: Lab, now: float = NOW) -> None:
    collect(lab.dir, ClusterSacct(), [lab.records], now=lambda: now, since_unix_s=now - 8000)


def written(lab: Lab, *words: str) -> dict[str, float]:
    """Lines of users by metric and label, from the file."""
    file = lab.base / FILE
    assert cli.main(["metrics", "--database", str(lab.dir), str(file), "--users", *words]) == 0
    lines = file.read_text(encoding="utf-8").splitlines()
    found = (SAMPLE.fullmatch(line) for line in lines if not line.startswith("#"))
    samples = [match for match in found if match and match[1].startswith("steelyard_user_")]
    return {f"{m[1]} {unescape_label(m[3])}": float(m[4]) for m in samples}


def test_every_line_is_of_the_format_and_every_sum_is_there(lab: Lab) -> None:
    lab.record("1", lab.job("1", 4000, User=ODD))
    lab.job("2", 3000, TotalCPU="")
    gather(lab)
    found = written(lab)
    text = (lab.base / FILE).read_text(encoding="utf-8")
    sample = r'[a-z_]+\{cluster="c"(,[a-z_]+="(\\["\\n]|[^"\\\n])*")?\} \d+(\.\d+)?(e\+\d+)?'
    assert not [x for x in text.splitlines() if not (x.startswith("# ") or re.fullmatch(sample, x))]
    assert found[f"steelyard_user_energy_joules_total {ODD}"] == 123.5
    assert found[f"steelyard_user_cpu_unused_seconds_total {ODD}"] == 35.0
    # The joules of ada's only job are unknown: there is no sum, and the number of jobs is reported.
    assert "steelyard_user_energy_joules_total ada" not in found
    assert found["steelyard_user_energy_joules_known_jobs_total ada"] == 0.0
    assert found["steelyard_user_jobs_total ada"] == 1.0
    assert (lab.base / FILE).stat().st_mode & 0o777 == 0o644
    assert [path.name for path in lab.base.iterdir() if "prom" in path.name] == [FILE]


@pytest.mark.parametrize("text", ["plain", ODD, "\\n", 'a\\"'])
def test_a_label_comes_back(text: str) -> None:
    assert unescape_label(escape_label(text)) == text


def test_a_counter_never_goes_back_and_who_is_among_the_others_stays_there(lab: Lab) -> None:
    for number, user in enumerate(("ada", "bob", "eve"), 1):
        lab.record(str(number), lab.job(str(number), 3000, 100 * number, User=user))
    gather(lab)
    first = written(lab, "--most", "2")
    jobs = "steelyard_user_jobs_total"
    assert {n: v for n, v in first.items() if jobs in n} == {
        f"{jobs} eve": 1, f"{jobs} bob": 1, f"{jobs} (others)": 1,
    }  # fmt: skip
    lab.record("4", lab.job("4", 1000, 7000, User="ada"))  # the largest by now
    gather(lab, NOW + 10)
    again = written(lab, "--most", "2")
    assert again.keys() == first.keys() and again[f"{jobs} (others)"] == 2
    assert all(again[name] >= value for name, value in first.items())
    # Somebody else's hand: a value that was larger stays.
    file = lab.base / FILE
    text = file.read_text(encoding="utf-8").replace('username="eve"} 1.0', 'username="eve"} 9.0')
    file.write_text(text, encoding="utf-8")
    assert written(lab)[f"{jobs} eve"] == 9.0
    # Of another database they restart.
    file.write_text(text.replace("# steelyard database ", "# steelyard database x"), "utf-8")
    assert written(lab)[f"{jobs} eve"] == 1.0


def test_more_lines_are_allowed_and_nobody_is_counted_twice(lab: Lab) -> None:
    for number, user in enumerate(("ada", "bob", "eve"), 1):
        lab.record(str(number), lab.job(str(number), 3000, 100 * number, User=user))
    gather(lab)
    few = written(lab, "--most", "1")
    jobs = "steelyard_user_jobs_total"
    assert {n: v for n, v in few.items() if jobs in n} == {f"{jobs} eve": 1, f"{jobs} (others)": 2}
    lab.record("4", lab.job("4", 1000, User="zoe"))  # a new one, among the others by now
    gather(lab, NOW + 10)
    more = written(lab, "--most", "500")
    assert {n: v for n, v in more.items() if jobs in n} == {f"{jobs} eve": 1, f"{jobs} (others)": 3}
    (lab.base / FILE).unlink()
    assert sum(v for n, v in written(lab).items() if jobs in n) == 4


def test_a_file_that_no_collector_reads_is_refused(
    lab: Lab, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["metrics", str(tmp_path / "steelyard.txt")]) == 2
    assert "ends in .prom" in capsys.readouterr().err


def test_no_user_is_named_unless_that_is_requested(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everybody on the host and in Prometheus reads the file."""
    lab.record("1", lab.job("1", 3000, 100, User="ada"))
    gather(lab)
    assert cli.main(["metrics", "--database", str(lab.dir)]) == 0
    text = capsys.readouterr().out
    assert "steelyard_partition_jobs_total{" in text and "steelyard_account_jobs_total{" in text
    assert "ada" not in text and "username" not in text
    assert cli.main(["metrics", "--database", str(lab.dir), "--users"]) == 0
    assert 'username="ada"' in capsys.readouterr().out
