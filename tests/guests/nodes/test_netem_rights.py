"""What a user without rights tries on a guest: refused by name, at submission and on the node."""

from __future__ import annotations

import pwd
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.guests.nodes.netem_guests import states, tree
from tests.throwaway_lab import Lab

from steelyard.wrappers.cluster.cluster import Cluster

NOBODY = pwd.getpwnam("nobody").pw_uid
BECOME = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env", "HOME=/")
OPTION = "_SLURM_SPANK_OPTION_steelyard_netem"  # where slurmstepd looks: spank.c of Slurm

# {ctl}: slurmctld's address. A request, and the word in its refusal.
TRIES = {
    "another device": ("delay=5ms,dev=ens9", "ens9"),
    "a device that is no name": ("delay=5ms,dev=../vec0", "dev"),
    "the controller": ("delay=5ms,to={ctl}", "{ctl}"),
    "shell characters": ("delay=5ms,dev=vec0;reboot", "dev"),
    "a command": ("delay=$(reboot)", "delay"),
    "a path": ("/etc/passwd", "/etc/passwd"),
    "4096 characters": ("delay=" + "9" * 4090, "1023"),
    "a negative delay": ("delay=-5ms,dev=vec0", "delay"),
    "more than is allowed": ("delay=100s,dev=vec0", "max_delay"),
}
# These are refused on the node alone: only there it is known that the job shares it.
OF_OTHERS = {
    "incoming packets of others": ("delay=5ms,dev=vec0,direction=both", "direction"),
    "routes of others": ("delay=5ms,dev=vec0,rto_min=5ms", "rto_min"),
}


def controller(cluster: Cluster) -> str:
    assert cluster.state.network is not None
    return cluster.state.network.controller


@pytest.fixture(scope="module")
def said(virtual_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A job of nobody's that forges each request in its own environment, with an srun that has no
    plugin and so checks nothing; the folder with what each step printed and its exit code. The
    guest is as before."""
    lab = Lab(virtual_cluster, tmp_path_factory.mktemp("rights"))
    home, before = virtual_cluster.dir.parent / "home", tree(virtual_cluster, "v2")
    conf = (virtual_cluster.dir / "etc" / "slurm.conf").read_text()
    (home / "slurm.conf").write_text(
        re.sub("PlugStackConfig=.*", f"PlugStackConfig={home}/none", conf)
    )
    (home / "none").touch()
    lines = ["#!/bin/sh", f"export SLURM_CONF={home}/slurm.conf"]
    for number, (spec, _) in enumerate([*TRIES.values(), *OF_OTHERS.values()]):
        spec = spec.format(ctl=controller(virtual_cluster))
        lines += [f"{OPTION}='{spec}' srun touch {home}/ran 2>{home}/said.{number}",
                  f"echo $? >{home}/code.{number}"]  # fmt: skip
    sbatch = ("sbatch", "--parsable", "-D", str(home), "-o", str(home / "out"), "-w", "v2")
    done = lab.run(*BECOME, *sbatch, input="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    try:
        lab.wait_state(job, "COMPLETED", limit_s=60)
        yield home
    finally:
        lab.run("scancel", job)
    assert not (home / "ran").exists(), "no step ran without its condition"
    assert tree(virtual_cluster, "v2") == before
    assert states(virtual_cluster, "v2") == []


@pytest.mark.parametrize("name", TRIES)
def test_it_is_refused_at_submission(virtual_lab: Lab, name: str) -> None:
    spec, word = (text.format(ctl=controller(virtual_lab.cluster)) for text in TRIES[name])
    done = virtual_lab.run(*BECOME, "sbatch", f"--netem={spec}", "-D/", "--wrap", "true")
    assert done.returncode != 0
    assert "Submitted" not in done.stdout
    refusal = done.stderr.splitlines()[0]
    assert "steelyard: --netem=" in refusal
    assert word in refusal.split(": ", 3)[-1]
    assert len(refusal) < 1500


@pytest.mark.parametrize("number", range(len(TRIES) + len(OF_OTHERS)))
def test_it_is_refused_on_the_node(virtual_cluster: Cluster, said: Path, number: int) -> None:
    _, word = [*TRIES.values(), *OF_OTHERS.values()][number]
    text = (said / f"said.{number}").read_text()
    assert (said / f"code.{number}").read_text() == "4\n", text
    (line,) = (line for line in text.splitlines() if line.startswith("steelyard: --netem"))
    assert word.format(ctl=controller(virtual_cluster)) in line.split(": ", 2)[-1]
