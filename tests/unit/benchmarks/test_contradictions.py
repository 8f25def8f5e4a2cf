"""Recorded output with one changed figure that contradicts another: refused with a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.errors import FailedError, OutputError

DATA = Path(__file__).parents[2] / "data"
Given = dict[str, object]


def parse(folder: Path, name: str, text: str, given: Given) -> dict[str, float]:
    (folder / "out.0").write_text(text, encoding="utf-8")
    found = registry.load(name).parse(folder, 0, given)
    return {result.metric: result.value for result in found}


def refusal(folder: Path, name: str, text: str, given: Given) -> str:
    with pytest.raises((OutputError, FailedError)) as caught:
        parse(folder, name, text, given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- HPL: PASSED is printed, the residual contradicts it ---

XHPL: Given = {"n": 1000, "nb": 64, "q": 2, "xhpl": "/opt/xhpl"}


@pytest.mark.parametrize(
    ("old", "new", "given", "words"),
    [
        (
            "3.98750446e-03",
            "5.00000000e+01",
            {},
            "a residual of 5.00000000e+01 is called PASSED, less than 16.0 was expected",
        ),
        (
            "less than                16.0",
            "less than              1600.0",
            {},
            "residuals up to 1600.0 passed, asked was 16.0",
        ),
        ("x", "x", {"threshold": 8.0}, "residuals up to 16.0 passed, asked was 8.0"),
        ("- Computational", "Computational", {}, "0 thresholds of the residual, one is needed"),
    ],
)
def test_a_residual_above_the_threshold_has_not_passed(
    tmp_path: Path, old: str, new: str, given: Given, words: str
) -> None:
    text = (DATA / "hpl/N1000.np2.NB64.out").read_text(encoding="utf-8")
    assert old in text
    found = refusal(tmp_path, "hpl", text.replace(old, new, 1), {**XHPL, **given})
    assert found == f"out.0: {words}"


def test_hpcc_is_held_to_the_threshold_too(tmp_path: Path) -> None:
    text = (DATA / "hpcc/hpccoutf.N1000.np2.txt").read_text(encoding="utf-8")
    changed = text.replace("0.0039687 ...... PASSED", "50.039687 ...... PASSED")
    given: Given = {"n": 1000, "nb": 80, "q": 2}
    assert "a residual of 50.039687 is called PASSED" in refusal(tmp_path, "hpl", changed, given)
    assert "a residual of 50.039687 is called PASSED" in refusal(tmp_path, "hpcc", changed, given)


# --- iperf3: rates against bytes and seconds, lost streams and intervals ---

STREAMS: Given = {"seconds": 1, "streams": 4}
Change = Callable[[dict[str, Any]], object]


def changed(file: str, change: Change) -> str:
    document = json.loads((DATA / "iperf3" / f"{file}.json").read_text(encoding="utf-8"))
    change(document["pairs"][0]["report"])
    return json.dumps(document)


def longer(report: dict[str, Any]) -> None:
    """A second measured interval, as a test of two seconds has."""
    rows = report["intervals"]
    rows.append(json.loads(json.dumps(rows[-1])))
    for part in (rows[-1]["sum"], *rows[-1]["streams"]):
        part["start"], part["end"] = part["end"], part["end"] + 1
    for key in ("sum_sent", "sum_received"):
        for name in ("seconds", "bytes"):
            report["end"][key][name] *= 2
    for row in report["end"]["streams"]:
        for part in row.values():
            part["bytes"] *= 2
    report["start"]["test_start"]["duration"] = 2


def lost(index: int) -> Change:
    """The same with an interval cut out."""

    def change(report: dict[str, Any]) -> None:
        longer(report)
        del report["intervals"][index]

    return change


def set_rate(factor: float) -> Change:
    def change(report: dict[str, Any]) -> None:
        report["end"]["sum_received"]["bits_per_second"] *= factor

    return change


DAMAGED: list[tuple[str, Change, Given, str]] = [
    ("tcp", set_rate(10), {"seconds": 1}, "bit/s is reported, 1902772224 bytes in 1.00242 s are"),
    ("tcp", set_rate(1e30), {"seconds": 1}, "bit/s is reported, 1902772224 bytes in"),
    ("tcp", set_rate(0.99), {"seconds": 1}, "1.50336e+10 bit/s is reported, "),
    (
        "tcp-streams",
        lambda report: report["end"]["streams"].pop(),
        STREAMS,
        "3 streams in the end, 4 were expected",
    ),
    (
        "tcp-streams",
        lambda report: report["intervals"][-1]["streams"].pop(),
        STREAMS,
        "3 streams from 7.4e-05 to 0.999903 s, 4 were expected",
    ),
    (
        "tcp-streams",
        lambda report: report["end"]["streams"][2]["receiver"].update(bytes=1),
        STREAMS,
        "sum_received is 2110259200 bytes, its 4 streams (receiver) have 1582694401",
    ),
    (
        "tcp-both",
        lambda report: report["end"]["sum_received_bidir_reverse"].update(bytes=1, bits_per_second=8 / 1.006425),
        {"seconds": 1, "direction": "both"},
        "sum_received_bidir_reverse is 1 bytes, its 1 streams (receiver) have 887488512",
    ),
    ("tcp", lost(-1), {"seconds": 2}, "the intervals end at 1.00004 s, 2.00009 s were expected"),
    ("tcp", lost(1), {"seconds": 2}, "an interval begins at 1.00004 s, expected was 0 s"),
    ("udp", lambda report: report["intervals"].clear(), {"seconds": 1, "protocol": "udp"}, "end at 0 s"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "change", "given", "words"), DAMAGED)
def test_a_report_of_iperf3_that_contradicts_itself(
    tmp_path: Path, file: str, change: Change, given: Given, words: str
) -> None:
    found = refusal(tmp_path, "iperf3", changed(file, change), given)
    assert words in found
    assert found.startswith("iperf3 a > b: ")


def test_two_whole_intervals_are_read(tmp_path: Path) -> None:
    found = parse(tmp_path, "iperf3", changed("tcp", longer), {"seconds": 2})
    assert found["received_bits_per_s"] == 15185413904.93615


@pytest.mark.parametrize("errors", ["", "iperf3: error - control socket has closed\n"])
def test_a_whole_report_with_another_exit_code_than_0_is_a_failure(
    tmp_path: Path, errors: str
) -> None:
    document = json.loads((DATA / "iperf3/tcp.json").read_text(encoding="utf-8"))
    document["pairs"][0] |= {"exit_code": 1, "errors": errors}
    words = errors.strip() or "no reason given, though its report is whole"
    found = refusal(tmp_path, "iperf3", json.dumps(document), {"seconds": 1})
    assert found == f"iperf3 a > b: exit code 1: {words}"


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize(("name", "seconds"), [("iperf3", 1), ("nuttcp", 2)])
def test_the_sum_of_the_rates_is_told_in_both_modes(
    tmp_path: Path, name: str, seconds: int, mode: str
) -> None:
    pairs = json.loads((DATA / name / "tcp.json").read_text(encoding="utf-8"))["pairs"]
    text = json.dumps({"pairs": pairs * 3})
    found = parse(tmp_path, name, text, {"seconds": seconds, "mode": mode})
    assert found["total_received_bits_per_s"] == pytest.approx(
        3 * found["received_bits_per_s"], rel=1e-15
    )


# --- NPB: two verdicts, rates that do not go together ---

CG: Given = {"kernel": "cg", "class": "S", "ranks": 2}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            r"^( Verification .*\n)",
            r" Verification    =             UNSUCCESSFUL\n\1",
            "Verification is printed twice, as 'UNSUCCESSFUL' and 'SUCCESSFUL', once was expected",
        ),
        (
            r"^( Mop/s total .*\n)",
            r"\1 Mop/s total     =                 99999.99\n",
            "Mop/s total is printed twice, as '6053.96' and '99999.99', once was expected",
        ),
        (
            "VERIFICATION SUCCESSFUL",
            "VERIFICATION FAILED",
            "two verdicts: 'VERIFICATION FAILED', then Verification = SUCCESSFUL",
        ),
        (
            "6053.96",
            "60539.6",
            "Mop/s total is 60539.6, of 2 processes with 3026.98 each 6053.96 was expected",
        ),
        (
            "3026.98",
            "6053.96",
            "Mop/s total is 6053.96, of 2 processes with 6053.96 each 12107.9 was expected",
        ),
        (
            "6053.96",
            "6053.99",
            "Mop/s total is 6053.99, of 2 processes with 3026.98 each 6053.96 was expected",
        ),
    ],
)
def test_a_block_of_npb_that_contradicts_itself(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = (DATA / "npb/mpi.cg.S.2.r1.out").read_text(encoding="utf-8")
    damaged, count = re.subn(old, new, text, flags=re.MULTILINE)
    assert count == 1
    assert refusal(tmp_path, "npb", damaged, CG) == f"out.0: {words}"


# --- app: a figure cut out of the middle of a number ---


def app(folder: Path, pattern: str, text: str) -> registry.OwnFigures:
    (folder / "out.0").write_text(text, encoding="utf-8")
    figures = {"rate": {"pattern": pattern, "unit": "Gflop/s"}}
    given = registry.load("app").check_parameters({"command": "x", "figures": figures})
    return registry.load("app").own_figures(folder, 0, given)


@pytest.mark.parametrize(
    ("pattern", "text", "cut", "out_of"),
    [
        ("rate = ([0-9.]+)", "rate = 5,75 Gflop/s\n", "5", "5,75"),
        ("rate = ([0-9.]+).*flop/s", "rate = 5,75 Gflop/s\n", "5", "5,75"),
        ("rate = ([0-9.]+)", "rate = 5.75e3\n", "5.75", "5.75e3"),
        ("rate = ([0-9.]+)", "rate = 5.75E-03\n", "5.75", "5.75E-03"),
        ("rate = ([0-9.]+)", "rate = 5.75D+03\n", "5.75", "5.75D+03"),
        ("rate = ([0-9]+)", "rate = 5.75\n", "5", "5.75"),
        (r"rate = (\d)", "rate = 575\n", "5", "575"),
        ("([0-9.]+) Gflop", "rate = 5,75 Gflop\n", "75", "5,75"),
        ("([0-9]+) Gflop", "rate = 5.75e+12 Gflop\n", "12", "5.75e+12"),
        ("([0-9.]+) Gflop", "rate = -5.75 Gflop\n", "5.75", "-5.75"),
        ("([0-9]+) Gflop", "rate .5 Gflop\n", "5", ".5"),
        ("rate = ([0-9.]+)", "rate = 5'750\n", "5", "5'750"),
        (r"(?:a),(?:)rate = ([0-9.]+)", "a,rate = 5,75\n", "5", "5,75"),
    ],
)
def test_a_figure_cut_out_of_a_number_is_refused(
    tmp_path: Path, pattern: str, text: str, cut: str, out_of: str
) -> None:
    found = app(tmp_path, pattern, text)
    expected = f"out.0: rate: {pattern} takes '{cut}' out of '{out_of}': expected is a whole number"
    assert found.missing["rate"].startswith(expected)
    assert found.results == []


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        ("rate = ([-+0-9.eE]+)", "rate = 5.75e3\n", 5750.0),
        ("rate = ([-+0-9.eE]+) Gflop/s", "rate = -5.75e-1 Gflop/s\n", -0.575),
        ("rate = ([0-9.]+)", "rate = 5.75Gflop/s\n", 5.75),
        ("rate = ([0-9.]+)", "rate = 5.75, better than ever\n", 5.75),
        ("^rate,([0-9.]+),", "rate,5,75\n", 5.0),
        (r"^[],x]+\(,([0-9]+)", "x(,75\n", 75.0),
        ("rank-([0-9]+)", "rank-7\n", 7.0),
        ("loss: -([0-9.]+) dB", "loss: -3.5 dB\n", 3.5),
        (r"([0-9]+)\.[0-9]+ s", "12.75 s\n", 12.0),
        ("rate....([0-9.]+)", "rate ...5.75\n", 5.75),
        ("step 3: ([0-9.]+)", "step 3: 5.75\n", 5.75),
    ],
)
def test_a_whole_figure_is_taken(tmp_path: Path, pattern: str, text: str, value: float) -> None:
    found = app(tmp_path, pattern, text)
    assert [(one.metric, one.value) for one in found.results] == [("rate", value)]
    assert found.missing == {}
