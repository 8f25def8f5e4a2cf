"""`steelyard` accepts every command of the pages (tests/system/project executes most of them).

A block is fenced, or indented by four; a command follows `$ ` (or `# `, as root), in a page for
admins it may also begin the line. Recipes are executed on a cluster:
tests/guests/nodes/test_recipes.py.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli, parsers

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
# At the start of a line of code: a command, and not what one prints or writes into a file.
PROGRAMS = (
    "steelyard", "sudo", "make", "sbatch", "srun", "sacct", "apt", "mpirun", "find", "rm", "ls",
    "install", "echo", "mmdebstrap", "docker", "podman", "mkdir", "tar", "seq", "export",
    "steelyard-node", "steelyard-bpf",
)  # fmt: skip
TYPED = re.compile(
    rf"^(?:    )?(?:\$ +|# (?=steelyard)|(?=(?:[A-Z]+=\S+ )*(?:{'|'.join(PROGRAMS)}) ))((?:.*\\\n)*.*)$",
    re.MULTILINE,
)
SHELL = ("", "sh", "console")  # what a fence is called
QUOTED = re.compile(r"`(?:sudo )?(steelyard [a-z][^`\n]*)`")
COMMENT = re.compile(r"\s{2,}#.*$|\s#\s.*$", re.MULTILINE)

# What tests/system/project/test_shell_blocks.py does not execute, and why.
ELSEWHERE = {
    r"recipes/.*": "on a cluster: tests/guests/nodes/test_recipes.py",
    r"papers/.*: steelyard (check|submit|status|collect) .*": "clusters of the papers' size: tests/unit/study",
    r"papers/.*: steelyard report .*": "of such a study: tests/system/papers",
    r".*: (VENV=\S+ )?(sbatch|srun|sacct)\b.*": "jobs of Slurm: tests/system/cluster",
    r".*: make\b.*": "builds, installs or tests all of it; their names: test_docs.py",
    r"README.md: steelyard (check|submit|status|collect|cancel) .*": "jobs of Slurm: tests/system/cluster/test_study.py",
    r".*: steelyard (show|compare) (4711|JOBID|--mine).*": "jobs of Slurm: tests/system/cluster/test_show.py",
    r".*: steelyard run .*--(netem|cache=cold).*": "root, and a network: tests/system/network/test_netem_host.py",
    r".*: (sudo )?steelyard(-node)? (netem|cache) .*": "root: tests/system/netem, tests/system/network/test_netem_host.py",
    r".*: .*steelyard calibrate\b.*": "a minute on a quiet machine: tests/system/calibrate, tests/system/cluster/test_calibrate.py",
    r".*: steelyard run --in docker.*": "an image: tests/system/jobscripts/test_launcher.py",
    r".*: steelyard run --benchmark hpl .*": "a minute: tests/system/benchmarks",
    r"admin.*: (ls|find|rm|echo|install|tar) .*": "nodes, as root: tests/docker, tests/packages",
    r".*: apt .*": "packages of the system",
    r"run.md: pipx install .*": "a container: tests/packages/wheel.sh",
    r"mpi-profile.md: .*": "a program with MPI: tests/system/benchmarks/test_mpiprof.py",
    r"npb.md: mpirun .*": "a minute: `tests/run.sh npb`",
    r"records.md: steelyard sweep .*": "a cluster's folder of records: tests/unit/sweep",
    r"virtual.md: .*": "virtual machines, as root: tests/guests/nodes/test_virtual.py",
    r"cluster.md: .*": "a cluster's accounting: tests/unit/cluster, tests/system/cluster/test_cluster_database.py",
    r"study.md: steelyard (new|.*\bfiles\b.*)": "a terminal that is asked: tests/unit/study/test_new.py, tests/system/cluster/test_study.py",
    r"study.md: steelyard .*\bnightly\b.*": "sessions: tests/system/submit/test_sessions.py",
    r"collect.md: steelyard (collect disks|summary .*--engine spark.*)": "a study that was submitted; Spark: tests/system/collect, tests/system/summary",
    r"history.md: steelyard .*": "a study with sessions: tests/unit/commands/test_history.py, tests/system/cluster/test_history.py",
    r"trust.md: steelyard doctor": "this machine's own, seconds: tests/unit/doctor",
}  # fmt: skip


def code(text: str) -> str:
    """Lines between fences of a shell, and indented ones outside of any fence; others are empty."""
    found, fence = [], None
    for line in text.splitlines():
        if line.startswith("```"):
            fence = None if fence is not None else line[3:].strip()
            found.append("")
        elif fence is None:
            found.append(line if line.startswith("    ") else "")
        else:
            found.append(line if fence in SHELL else "")
    return "\n".join(found)


def commands(page: Path) -> list[str]:
    """What one is to type, without comments."""
    lines = TYPED.findall(code(page.read_text(encoding="utf-8")))
    return [COMMENT.sub("", line).replace("\\\n", " ").strip() for line in lines]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT)).removeprefix("docs/")


EVERY = [(name_of(page), command) for page in PAGES for command in commands(page)]


def split(command: str) -> Iterator[list[str]]:
    """Yield the words of each simple command."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set(";&|"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def ours(command: str) -> Iterator[list[str]]:
    """Yield the arguments of each `steelyard` in it."""
    for words in split(command):
        while words and (words[0] == "sudo" or re.match(r"[A-Z_]+=", words[0])):
            words = words[1:]
        if words[:1] == ["steelyard"]:
            yield words[1:]


def test_there_are_blocks_and_each_is_seen() -> None:
    """A line that begins with a prompt is a command, anywhere."""
    assert len(EVERY) > 100
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        prompts = re.findall(r"^(?:    )?\$ +(steelyard\S* .*)$", text, re.MULTILINE)
        seen = [command for name, command in EVERY if name == name_of(page)]
        assert sum("steelyard" in one for one in seen) >= len(prompts), page


@pytest.mark.parametrize(("page", "command"), EVERY)
def test_steelyard_understands_it(page: str, command: str) -> None:
    """By the parser that the program uses: an option that does not exist is red."""
    for words in ours(command):
        said = io.StringIO()
        assert words[0] in cli.COMMANDS, command
        try:
            with contextlib.redirect_stderr(said):
                parsers.make_parser(words[0], "").parse_args(words[1:])
        except SystemExit:
            pytest.fail(f"{page}: {command}: {said.getvalue()}")


def options_of(name: str) -> set[str]:
    """Return all options of a command, and those of its subcommands."""
    found: set[str] = set()
    waiting = [parsers.make_parser(name, "")]
    while waiting:
        for action in waiting.pop()._actions:
            found |= set(action.option_strings)
            if hasattr(action, "_name_parser_map"):
                waiting += action.choices.values()  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_options_in_sentences_exist(page: Path) -> None:
    """`steelyard report STUDY [--figures [DIR]]` in a sentence, or in a table."""
    for text in QUOTED.findall(page.read_text(encoding="utf-8")):
        _, name, *rest = text.split()
        if name not in cli.COMMANDS:
            continue  # tests/unit/project/test_docs.py has that
        before = rest[: rest.index("--")] if "--" in rest else rest
        named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", " ".join(before)))
        assert named <= options_of(name), (page.name, text)


@pytest.mark.parametrize("what", ELSEWHERE)
def test_what_is_not_executed_here_is_still_there(what: str) -> None:
    assert any(re.fullmatch(what, f"{page}: {command}") for page, command in EVERY)
