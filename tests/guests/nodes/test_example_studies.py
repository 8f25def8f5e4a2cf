"""The example studies through a real cluster: their own text, with small numbers in it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.guests.nodes.netem_guests import address
from tests.throwaway_lab import Lab

from steelyard.jobscripts.example_studies import FOLDER

ONCE = {"repeat": "1", "blocks": "1", "time_limit": '"00:02:00"'}
NPB = {"class": '"S"', "kernel": '["cg"]', "ranks": "2"}
SMALL: dict[str, dict[str, str]] = {
    "jungels2012-files": {
        "clients": "[1]",
        "directory": '["{folder}"]',
        "size": '"1MiB"',
        "iterations": "1\ncopy_files = 10\nwrite_files = 10",
    },
    "jungels2012-hpc": {
        **NPB,
        "nodes": "1",
        "tasks_per_node": "2",
        "n": "100",
        "nb": "32",
        "q": "2",
    },
    "ruiz2015-q1": {
        **NPB,
        "nodes": "1",
        "launcher": '["bare", "unshare", "unshare,network=bridge", "unshare,containers=2,ranks=across"]',
    },
    "bourilkov2012-network": {"nodes": "3", "streams": "1", "seconds": "1\nomit = 0"},
    "bourilkov2012-storage": {
        "clients": "[2]",
        "[baseline]\nclients": "2",
        "cache": '["warm"]',
        "network": '["none"]',
        "directory": '"{folder}"',
        "size": '"1MiB"',
        "most_size": '"1MiB"',
    },
    "bourilkov2012-trees": {
        "clients": "[2]",
        "[baseline]\nclients": "2",
        "mode": '["parallel"]',
        "cache": '["warm"]',
        "network": '["none"]',
        "structure": '["flat", "unsplit"]',
        "compression": '["zlib"]',
        "data": '"{folder}"',
        "iterations": "1\nevents = 2000",
    },
    "kommeri2016-local": {
        "cache": '["warm"]',
        "network": '["loss=0%,to={to}", '
        '"delay=20ms,loss=0.1%,duplicate=1%,corrupt=0.1%,rate=100mbit,to={to}"]',
        "[baseline]\nnetwork": '"loss=0%,to={to}"',
        "nodes": '2\nconstraint = "virtual"',
        "idle_s": "2",
        "mode": '"analysis"',
        "events": "2000",
    },
}


# Whose benchmarks, factors and conditions are among those above, in tests of their own
# (test_fstest_processes.py, test_bench_xrootd.py, test_bench_network.py, test_cache_cvmfs.py,
# test_kernel_release.py, test_launchers_far.py), or in tests/guests/papers.
ELSEWHERE = {
    "bourilkov2012-root",
    "bourilkov2012-wan",
    "jungels2012-files-as-run",
    "jungels2012-hpc-in-a-row",
    "kommeri2016-blades",
    "kommeri2016-cvmfs",
    "kommeri2016-jobs",
    "kommeri2016-sites",
    "ruiz2015-q1-kernels",
    "ruiz2015-q2",
    "ruiz2015-q2-4",
    "ruiz2015-q2-8",
    "ruiz2015-q2-multinode",
    "ruiz2015-q2-multinode-4",
    "ruiz2015-q2-multinode-8",
    "ruiz2015-q3",
}


def small(lab: Lab, name: str, **words: object) -> str:
    """The example with small numbers, in the work folder; its file name. A key must be there."""
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    for key, value in (ONCE | SMALL[name]).items():
        pattern = rf"^({re.escape(key)} *= )(?:\[\n.*?^\]|[^#\n]*)"
        parts = re.split(pattern, text, maxsplit=1, flags=re.MULTILINE | re.DOTALL)
        assert len(parts) == 3, f"{name} has no {key}"
        text = f"{parts[0]}{parts[1]}{value.format(**words)} {parts[2]}"
    (lab.work / f"{name}.toml").write_text(text, encoding="utf-8")
    return f"{name}.toml"


def ran(lab: Lab, file: str) -> list[tuple[Any, ...]]:
    """Submit, wait, collect and report: condition, benchmark, state, reason of every run."""
    lab.steelyard("submit", file)
    lab.wait_study(file)
    lab.collect(file)
    lab.steelyard("report", file, "-o", "report.html")
    return lab.rows(
        Path(file).stem,
        "SELECT condition::VARCHAR, benchmark, state, count(DISTINCT value) FROM runs "
        "LEFT JOIN results USING (run_id) GROUP BY run_id, 1, 2, 3 ORDER BY ALL",
    )


def completed(rows: list[tuple[Any, ...]], count: int) -> None:
    """So many runs, all with figures."""
    assert len(rows) == count
    assert all(state == "completed" and figures > 0 for _, _, state, figures in rows), rows


def compared(lab: Lab, file: str, metric: str) -> list[dict[str, Any]]:
    """Return the report's rows of a metric that have a baseline, both with a mean."""
    rows = json.loads(lab.steelyard("report", file, "--json"))["rows"]
    of_metric = [row for row in rows if row["metric"] == metric]
    assert all(row["mean"] > 0 for row in of_metric)
    return [row for row in of_metric if row["baseline"] and not row["is_baseline"]]


def test_file_copies_on_physical_and_virtual_nodes(lab: Lab) -> None:
    completed(ran(lab, small(lab, "jungels2012-files", folder=lab.work)), 2 * 3)


def test_npb_and_linpack_on_physical_and_virtual_nodes(lab: Lab) -> None:
    completed(ran(lab, small(lab, "jungels2012-hpc")), 2 * 2)


def test_npb_in_containers(lab: Lab) -> None:
    completed(ran(lab, small(lab, "ruiz2015-q1")), 4)


def test_network_throughput_in_turn_and_all_at_once(lab: Lab) -> None:
    file = small(lab, "bourilkov2012-network")
    completed(ran(lab, file), 2)
    (together,) = compared(lab, file, "total_received_bits_per_s")
    assert (together["condition"], together["baseline"]) == ("mode=parallel", "mode=sequential")


def test_root_trees_on_a_mount_by_structure(lab: Lab) -> None:
    file = small(lab, "bourilkov2012-trees", folder=lab.work)
    completed(ran(lab, file), 2)
    (unsplit,) = compared(lab, file, "seconds")
    assert "structure=unsplit" in unsplit["condition"]
    assert "structure=flat" in unsplit["baseline"]


def test_iozone_on_a_mount_in_turn_and_all_at_once(lab: Lab) -> None:
    """iozone is a user's own program."""
    if shutil.which("iozone") is None:
        pytest.skip("iozone is not in PATH: Debian has no package, iozone.org has the source")
    completed(ran(lab, small(lab, "bourilkov2012-storage", folder=lab.work)), 2)


def test_an_analysis_whose_data_is_far_away(virtual_lab: Lab) -> None:
    network = address(virtual_lab.cluster, "v1").rpartition(".")[0]
    file = small(virtual_lab, "kommeri2016-local", to=f"{network}.8/29")
    completed(ran(virtual_lab, file), 2)


def test_every_example_has_a_small_version() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(SMALL) | ELSEWHERE
