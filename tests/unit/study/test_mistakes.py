"""Mistakes in a study file, each reported in one line: the key, its value, what is expected.

Twenty-eight were made by users, and five on the way to a comparison of threads and nodes. The
messages are those of `steelyard submit --dry-run`; those that need a cluster are in
tests/system/cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.commands import cli

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

FS = '[[benchmark]]\nuse = "filesystem"\n'
HPL = '[[benchmark]]\nuse = "hpl"\n'
APP = '[[benchmark]]\nuse = "app"\n'
# The text of the study, and the words that its message must have.
MISTAKES: dict[str, tuple[str, tuple[str, ...]]] = {
    "1 no TOML": ("[study\n" + FS, ("no study file", "line 1")),
    "2 an unknown section": ("[jobs]\nnodes = 2\n" + FS, ("jobs: unknown key", "'job'")),
    "3 an unknown key": ("[study]\nrepeats = 3\n" + FS, ("study.repeats", "'repeat'")),
    "4 an unknown benchmark": ('[[benchmark]]\nuse = "fi0"\n', ("benchmark[1].use", "'fio'")),
    "5 a benchmark that is no list": (
        "benchmark = { use = 'hpl' }\n",
        ("a list of tables: [[benchmark]]", 'benchmark = { use = "hpl" }'),  # no Python in it
    ),
    "6 no benchmark": ("[study]\nrepeat = 3\n", ("give at least one [[benchmark]]",)),
    "7 an unknown parameter": (FS + "sizes = 3\n", ("benchmark[1].sizes", "'size'")),
    "8 a size in words": (FS + 'size = "4 megs"\n', ("benchmark[1].size", "256MiB")),
    "9 a choice that is none": (FS + 'test = "copy"\n', ("test", "small_file_write")),
    "10 a time limit in minutes": ('[job]\ntime_limit = "10min"\n' + FS, ("HH:MM:SS",)),
    "11 repeat as text": ('[study]\nrepeat = "5"\n' + FS, ("study.repeat", "a whole number")),
    "12 more blocks than repeats": (
        "[study]\nrepeat = 3\nblocks = 4\n" + FS,
        ("study.blocks = 4", "at most repeat = 3"),
    ),
    "13 a name for a folder": ('[study]\nname = "a/b"\n' + FS, ("study.name", "letters, digits")),
    "14 nodes beside clients": (
        "[job]\nnodes = 2\n[factors]\nclients = [1, 2]\n" + FS,
        ("job.nodes = 2", "one node per client"),
    ),
    "15 a factor that is no list": ("[factors]\nclients = 2\n" + FS, ("a list of levels",)),
    "16 a level twice": ("[factors]\nclients = [1, 1]\n" + FS, ("1 is listed twice",)),
    "17 a netem key": (
        '[factors]\nnetwork = ["none", "dealy=1ms"]\n' + FS,
        ("factors.network", "dealy", "known are delay"),
    ),
    "18 a unit of netem": ('[factors]\nnetwork = ["delay=5"]\n' + FS, ("delay", "ms")),
    "20 a baseline that is no level": (
        "[factors]\nclients = [1, 2]\n[baseline]\nclients = 3\n" + FS,
        ("baseline.clients = 3", "one of the factor's levels: 1, 2"),
    ),
    "21 an option of Steelyard's": (
        '[job]\noptions = ["--array=1-2"]\n' + FS,
        ("--array=1-2", "Steelyard sets this option itself: leave it out"),
    ),
    "23 a factor of nothing": ("[factors]\nclient = [1, 2]\n" + FS, ("'clients'",)),
    "24 a factor and a value": (
        "[factors]\niterations = [1, 2]\n" + FS + "iterations = 3\n",
        ("is a factor too: give it in one place only",),
    ),
    "25 a pattern without a group": (
        APP + 'command = "x"\n[benchmark.figures.r]\npattern = "rate"\nunit = "s"\n',
        ("figures", "group"),
    ),
    "26 a program without its command": (
        APP,
        ("benchmark[1].command: missing", "app needs it here, or a list of them in [factors]"),
    ),
    "threads that the command does not take": (
        "[factors]\nthreads = [1, 2, 4]\n" + APP + 'command = "./a"\n',
        ("factors.threads", "command or env of app: write {threads} where its level belongs"),
    ),
    "nodes as a factor and in [job]": (
        "[job]\nnodes = 2\n[factors]\nnodes = [1, 2]\n" + HPL,
        ("job.nodes: is a factor too: give it in one place only",),
    ),
    "processors as a factor and in [job]": (
        "[job]\ncpus_per_task = 2\n[factors]\ncpus_per_task = [1, 2]\n" + HPL,
        ("job.cpus_per_task: is a factor too: give it in one place only",),
    ),
    "nodes beside the factor clients": (
        "[factors]\nclients = [1, 2]\nnodes = [1, 2]\n" + FS,
        ("factors.nodes: leave it out, or clients", "a job has one node per client"),
    ),
    "no nodes": ("[factors]\nnodes = [0, 1]\n" + HPL, ("factors.nodes = 0", "from 1 to 100000")),
    "nodes as text": ('[factors]\nnodes = ["2"]\n' + HPL, ('factors.nodes = "2"', "whole numbers")),
    "half a task": ("[factors]\ntasks_per_node = [1.5]\n" + HPL, ("factors.tasks_per_node = 1.5",)),
    "one rank for what needs two": (
        '[factors]\nnodes = [2, 1]\n[[benchmark]]\nuse = "osu"\nprogram = "/o/osu_latency"\n',
        ("factors.nodes: with nodes = 1: osu: ranks = 1 is not allowed", "at least 2"),
    ),
    "commands as a factor and as a value": (
        '[factors]\ncommand = ["./a 1", "./a 2"]\n' + APP + 'command = "./b"\n',
        ("benchmark[1].command", "is a factor too: give it in one place only"),
    ),
    "a level in the command that no factor has": (
        "[factors]\nthreads = [1, 2]\n" + APP + 'command = "./a {threads} {thread}"\n',
        ("benchmark[1].command: {thread} is the level of no factor", "'threads'", "[factors]"),
    ),
    "a folder as a factor of what has none": (
        '[factors]\ndirectory = ["/tmp", "/var/tmp"]\n' + HPL,
        ("factors.directory", "no parameter of hpl; `steelyard list hpl` has its parameters"),
    ),
}


def said(path: Path, capsys: Capture) -> str:
    """Return the one line that a dry run ends with."""
    assert cli.main(["submit", str(path), "--dry-run"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line_with_what_to_do(
    case: str, slurm: Any, write_study: Write, capsys: Capture
) -> None:
    assert slurm  # whose options are checked
    text, words = MISTAKES[case]
    path = write_study(text=text)
    line = said(path, capsys)
    assert line.startswith(f"steelyard submit: {path}: ")
    for word in words:
        assert word in line


def test_19_more_clients_than_nodes(slurm: Any, write_study: Write, capsys: Capture) -> None:
    nodes = [f"NodeName=n{i} CPUTot=4 ThreadsPerCore=2 State=IDLE Partitions=main" for i in "1234"]
    partition = "PartitionName=main Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP"
    slurm.change(node=nodes, partition=[partition])
    path = write_study(text="[factors]\nclients = [1, 8]\n" + FS)
    words = "factors.clients: 8: 8 nodes are asked for, and partition main has 4 that fit"
    assert cli.main(["submit", str(path), "--dry-run"]) == 0
    assert f"would be refused: {path}: {words}" in capsys.readouterr().err
    assert cli.main(["submit", str(path)]) == 3
    assert capsys.readouterr().err == f"steelyard submit: {path}: {words}\n"
    assert not slurm.jobs
    assert cli.main(["check", str(path)]) == 3
    assert f"missing: {path}: {words}" in capsys.readouterr().out


def test_22_a_node_type_that_no_node_is_of(slurm: Any, write_study: Write, capsys: Capture) -> None:
    nodes = [
        f"NodeName=n{i} CPUTot=4 State=IDLE Partitions=main AvailableFeatures=virtual,big"
        for i in "12"
    ]
    slurm.change(node=nodes, partition=["PartitionName=main Default=YES State=UP"])
    path = write_study(text='[factors]\nnode_type = ["virtual", "gpu"]\n' + FS)
    assert cli.main(["submit", str(path)]) == 3
    assert capsys.readouterr().err == (
        f'steelyard submit: {path}: factors.node_type: "gpu": no node of partition main has the '
        "feature 'gpu' (there: big, virtual); [place.gpu] slurm = \"…\" says what this cluster "
        "calls it\n"
    )
    assert not slurm.jobs


def test_27_a_factor_that_one_benchmark_does_not_have_is_told_not_refused(
    write_study: Write, capsys: Capture
) -> None:
    path = write_study(text='[factors]\ndirectory = ["/tmp", "/var/tmp"]\n' + HPL + FS)
    cli.main(["submit", str(path), "--scheduler", "local", "--dry-run"])
    assert (
        "note: the factor directory says nothing of hpl: measured once for all of its levels"
        in capsys.readouterr().err
    )


def test_commands_alone_are_levels(write_study: Write, capsys: Capture) -> None:
    """The same without a mistake; as a list of [[benchmark]] they are reported to be no levels."""
    levels = '["./a 1", "./a 2"]'
    path = write_study(text=f"[factors]\ncommand = {levels}\n{APP}")
    argv = ["submit", str(path), "--scheduler", "local", "--dry-run"]
    cli.main(argv)
    assert "note: " not in capsys.readouterr().err
    write_study(text=f"{APP}command = {levels}\n")
    cli.main(argv)
    assert "as a list in [factors] they are levels, which it does" in capsys.readouterr().err


def test_28_a_folder_in_place_of_a_file(tmp_path: Path, capsys: Capture) -> None:
    assert said(tmp_path, capsys) == (
        f"steelyard submit: {tmp_path} is a folder, and no study file; give NAME.toml "
        "(docs/study.md)"
    )
    (tmp_path / "study.toml").touch()
    assert said(tmp_path, capsys).endswith(f"no study file: give {tmp_path / 'study.toml'}")


def test_what_sbatch_itself_refuses_is_told_before_anything_is_submitted(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    slurm.change(refused="Invalid account or account/partition combination specified")
    path = write_study()
    assert cli.main(["submit", str(path)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"steelyard submit: {path}: runs with clients ")
    assert ": refused by slurm: Invalid account or account/partition combination" in line
    assert not slurm.jobs


def test_a_file_that_is_no_utf_8_is_told_with_its_line(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(b'[study]\nname = "s"\n# f\xfcr uns\n' + FS.encode())
    line = said(path, capsys)
    assert line.endswith(f"{path} line 3: the byte 0xfc is no UTF-8: save the file as UTF-8")


def test_what_was_submitted_and_is_gone_is_named(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    assert slurm
    text = (
        "[study]\nname = 's'\nrepeat = 1\n[factors]\n{}\n" + APP + "command = 'true {{threads}}'\n"
    )
    first = write_study(text=text.format("threads = [1, 2]"))
    assert cli.main(["submit", str(first)]) == 0
    capsys.readouterr()
    first.write_text(text.format("threads = [1]"))
    assert "; the level threads=2 is gone): put them back" in said_on_submit(first, capsys)
    renamed = text.format("workers = [1, 2]").replace("{threads}", "{workers}")
    first.write_text(renamed)
    line = said_on_submit(first, capsys)
    assert "; the factor threads is gone; the factor workers is new): put them back" in line
    other = first.with_name("other.toml")
    other.write_text(renamed)
    line = said_on_submit(other, capsys)
    assert f"{first.with_name('s.study')} is the study of {first}: " in line


def said_on_submit(path: Path, capsys: Capture) -> str:
    """The one line of a submission that is refused."""
    assert cli.main(["submit", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_new_refuses_a_level_of_no_factor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Seen: new, check and submit took it, and every run failed with the program's own words."""
    monkeypatch.chdir(tmp_path)
    words = ["new", "--run", "./a {threads} {size}", "--repeat=2", "--scheduler=local", "--name=a"]
    assert cli.main([*words, "--against", "size=1 2"]) == 2
    assert "{threads} is the level of no factor" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
