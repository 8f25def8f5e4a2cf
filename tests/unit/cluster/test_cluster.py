"""The throwaway cluster without Slurm: configuration, refusals, whose processes it may end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.wrappers.base import process_start
from steelyard.wrappers.cluster import cluster, start_daemons
from steelyard.wrappers.cluster import config as cluster_config
from steelyard.wrappers.cluster import state as cluster_state
from steelyard.wrappers.cluster.config import ClusterConfig, Ports
from steelyard.wrappers.cluster.state import Daemon, State
from steelyard.wrappers.commands import cli

PORTS = Ports(20001, 20002, (20003, 20004, 20005))


@pytest.fixture
def config(tmp_path: Path) -> ClusterConfig:
    return ClusterConfig(dir=tmp_path / "c", physical_nodes=1, virtual_nodes=2, cpus=3)


def lines(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("Node"))


def test_nodes_have_names_features_and_ports_of_their_own(config: ClusterConfig) -> None:
    text = cluster_config.slurm_conf(config, PORTS)
    nodes = re.findall(r"NodeName=(\S+) .*Port=(\d+) CPUs=3 RealMemory=\d+ Feature=(\S+)", text)
    assert nodes == [
        ("n1", "20003", "physical"),
        ("n2", "20004", "virtual"),
        ("n3", "20005", "virtual"),
    ]


def test_everything_listens_on_the_loopback_address_only(config: ClusterConfig) -> None:
    conf = lines(cluster_config.slurm_conf(config, PORTS))
    assert conf["CommunicationParameters"] == "NoInAddrAny,NoCtldInAddrAny"
    assert conf["SlurmctldHost"].endswith("(127.0.0.1)")
    dbd = lines(cluster_config.slurmdbd_conf(config, PORTS))
    assert dbd["CommunicationParameters"] == "NoInAddrAny"
    assert dbd["DbdAddr"] == "127.0.0.1"


def test_every_file_lies_in_the_folder(config: ClusterConfig) -> None:
    texts = cluster_config.slurm_conf(config, PORTS), cluster_config.slurmdbd_conf(config, PORTS)
    for text in texts:
        paths = re.findall(r"=(?:socket=)?(/\S+)", text)
        assert paths
        assert {p for p in paths if not p.startswith(f"{config.dir}/")} <= {"/bin/true"}


def test_contain_is_the_default_and_can_be_left_out(config: ClusterConfig, tmp_path: Path) -> None:
    assert lines(cluster_config.slurm_conf(config, PORTS))["PrologFlags"] == "Contain"
    without = ClusterConfig(dir=tmp_path, physical_nodes=3, virtual_nodes=0, contain=False)
    assert "PrologFlags" not in cluster_config.slurm_conf(without, PORTS)


@pytest.mark.parametrize(
    ("proctrack", "version", "text"),
    [
        ("linuxproc", (22, 5), ""),
        ("linuxproc", (24, 11), "CgroupPlugin=disabled\n"),
        ("cgroup", (22, 5), "IgnoreSystemd=yes\n"),
        ("cgroup", (26, 5), "IgnoreSystemd=yes\n"),
    ],
)
def test_cgroup_conf_holds_only_what_the_release_knows(
    proctrack: str, version: tuple[int, int], text: str
) -> None:
    assert cluster_config.cgroup_conf(ClusterConfig(proctrack=proctrack), version) == text


def test_the_plugins_line_names_folders_and_rate(config: ClusterConfig) -> None:
    assert not re.search("(?m)^[^#]", cluster_config.plugstack_conf(config))
    with_plugin = ClusterConfig(dir=config.dir, plugin=Path("/x.so"), sample_rate_hz=0.5)
    text = cluster_config.plugstack_conf(with_plugin)
    assert text == (
        f"optional {config.dir}/lib/spank_steelyard.so record_dir={config.dir}/records "
        f"run_dir={config.dir}/run/steelyard node_program={config.dir}/lib/steelyard-node "
        f"rate=0.5 max_rate=100 netem_policy={config.dir}/etc/netem.conf\n"
    )


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("relative", "must be absolute"),
        ("/tmp/" + "x" * 80, "too long for the Unix sockets"),
        ("/tmp/a b", "has blanks"),
    ],
)
def test_a_folder_that_cannot_work_is_refused(folder: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cluster.check(ClusterConfig(dir=Path(folder)))


def test_no_nodes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one node"):
        cluster.check(ClusterConfig(dir=tmp_path, physical_nodes=0, virtual_nodes=0))


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work\n")
    with pytest.raises(UsageError, match="is not empty and no throwaway cluster"):
        cluster.check(ClusterConfig(dir=tmp_path))
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("at", ["_make_folders", "rmtree", "_start"])
def test_one_that_was_interrupted_can_be_started_again(
    config: ClusterConfig, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Whatever was removed or made by then: the folder stays ours."""

    def interrupt(*_: object) -> None:
        (config.dir / "log").mkdir(parents=True, exist_ok=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(start_daemons, "check_programs", lambda: None)
    monkeypatch.setattr(start_daemons, "slurm_version", lambda: "22.05.8")
    monkeypatch.setattr(cluster.shutil if at == "rmtree" else cluster, at, interrupt)
    if at == "rmtree":  # of a folder that was a cluster's
        (config.dir / "records").mkdir(parents=True)
        State(config.dir, cluster_state.boot_id(), "22.05.8", ["n1"], False).save()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            cluster.up(config)
        assert cluster.attach(config.dir) is None


def test_the_state_file_is_never_away(config: ClusterConfig) -> None:
    """Folders come in any order: it may not be the first that is removed."""
    config.dir.mkdir()
    State(config.dir, cluster_state.boot_id(), "22.05.8", ["n1"], False).save()
    (config.dir / "records").mkdir()
    before = (config.dir / "cluster.json").stat().st_ino
    cluster._make_folders(config)
    assert (config.dir / "cluster.json").stat().st_ino == before
    assert not list((config.dir / "records").glob("*"))


def test_missing_packages_are_one_apt_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_daemons, "search_path", lambda: "/nonexistent")
    with pytest.raises(MissingError) as caught:
        start_daemons.check_programs()
    assert str(caught.value).endswith(
        "as root: apt-get install --no-install-recommends "
        "mariadb-server munge slurm-client slurmctld slurmd slurmdbd"
    )


