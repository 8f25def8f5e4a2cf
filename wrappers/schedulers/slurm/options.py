"""Options of sbatch that a study may not set: what Steelyard sets, and what has a key of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.study.job import OPTION
from steelyard.wrappers.study.study_table import Table

# What Steelyard sets itself; an option of the user's would break the study.
OURS = {
    "array": "a", "begin": "b", "batch": "", "chdir": "D", "clusters": "M", "comment": "",
    "dependency": "d", "error": "e", "export": "", "export-file": "", "get-user-env": "",
    "help": "h", "hold": "H", "input": "i", "job-name": "J", "nodes": "N", "ntasks": "n",
    "open-mode": "", "output": "o", "parsable": "", "test-only": "", "uid": "", "usage": "",
    "version": "V", "wait": "W", "wrap": "",
}  # fmt: skip
KEY_OF = {
    "ntasks-per-node": "tasks_per_node", "time": "time_limit", "t": "time_limit",
    "exclusive": "exclusive", "partition": "partition", "p": "partition", "account": "account",
    "A": "account", "qos": "qos", "q": "qos", "tag": "tags", "nodes": "nodes", "N": "nodes",
}  # fmt: skip


def check(table: Table, key: str, options: Sequence[str]) -> None:
    """UsageError for the first of them that is none, or not the study's."""
    for option in options:
        if not re.fullmatch(OPTION, option):
            allowed = "options that begin with '-', values joined by '='"
            table.wrong(key, shlex.join(options), allowed)
        refuse_ours(table, key, option)


def refuse_ours(table: Table, key: str, option: str) -> None:
    """UsageError for an option that Steelyard sets itself, or that has a key of its own."""
    long = option.startswith("--")
    name = option[2:].split("=", 1)[0] if long else option[1]
    # getopt_long takes any beginning of a name for the name.
    same = str.startswith if long else str.__eq__
    for known, meant in KEY_OF.items():
        if (len(known) > 1) is long and same(known, name):
            table.fail(key, f"{shown(option)}: use [job] {meant} instead")
    if any(same(known, name) for known in (OURS if long else OURS.values())):
        table.fail(key, f"{shown(option)}: Steelyard sets this option itself: leave it out")
