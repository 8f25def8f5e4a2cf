"""Captures of a study's jobs into the table `flows`; each file is read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.collect.accounting_in import Progress
from steelyard.analysis.collect.attempts import Attempt
from steelyard.analysis.collect.known_samples import files_beside
from steelyard.analysis.collect.records_in import Gap, clock_set
from steelyard.analysis.collect.samples_in import SampleFile
from steelyard.analysis.sources.flows import CaptureError, Flow, find_tshark, read_capture
from steelyard.analysis.sources.records import Record
from steelyard.analysis.store.database import table_columns
from steelyard.analysis.store.spool import Spool

NO_TSHARK = "tshark missing: apt-get install tshark, then collect again"
CLOCK_SET = "the node's clock was set meanwhile: round-trip times are not told of its flows"
FULL = "the capture reached its size limit: its flows end there"


def take_in(
    connection: DuckDBPyConnection,
    study_dir: Path,
    attempts: Sequence[Attempt],
    scratch: Path,
    progress: Progress,
) -> list[Gap]:
    """Read the captures that are new or changed; returns what is missing of all of them."""
    gaps: list[Gap] = []
    files = list(files_beside(study_dir, attempts, gaps, "capture", "capture.file"))
    stored = {
        row[0]: row[1:]
        for row in connection.execute(
            "SELECT path, size_bytes, modified_unix_ns, run_id, attempt, node FROM captures"
        ).fetchall()
    }
    new = [
        (file, record)
        for file, record in files
        if stored.get(file.key) != (*file.stamp(), file.run_id, file.attempt, file.node)
    ]
    tshark = find_tshark()
    if tshark is None:
        gaps += [Gap(f.run_id, f.attempt, f.node, "capture", NO_TSHARK) for f, _ in new]
    else:
        owners = {(file.run_id, file.attempt, file.node) for file, _ in new}
        replaced = [path for path, row in stored.items() if row[2:] in owners]
        forget(connection, [*replaced, *(file.key for file, _ in new)])
        store(connection, tshark, new, scratch, progress)
    return [*gaps, *capture_gaps(connection)]


def store(
    connection: DuckDBPyConnection,
    tshark: str,
    files: Sequence[tuple[SampleFile, Record]],
    scratch: Path,
    progress: Progress,
) -> None:
    """Flows into `flows`, the files into `captures`."""
    with (
        Spool(scratch / "flows.jsonl", table_columns(connection, "flows")) as flows,
        Spool(scratch / "captures.jsonl", table_columns(connection, "captures")) as captures,
    ):
        for done, (file, record) in enumerate(files, 1):
            stamp = file.stamp()  # of now: what comes while it is read is for the next collect
            found, reason = read_one(tshark, file, record, scratch)
            owner = (file.run_id, file.attempt, file.node)
            for flow in found:
                flows.write((*owner, *flow.row()))
            captures.write((file.key, *owner, *stamp, len(found), reason))
            progress("captures", done, len(files))
    connection.execute(f"INSERT INTO flows BY NAME {flows.select()}")
    connection.execute(f"INSERT INTO captures BY NAME {captures.select()}")


def read_one(
    tshark: str, file: SampleFile, record: Record, scratch: Path
) -> tuple[Sequence[Flow], str | None]:
    """Flows of a capture and what is wrong with it."""
    try:
        found, problem = read_capture(tshark, file.path, scratch)
    except CaptureError as error:
        return (), str(error)
    is_full = record.get("capture.truncated") is True
    if clock_set(record):
        for flow in found:
            del flow.rtts[:]  # differences of times of day
        problem = problem or CLOCK_SET
    return found, problem or (FULL if is_full else None)


def forget(connection: DuckDBPyConnection, keys: Sequence[str]) -> None:
    """Take the flows of these captures out again: others come in their place."""
    connection.execute(
        "DELETE FROM flows USING captures AS c WHERE c.path IN (SELECT unnest(?)) AND "
        "flows.run_id = c.run_id AND flows.attempt = c.attempt AND flows.node = c.node",
        [list(keys)],
    )
    connection.execute("DELETE FROM captures WHERE path IN (SELECT unnest(?))", [list(keys)])


def capture_gaps(connection: DuckDBPyConnection) -> Iterator[Gap]:
    """What was wrong with captures, now or in an earlier collect."""
    rows = connection.execute(
        "SELECT run_id, attempt, node, path, reason FROM captures WHERE reason IS NOT NULL "
        "ORDER BY path"
    ).fetchall()
    for run_id, attempt, node, path, reason in rows:
        yield Gap(run_id, attempt, node, "capture", f"{path}: {reason}")
