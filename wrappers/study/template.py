"""Renders a commented study file from five answers: program, factors, repeats, place, name."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from steelyard.analysis.base.level_names import NODE
from steelyard.jobscripts import registry
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study.factors import MEANT, Level
from steelyard.wrappers.study.levels import EACH
from steelyard.wrappers.study.study import NAME

PERCENT = re.compile(r"(\d{1,2}(?:\.\d+)?) ?%")
FIRST_REPEATS = 15  # `stop` is not evaluated earlier: docs/study.md
MOST_REPEATS = 100
# Descriptions of the levels of factors with a predefined meaning.
MEANINGS = {
    "clients": "instances side by side, one per node",
    "node": "each run on one node; the report compares them with their median",
    "node_type": "where the job runs",
    "network": "network conditions of the job",
    "launcher": "what the benchmark runs in",
    "cache": "page caches, dropped before a run or left as they are",
    "mode": "clients at once, or one after another",
}


@dataclass(frozen=True)
class Answers:
    """The answers to the questions of `steelyard new`."""

    run: str  # a benchmark's name, or a command line
    against: dict[str, tuple[Level, ...]]
    repeat: int | None
    difference: float | None  # a share, instead of `repeat`
    scheduler: str
    partition: str | None
    name: str

    @property
    def benchmark(self) -> str:
        """The benchmark's name; any other program is a command of the user."""
        return self.run if self.run in registry.names() else registry.of_a_command()

    @property
    def is_command(self) -> bool:
        """Return whether the user gave a command line."""
        return self.benchmark == registry.of_a_command()


def read_against(text: str) -> tuple[str, tuple[Level, ...]]:
    """Return a factor and its levels, the baseline first, of `threads=1 2 4` or `network=none
    delay=20ms`."""
    name, equals, rest = text.partition("=")
    try:
        levels = tuple(parse_level(word) for word in shlex.split(rest))
    except ValueError as error:
        raise UsageError(f"'{text}': {error}", part=text) from error
    is_each = (name.strip(), levels) == (NODE, (EACH,))
    is_name = re.fullmatch(r"[a-z][a-z0-9_]*", name.strip())
    if not equals or not is_name or (len(levels) < 2 and not is_each):
        one = " has one level, and a comparison needs two" if len(levels) == 1 else ""
        raise UsageError(
            f"'{text}'{one}: expected NAME=LEVEL LEVEL …, the baseline first, such as "
            "'threads=1 2 4', 'network=none delay=20ms' or 'node_type=physical virtual'",
            part=text,
        )
    return name.strip(), levels


def parse_level(word: str) -> Level:
    """Return a number or a flag where the word is one, else text."""
    if re.fullmatch(r"-?(0|[1-9]\d*)", word):
        return int(word)
    if re.fullmatch(r"-?\d+\.\d+", word):
        return float(word)
    return {"true": True, "false": False}.get(word, word)


def read_repeat(text: str) -> tuple[int | None, float | None]:
    """Return (repeats, None) for `10`, or (None, difference) for `2%`: repeats to detect a
    difference of that share."""
    match = PERCENT.fullmatch(text.strip())
    if match and float(match[1]):
        return None, float(match[1]) / 100
    if text.strip().isdigit() and 1 <= int(text) <= 999:
        return int(text), None
    raise UsageError(
        f"'{text}': expected a number of repeats from 1 to 999, or a difference such as 2%",
        part=text,
    )


def read_name(text: str) -> str:
    """Return the text if it is a valid study name. Raises UsageError otherwise."""
    if not re.fullmatch(NAME, text):
        raise UsageError(
            f"'{text}': expected a name of letters, digits, '_', '.' and '-', at most 64", part=text
        )
    return text


def render_toml(answers: Answers) -> str:
    """Return the text of the study file."""
    return "\n".join(
        [
            f"# {format_question(answers)}",
            "# Every key: docs/study.md. What it costs and would see, before anything is submitted:",
            f"#   steelyard check {answers.name}.toml{scheduler_option(answers)}",
            "",
            *study_lines(answers),
            *job_lines(answers),
            *factor_lines(answers),
            *benchmark_lines(answers),
            "",
        ]
    )


