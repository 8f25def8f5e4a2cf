"""Accounting records in the formats of the two servers, from fields that hypothesis generates.

The formats are those of the recorded logs, and of lines that a Torque 6.1.3 and an OpenPBS 23.06
wrote for jobs with blanks, quotes and line breaks in text of the user.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import strategies as st

STAMP = "11/22/2026 19:27:36"
TORQUE, OPENPBS = "torque", "openpbs"


@dataclass(frozen=True)
class Record:
    """The server's fields, in its order, and their format."""

    dialect: str
    kind: str
    fields: dict[str, str]
    raw: bool = False  # a hook's object without quotes, as in records of refused jobs

    def value(self, name: str) -> str:
        """Return a value; OpenPBS quotes, neither server escapes."""
        value = self.fields[name]
        if self.dialect == TORQUE:
            return value
        if value.startswith("{") and name.startswith("resources_used."):
            return value if self.raw else f"'{value}'"
        return f'"{value}"' if name == "account" or " " in value else value

    def line(self) -> str:
        """Return the line, with the final blank of S and Q."""
        text = " ".join(f"{name}={self.value(name)}" for name in self.fields)
        return f"{STAMP};{self.kind};7[3].srv;{text}{'' if self.kind == 'E' else ' '}"


# Text that resembles the format itself, and any text.
PIECES = st.sampled_from(
    ["a", "b", " ", "=", ";", '"', "'", "\\", ":", "queue=x", "jobname=y", " jobname=z ", "start=1",
     "Exit_status=0", "end=5", "project=p", "owner=u@h", "Resource_List.mem=5gb", '" project="x',
     "requestor=u@h", "run_count=1", "session=4", "resources_used.cput=1", "ü", "\n", "x=y", "{", "}"]
)  # fmt: skip
FREE = st.one_of(
    st.lists(PIECES, min_size=1, max_size=8).map("".join),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20),
).filter(lambda text: text.strip() != "" and not text.startswith("\n"))
# User text that servers accept: no line of it may be mistaken for the head of another record.
WORD = st.from_regex(r"[A-Za-z][A-Za-z0-9_.+-]{0,14}", fullmatch=True)
COUNT = st.integers(0, 10**6).map(str)
TIME = st.integers(10**9, 2 * 10**9).map(str)
CLOCK = st.tuples(st.integers(0, 200), st.integers(0, 59), st.integers(0, 59)).map(
    lambda t: f"{t[0]:02d}:{t[1]:02d}:{t[2]:02d}"
)
# Output of our hook: it may contain any text of a user (tags) or of the kernel (reasons).
TOLD = st.one_of(
    st.sampled_from(
        ['a "b"', "delay=50ms", "loss=1% delay=5ms", "it's", "}' run_count=2 x='{", "}", "x"]
    ),
    FREE.filter(lambda text: "\n" not in text),
)
OBJECT = st.dictionaries(WORD, TOLD, min_size=1, max_size=3).map(
    lambda told: json.dumps({"n1": {"energy_j": 1.5} | told}, ensure_ascii=False)
)
SIZE = COUNT.map(lambda n: f"{n}kb")


def head(draw: st.DrawFn, dialect: str) -> dict[str, str]:
    """Draw the fields that identify the job."""
    fields = {"user": draw(WORD), "group": draw(WORD)}
    if draw(st.booleans()):
        fields["account"] = draw(FREE)
    if dialect == OPENPBS:
        fields["project"] = draw(st.one_of(st.just("_pbs_project_default"), FREE))
    name = WORD if dialect == OPENPBS else st.one_of(WORD, st.sampled_from(["a;b", 'q"n', "x=y"]))
    fields |= {"jobname": draw(name), "queue": draw(WORD)}
    return fields | {n: draw(TIME) for n in ("ctime", "qtime", "etime")}


@st.composite
def records(draw: st.DrawFn, dialect: str, kind: str) -> Record:
    """Draw one record."""
    fields = head(draw, dialect)
    if kind != "Q":
        if dialect == TORQUE:
            fields["start_count"] = draw(COUNT)
        fields["start"] = draw(TIME)
        fields |= {"owner": "u@h"} if dialect == TORQUE else {}
        fields["exec_host"] = "n1/0+n2/0"
        fields |= {"exec_vnode": "(n1:ncpus=1)+(n2:ncpus=1)"} if dialect == OPENPBS else {}
    fields |= {"Resource_List.nodes": "2:ppn=1", "Resource_List.walltime": draw(CLOCK)}
    if draw(st.booleans()):
        name = "other" if dialect == TORQUE else "netem"
        fields[f"Resource_List.{name}"] = draw(FREE)
        if draw(st.booleans()):
            fields["Resource_List.nodect"] = draw(COUNT)
    if kind == "E":
        fields |= end(draw, dialect)
    return Record(dialect, kind, fields, draw(st.booleans()))


def end(draw: st.DrawFn, dialect: str) -> dict[str, str]:
    """Draw the fields of the end."""
    fields = {"session": draw(COUNT)}
    if dialect == TORQUE:
        fields |= {"total_execution_slots": "2", "unique_node_count": "2"}
    fields |= {"end": draw(TIME), "Exit_status": draw(st.integers(-30, 300).map(str))}
    cput = draw(COUNT if dialect == TORQUE else CLOCK)
    fields |= {"resources_used.cput": cput, "resources_used.mem": draw(SIZE)}
    if dialect == OPENPBS:
        if draw(st.booleans()):
            fields["resources_used.steelyard_used"] = draw(OBJECT)
        fields |= {"resources_used.walltime": draw(CLOCK), "run_count": "1"}
    return fields
