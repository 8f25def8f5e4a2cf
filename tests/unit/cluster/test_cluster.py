"""The throwaway cluster without Slurm: configuration, refusals, whose processes it may end."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.wrappers.cluster import cluster, cluster_config, daemons
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Ports
from steelyard.wrappers.cluster.daemons import Daemon, State
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
        cluster.check_config(ClusterConfig(dir=Path(folder)))


def test_no_nodes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one node"):
        cluster.check_config(ClusterConfig(dir=tmp_path, physical_nodes=0, virtual_nodes=0))


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work\n")
    with pytest.raises(UsageError, match="is not empty and no throwaway cluster"):
        cluster.check_config(ClusterConfig(dir=tmp_path))
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("at", ["_make_folders", "rmtree", "_start"])
def test_one_that_was_interrupted_can_be_started_again(
    config: ClusterConfig, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Whatever was removed or made by then: the folder stays ours."""

    def interrupt(*_: object) -> None:
        (config.dir / "log").mkdir(parents=True, exist_ok=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(daemons, "check_programs", lambda: None)
    monkeypatch.setattr(daemons, "read_slurm_version", lambda: "22.05.8")
    monkeypatch.setattr(cluster.shutil if at == "rmtree" else cluster, at, interrupt)
    if at == "rmtree":  # of a folder that was a cluster's
        (config.dir / "records").mkdir(parents=True)
        State(config.dir, daemons.read_boot_id(), "22.05.8", ["n1"], False).save()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            cluster.start_cluster(config)
        assert cluster.find_cluster(config.dir) is None


def test_the_state_file_is_never_away(config: ClusterConfig) -> None:
    """Folders come in any order: it may not be the first that is removed."""
    config.dir.mkdir()
    State(config.dir, daemons.read_boot_id(), "22.05.8", ["n1"], False).save()
    (config.dir / "records").mkdir()
    before = (config.dir / "cluster.json").stat().st_ino
    cluster._make_folders(config)
    assert (config.dir / "cluster.json").stat().st_ino == before
    assert not list((config.dir / "records").glob("*"))


def test_missing_packages_are_one_apt_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemons, "search_path", lambda: "/nonexistent")
    with pytest.raises(MissingError) as caught:
        daemons.check_programs()
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


def state_of(folder: Path, *ran: Daemon) -> State:
    return State(folder, daemons.read_boot_id(), "22.05.8", ["n1"], False, True, list(ran))


def test_a_state_of_another_version_is_not_believed(tmp_path: Path) -> None:
    state_of(tmp_path).save()
    path = tmp_path / "cluster.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    assert daemons.load_state(tmp_path) is None
    path.write_text("{")
    assert daemons.load_state(tmp_path) is None


def test_the_lock_of_a_folder_goes_with_it_and_keeps_others_out(tmp_path: Path) -> None:
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(50):
            with cluster.lock_folder(tmp_path / "c"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert list(tmp_path.iterdir()) == []
