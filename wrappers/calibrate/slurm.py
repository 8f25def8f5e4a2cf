"""Runs the ways of calibrate_ways.py on the user's own Slurm, all at once, and waits for their ends."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import job_cells, job_traces, loads
from steelyard.wrappers.calibrate.job_traces import Row
from steelyard.wrappers.calibrate.table import Cell, Table, Trouble
from steelyard.wrappers.calibrate.ways import Way
from steelyard.wrappers.schedulers.slurm import command as slurm_command

POLL_S = 0.5
SETTLE_S = 5.0  # a record is final, a comment is in the accounting, so soon after a job's end
HELD_BACK_S = 3.0  # slurmd refuses a job that it has killed in the same second


@dataclass
class Site:
    """Where: a folder that the nodes see, too, and where records are looked for."""

    folder: Path
    record_dirs: Sequence[Path]
    options: tuple[str, ...] = ()
    patience_s: float = 600.0  # for a way's last job to end


@dataclass
class Attempt:
    """A way that was begun."""

    way: Way
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    ended_at: float | None = None  # when all of its jobs had, by our clock
    requeued_at: float | None = None
    done: bool = False

    def said(self) -> str:
        """The last line that Slurm's programs, or the job, said."""
        paths = [*sorted(self.folder.glob("out.*")), *sorted(self.folder.glob("said.*"))]
        text = "\n".join(path.read_text(errors="replace") for path in paths)
        return slurm_command.last_line(text) or "without a word"

    def submitted(self) -> set[str]:
        """Job ids that sbatch told."""
        found = (path.read_text().strip() for path in self.folder.glob("id.*"))
        return {text.partition(";")[0] for text in found if text}

    def codes(self) -> list[int | None]:
        """How its commands ended; None: not yet."""
        return [process.poll() for process in self.processes]


def weigh(site: Site, ways: Sequence[Way], table: Table) -> None:
    """Fill the table; on Ctrl-C with what has ended, and cancel the rest."""
    attempts = [Attempt(way, site.folder / f"way-{i:02}") for i, way in enumerate(ways)]
    try:
        for attempt in attempts:
            begin(site, attempt)
        wait(site, attempts)
    except KeyboardInterrupt:
        table.interrupted = True
        cancel(attempts)
    for attempt in attempts:
        for found in outcome(site, attempt, table.interrupted):
            (table.cells if isinstance(found, Cell) else table.troubles).append(found)  # type: ignore[arg-type]


def begin(site: Site, attempt: Attempt) -> None:
    """Start its commands; what sbatch says is short."""
    attempt.folder.mkdir(parents=True)
    (attempt.folder / "node").write_text(some_node())
    for number, command in enumerate(attempt.way.commands(attempt.folder)):
        is_batch = command.argv[0] == "sbatch"
        with (
            (attempt.folder / ("id" if is_batch else "out"))
            .with_suffix(f".{number}")
            .open("wb") as out,
            (attempt.folder / f"said.{number}").open("wb") as err,
        ):
            process = subprocess.Popen(
                command.argv,
                stdin=subprocess.PIPE if command.script else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=attempt.folder,
                env=job_traces.environment(),
            )
        attempt.processes.append(process)
        if command.script is not None:
            process.communicate(command.script.encode())


def some_node() -> str:
    """A node that takes two jobs at once."""
    argv = ["sinfo", "-h", "-N", "-t", "idle,mix,alloc,comp", "-o", "%N %c"]
    lines = [line.split() for line in slurm_command.run(argv).splitlines()]
    return next((line[0] for line in lines if len(line) == 2 and line[1] != "1"), "none")


def wait(site: Site, attempts: Sequence[Attempt]) -> None:
    """Until every job has ended, and settled."""
    end = time.monotonic() + site.patience_s
    while time.monotonic() < end:
        open_ones = [attempt for attempt in attempts if not attempt.done]
        if not open_ones:
            return
        rows = job_traces.rows(job for attempt in open_ones for job in known_jobs(attempt))
        for attempt in open_ones:
            look(site, attempt, rows)
        time.sleep(POLL_S)


def known_jobs(attempt: Attempt) -> set[str]:
    """By what sbatch told, and by the loads' results: array tasks, het components, srun's jobs."""
    return attempt.submitted() | {result.job for result in loads.results(attempt.folder)}


def look(site: Site, attempt: Attempt, rows: dict[str, list[Row]]) -> None:
    """Whether it is over, or needs a push."""
    codes, results = attempt.codes(), loads.results(attempt.folder)
    if attempt.way.requeued and len(results) == 1:
        requeue(attempt, results[0].job)
        return
    if None in codes:
        return
    mine = [row for job in known_jobs(attempt) for row in rows.get(job, [])]
    if any(codes) and not mine:
        attempt.done = True  # refused
    if not mine or not all(row.ended for row in mine):
        return
    attempt.ended_at = attempt.ended_at or time.monotonic()
    waited_s = time.monotonic() - attempt.ended_at
    attempt.done = waited_s > SETTLE_S or (waited_s > 1 and settled(site, attempt, rows))


