"""Options of PBS in a study, and refused ones with an alternative."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers.pbs import Pbs

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
        ('["-l ompthreads=2"]', "use [job] cpus_per_task instead"),
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


def test_each_size_of_a_job_asks_for_its_nodes_and_processors(
    pbs: PaperPbs, write_study: Write
) -> None:
    """A node's processors are its tasks times the processors of each."""
    job = "[job]\ntasks_per_node = 3\n[factors]\nnodes = [1, 4]\ncpus_per_task = [1, 2]\n"
    study = f'{job}[[benchmark]]\nuse = "npb"\nfolder = "/nasa"\nkernel = "ep"\n'
    assert submitted(write_study(text="[study]\nrepeat = 1\n" + study)) == 0
    found = sorted(o for options in pbs.options() for o in options if o.startswith("-l "))
    sizes = [(nodes, cpus) for nodes in (1, 4) for cpus in (1, 2)]
    wanted = {
        "torque": [f"-l nodes={n}:ppn={3 * c}" for n, c in sizes],
        "openpbs": [f"-l select={n}:ncpus={3 * c}:mpiprocs=3" for n, c in sizes],
    }[pbs.dialect]
    assert [o for o in found if not o.startswith("-l place=")] == wanted


NODES = """\
[study]
repeat = 1
[factors]
node = {}
[[benchmark]]
use = "app"
command = "/bin/true"
"""
OF_NODES = {
    "torque": ["-l nodes=vm", "-l nodes=vmb"],
    "openpbs": ["-l select=1:host=vm", "-l select=1:host=vmb"],
}


def nodes_requested(pbs: PaperPbs) -> list[str]:
    """Return the nodes that the jobs requested of qsub."""
    options = (option for job in pbs.options() for option in job)
    return sorted(one for one in options if one.startswith(("-l nodes=", "-l select=")))


def test_a_level_of_node_is_that_node(pbs: PaperPbs, write_study: Write) -> None:
    assert submitted(write_study(text=NODES.format('["vm", "vmb"]'))) == 0
    assert nodes_requested(pbs) == OF_NODES[pbs.dialect]


def test_a_node_that_pbsnodes_does_not_have_is_missing(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    path = write_study(text=NODES.format('["vm", "n99"]'))
    assert cli.main(["check", str(path), "--scheduler", "pbs"]) == 3
    words = 'factors.node: "n99": the server has no such node that fits (it has vm, vmb)'
    assert f"missing: {path}: {words}" in capsys.readouterr().out
    assert submitted(path) == 3
    # Either name of a host may be the one that qsub takes.
    write_study(text=NODES.format('["VM.site.org"]'))
    assert cli.main(["check", str(path), "--scheduler", "pbs"]) == 0
    assert f'warning: {path}: factors.node: "VM.site.org": the server' in capsys.readouterr().out
    write_study(text=NODES.format('["n99"]'))
    (pbs.folder / "nodes.txt").write_text("")  # pbsnodes does not answer
    assert submitted(path) == 0  # nothing is known of its nodes


def test_each_node_that_is_up_is_drawn(pbs: PaperPbs, write_study: Write, capsys: Capture) -> None:
    path = write_study(text=NODES.format('"each"'))
    nodes = pbs.folder / "nodes.txt"
    text = nodes.read_text()
    state = {"torque": ("<state>free<", "<state>down,offline<"),
             "openpbs": ("state = free", "state = state-unknown,down")}[pbs.dialect]  # fmt: skip
    nodes.write_text(text.replace(*state, 1))
    assert submitted(path) == 0
    assert nodes_requested(pbs) == OF_NODES[pbs.dialect][1:]
    words = '"each": 1 node of the server: vmb; not up and left out: vm'
    assert words in capsys.readouterr().err
    nodes.write_text(text.replace(*state))
    other = write_study(text='[study]\nname = "other"\n' + NODES.format('"each"')[8:])
    assert submitted(other) == 3
    assert "none of the 2 nodes of the server is up" in capsys.readouterr().err


def test_a_host_of_several_vnodes_is_one_node(pbs: PaperPbs) -> None:
    if pbs.dialect == "torque":
        return
    nodes = pbs.folder / "nodes.txt"
    text = nodes.read_text().replace("vmb\n     Mom", "vm[1]\n     Mom")
    down = text.replace("host = vmb", "host = vm").replace("state = free", "state = offline", 1)
    nodes.write_text(down)
    assert [(node.name, node.up) for node in Pbs(Path()).read_nodes] == [("vm", True)]


def test_named_nodes_are_taken_from_the_first_on_and_must_be_enough(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    text = """\
[study]
name = "most-{most}"
repeat = 1
[factors]
nodes = [1, {most}]
node_type = ["physical"]
[place.physical]
pbs = "-l nodes=n1+n2"
[[benchmark]]
use = "npb"
folder = "/nasa"
kernel = "ep"
"""
    assert submitted(write_study(text=text.format(most=2))) == 0
    found = {o.partition("#")[0] for one in pbs.options() for o in one if o.startswith("-l nodes=")}
    assert found == {"-l nodes=n1", "-l nodes=n1+n2"}
    assert submitted(write_study(text=text.format(most=3))) == 2
    assert "'nodes=n1+n2' asks for 2 nodes, and a run has 3" in capsys.readouterr().err


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
