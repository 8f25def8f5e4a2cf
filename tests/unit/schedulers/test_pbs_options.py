"""What a study may ask of PBS, and what is refused with a way out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli

from .conftest import PaperPbs

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


def submitted(path: Path, *options: str) -> int:
    return cli.main(["submit", str(path), "--scheduler", "pbs", *options])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('["-t 1-3"]', '"-t 1-3": Steelyard sets this itself; a study may set -c, -l,'),
        ('["-q long"]', '"-q long": use [job] partition instead'),
        ('["-l walltime=1:00"]', "use [job] time_limit instead"),
        ('["-l other=x"]', "Steelyard sets the resource other itself"),
        ('["-W depend=afterok:1"]', "Steelyard sets this itself, or a run cannot have it"),
        ('["--mem=4G"]', "options of qsub with their values"),
        ('["-l nodes=1", "-l select=1"]', "nodes are said once"),
        ('["-W x=\'y"]', "No closing quotation"),
    ],
)
def test_options_that_a_study_may_not_set(
    pbs: PaperPbs, options: str, said: str, write_study: Write, capsys: Capture
) -> None:
    path = write_study(("[factors]", f"[job]\noptions = {options}\n[factors]"))
    assert submitted(path) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"steelyard submit: {path}: job.options") and said in error


def test_what_a_study_may_set(pbs: PaperPbs, write_study: Write) -> None:
    job = ('[job]\npartition = "long"\naccount = "physics"\nconstraint = "big&new"\n'
           'tasks_per_node = 2\nexclusive = false\nname_is_not_a_key = 1\n'
           'options = ["-l mem=4gb", "-W x=\\"QOS:a b\\""]\n[factors]')  # fmt: skip
    path = write_study(("[factors]", job.replace("name_is_not_a_key = 1\n", "")), ("[1, 2]", "[2]"))
    assert submitted(path) == 0
    nodes = {
        "torque": ["-l nodes=2:big:new:ppn=2"],
        "openpbs": ["-l select=2:big=True:new=True:ncpus=2:mpiprocs=2", "-l place=scatter"],
    }[pbs.dialect]
    wanted = ["-q long", "-A physics", "-m n", "-l mem=4gb", "-W x=QOS:a b", *nodes]
    assert [options[5:] for options in pbs.options()] == [wanted] * 2


def test_torque_delivers_nothing_to_odd_names(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    """6.1.3 leaves it in spool/undelivered of the node; OpenPBS 23.06 delivers."""
    file = write_study()
    odd = file.parent / "my $dir"
    odd.mkdir()
    code = submitted(file, "--dir", str(odd))
    if pbs.dialect == "torque":
        assert code == 2 and pbs.jobs == {}
        assert "the study's folder has ' ', '$' in its name" in capsys.readouterr().err
    else:
        assert code == 0
        path = f"-o {odd}/small.study/submissions/"
        assert all(any(o.startswith(path) for o in one) for one in pbs.options())


def test_qos_is_refused_with_a_way_out(pbs: PaperPbs, write_study: Write, capsys: Capture) -> None:
    assert submitted(write_study(("[factors]", '[job]\nqos = "low"\n[factors]'))) == 2
    assert "job.qos = 'low': PBS has no such thing" in capsys.readouterr().err
