"""[job] of a study file: what every run requests of the scheduler."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.study.table_reader import Table

KEYS = (
    "nodes",
    "tasks_per_node",
    "cpus_per_task",
    "time_limit",
    "exclusive",
    "partition",
    "account",
    "qos",
    "constraint",
    "options",
    "at_once",
    "tags",
    "export",
    "warm_up",
    "time_out",
    "retries",
    "bind",
    "idle_s",
)
# Keys that may be factors: a run then has the level of its condition.
ALLOCATION = ("nodes", "tasks_per_node", "cpus_per_task")
MOST_ALLOCATED = 100_000
THREADS = "OMP_NUM_THREADS"
TIME_LIMIT = re.compile(r"(?:(\d{1,3})-)?(\d{1,3}):([0-5]\d):([0-5]\d)")
WORD = r"[A-Za-z0-9_.,@+-]+"
CONSTRAINT = r"[][A-Za-z0-9_.&|*()-]+"
OPTION = r"--?[A-Za-z][^\x00-\x1f\x7f]*"
TAG_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")

TAG_VALUE_LENGTH = 256


@dataclass(frozen=True)
class Job:
    """The settings of all runs. None means the scheduler's own default."""

    nodes: int = 1
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    time_limit: str | None = None
    exclusive: bool = True
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    options: tuple[str, ...] = ()
    at_once: int | None = None
    tags: tuple[tuple[str, str], ...] = ()
    export: tuple[str, ...] = ()
    warm_up: int = 0
    time_out: str | None = None
    retries: int = 0
    bind: str | None = None
    idle_s: int = 0

    def apply_levels(self, levels: Mapping[str, object]) -> Job:
        """Return the job with those levels of ALLOCATION that a run's condition has."""
        own: dict[str, Any] = {name: levels[name] for name in ALLOCATION if name in levels}
        return replace(self, **own) if own else self

    @property
    def cpus_per_node(self) -> int | None:
        """Return the processors that a run requests on each node; None if it requests none."""
        if self.tasks_per_node is None and self.cpus_per_task is None:
            return None
        return (self.tasks_per_node or 1) * (self.cpus_per_task or 1)

    def thread_count(self) -> dict[str, str]:
        """Return OMP_NUM_THREADS: one thread for each processor of a task, unless the study exports
        its own number."""
        if self.cpus_per_task is None or THREADS in self.export:
            return {}
        return {THREADS: str(self.cpus_per_task)}

    def script_variables(self) -> dict[str, str]:
        """Return the variables that jobscripts/lib/run_main.sh lists for [job]; options that are
        not set have none."""
        limit = None if self.time_out is None else time_limit_s(self.time_out)
        variables = {
            "SY_WARM_UP": self.warm_up,
            "SY_TIME_OUT_S": limit,
            "SY_RETRIES": self.retries,
            "SY_BIND": self.bind,
            "SY_IDLE_S": self.idle_s,
        }
        return {name: str(value) for name, value in variables.items() if value}

    @property
    def time_limit_s(self) -> int | None:
        """The time limit in seconds; None without one."""
        return None if self.time_limit is None else time_limit_s(self.time_limit)


def time_limit_s(text: str) -> int | None:
    """Return the seconds of HH:MM:SS or D-HH:MM:SS; None for anything else and for zero."""
    match = TIME_LIMIT.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds or None


def read_job(top: Table, factors: Collection[str]) -> Job:
    """Read and check [job]."""
    table = top.table("job")
    table.only(KEYS)
    for key in ALLOCATION:
        if key in table.data and key in factors:
            table.fail(key, "is a factor too: give it in one place only")
    fields = {
        key: table.word(key, WORD, "letters, digits and any of '_.,@+-'")
        for key in ("partition", "account", "qos")
    }
    return Job(
        nodes=table.count("nodes", 1, most=MOST_ALLOCATED),
        tasks_per_node=table.integer("tasks_per_node", None, 1, MOST_ALLOCATED),
        cpus_per_task=table.integer("cpus_per_task", None, 1, MOST_ALLOCATED),
        time_limit=read_time(table, "time_limit"),
        exclusive=table.flag("exclusive", True),
        constraint=table.word("constraint", CONSTRAINT, "a constraint as sbatch takes it"),
        options=read_options(table, "options"),
        at_once=table.integer("at_once", None, 1, 1_000_000),
        tags=read_tags(table),
        export=table.words("export", r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable"),
        warm_up=table.count("warm_up", 0, least=0, most=1000),
        time_out=read_time_out(table),
        retries=table.count("retries", 0, least=0, most=100),
        idle_s=read_idle(table),
        bind=table.word("bind", "none|core|socket", '"none", "core" or "socket"'),
        **fields,
    )


def read_time_out(table: Table) -> str | None:
    """Read [job] time_out, which must be shorter than the scheduler's time limit."""
    found, limit = read_time(table, "time_out"), read_time(table, "time_limit")
    if found and limit and (time_limit_s(found) or 0) >= (time_limit_s(limit) or 0):
        table.wrong("time_out", found, f"less than time_limit = {limit}, or it never comes")
    return found


def read_idle(table: Table) -> int:
    """Read [job] idle_s (seconds), which elapses twice and must leave time for the run."""
    found, limit = table.count("idle_s", 0, least=0, most=3600), read_time(table, "time_limit")
    if found and limit and 2 * found >= (time_limit_s(limit) or 0):
        table.wrong("idle_s", found, f"less than half of time_limit = {limit}: it comes twice")
    return found


def read_time(table: Table, key: str) -> str | None:
    """Return a time in Slurm's notation; None when absent."""
    value = table.data.get(key)
    if value is not None and not (isinstance(value, str) and time_limit_s(value)):
        table.wrong(key, value, '"HH:MM:SS" or "D-HH:MM:SS", longer than zero')
    return value


def read_options(table: Table, key: str) -> tuple[str, ...]:
    """Return a list of the scheduler's options, each one word such as --mem=4G."""
    return table.words(key, OPTION, "one option of the scheduler per text, such as --mem=4G")


def split_options(table: Table, key: str) -> tuple[str, ...]:
    """Return a typed line of options, split into words; empty when absent."""
    value = table.data.get(key, "")
    if not isinstance(value, str) or not value.isprintable():
        table.wrong(key, value, "one line of options, as one would type it")
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        table.fail(key, f"{shown(value)}: {error}")


def is_tag_value(text: str) -> bool:
    """Return whether the plugin accepts the tag value (plugins/node/job/job_options.c)."""
    return text.isascii() and text.isprintable() and 0 < len(text) <= TAG_VALUE_LENGTH


def encode_tag_value(text: str) -> str:
    """Return a level as a tag's value: percent-encoded where necessary (RFC 3986), and
    truncated."""
    if is_tag_value(text):
        return text
    safe = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
    return quote(text, safe=safe)[:TAG_VALUE_LENGTH]


def read_tags(table: Table) -> tuple[tuple[str, str], ...]:
    """Read [job.tags] as pairs of key and text."""
    tags = table.table("tags")
    for key, value in tags.data.items():
        if not TAG_KEY.fullmatch(key):
            tags.fail(key, "a tag's key is letters, digits, '_', '.' and '-', at most 64")
        if not (isinstance(value, str) and is_tag_value(value) and len(value) <= 200):
            tags.wrong(key, value, "a text of one line, at most 200 characters, all of them ASCII")
    return tuple((key, str(value)) for key, value in tags.data.items())
