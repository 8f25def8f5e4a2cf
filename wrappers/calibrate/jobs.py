"""Submits the jobs of every launch method at once, waits for their ends, and fills the table."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from steelyard.analysis.sources.pbs.field_values import split_job_id
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import job_system, known_loads
from steelyard.wrappers.calibrate.job_system import JobSystem, LaunchMethod, Report
from steelyard.wrappers.calibrate.known_loads import Result
from steelyard.wrappers.calibrate.table import Cell, Table, Trouble
from steelyard.wrappers.calibrate.truth_comparison import StartCells

POLL_S = 0.5
SETTLE_S = 5.0  # after a job's end, until records and totals in the accounting are final


@dataclass
class Site:
    """A batch system, a folder that its nodes see, and the folders of records."""

    system: JobSystem
    folder: Path
    record_dirs: Sequence[Path]
    patience_s: float = 600.0  # for the last job to end


@dataclass
class Attempt:
    """A launch method whose jobs were submitted."""

    site: Site
    method: LaunchMethod
    folder: Path
    jobs: list[str] = field(default_factory=list)  # as the submission printed their ids
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    refused: str | None = None
    interrupted_at: float | None = None  # monotonic clock
    ended_at: float | None = None
    done: bool = False

    @property
    def results(self) -> list[Result]:
        """The results of its loads so far."""
        return known_loads.read_results(self.folder)

    def list_jobs(self) -> set[str]:
        """Return the ids of its jobs: as submitted, and in the loads' results: array tasks, het
        components, srun's jobs."""
        return {*self.jobs, *(result.job for result in self.results)}

    def last_message(self) -> str:
        """Return the last line that the batch system's programs or the job printed."""
        paths = sorted(self.folder.glob("out*"))
        text = "\n".join(path.read_text(errors="replace") for path in paths)
        return self.site.system.commands.last_line(text) or "without a word"

    def submit(self) -> None:
        """Submit the jobs; a program that waits for its job continues to run."""
        system = self.site.system
        self.folder.mkdir(parents=True)
        try:
            node = system.find_node_for_two() if self.method.on_one_node else ""
            for number, line in enumerate(self.method.lines):
                argv, script = system.command(self.method, line, self.folder, node)
                if not script:
                    self.start_program(argv)
                    continue
                path = self.folder / f"script.{number}"
                path.write_text(script)
                printed = system.run([*argv, path.name], self.folder)
                self.jobs.append(printed.split()[-1].partition(";")[0])
        except MissingError as error:
            self.record_refusal(str(error))

    def start_program(self, argv: Sequence[str]) -> None:
        """Start srun or salloc."""
        with (self.folder / f"out.{len(self.processes)}").open("wb") as out:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=self.site.system.environment(),
            )
        self.processes.append(process)

    def record_refusal(self, why: str) -> None:
        """Record that the batch system rejects the method, and cancel its jobs."""
        self.refused, self.done = why, True
        self.cancel()

    def cancel(self) -> None:
        """Cancel everything that has not ended."""
        if jobs := self.list_jobs():
            self.site.system.cancel(sorted(jobs))
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
                process.wait()

    def update(self, reports: Mapping[str, list[Report]]) -> None:
        """Update whether the method has ended, and interrupt its job if it has to be."""
        codes, results = [process.poll() for process in self.processes], self.results
        if any(codes) and not results:
            self.record_refusal(self.last_message())
        if self.method.interrupt and results:
            self.interrupt(results[0].job)
        jobs = self.list_jobs()
        mine = [starts[-1].is_over for job, starts in reports.items() if belongs_to(job, jobs)]
        if not mine or not all(mine) or None in codes:
            self.ended_at = None
            return
        self.ended_at = self.ended_at or time.monotonic()
        is_late = time.monotonic() - self.ended_at > SETTLE_S
        self.done = self.done or is_late or len(results) == self.method.results

    def interrupt(self, job: str) -> None:
        """Interrupt the job once; later let the second start end without waiting."""
        system, again = self.site.system, self.folder / "again"
        if self.interrupted_at is None:
            self.interrupted_at = time.monotonic()
            try:
                system.run([*self.method.interrupt, job], self.folder)
            except MissingError as error:  # only operators may use qrerun
                self.record_refusal(str(error))
        elif time.monotonic() - self.interrupted_at > system.restart_delay_s:
            again.touch()
            if system.restart and len(self.results) < self.method.results:
                with suppress(MissingError):
                    system.run([word.format(job=job) for word in system.restart], self.folder)

    def make_cells(self) -> Iterator[Cell | Trouble]:
        """Yield its cells, or the reason why it has none."""
        name, results, system = self.method.name, self.results, self.site.system
        if not self.done:
            yield Trouble(name, f"its jobs had not ended after {self.site.patience_s:.0f} s", True)
            return
        if self.refused is not None:
            yield Trouble(name, f"{system.title} would not do it: {self.refused}")
            return
        if len(results) != self.method.results:
            count = f"{len(results)} of {self.method.results} loads left a result"
            yield Trouble(name, f"{count}: {self.last_message()}", failed=True)
            return
        reports = system.query_reports(self.list_jobs())
        results = [replace(result, job=find_job(result, reports)) for result in results]
        for job in sorted({result.job for result in results}, key=lambda job: (len(job), job)):
            mine = [result for result in results if result.job == job]
            found = reports.get(job, [])
            records = job_system.read_records(self.site.record_dirs, job)
            records = records or system.fetch_records(self.site.record_dirs[0], job, found)
            if not records:
                why = (
                    f"job {job} left no record in {self.site.record_dirs[0]}: {self.last_message()}"
                )
                yield Trouble(name, why, failed=True)
            restarted = bool(self.method.interrupt)
            for start in job_system.list_starts(mine, records, found, system.no_report, restarted):
                yield from StartCells(system, self.method, start).list_cells()


