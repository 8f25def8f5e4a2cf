"""A cluster's year in fast motion: sessions of seconds, planted changes, and what `history` states."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.throwaway_lab import Lab, until

STUDY = """
[study]
name = "nightly"
repeat = 4
blocks = 2
seed = 7
[job]
time_limit = "00:02:00"
tags = {{ governor = "{governor}" }}
[[benchmark]]
use = "app"
command = "bash {program}"
[benchmark.figures.rate]
pattern = 'rate ([0-9]+) Mop/s'
unit = "Mop/s"
better = "higher"
"""
# It prints a speed, up to 0.2 % off, so that other load on the machine is not in it. The four runs of a
# session wait for each other, so that each node has one.
PROGRAM = """\
cd "${0%/*}" && read -r speed percent night <machine && mkdir -p "$night" && : >"$night/$SLURMD_NODENAME"
until [[ $(ls "$night" | wc -l) == 4 ]]; do sleep 0.1; done
[[ $SLURMD_NODENAME != n3 ]] || speed=$((speed * percent / 100))
echo "rate $((speed + RANDOM % 400 - 200)) Mop/s"
"""
SPEED, SLOWER = 100_000, 95_000
GOVERNOR, NODE, LAST = 9, 13, 17  # the sessions from which on it is changed, and how many there are


def add_session(lab: Lab, number: int) -> None:
    """As cron would: submit, wait, collect."""
    name = f"night-{number:02}"
    text = STUDY.format(
        governor="performance" if number < GOVERNOR else "powersave",
        program=lab.work / "stand-in.sh",
    )
    speed, percent = SPEED if number < GOVERNOR else SLOWER, 100 if number < NODE else 80
    (lab.work / "machine").write_text(f"{speed} {percent} {name}\n", encoding="utf-8")
    (lab.work / "nightly.toml").write_text(text, encoding="utf-8")
    lab.steelyard("submit", "nightly.toml", "--session", name)
    lab.wait_study(f"nightly@{name}")
    lab.steelyard("collect", f"nightly@{name}")


@pytest.mark.slow
def test_a_year_in_fast_motion(lab: Lab) -> None:
    """A change of all nodes and one of a single node are found in their sessions, with what changed."""
    (lab.work / "stand-in.sh").write_text(PROGRAM, encoding="utf-8")
    for number in range(1, LAST + 1):
        add_session(lab, number)
    until(lambda: not lab.queued() and not lab.samplers(), "every record is final")
    lab.steelyard("collect", "nightly")
    words = ("--fail-on", "3%", "--junit", "junit.xml", "--figure", "year.svg")
    out = " ".join(lab.steelyard("history", "nightly", *words, code=6).split())
    assert re.search(
        r"app \(rate\) computes [\d.]+ % slower \([\d.]+ to [\d.]+ %\) since session night-09 \([^)]*\); "
        r"in that session 4 of 4 nodes went from governor performance to powersave\. "
        r"Nothing else changed\.",
        out,
    )
    assert re.search(
        r"app \(rate\) computes (?:19|20)[\d.]* % slower \([^)]*\) on n3 alone since session night-13",
        out,
    )
    check_files(lab.work)


def check_files(work: Path) -> None:
    """The rate has failed, and the figure has both steps."""
    cases = ElementTree.parse(work / "junit.xml").getroot().iter("testcase")
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert "rate" in failed
    figure = (work / "year.svg").read_text(encoding="utf-8")
    assert "governor performance → powersave" in figure
    assert "only n3" in figure
