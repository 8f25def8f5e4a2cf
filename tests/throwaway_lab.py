"""A real throwaway Slurm cluster for the tests of system/cluster and guests, and its queries."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest
from tests.processes import each_process, of_process
from tests.waiting import LIMIT_S, wait_for

from steelyard.analysis.sources import admin_comment, record_folders
from steelyard.analysis.sources.sacct import Sacct
from steelyard.wrappers.base.programs import find_program
from steelyard.wrappers.cluster import cluster as throwaway
from steelyard.wrappers.cluster import daemons
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Layout
from steelyard.wrappers.publish import publish
from steelyard.wrappers.publish.publish import PublishResult
from steelyard.wrappers.study import folder as studydir

# As at sites: the kernel counts if it can. Without these counts, and without cgroups, no record's
# CPU and I/O are complete.
KERNEL_COUNTS = os.environ.get("STEELYARD_LAB_BPF") != "no" and os.geteuid() == 0
STILL_RUNNING = "the job was still running"  # in the record of the start, until the final one
# The reason if only steps' reports show what a job used.
UNCOUNTED = "neither the kernel nor a cgroup has counted the job's processes"
LATE = "the sampler took its first sample "  # on an emulated node it takes over a second to start


def until(
    ready: Callable[[], Any], what: str, limit_s: float = LIMIT_S, seen: Callable[[], Any] = str
) -> Any:
    """Wait as wait_for does; less often, since a query of Slurm is expensive."""
    return wait_for(what, ready, limit_s, poll_s=0.05, seen=seen)


def is_whole(record: dict[str, Any], *allowed: str) -> bool:
    """Whether a record has everything that can be counted, except allowed gaps with reasons."""
    return bool(record["complete"]) or record["incomplete_reason"].startswith((UNCOUNTED, *allowed))


def is_late(record: dict[str, Any]) -> bool:
    """Whether what the job did before its first sample is in no sample, and not in its traffic."""
    return not record["complete"] and LATE in record["incomplete_reason"]


def command_line(pid: int) -> str:
    """Return the arguments of a process, separated by blanks; empty if it has ended."""
    return of_process(pid, "cmdline").replace(b"\0", b" ").decode()


def processes_of(folder: Path) -> list[int]:
    """Return processes with the folder in their environment, as a study's jobs have."""
    mark = f"={folder}/".encode()
    return [pid for pid, environment in each_process("environ") if mark in environment]