def settled(site: Site, attempt: Attempt, rows: dict[str, list[Row]]) -> bool:
    """Every record is final and every comment there: nothing more is to come."""
    for job in {result.job for result in loads.results(attempt.folder)}:
        found = job_traces.records(site.record_dirs, job)
        starts = rows.get(job, [])
        if not found or not starts or not all(record.get("complete") for record in found):
            return False
        if not all(row.whole for row in starts) or starts[-1].comment is None:
            return False
        if len(found) < sum(len(row.nodes) for row in starts):
            return False
    return len(loads.results(attempt.folder)) >= attempt.way.results


def requeue(attempt: Attempt, job: str) -> None:
    """Send it back; and later ask Slurm not to hold it back for two minutes."""
    if attempt.requeued_at is None:
        slurm_command.run_once(["scontrol", "requeue", job])
        attempt.requeued_at = time.monotonic()
    elif time.monotonic() - attempt.requeued_at > HELD_BACK_S:
        (attempt.folder / "again").touch()  # the second start need not wait to be sent back
        argv = ["scontrol", "update", f"JobId={job}", "StartTime=now"]
        subprocess.run(
            argv, capture_output=True, env=job_traces.environment(), check=False, timeout=60
        )


def cancel(attempts: Sequence[Attempt]) -> None:
    """What is ours and still there."""
    open_ones = [attempt for attempt in attempts if not attempt.done]
    mine = sorted({job for attempt in open_ones for job in known_jobs(attempt)})
    if mine:
        subprocess.run(
            ["scancel", *mine],
            capture_output=True,
            env=job_traces.environment(),
            check=False,
            timeout=60,
        )
    for attempt in open_ones:
        for process in attempt.processes:
            if process.poll() is None:
                process.terminate()
                process.wait()


def outcome(site: Site, attempt: Attempt, interrupted: bool) -> Iterator[Cell | Trouble]:
    """Cells of a way, or why there are none."""
    name = attempt.way.name
    if not attempt.done:
        if not interrupted:
            yield Trouble(name, f"its jobs had not ended after {site.patience_s:.0f} s", True)
        return
    results = loads.results(attempt.folder)
    if any(attempt.codes()) and not results:
        yield Trouble(name, f"Slurm would not run it: {attempt.said()}")
        return
    if len(results) != attempt.way.results:
        told = f"{len(results)} of {attempt.way.results} loads have told what they did"
        yield Trouble(name, f"{told}: {attempt.said()}", broken=True)
        return
    rows = job_traces.rows(result.job for result in results)
    results = [replace(result, job=job_of(result, rows)) for result in results]
    for job in sorted({result.job for result in results}, key=int):
        mine = [result for result in results if result.job == job]
        yield from of_job(site, attempt.way, mine, rows.get(job, []))


def job_of(result: loads.Result, rows: dict[str, list[Row]]) -> str:
    """Tasks of every component of a het job are told the first one's id: its node tells."""
    nodes = {job: {n for row in found for n in row.nodes} for job, found in rows.items()}
    if result.node in nodes.get(result.job, {result.node}):
        return result.job
    return next((job for job, names in nodes.items() if result.node in names), result.job)


def of_job(
    site: Site, way: Way, results: list[loads.Result], rows: list[Row]
) -> Iterator[Cell | Trouble]:
    """One job, start by start."""
    job = results[0].job
    records = job_traces.records(site.record_dirs, job)
    if not records and rows:
        records = [
            r for row in rows for r in job_traces.fetch(site.record_dirs[0], job, row, site.options)
        ]
        # Nodes that share a folder, or ran two starts, tell the same twice.
        records = list({(r.get("node"), r.get("start_unix_s")): r for r in records}.values())
    if not records:
        yield Trouble(way.name, f"job {job} left no record in {site.record_dirs[0]}", broken=True)
    starts = sorted({result.restarts for result in results})
    for start in starts:
        yield from job_cells.cells(
            way,
            job_cells.Job(
                [result for result in results if result.restarts == start],
                [record for record in records if restarts(record) == start],
                rows[start] if start < len(rows) else None,
                start == starts[-1],
            ),
        )


def restarts(record: dict[str, object]) -> int:
    """Which start of its job a record is of."""
    job = record.get("job")
    count = job.get("restart_count") if isinstance(job, dict) else None
    return int(count) if isinstance(count, str) and count.isdigit() else 0


def check_plugin() -> None:
    """MissingError where sbatch does not know our plugin."""
    text = slurm_command.run_once(["sbatch", "--help"])
    if "[steelyard]" not in text:
        raise MissingError(
            "Slurm answers, but its sbatch does not know Steelyard's plugin: its admin installs it "
            "(docs/admin.md); without it: `steelyard calibrate --scheduler local`"
        )