def test_status_and_down_of_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "none")
    assert cli.main(["cluster", "status", "--dir", folder]) == 3
    expected = f"steelyard cluster: no cluster runs in {folder}; start one: steelyard cluster up\n"
    assert capsys.readouterr().err == expected
    assert cli.main(["cluster", "down", "--dir", folder]) == 0
    assert capsys.readouterr().out == f"the cluster in {folder} was not running\n"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def state_of(folder: Path, *daemons: Daemon) -> State:
    return State(folder, cluster_state.boot_id(), "22.05.8", ["n1"], False, True, list(daemons))


def test_a_process_id_that_belongs_to_somebody_else_now_is_not_ended(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    ticks = process_start.start_ticks(sleeper.pid)
    assert ticks is not None
    stranger = Daemon("slurmctld", sleeper.pid, ticks - 1)
    state_of(tmp_path, stranger).save()
    assert not cluster.down(tmp_path)
    time.sleep(0.1)
    assert sleeper.poll() is None


def test_nothing_is_ended_after_the_machine_was_started_anew(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    ticks = process_start.start_ticks(sleeper.pid)
    assert ticks is not None
    state = state_of(tmp_path, Daemon("slurmctld", sleeper.pid, ticks))
    state.boot_id = "another"
    state.save()
    assert not cluster.down(tmp_path)
    assert sleeper.poll() is None


def test_down_ends_what_was_started_and_may_be_repeated(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    stubborn = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert stubborn.stdout is not None
    assert stubborn.stdout.readline() == b"1\n", "it ignores SIGTERM by now"
    ticks = process_start.start_ticks(stubborn.pid)
    assert ticks is not None
    daemon = Daemon("munged", stubborn.pid, ticks)
    state_of(tmp_path, daemon).save()
    loaded = cluster_state.load(tmp_path)
    assert loaded is not None
    assert loaded.daemons == [daemon]
    begin = time.monotonic()
    assert cluster_state.end_daemons([daemon], patience_s=0.3) == []
    assert time.monotonic() - begin >= 0.3, "SIGTERM was ignored: SIGKILL after the patience"
    with stubborn:
        stubborn.wait()
    assert not cluster.down(tmp_path)
    assert not cluster.down(tmp_path)


def test_a_zombie_is_not_alive() -> None:
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert process_start.start_ticks(pid) is None
    os.waitpid(pid, 0)


def test_a_state_of_another_version_is_not_believed(tmp_path: Path) -> None:
    state_of(tmp_path).save()
    path = tmp_path / "cluster.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    assert cluster_state.load(tmp_path) is None
    path.write_text("{")
    assert cluster_state.load(tmp_path) is None


def test_what_a_killed_extern_step_leaves_behind_is_ended_with_the_cluster(tmp_path: Path) -> None:
    """Its `sleep` belongs to nobody any more; other people's is left alone."""
    conf = tmp_path / "slurm.conf"
    argv = ["sleep", "100000000"]
    with (
        subprocess.Popen(argv, env={**os.environ, "SLURM_CONF": str(conf)}) as ours,
        subprocess.Popen(argv, env={**os.environ, "SLURM_CONF": f"{conf}.other"}) as other,
    ):
        try:
            until = time.monotonic() + 90
            while time.monotonic() < until and len(cluster_state.leftovers(conf)) != 1:
                time.sleep(0.02)
            assert [daemon.pid for daemon in cluster_state.leftovers(conf)] == [ours.pid]
        finally:
            ours.kill()
            other.kill()
