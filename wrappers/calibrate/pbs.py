"""Runs the ways of pbs_ways.py on the user's own Torque or OpenPBS, all at once, and waits for
their ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.analysis.sources.pbs import programs, qstat, states
from steelyard.analysis.sources.pbs.values import split_job_id
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import job_traces, loads, pbs_cells
from steelyard.wrappers.calibrate.pbs_ways import SCRIPT, PbsWay, Request
from steelyard.wrappers.calibrate.slurm import Site
from steelyard.wrappers.calibrate.table import Cell, Table, Trouble
from steelyard.wrappers.schedulers.patience import CommandError
from steelyard.wrappers.schedulers.pbs import command, dialect, scheduler, script

POLL_S = 1.0
SETTLE_S = 5.0  # a record is final, the server has its totals, so soon after a job's end
AGAIN_S = 2.0  # from qrerun until the second start need not wait to be sent back


@dataclass
class Attempt:
    """A way that was begun."""

    way: PbsWay
    folder: Path
    jobs: list[str] = field(default_factory=list)  # as qsub told them
    told: dict[str, qstat.Job] = field(default_factory=dict)  # by qstat, the last of each
    refused: str | None = None
    pushed_at: float | None = None
    ended_at: float | None = None  # when all of its jobs had, by our clock
    done: bool = False

    def said(self) -> str:
        """The last line that the job said."""
        text = "\n".join(
            path.read_text(errors="replace") for path in sorted(self.folder.glob("out*"))
        )
        return command.last_line(text) or "without a word"


def weigh(site: Site, ways: Sequence[PbsWay], table: Table) -> None:
    """Fill the table; on Ctrl-C with what has ended, and cancel the rest."""
    attempts = [Attempt(way, site.folder / f"way-{i:02}") for i, way in enumerate(ways)]
    try:
        node = some_node()
        for attempt in attempts:
            begin(attempt, node)
        wait(site, attempts)
    except KeyboardInterrupt:
        table.interrupted = True
    finally:
        cancel(attempts)
    for attempt in attempts:
        for found in outcome(site, attempt, table.interrupted):
            (table.cells if isinstance(found, Cell) else table.troubles).append(found)  # type: ignore[arg-type]


def begin(attempt: Attempt, node: str) -> None:
    """Submit its jobs."""
    attempt.folder.mkdir(parents=True)
    (attempt.folder / "node").write_text(node)
    for one in attempt.way.commands(attempt.folder):
        (attempt.folder / SCRIPT).write_text(one.script or "")
        try:
            said = command.run_once(one.argv, scheduler.submit_environment(), attempt.folder)
        except CommandError as error:
            attempt.refused = str(error)
            attempt.done = not attempt.jobs
            return
        attempt.jobs.append(said.split()[-1])


def some_node() -> str:
    """A node that takes two jobs at once."""
    for name, about in dialect.parse_blocks(command.run(["pbsnodes", "-a"])).items():
        processors = about.get("np") or about.get("resources_available.ncpus") or "1"
        if "down" not in about.get("state", "") and processors != "1":
            return name
    return "none"


def wait(site: Site, attempts: Sequence[Attempt]) -> None:
    """Until every job has ended, and settled."""
    end = time.monotonic() + site.patience_s
    while time.monotonic() < end:
        open_ones = [attempt for attempt in attempts if not attempt.done]
        if not open_ones:
            return
        told = jobs_of(open_ones)
        for attempt in open_ones if told is not None else ():
            look(site, attempt, told or {})
        time.sleep(POLL_S)


def jobs_of(attempts: Sequence[Attempt]) -> dict[str, qstat.Job] | None:
    """What qstat says of their jobs; None: its server is lost, for now."""
    try:
        return programs.jobs([job for attempt in attempts for job in attempt.jobs])
    except MissingError:
        return None


def look(site: Site, attempt: Attempt, told: dict[str, qstat.Job]) -> None:
    """Whether it is over, or needs a push."""
    mine = {job: about for job, about in told.items() if is_of(job, attempt.jobs)}
    attempt.told |= mine
    if attempt.way.pushed and loads.results(attempt.folder):
        push(attempt)
    if any(about.get("job_state") not in states.OVER for about in mine.values()):
        return
    attempt.ended_at = attempt.ended_at or time.monotonic()
    waited_s = time.monotonic() - attempt.ended_at
    attempt.done = waited_s > SETTLE_S or settled(site, attempt)


def is_of(job: str, submitted: Sequence[str]) -> bool:
    """Whether a job, or a task of an array, was submitted under one of these ids."""
    parts = split_job_id(job)
    return job in submitted or (parts is not None and parts.array() in submitted)


def push(attempt: Attempt) -> None:
    """qdel or qrerun, once; and what the second start waits for."""
    if attempt.pushed_at is None:
        attempt.pushed_at = time.monotonic()
        try:
            command.run_once([*attempt.way.pushed, attempt.jobs[0]])
        except CommandError as error:  # qrerun is for operators
            attempt.refused = str(error)
            (attempt.folder / "again").touch()
    elif time.monotonic() - attempt.pushed_at > AGAIN_S:
        (attempt.folder / "again").touch()


def settled(site: Site, attempt: Attempt) -> bool:
    """Every record is final, and the server has what it is told: nothing more is to come."""
    results = loads.results(attempt.folder)
    for job in {result.job for result in results}:
        about = attempt.told.get(job, {})
        found = job_traces.records(site.record_dirs, job)
        if len(found) < len(pbs_cells.hosts(about)) or not all(r.get("complete") for r in found):
            return False
    return len(results) >= attempt.way.results


def cancel(attempts: Sequence[Attempt]) -> None:
    """What is ours and still there."""
    mine = [job for attempt in attempts if not attempt.done for job in attempt.jobs]
    for job in mine:
        with suppress(MissingError):  # the rest all the same
            command.of_jobs(["qdel", job])


def outcome(site: Site, attempt: Attempt, interrupted: bool) -> Iterator[Cell | Trouble]:
    """Cells of a way, or why there are none."""
    name, results = attempt.way.name, loads.results(attempt.folder)
    if not attempt.done:
        if not interrupted:
            yield Trouble(name, f"its jobs had not ended after {site.patience_s:.0f} s", True)
        return
    if attempt.refused is not None:
        yield Trouble(name, f"PBS would not do it: {attempt.refused}")
        return
    if len(results) != attempt.way.results:
        told = f"{len(results)} of {attempt.way.results} loads have told what they did"
        yield Trouble(name, f"{told}: {attempt.said()}", broken=True)
        return
    for job in sorted({result.job for result in results}):
        mine = [result for result in results if result.job == job]
        records = job_traces.records(site.record_dirs, job)
        if not records:
            where = site.record_dirs[0]
            yield Trouble(name, f"job {job} left no record in {where}: {attempt.said()}", True)
        yield from pbs_cells.of_job(attempt.way, mine, records, attempt.told.get(job, {}))


def check_node_part(here: scheduler.Pbs) -> None:
    """MissingError where Steelyard is not seen on this server."""
    if not here.has_node_part:
        raise MissingError(
            f"{here.dialect.title} answers, but Steelyard's {here.dialect.node_part} cannot be "
            "seen on its server: its admin installs it (docs/admin-pbs.md); without it: "
            "`steelyard calibrate --scheduler local`"
        )


def request_of(here: scheduler.Pbs) -> Request:
    """How a sample rate is asked for: one resource, which the prologue or the hook reads."""

    def request(rate: int) -> tuple[str, ...]:
        option = here.dialect.request(script.encoded([f"--sample-rate={rate}"]))
        return tuple(option.split(" ", 1))

    return request
