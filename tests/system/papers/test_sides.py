"""What a claim may be judged by: the paper's own conditions, and pairs that differ in nothing else."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from tests.unit.summary.study_maker import StudyMaker

from steelyard.analysis.papers.verdicts import FAILS, HOLDS, UNKNOWN
from steelyard.analysis.report.figures import draw_figures

from . import paper_studies
from .paper_studies import SPREAD, beside, outcomes


def test_the_scripts_times_stand_beside_scripts_times(tmp_path: Path) -> None:
    """By construction: Lustre and NFS a tenth slower on virtual nodes, PVFS a tenth faster."""
    report = beside(paper_studies.jungels_files("each"), "jungels2012", tmp_path)
    found = {words: outcome for words, (outcome, _) in outcomes(report).items()}
    assert {words for words, outcome in found.items() if outcome == HOLDS} == {
        "A large file is copied from Lustre faster on physical nodes",
        "A large file is copied from PVFS faster on virtual nodes",
        "Copies of a large file from NFS take comparable times, virtual nodes being slower",
        "Small files are written to Lustre faster than to NFS",
        "Small files are written to Lustre faster than to PVFS",
    }
    numbers = {one.value.place: one for one in report.values if one.row}
    assert len(numbers) == 2 * 3 * 2  # tests, file systems, node types; 4 at once
    written = numbers["small_file_write", "Lustre", "4", "virtual"]
    assert (written.value.printed, written.ours[0]) == (17.13, pytest.approx(12.1))


def test_times_of_one_program_stand_beside_no_time_of_a_process_a_file(tmp_path: Path) -> None:
    report = beside(paper_studies.jungels_files("one"), "jungels2012", tmp_path)
    assert {outcome for outcome, _ in outcomes(report).values()} == {UNKNOWN}
    assert not [one for one in report.values if one.row]
    words = "Small files are written to Lustre faster than to NFS"
    reason = outcomes(report)[words][1]
    assert reason == "no runs with process=each; jungels2012-files-as-run.toml asks it"


def test_linpack_of_the_printed_size_is_as_printed(tmp_path: Path) -> None:
    """It has neither class nor ranks, which were required as for NPB."""
    report = beside(paper_studies.jungels_hpl(), "jungels2012", tmp_path)
    assert [one.remark for one in report.values if one.row] == ["", ""]
    words = "XHPL is faster on physical nodes by a wide margin"
    assert outcomes(report)[words][0] == HOLDS


def test_two_programs_are_compared_in_as_many_containers(tmp_path: Path) -> None:
    """In 2 containers MG loses less than EP in 8: nobody claims anything of that pair."""
    report = beside(paper_studies.ruiz_side_by_side(), "ruiz2015", tmp_path)
    (found,) = [one for one in report.verdicts if one.claim.words.startswith("MG, LU and FT lose")]
    assert found.outcome == HOLDS
    counts = [
        (one.condition.split("=")[-2:], one.against.split("=")[-2:]) for one in found.evidence
    ]
    assert len(counts) == 3 * 2 and all(ours == theirs for ours, theirs in counts)


def test_each_metric_of_the_best_rates_is_judged(tmp_path: Path) -> None:
    report = beside(paper_studies.bourilkov_xen(), "bourilkov2012", tmp_path)
    outcome, reason = outcomes(report)["Xen has the best rates of all virtual nodes"]
    assert outcome == FAILS and "kvm" in reason and ": write " in reason
    (found,) = [one for one in report.verdicts if one.claim.words.startswith("Xen has")]
    assert sorted(one.outcome for one in found.evidence) == [FAILS, HOLDS]


def test_table_1_of_ruiz_is_drawn_of_eight_containers(tmp_path: Path) -> None:
    """In 2 containers 50 % are computing, in 8, which the paper printed, 60 %."""
    report = beside(paper_studies.ruiz_q2(), "ruiz2015", tmp_path)
    (figure,) = [one for one in draw_figures(report.draws) if one.name == "ruiz2015-table-1"]
    place = {name: number for number, name in enumerate(figure.columns)}
    ours = {
        (row[place["configuration"]], row[place["benchmark"]], row[place["part"]]): row[
            place["ours_percent"]
        ]
        for row in figure.rows
    }
    assert len(ours) == len(figure.rows) == 2 * 2 * 3
    assert ours["container", "CG.B", "cpu"] == pytest.approx(60.0)
    claim = outcomes(report)[
        "Containers on one machine take at most 13.04 % more time than processes that share its memory (MG.C)"
    ]
    assert "slower by 20" not in claim[1] and "slower by 10" in claim[1]


def test_time_outs_of_tcp_are_judged_where_packets_are_lost(tmp_path: Path) -> None:
    """They are +50 % and +20 % in containers by construction, −60 % by the shorter one.

    For FT, without a claim of time-outs, nothing is reported on such a network.
    """
    report = beside(paper_studies.ruiz_lossy(), "ruiz2015", tmp_path)
    seen = {one.claim.words: one.evidence for one in report.verdicts if one.evidence}
    assert {
        words: [round(one.value or 0, 2) for one in found] for words, found in seen.items()
    } == {
        "CG takes longer in containers with TCP's usual least time-out": [0.5],
        "With a least time-out of 2 ms CG still takes longer in containers": [0.2],
        "A least time-out of 2 ms in place of 200 ms makes CG in containers faster": [-0.6],
    }
    assert all("loss_percent=1 for none" in one.remark for found in seen.values() for one in found)


def kommeri(conditions: dict[str, float], modes: tuple[str, ...] = ("analysis",)) -> StudyMaker:
    """Seconds by network condition, of three clients."""
    maker = StudyMaker("k", {"network": list(conditions)}, {"network": next(iter(conditions))})
    for mode, (network, seconds), (number, share) in product(
        modes, conditions.items(), enumerate(SPREAD, start=1)
    ):
        # A copy takes less time where the other takes more.
        times = seconds if mode == "analysis" else 100 / seconds
        run = maker.run(
            "xrootd", {"mode": mode, "clients": 3}, {"network": network}, number, nodes=("a", "b")
        )
        maker.result(run, "seconds", times * share, "s")
    return maker


def test_a_plain_copy_is_no_analysis(tmp_path: Path) -> None:
    maker = kommeri({"rate=160mbit": 10.0, "rate=160mbit,delay=25ms": 12.0}, ("analysis", "xrdcp"))
    report = beside(maker, "kommeri2016", tmp_path)
    words = "With both limited to 20 MB/s the site that is 50 ms away takes longer"
    assert outcomes(report)[words][0] == HOLDS


def test_a_delay_counts_once_where_the_far_end_is_no_node_of_the_job(tmp_path: Path) -> None:
    """A file server's: four clients on four nodes, each delayed by 50 ms."""
    factors = {"clients": [4], "network": ["delay=50ms"], "mode": ["sequential", "parallel"]}
    maker = StudyMaker("far", factors, {"mode": "sequential"})
    for mode, (number, share) in product(factors["mode"], enumerate(SPREAD, start=1)):
        condition = {"clients": 4, "network": "delay=50ms", "mode": mode}
        run = maker.run("iozone", {}, condition, number, nodes=("n1", "n2", "n3", "n4"))
        maker.result(run, "read", 1e8 * share, "bytes_per_s", "higher")
    report = beside(maker, "bourilkov2012", tmp_path)
    found = outcomes(report)
    stacked = "Clients at once reach rates close to their rates in turn, stacked"
    assert found[f"{stacked}, over a wide area, too (IOzone, reading)"][0] == HOLDS
    assert found[f"{stacked} (IOzone, reading)"][0] == UNKNOWN
