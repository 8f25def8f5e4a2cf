"""Gaps as `collect` prints them: a reason once, with its number and its first places."""

from __future__ import annotations

import pytest

from steelyard.wrappers.commands import collect

NO_BPF = "cpu and io lack what no step has waited for"


def shown(*found: tuple[str, str]) -> list[str]:
    return list(collect.format_gaps(found, "  "))


def test_one_gap_has_its_whole_reason() -> None:
    assert shown(("a 1.0", f"v1.17.json: {NO_BPF}")) == [f"  a 1.0: v1.17.json: {NO_BPF}"]
    assert shown(("", "slurmdbd does not answer")) == ["  slurmdbd does not answer"]


def test_a_reason_of_several_files_is_printed_once() -> None:
    gaps = [(f"a {number}.0", f"v1.{number}.json: {NO_BPF}") for number in range(12)]
    assert shown(*gaps) == [f"  12 × {NO_BPF}", "    a 0.0, a 1.0, a 2.0 and 9 more"]
    assert shown(*gaps[:3])[1] == "    a 0.0, a 1.0, a 2.0"


def test_two_nodes_of_one_attempt_are_one_place() -> None:
    gaps = [("a 1.0", f"{node}.17.json: {NO_BPF}") for node in ("n1", "n2")]
    assert shown(*gaps) == [f"  2 × {NO_BPF}", "    a 1.0"]


@pytest.mark.parametrize("name", ["v1.17.json", "samples/v1.17.csv"])
def test_only_the_name_of_a_file_is_left_out(name: str) -> None:
    assert shown(("a", f"{name} was cut short: x"), ("b", f"{name} was cut short: y")) == [
        f"  a: {name} was cut short: x",
        f"  b: {name} was cut short: y",
    ]
    assert shown(*2 * [("a", f"{name} was cut short: x")])[0] == "  2 × cut short: x"
    assert shown(*2 * [("a", "no record in x.json: y")])[0] == "  2 × no record in x.json: y"


def test_frequent_reasons_come_first_and_the_rest_is_counted() -> None:
    gaps = [("a", "p"), ("b", "q"), ("c", "r"), ("d", "r"), ("e", "s"), ("f", "t")]
    assert shown(*gaps) == [
        "  2 × r",
        "    c, d",
        "  a: p",
        "  b: q",
        "  … and 2 more (--json has them all)",
    ]


def test_no_gaps_no_lines() -> None:
    assert shown() == []


def test_a_kind_without_words_of_its_own_is_listed_last() -> None:
    found = [("new", "job 1", "strange"), ("known", "job 2", "plain")]
    lines = list(collect.format_kinds(found, {"known": ("known gaps", "wait")}, ""))
    assert lines == [
        "1 × known gaps: wait",
        "  job 2: plain",
        "1 × new: look at the reasons",
        "  job 1: strange",
    ]
