"""The report of `steelyard doctor` on OpenPBS' hook, from qmgr and a mom's folder."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from steelyard.wrappers.doctor import openpbs

REPOSITORY = Path(__file__).parents[3]
# OpenPBS 23.06.06, `qmgr -c "list hook steelyard"`.
LISTED = """Hook steelyard
    type = site
    enabled = true
    event = queuejob,modifyjob,execjob_begin,execjob_epilogue,execjob_end,
\texecjob_attach,
\texecjob_abort,
\texechost_periodic,
\texechost_startup
    user = pbsadmin
    alarm = 90
    freq = 300
    order = 110
    debug = false
    fail_action = none

"""


def test_its_events_are_those_that_the_server_is_told() -> None:
    said = re.search(
        r"^events=(.*)$", (REPOSITORY / "plugins/openpbs/qmgr.sh").read_text(), re.MULTILINE
    )
    assert said is not None
    assert frozenset(said[1].split(",")) == openpbs.EVENTS


def test_a_server_as_it_should_be() -> None:
    assert openpbs.check_server(LISTED).state == "ok"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("enabled = true", "enabled = false", "not enabled: no job is measured"),
        ("execjob_begin,", "", "lacks the events execjob_begin"),
        ("\texecjob_abort,\n", "", "lacks the events execjob_abort"),
    ],
)
def test_a_server_that_is_not(old: str, new: str, found: str) -> None:
    check = openpbs.check_server(LISTED.replace(old, new))
    assert (check.state, check.found) == ("warning", found)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    if os.getuid() != 0:
        pytest.skip("files must be root's; these tests are not")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/steelyard.PY").write_text("")
    program = tmp_path / "steelyard-node"
    program.write_text("")
    program.chmod(0o755)
    (tmp_path / "hooks/steelyard.CF").write_text(json.dumps({"node_program": str(program)}))
    return tmp_path


def test_a_host_of_the_server_without_a_mom_has_no_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PBS_HOME has a mom_priv there, too; real moms leave mom.lock in it (tests/data/openpbs/dumps)."""
    monkeypatch.setattr(openpbs, "list_hook", lambda: LISTED)
    (tmp_path / "mom_priv/hooks").mkdir(parents=True)
    assert [check.name for check in openpbs.run_checks(tmp_path)] == ["hook in the server"]
    (tmp_path / "mom_priv/mom.lock").write_text("4711\n")
    names = [(check.name, check.state) for check in openpbs.run_checks(tmp_path)]
    assert names == [("hook in the server", "ok"), ("hook on this node", "warning")]


def test_the_folder_of_records_is_the_hooks(private: Path, tmp_path: Path) -> None:
    """What the hook of a real node had: else doctor judged a folder that no job uses."""
    home, file = tmp_path / "home", tmp_path / "openpbs.json"
    (home / "mom_priv").mkdir(parents=True)
    (home / "mom_priv/hooks").symlink_to(private / "hooks")
    told = json.loads((private / "hooks/steelyard.CF").read_text()) | {"record_dir": "/srv/records"}
    file.write_text(json.dumps(told))
    (private / "hooks/steelyard.CF").write_text(json.dumps(told))
    assert "--record-dir=/srv/records" in openpbs.read_settings(home, file)
    (private / "hooks/steelyard.CF").unlink()
    assert openpbs.read_settings(home, file) == ["--record-dir=/srv/records"]
    assert openpbs.read_settings(None, file) == []


def states(private: Path) -> list[tuple[str, str]]:
    return [(check.name, check.state) for check in openpbs.check_node(private)]


def test_a_node_as_it_should_be(private: Path) -> None:
    assert states(private) == [("hook on this node", "ok")]
    (private / "epilogue").write_text("")
    (private / "epilogue").chmod(0o500)
    assert states(private)[1:] == [("classic epilogue", "ok")]


def test_a_node_that_is_not(private: Path) -> None:
    (private / "epilogue").write_text("")
    (private / "epilogue").chmod(0o722)
    assert states(private)[1:] == [("classic epilogue", "warning")]
    (private / "steelyard-node").chmod(0o775)
    assert states(private) == [("hook on this node", "missing")]
    (private / "hooks/steelyard.CF").write_text("[")
    assert states(private) == [("hook on this node", "missing")]
    (private / "hooks/steelyard.PY").unlink()
    assert states(private) == [("hook on this node", "warning")]


def test_home_is_what_pbs_conf_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "pbs.conf"
    monkeypatch.setenv("PBS_CONF_FILE", str(conf))
    assert openpbs.find_home() is None
    conf.write_text("PBS_EXEC=/opt/pbs\nPBS_HOME=/var/spool/pbs\n")
    assert openpbs.find_home() == Path("/var/spool/pbs")