@dataclass
class Lab:
    """The cluster, and the jobs that one test submitted to it."""

    cluster: throwaway.Cluster
    work: Path
    jobs: list[str] = field(default_factory=list)

    def run(self, *argv: str, limit_s: float = 240, **kw: Any) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands, with text output; the test checks the exit code."""
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=limit_s,
            cwd=self.work,
            env=self.cluster.environment(),
            check=False,
            **kw,
        )

    def ours(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run one of our commands, which need not be on PATH; the test checks the exit code."""
        return self.run(sys.executable, "-m", "steelyard.wrappers.commands.cli", *argv)

    def steelyard(self, *argv: str, code: int = 0) -> str:
        """Run one of our commands that exits with `code`; return its stdout."""
        done = self.ours(*argv)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def wait_study(self, file: str, code: int = 0, limit_s: float = 400) -> None:
        """Wait until every run of a study has ended; `steelyard status` then exits with `code`."""
        words = ("status", file, "--watch", "--interval=0.5")
        argv = (sys.executable, "-m", "steelyard.wrappers.commands.cli", *words)
        done = self.run(*argv, limit_s=limit_s)
        assert done.returncode == code, done.stdout + done.stderr

    def rows(self, study: str, sql: str) -> list[tuple[Any, ...]]:
        """Return rows of the database of a study in the work folder."""
        database = self.work / f"{study}.study" / "study.duckdb"
        with duckdb.connect(str(database), read_only=True) as base:
            return base.execute(sql).fetchall()

    def sbatch(self, *options: str, script: str) -> str:
        """Submit a batch script; return the job's id."""
        done = self.run("sbatch", "--parsable", *options, input=f"#!/bin/sh\n{script}\n")
        assert done.returncode == 0, done.stderr
        self.jobs.append(done.stdout.strip())
        return self.jobs[-1]

    def srun(self, *argv: str) -> str:
        """Run a job with srun alone; return its id."""
        done = self.run("srun", *argv, "printenv", "SLURM_JOB_ID")
        assert done.returncode == 0, done.stderr
        self.jobs.append(done.stdout.split()[0])
        return self.jobs[-1]

    def job(self, job_id: str) -> dict[str, str]:
        """Return a job as scontrol shows it."""
        done = self.run("scontrol", "-o", "show", "job", job_id)
        assert done.returncode == 0, done.stderr
        words = done.stdout.splitlines()[0].split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def queued(self) -> set[str]:
        """Return ids of jobs that are pending, running or completing; Slurm soon forgets ended
        ones.
        """
        done = self.run("squeue", "-h", "-o", "%A")
        assert done.returncode == 0, done.stderr
        return set(done.stdout.split())

    def collect(self, file: str) -> None:
        """Run `steelyard collect` on a study that has ended.

        `status` reports its last result some ms before the job's end and its record exist.
        """
        until(lambda: not self.queued(), "every job has ended")
        until(lambda: not self.unfinished(file), "every record is final")
        self.steelyard("collect", file)

    def unfinished(self, file: str) -> list[str]:
        """Return unfinished records of jobs since a study's first one."""
        ledger = studydir.derive_folder(self.work / file) / "submissions.jsonl"
        first = min(int(json.loads(line)["job_id"]) for line in ledger.read_text().splitlines())
        folders = self.cluster.record_dir.iterdir()
        paths = [p for f in folders if int(f.name) >= first for p in f.glob("*.json")]
        texts = {path.name: path.read_text() for path in paths}
        return [name for name, text in texts.items() if not text or STILL_RUNNING in text]

    def cancel(self) -> None:
        """Cancel the test's jobs."""
        for job_id in self.jobs:
            self.run("scancel", job_id)

    def wait_running(self, job_id: str) -> None:
        """Wait until the batch script's first line has run, which makes the file `running`."""
        until((self.work / f"running.{job_id}").exists, f"job {job_id} runs")

    def wait_state(self, job_id: str, *states: str, limit_s: float = LIMIT_S) -> str:
        """Wait until the job has ended in one of these states; return the state."""
        running = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED")
        state = until(
            lambda: (found := self.job(job_id)["JobState"]) not in running and found,
            f"job {job_id} ends",
            limit_s,
        )
        assert state in states
        return str(state)

    def sacct(self, job_id: str, *fields: str, limit_s: float = LIMIT_S) -> list[list[str]]:
        """Return rows of the job itself (not its steps), when the accounting has its end."""
        names = ",".join(("State", *fields))

        def ended() -> list[list[str]] | None:
            done = self.run("sacct", "-X", "-D", "-n", "-P", "-j", job_id, "-o", names)
            rows = [line.split("|", len(fields)) for line in done.stdout.splitlines()]
            open_states = ("RUNNING", "PENDING")
            return rows if rows and all(row[0] not in open_states for row in rows) else None

        rows = until(ended, f"sacct has job {job_id}", limit_s)
        return [row[1:] if fields else row for row in rows]

    def comment(self, job_id: str, by_plugin: bool = False) -> dict[str, Any]:
        """Return our object in AdminComment as sacct shows it.

        Slurm accepts no comment for a job that has ended, and a step waits half a second for it. On
        a node that was too busy, `steelyard publish` writes it, unless the plugin must.
        """

        def text() -> str:
            return self.sacct(job_id, "AdminComment")[0][0]

        def text_or_publish() -> str:
            found = text()
            if not found:  # again: the record of a busy node may not have been final
                self.publish()
            return found

        if not by_plugin and not text():
            until(lambda: self.sacct(job_id, "End")[0][0] != "Unknown", f"job {job_id}'s end")
        found = until(text if by_plugin else text_or_publish, f"job {job_id}'s comment")
        own = admin_comment.read_own_comment(found)
        assert own is not None, found
        return own

    def publish(self, record_dir: Path | None = None) -> PublishResult:
        """Run `steelyard publish` for the jobs of the last hour.

        It runs as if the minute that it leaves to Slurm had passed.
        """
        if find_program(publish.PROGRAM) is None:
            pytest.skip(f"{publish.PROGRAM} was not built: no libslurm (Debian: libslurm-dev)")
        asked = publish.PublishRequest(3600, [record_dir or self.cluster.record_dir])
        with mock.patch.dict(os.environ, self.cluster.environment()):
            found = publish.find_comments(asked, Sacct(), time.time() + 2 * publish.SETTLED_S)
            publish.write_comments(found)
        return found

    def folder(self, job_id: str) -> Path:
        """Return the folder of the job's records."""
        return self.cluster.record_dir / job_id

    def record_files(self, job_id: str) -> list[Path]:
        """Return a job's record files, in either layout."""
        folders = record_folders.find_job_folders(self.cluster.record_dir, job_id)
        return [path for folder in folders for path in folder.glob("*.json")]

    def records(self, job_id: str, count: int, complete: bool = True) -> list[dict[str, Any]]:
        """Return the job's final records, by node and start, when there are `count` of them.

        With `complete`, only those without gaps count. Tests of tags, conditions or clocks accept
        others, too, which have all of these.
        """

        def final() -> list[dict[str, Any]] | None:
            texts = [path.read_text() for path in self.record_files(job_id)]
            found = [json.loads(text) for text in texts if text]  # empty: just created
            found = [r for r in found if STILL_RUNNING not in (r["incomplete_reason"] or "")]
            if complete:
                found = [record for record in found if record["complete"]]
            return found if len(found) >= count else None

        def reasons() -> list[str]:
            texts = {path.name: path.read_text() for path in self.record_files(job_id)}
            return [f"{n}: {json.loads(t)['incomplete_reason']}" for n, t in texts.items() if t]

        found = until(final, f"{count} records of job {job_id}", seen=reasons)
        assert len(found) == count
        return sorted(found, key=lambda record: (record["node"], record["start_unix_s"]))

    def samplers(self) -> list[int]:
        """Return the process ids of the running samplers."""
        found = daemons.find_leftovers(Layout(self.cluster.dir).slurm_conf)
        return [daemon.pid for daemon in found if daemon.name == "steelyard-node"]

    def stepds(self, job_id: str, step: str) -> list[int]:
        """Return process ids of a job's slurmstepd of one step (`extern`, `batch`, `0`)."""
        pids = []
        for daemon in daemons.find_leftovers(Layout(self.cluster.dir).slurm_conf):
            if command_line(daemon.pid).startswith(f"slurmstepd: [{job_id}.{step}]"):
                pids.append(daemon.pid)
        return pids

    def nodes(self) -> set[str]:
        """Return the states of all nodes."""
        return set(self.run("sinfo", "-h", "-N", "-o", "%T").stdout.split())

    def wait_nodes(self, *states: str, what: str, limit_s: float = LIMIT_S) -> None:
        """Wait until each node has one of these states; a failure shows their reasons and logs."""
        until(lambda: self.nodes() <= set(states), what, limit_s, seen=self.node_reasons)

    def node_reasons(self) -> str:
        """Return each node's state and reason, all jobs, and the last errors of each daemon."""
        nodes = self.run("sinfo", "-h", "-N", "-o", "%N %T %E").stdout
        errors: list[str] = []
        for path in sorted(Layout(self.cluster.dir).log_dir.glob("slurm*.log")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            found = [line for line in lines if re.search("error|drain|not resp", line)]
            errors += [f"{path.name}: {line}" for line in found[-8:]]
        return "\n".join(["", nodes, self.run("squeue", "-a").stdout, *errors])


def virtual_config(folder: Path, shares: tuple[Path, ...]) -> ClusterConfig:
    """Return one host node, n1, two guests, v1 and v2, and a third that is their file server."""
    plugin, node_program = throwaway.find_plugin()
    return ClusterConfig(
        dir=folder,
        physical_nodes=1,
        virtual_nodes=0,
        guests=2,
        nfs=True,
        shares=shares,
        plugin=plugin,
        node_program=node_program,
        sample_rate_hz=10,
        bpf=KERNEL_COUNTS,
    )