def format_question(answers: Answers) -> str:
    """Return the question that the study answers."""
    what = "the command below" if answers.is_command else answers.run
    over = " and ".join(answers.against) or "nothing: add [factors] to compare"
    return f"What does it cost {what}, over {over}?"


def scheduler_option(answers: Answers) -> str:
    """Return the option that names the scheduler."""
    return f" --scheduler {answers.scheduler}"


def study_lines(answers: Answers) -> list[str]:
    """Return the lines of [study]."""
    lines = ["[study]", f"name = {format_value(answers.name)}"]
    if answers.difference is None:
        return [
            *lines,
            f"repeat = {answers.repeat}                    # runs of every condition",
            f"blocks = {answers.repeat}                    # each holds every condition, in random order",
            "seed = 1                       # decides that order",
            "# max_core_hours = 100         # beyond it submit refuses",
            "",
        ]
    half = answers.difference * 50
    return [
        *lines,
        f"repeat = {FIRST_REPEATS}                    # to begin with; each `submit` adds what is needed",
        f"blocks = {FIRST_REPEATS}",
        "seed = 1                       # decides the order inside the blocks",
        f"# Until means are known to ± {half:g} %: a difference of {2 * half:g} % is then seen.",
        f'stop = {{ half_width = "{half:g}%", max_repeat = {MOST_REPEATS} }}',
        "# max_core_hours = 100         # beyond it submit refuses",
        "",
    ]


def job_lines(answers: Answers) -> list[str]:
    """Return the lines of [job]."""
    lines = ["[job]", 'time_limit = "00:30:00"        # of one run: set it to yours']
    if answers.partition is not None:
        lines.append(f"partition = {format_value(answers.partition)}")
    return [*lines, ""]


def factor_lines(answers: Answers) -> list[str]:
    """Return the lines of [factors], [baseline] and [place]."""
    if not answers.against:
        return []
    lines = ["[factors]"]
    for name, levels in answers.against.items():
        meaning = MEANINGS.get(name, "a parameter, or {" + name + "} in the command")
        listed = ", ".join(format_value(one) for one in levels)
        is_each = (name, levels) == (NODE, (EACH,))
        lines += [f"# {meaning}", f"{name} = {format_value(EACH) if is_each else f'[{listed}]'}"]
    compared = {name: levels for name, levels in answers.against.items() if name != NODE}
    if compared:
        lines += ["", "[baseline]                     # what the others are compared with"]
        lines += [f"{name} = {format_value(levels[0])}" for name, levels in compared.items()]
    for node_type in map(str, answers.against.get("node_type", ())):
        lines += [
            "",
            f"[place.{node_type}]            # how this cluster calls such nodes",
            f"slurm = {format_value(f'--constraint={node_type}')}",
        ]
    return [*lines, ""]


def benchmark_lines(answers: Answers) -> list[str]:
    """Return the lines of [[benchmark]]."""
    lines = ["[[benchmark]]", f"use = {format_value(answers.benchmark)}"]
    if not answers.is_command:
        return [*lines, f"# its parameters: steelyard list {answers.benchmark}"]
    own = [name for name in answers.against if name not in MEANT]
    if "command" not in own:
        lines.append(f"command = {format_value(answers.run)}")
    lines.append("# Runs begin in an empty folder: name programs and files by absolute path.")
    lines += [f"# {{{name}}} in the command is the level of {name}." for name in own]
    return [
        *lines,
        "# A figure that the command prints, a main one beside its time:",
        "# [benchmark.figures.rate]",
        "# pattern = 'rate: ([-+0-9.eE]+)'",
        '# unit = "1/s"',
        '# better = "higher"',
    ]


def format_value(value: Level) -> str:
    """Format a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
