"""facts/netem_keys.def: each row agrees with the program, the policy, the messages, the pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.unit.facts.test_netem_keys import in_units, netem

from steelyard.facts.netem_keys import VALUES, Value
from steelyard.wrappers.netem import condition_descriptions

ROOT = Path(__file__).parents[3]
# With numbers in place of the letters.
NUMBERS = {"gemodel": "loss=gemodel:1%:10%:70%:0.1%", "state": "loss=state:1%:10%:30%:50%:0.1%"}
# Additions to an example that cannot be used alone.
BESIDE = {"ecn": "loss=1%,", "reorder": "delay=9ms,", "to": "rate=8mbit,", "port": "rate=8mbit,",
          "device": "rate=8mbit,", "direction": "rate=8mbit,"}  # fmt: skip
BOUNDED = [value for value in VALUES if value.bound in ("MOST", "LEAST")]
SPECIFICATION = re.compile(r"\b[a-z_]+=[\w.%~/:]+(?:,[a-z_]+=[\w.%~/:]+)*")


def asked(value: Value) -> str:
    """A specification that has this value."""
    return BESIDE.get(value.id, "") + NUMBERS.get(value.id, value.example)


def parsed(text: str) -> dict[str, object]:
    done = netem("parse", "--", text)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)["spec"]
    return found


@pytest.mark.parametrize("value", VALUES, ids=lambda value: value.id)
def test_an_example_is_read_written_and_said(value: Value) -> None:
    spec = parsed(asked(value))
    assert value.json in spec
    assert json.loads(netem("parse", asked(value)).stdout)["requested"] == asked(value)
    said = condition_descriptions.describe_parts({value.json: spec[value.json]})
    assert (said != ["nothing is touched"]) == bool(value.words)


def test_the_rows_are_all_that_the_program_knows() -> None:
    said = netem("parse", "nosuch=1").stderr
    known = ", ".join(value.key for value in VALUES if value.row == "KEY")
    assert said.endswith(f"nosuch=1: unknown part; known are {known}, or none alone\n")


STEPS = {"TIME": 1000, "PERCENT": 10**7, "RATE": -8000, "COUNT": 1}  # beyond a bound, by kind
FARTHEST = ("reorder", "rto_min")  # the grammar knows nothing beyond their default


def beyond(value: Value) -> tuple[str, str]:
    """What is just not allowed by default, as a policy's line and in a specification."""
    word = in_units(value, int(value.default) + STEPS.get(value.kind, 0))
    spec = f"delay=3s~{word}" if value.id == "jitter" else f"{value.key}={word}"
    return f"{value.policy} {word}", BESIDE.get(value.id, "") + spec


@pytest.mark.parametrize(
    "value", [v for v in BOUNDED if v.id not in FARTHEST], ids=lambda value: value.id
)
def test_what_lies_beyond_the_bound_is_refused_by_name(value: Value, tmp_path: Path) -> None:
    line, spec = beyond(value)
    file = tmp_path / "netem.conf"
    others = "enabled yes\n" if value.id == "delay" else "enabled yes\nmax_delay 9s\n"
    file.write_text(others, encoding="utf-8")
    file.chmod(0o644)
    refused = netem("check", f"--policy={file}", "--exclusive=yes", spec)
    assert refused.returncode == 4
    assert in_units(value, int(value.default)) in refused.stderr
    assert f"({value.policy} in {file})" in refused.stderr
    file.write_text(others + line + "\n", encoding="utf-8")
    assert netem("check", f"--policy={file}", "--exclusive=yes", spec).returncode == 0


def test_what_help_gives_as_an_example_is_understood() -> None:
    texts = [
        ROOT / "wrappers/commands/netem.py",
        ROOT / "wrappers/commands/run.py",
        ROOT / "plugins/node/job/job_options.c",
        ROOT / "plugins/node/program/cmd_netem_check.c",
    ]
    keys = tuple(f"{value.key}=" for value in VALUES)
    found = {
        spec.rstrip(".:")
        for file in texts
        for spec in SPECIFICATION.findall(file.read_text("utf-8").replace("%%", "%"))
        if spec.startswith(keys)
    }
    assert len(found) >= 4
    assert [spec for spec in sorted(found) if netem("parse", "--", spec).returncode] == []
