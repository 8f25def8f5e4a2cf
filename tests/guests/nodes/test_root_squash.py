"""A real export with root_squash: root is nobody there, and records of jobs come by the spool.

The file server is the guest `nfs`, the node `v1`; the share is mounted over the folder of records
of the plugin, for one test each with NFS 4.2 and 3."""

from __future__ import annotations

import json
import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.guests.nodes.nfs_share import MOUNT, SHARE, exported, shell
from tests.throwaway_lab import Lab, until

from steelyard.analysis.sources import record_folders
from steelyard.wrappers.cluster.cluster_config import Layout
from steelyard.wrappers.cluster.guest_control import Guest

ROOT = Path(__file__).parents[3]
OWNER = "backup"  # of the share; root is `nobody` there, who is not a service user
SPOOL = "/var/spool/steelyard"


@dataclass
class Site:
    """The share, the node that uses it as its folder of records, and its slurmd's log."""

    lab: Lab
    server: Guest
    node: Guest
    records: Path

    def own(self, owner: str) -> None:
        """Return the share's owner, who makes the mark."""
        mark = f"{SHARE}/{record_folders.MARK}"
        shell(self.server, f"touch {mark}; chown {owner}: {SHARE} {mark}")

    def log(self) -> str:
        path = Layout(self.lab.cluster.dir).log_dir / "slurmd.v1.log"
        return path.read_text(errors="replace")

    def told(self, words: str) -> bool:
        return words in self.log()

    def job(self) -> str:
        """One that an ordinary user runs on the node."""
        nobody = pwd.getpwnam("nobody").pw_uid
        become = ("setpriv", f"--reuid={nobody}", "--clear-groups", "env", "HOME=/")
        script = "head -c 5000000 /dev/zero | cat >/dev/null; sleep 1; echo $SLURM_JOB_ID"
        done = self.lab.run(*become, "srun", "-D", "/", "-w", "v1", "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        self.lab.jobs.append(done.stdout.strip())
        return self.lab.jobs[-1]

    def spooled(self, job: str) -> dict[str, str]:
        """A job's files in the spool by name, with their SHA-256, once its record is over."""

        def final() -> bool:
            text = self.node.run(["sh", "-c", f"cat {SPOOL}/{job}/v1.*.json"]).stdout
            return bool(text) and json.loads(text)["end_unix_s"] is not None

        until(final, f"the record of job {job} is over")
        return sums(shell(self.node, f"cd {SPOOL}/{job} && sha256sum v1.*"))

    def forward(self) -> str:
        """As the timer runs it, as root."""
        program = ROOT / "contrib/spool/forward.sh"
        return shell(self.node, f"sh {program} {SPOOL} {self.records} {OWNER}")

    def arrived(self) -> list[str]:
        """Every file of the share but the mark, as the server has it: path, owner, mode."""
        found = f"find {SHARE} -type f ! -name '.steelyard-*' -printf '%P %u %m\\n' | sort"
        return shell(self.server, found).splitlines()


def sums(text: str) -> dict[str, str]:
    """Of sha256sum, by name."""
    pairs = (line.split(maxsplit=1) for line in text.splitlines())
    return {Path(path).name: digest for digest, path in pairs}


@pytest.fixture(params=MOUNT)
def site(virtual_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Site]:
    cluster = virtual_lab.cluster
    with exported(virtual_lab, "root_squash") as server:
        site = Site(virtual_lab, server, cluster.find_guest("v1"), cluster.record_dir)
        shell(site.node, f"mount {MOUNT[request.param]} {site.records}")
        try:
            yield site
        finally:
            shell(site.node, f"umount -l {site.records}; rm -rf {SPOOL}")


def doctor(site: Site) -> dict[str, tuple[str, str]]:
    """State and words of the node's own looks at records."""
    program = Layout(site.lab.cluster.dir).lib_dir / "steelyard-node"
    done = site.node.run([str(program), "doctor", "--json", "--record-dir", str(site.records)])
    checks = {c["name"]: (c["state"], c["found"]) for c in json.loads(done.stdout)}
    return {name: checks[name] for name in ("record folder", "records", "spool") if name in checks}


def test_by_the_spool_nothing_is_lost(site: Site) -> None:
    site.own(OWNER)
    shell(site.node, f"mkdir -m 755 {SPOOL}")
    assert site.node.run(["touch", str(site.records / "x")]).returncode != 0, "root is nobody"
    job = site.job()
    files = site.spooled(job)
    assert sorted(Path(name).suffix for name in files) == [".csv", ".json"]
    record = json.loads(shell(site.node, f"cat {SPOOL}/{job}/v1.*.json"))
    assert (record["node"], record["job"]["job_id"]) == ("v1", job)
    assert record["io"]["rchar_bytes"] >= 5_000_000
    until(lambda: site.told(f"the record goes to {SPOOL}"), "the log says so")
    assert site.arrived() == []
    looks = doctor(site)
    assert {state for state, _ in looks.values()} == {"ok"}, looks
    assert site.forward() == f"1 records sent to {site.records}, 0 not over yet, 0 failed\n"
    day = record_folders.format_day(record["start_unix_s"])
    there = [f"{day}/{job}/{name} {OWNER} 440" for name in sorted(files)]
    assert site.arrived() == there
    assert sums(shell(site.server, f"cd {SHARE}/{day}/{job} && sha256sum *")) == files
    assert shell(site.node, f"find {SPOOL} -mindepth 1") == ""
    assert site.forward() == "", "nothing twice"
    assert site.arrived() == there


@pytest.mark.parametrize(
    ("owner", "words"),
    [(OWNER, "it must be root's or ours"), ("root", "in the record folder: Permission denied")],
)
def test_without_a_spool_there_is_no_record_and_the_log_says_why(
    site: Site, owner: str, words: str
) -> None:
    site.own(owner)
    logged = len(site.log())
    site.job()
    until(lambda: words in site.log()[logged:], "the log says why", seen=site.log)
    assert site.arrived() == []
    state, found = doctor(site)["record folder"]
    assert state == "missing", found
