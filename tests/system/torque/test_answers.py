"""A condition on two nodes: the first node's prologue needs the other one's answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.hung_folder import Mounted, needed
from tests.system.torque.conftest import NOBODY, Cluster, Recorded, render
from tests.system.torque.test_pelog import JOB, first_given
from tests.system.torque.wire import POLICY, Wire, wired

RATE = "nodes=vm+vmb,other=steelyard:netem=rate%3D100mbit%2Cdev%3Dlo"
NO_ANSWER = "vmb: steelyard: it has not reported the requested conditions as ready"


@pytest.fixture
def wires() -> Iterator[tuple[Wire, Wire]]:
    """The first node's network and its sister's."""
    with wired() as first, wired() as sister:
        yield first, sister


@pytest.fixture
def pair(tmp_path: Path, wires: tuple[Wire, Wire]) -> Iterator[Cluster]:
    """Two nodes that can apply the condition, each with its own network and configuration."""
    tmp_path.chmod(0o755)
    tool = Cluster(tmp_path, wires[0].enter, wires[1].enter)
    policy = tmp_path / "netem.conf"
    policy.write_text(POLICY)
    with tool.config.open("a") as file:
        file.write(f"netem_policy={policy}\nexclusive=yes\n")
    configure_sister(tool, str(tool.run), str(sister_run(tool)))
    for script in ("prologue.parallel", "epilogue.parallel"):
        render("pelog.sh", tool.sister.mom_priv / script, tmp_path, sister_config(tool))
    yield tool
    for node in (tool.first, tool.sister):
        node.process.kill()
        node.process.communicate()


def sister_config(cluster: Cluster) -> Path:
    return cluster.base / "sister.conf"


def sister_run(cluster: Cluster) -> Path:
    return cluster.base / "sister_run"


def configure_sister(cluster: Cluster, old: str, new: str) -> None:
    """Write the sister's configuration: the first node's, with one word in another's place."""
    path = sister_config(cluster)
    text = (path if path.exists() else cluster.config).read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def sister_prologue(cluster: Cluster) -> None:
    given = cluster.given("torque.prologue.parallel.203.vm", resources=RATE)
    assert cluster.sister.pelog("prologue.parallel", given) == 0


def first_prologue(cluster: Cluster) -> int:
    given = first_given(cluster, "prologue", resources=RATE)
    status, pid = cluster.first.pelog(
        "prologue", given, job=["true"], uid=NOBODY,
        marks={"PBS_JOBID": JOB, "PBS_NODENUM": "0", "PATH": "/bin"},
    )  # fmt: skip
    cluster.first.order(reap=pid)
    return int(status)


def epilogues(cluster: Cluster) -> None:
    done = cluster.given("torque.epilogue.parallel.203.vm")
    done.words[5] = RATE
    assert cluster.sister.pelog("epilogue.parallel", done) == 0
    assert cluster.first.pelog("epilogue", first_epilogue(cluster)) == 0


def first_epilogue(cluster: Cluster) -> Recorded:
    return first_given(cluster, "epilogue", resources=RATE)


def without_script(cluster: Cluster) -> None:
    """Torque is silent about a script that does not exist, or is not root's."""


def without_answer(cluster: Cluster) -> None:
    """The folder does not answer; the sister cannot apply the condition either."""
    configure_sister(cluster, "netem.conf", "no.such.policy")
    mounted = Mounted(cluster.base / "behind", cluster.records)
    try:
        mounted.hang()
        sister_prologue(cluster)
    finally:
        mounted.end()


def with_own_folder(cluster: Cluster) -> None:
    """Give a node a record_dir that differs from the first node's."""
    own = cluster.base / "own"
    own.mkdir()
    configure_sister(cluster, str(cluster.records), str(own))
    sister_prologue(cluster)


def with_cut_answer(cluster: Cluster) -> None:
    """Its command was killed between opening the file and writing to it."""
    sister_prologue(cluster)
    (cluster.records / f".answer.{JOB}.vmb").write_text("")


@pytest.mark.parametrize(
    "sister", [without_script, without_answer, with_own_folder, with_cut_answer]
)
def test_a_sister_that_reports_nothing_refuses(
    pair: Cluster, wires: tuple[Wire, Wire], sister: Callable[[Cluster], None]
) -> None:
    if sister is without_answer:
        needed()
    before = wires[0].queues()
    sister(pair)
    assert first_prologue(pair) == 1
    assert pair.first.output.read_text().startswith(NO_ANSWER)
    assert wires[0].queues() == before
    epilogues(pair)
    unmet = pair.record_of(JOB, "vm")["missing"]["network_conditions"]
    assert unmet.startswith(f"refused: {NO_ANSWER}")


def test_a_sister_that_is_ready_lets_the_job_run(pair: Cluster, wires: tuple[Wire, Wire]) -> None:
    sister_prologue(pair)
    assert first_prologue(pair) == 0, pair.first.output.read_text()
    assert all("rate 100Mbit" in wire.queues() for wire in wires)
    epilogues(pair)
    assert not any("rate 100Mbit" in wire.queues() for wire in wires)
    assert pair.samplers() == []
    assert pair.left() == []
    assert list(sister_run(pair).rglob("*.json")) == []


def test_an_answer_is_of_one_start(pair: Cluster) -> None:
    """The first node's prologue was killed, its epilogue ran, and the job is started again."""
    sister_prologue(pair)
    assert pair.first.pelog("epilogue", first_epilogue(pair)) == 0
    assert first_prologue(pair) == 1
    assert pair.first.output.read_text().startswith(NO_ANSWER)
    epilogues(pair)


@pytest.mark.parametrize(("domain", "suffix"), [(".example.org", ""), ("", "-ib"), (".org", ".ib")])
def test_names_in_the_list_of_nodes(pair: Cluster, domain: str, suffix: str) -> None:
    """A mom without -H calls itself by its host's name without the domain; $nodefile_suffix is added."""
    sister_prologue(pair)
    given = first_given(pair, "prologue", resources=RATE)
    names = (f"{name}{domain}{suffix}\n" for name in ("vm", "vmb", "vm"))
    (pair.base / "nodefile").write_text("".join(names))
    given.environment["PBS_MSHOST"] = f"vm{domain}"
    assert pair.first.pelog("prologue", given) == 0, pair.first.output.read_text()
    epilogues(pair)
    assert pair.record_of(JOB, "vm")["job"]["nodes"] == "2"
