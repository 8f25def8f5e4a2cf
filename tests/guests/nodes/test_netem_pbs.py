"""Programs that a mom runs for a job with a delay, with sch_netem: in a guest.

They are called as recorded, by a process with pbs_mom's name. Torque: prologue and epilogue;
OpenPBS: the hook, in a host that passes it the data of a real server.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.guests.nodes.netem_guests import address, tree
from tests.system.openpbs.conftest import HOST, job

from steelyard.wrappers.base.programs import find_node_program
from steelyard.wrappers.cluster.cluster import Cluster

TOP = Path(__file__).parents[3]
PYTHON = "/usr/bin/python3"
DELAY_MS = 25.0
PINGS = 5


@dataclass
class Said:
    """What was answered before and after the job, what the job printed, and its record."""

    begun: str
    printed: str
    ended: str
    record: dict[str, Any]
    errors: str


class Mom:
    """A node whose users may request delays, installed into a folder that the guest shares."""

    job = "17.vm"

    def __init__(self, folder: Path, allowed: bool) -> None:
        self.folder = folder
        program = folder / "libexec/steelyard/steelyard-node"
        program.parent.mkdir(parents=True)
        shutil.copy2(find_node_program(), program)
        shutil.copy2(shutil.which("dash") or "/bin/sh", folder / "pbs_mom")
        (folder / "netem.conf").write_text(f"enabled {'yes' if allowed else 'no'}\n")
        self.settings = {
            "record_dir": "/tmp/pbs/records",
            "run_dir": "/tmp/pbs/run",
            "netem_policy": str(folder / "netem.conf"),
        }

    def words(self, event: str, request: str) -> str:
        """Return a line of shell that prints one line."""
        raise NotImplementedError

    def is_well(self, said: Said) -> bool:
        raise NotImplementedError

    def refused(self, said: Said) -> str:
        """Return the message of the refusal."""
        raise NotImplementedError

    def around(self, cluster: Cluster, request: str, during: str) -> Said:
        """A job of `during`, which prints one line."""
        lines = [
            "rm -rf /tmp/pbs/records; mkdir -p /tmp/pbs/records",
            self.words(self.begin, request), during, self.words(self.end, request),
            "cat /tmp/pbs/records/*/*.json",
        ]  # fmt: skip
        script = "\n".join(lines)
        done = cluster.find_guest("v1").run([f"{self.folder}/pbs_mom", "-c", script])
        begun, printed, ended, record = done.stdout.split("\n", 3)
        return Said(begun, printed, ended, json.loads(record), done.stderr)


class Torque(Mom):
    begin, end = "prologue", "epilogue"

    def __init__(self, folder: Path, allowed: bool) -> None:
        super().__init__(folder, allowed)
        text = (TOP / "plugins/torque/pelog.sh").read_text()
        text = text.replace("@PREFIX@", str(folder)).replace("@CONFIG@", str(folder / "pbs.conf"))
        for name in ("prologue", "epilogue"):
            script = folder / name
            script.write_text(text)
            script.chmod(0o755)
        lines = "".join(f"{key}={value}\n" for key, value in self.settings.items())
        (folder / "pbs.conf").write_text(lines)
        (folder / f"{self.job}.JB").write_text("<node_exclusive>1</node_exclusive>\n")

    def words(self, event: str, request: str) -> str:
        resources = f"walltime=00:01:00,other=steelyard:{request},nodes=1,neednodes=1"
        script = str(self.folder / f"{self.job}.SC")
        who = [event, self.job, "nobody", "nogroup", "STDIN"]
        more = {"prologue": [resources, "batch", "", script],
                "epilogue": ["0", resources, "", "batch", "", "0", script]}[event]  # fmt: skip
        return f"{self.folder}/{shlex.join([*who, *more])}; echo {event}: $?"

    def is_well(self, said: Said) -> bool:
        return (said.begun, said.ended) == ("prologue: 0", "epilogue: 0")

    def refused(self, said: Said) -> str:
        assert said.begun == "prologue: 1"
        return said.errors


class OpenPbs(Mom):
    begin, end = "EXECJOB_BEGIN", "EXECJOB_EPILOGUE"

    def __init__(self, folder: Path, allowed: bool) -> None:
        super().__init__(folder, allowed)
        joined = subprocess.run(
            [TOP / "plugins/openpbs/join.sh"], capture_output=True, check=True, timeout=30
        )
        (folder / "hook.py").write_bytes(joined.stdout)
        (folder / "mom_priv/hooks/tmp").mkdir(parents=True)
        program = str(folder / "libexec/steelyard/steelyard-node")
        (folder / "hook.json").write_text(json.dumps({"node_program": program, **self.settings}))

    def words(self, event: str, request: str) -> str:
        asks = {"place": "scatter:excl", "steelyard": request}
        who = job(
            id=self.job, euser="nobody", egroup="nogroup", Resource_List=asks, Exit_status="0"
        )
        said = {
            "event": event, "job": who, "in_ms": True, "job_list": [], "broken": [],
            "config": str(self.folder / "hook.json"), "node": "v1", "server": "localhost",
            "requestor": "nobody", "vnodes": {"v1": 1}, "users": {"nobody": 65534},
            "home": "/nonexistent",
        }  # fmt: skip
        (self.folder / f"{event}.json").write_text(json.dumps(said))
        words = [PYTHON, str(HOST), "hook.py", f"{event}.json", f"{event}.said"]
        return f"cd {self.folder} && {shlex.join(words)}; cat {event}.said; echo"

    def is_well(self, said: Said) -> bool:
        told = [json.loads(text) for text in (said.begun, said.ended)]
        return all(one["accepted"] and one["log"] == [] for one in told)

    def refused(self, said: Said) -> str:
        told = json.loads(said.begun)
        assert told["deleted"] and not told["accepted"]
        return str(told["refused"])


@pytest.mark.parametrize("kind", [Torque, OpenPbs])
def test_a_delay_is_in_force_around_the_job(
    virtual_cluster: Cluster, tmp_path: Path, kind: type[Mom]
) -> None:
    mom = kind(tmp_path, allowed=True)
    before = tree(virtual_cluster, "v1")
    host = address(virtual_cluster, "n1")
    request = f"netem=delay%3D{DELAY_MS:g}ms%2Cto%3D{host}"
    said = mom.around(virtual_cluster, request, f"ping -q -c{PINGS} -i0.1 {host} | tail -n1")
    assert mom.is_well(said), said
    shortest_ms = float(said.printed.split("=")[1].split("/")[0])
    assert DELAY_MS < shortest_ms < 2 * DELAY_MS, "no packet is faster, and the shortest is near"
    conditions = said.record["network_conditions"]
    assert (conditions["valid"], conditions["undone"]) == (True, True), conditions
    assert conditions["applied"] == f"delay=25ms,to={host}"
    assert tree(virtual_cluster, "v1") == before


@pytest.mark.parametrize("kind", [Torque, OpenPbs])
def test_a_condition_that_cannot_be_had_ends_the_job_and_leaves_nothing(
    virtual_cluster: Cluster, tmp_path: Path, kind: type[Mom]
) -> None:
    mom = kind(tmp_path, allowed=False)
    before = tree(virtual_cluster, "v1")
    said = mom.around(virtual_cluster, "netem=delay%3D25ms", "echo")
    assert "steelyard: --netem=delay=25ms:" in mom.refused(said)
    assert said.record["network_conditions"] is None
    assert "refused: --netem=delay=25ms:" in said.record["missing"]["network_conditions"]
    assert tree(virtual_cluster, "v1") == before
