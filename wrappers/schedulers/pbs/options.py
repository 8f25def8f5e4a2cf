"""Options of qsub: their normal form, and which of them a study may set."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.study.table_reader import Table

ALLOWED = "clmMpPrRuW"  # letters of qsub; others are Steelyard's or change what a job is
KEY_OF = {"q": "partition", "A": "account", "v": "export", "V": "export", "n": "exclusive"}
KEY_OF_RESOURCE = {
    "walltime": "time_limit",
    "ppn": "tasks_per_node",
    "mpiprocs": "tasks_per_node",
    "ompthreads": "cpus_per_task",
}
OUR_RESOURCES = ("other", "steelyard")  # they carry conditions and tags to the node
ATTRIBUTES = ("depend", "block", "interactive", "stagein", "stageout", "run_count", "sandbox",
              "max_run_subjobs", "umask")  # fmt: skip
PLACING = ("nodes", "select")


def normalize_options(words: Iterable[str]) -> list[str]:
    """Return `-l nodes=1` for `-l`, `nodes=1` and for `-lnodes=1`; words without an option stay
    single."""
    options: list[str] = []
    open_letter = ""
    for word in words:
        if open_letter:
            options[-1] += f" {word}"
            open_letter = ""
        elif re.match("-[A-Za-z]", word):
            letter, value = word[1], word[2:].lstrip()
            options.append(f"-{letter} {value}" if value else f"-{letter}")
            open_letter = "" if value else letter
        else:
            options.append(word)
    return options


def list_resources(option: str) -> list[str]:
    """Return, for example, `mem=4gb` and `ncpus=2` for `-l mem=4gb,ncpus=2`; empty for other
    options."""
    return option[3:].split(",") if option.startswith("-l ") else []


def check_options(table: Table, key: str, options: Sequence[str]) -> None:
    """Raise UsageError for the first invalid or reserved option."""
    placing = []
    for option in normalize_options(read_option_words(table, key, options)):
        if not re.match("-[A-Za-z] .", option):
            allowed = (
                f"options of qsub with their values, letters {', '.join(f'-{a}' for a in ALLOWED)}"
            )
            table.wrong(key, shlex.join(options), allowed)
        reject_reserved(table, key, option)
        placing += [item for item in list_resources(option) if resource_name(item) in PLACING]
    if len(placing) > 1:
        table.fail(key, f"{' and '.join(map(shown, placing))}: nodes are said once")


def read_option_words(table: Table, key: str, options: Sequence[str]) -> list[str]:
    """Return the options as words. Those of [job] are texts with their values (`-l mem=4gb`); those
    of a level are words already."""
    if key != "options":
        return list(options)
    try:
        return split_options(options)
    except ValueError as error:
        table.fail(key, f"{shown(' '.join(options))}: {error}")


def split_options(options: Iterable[str]) -> list[str]:
    """Split options as a shell does."""
    return [word for option in options for word in shlex.split(option)]


def resource_name(resource: str) -> str:
    """Return, for example, `nodes` for `nodes=2:virtual`."""
    return resource.partition("=")[0].strip()


def reject_reserved(table: Table, key: str, option: str) -> None:
    """Raise UsageError for an option that Steelyard sets itself, or that has its own key."""
    letter = option[1]
    if letter in KEY_OF:
        table.fail(key, f"{shown(option)}: use [job] {KEY_OF[letter]} instead")
    if letter not in ALLOWED:
        allowed = ", ".join(f"-{one}" for one in ALLOWED)
        table.fail(key, f"{shown(option)}: Steelyard sets this itself; a study may set {allowed}")
    for resource in list_resources(option):
        name = resource_name(resource)
        if name in KEY_OF_RESOURCE:
            table.fail(key, f"{shown(option)}: use [job] {KEY_OF_RESOURCE[name]} instead")
        if name in OUR_RESOURCES:
            table.fail(key, f"{shown(option)}: Steelyard sets the resource {name} itself")
    if letter == "W" and resource_name(option[3:]) in ATTRIBUTES:
        table.fail(key, f"{shown(option)}: Steelyard sets this itself, or a run cannot have it")


def split_node_options(options: Iterable[str]) -> tuple[str | None, list[str]]:
    """Separate options that select nodes (`nodes=…` or `select=…`) from all others."""
    placing = None
    others = []
    for option in options:
        rest = []
        for item in list_resources(option):
            if resource_name(item) in PLACING:
                placing = item.strip()
            else:
                rest.append(item)
        if rest:
            others.append(f"-l {','.join(rest)}")
        elif not option.startswith("-l "):
            others.append(option)
    return placing, others