def measure(site: Site, methods: Sequence[LaunchMethod], table: Table) -> None:
    """Fill the table. After Ctrl-C it contains what has ended, and the rest is cancelled."""
    attempts = [
        Attempt(site, method, site.folder / f"method-{number:02}")
        for number, method in enumerate(methods)
    ]
    try:
        for attempt in attempts:
            attempt.submit()
        wait_for_attempts(attempts)
    except KeyboardInterrupt:
        table.interrupted = True
    finally:
        for attempt in attempts:
            if not attempt.done:
                attempt.cancel()
    for attempt in attempts:
        if attempt.done or not table.interrupted:
            table.add_outcome(attempt.make_cells())
    table.require_totals(site.system.where)


def wait_for_attempts(attempts: Collection[Attempt]) -> None:
    """Wait until every job has ended and its figures are final."""
    end = time.monotonic() + max((one.site.patience_s for one in attempts), default=0)
    while (open_ones := [one for one in attempts if not one.done]) and time.monotonic() < end:
        jobs = {job for attempt in open_ones for job in attempt.list_jobs()}
        reports = open_ones[0].site.system.query_reports(jobs)
        for attempt in open_ones:
            attempt.update(reports)
        time.sleep(POLL_S)
    time.sleep(SETTLE_S)


def belongs_to(job: str, submitted: Collection[str]) -> bool:
    """Return whether a job, or a task of a PBS array, was submitted under one of these ids."""
    parts = split_job_id(job)
    return job in submitted or (parts is not None and parts.format_array_id() in submitted)


def find_job(result: Result, reports: Mapping[str, list[Report]]) -> str:
    """Return the job of a result. Tasks of every component of a het job have the first one's id, so
    the node decides."""
    nodes = {job: {node for one in starts for node in one.nodes} for job, starts in reports.items()}
    if result.node in nodes.get(result.job, {result.node}):
        return result.job
    return next((job for job, names in nodes.items() if result.node in names), result.job)
