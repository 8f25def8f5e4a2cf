"""Which files of samples a collect has to read: those that no earlier one has read as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.collect import samples_in
from steelyard.analysis.collect.attempts import Attempt
from steelyard.analysis.collect.records_in import Gap
from steelyard.analysis.collect.samples_in import SampleFile
from steelyard.analysis.store import sample_store
from steelyard.analysis.store.spool import storable


class KnownFiles:
    """The files of samples that earlier collects read.

    One that is gone keeps its samples: they may be all that is left of the job.
    """

    def __init__(self, connection: DuckDBPyConnection, parts: sample_store.Parts) -> None:
        rows = connection.execute(
            "SELECT path, size_bytes, modified_unix_ns, run_id, attempt, node FROM sources"
        ).fetchall()
        self._stored = {row[0]: row[1:] for row in rows}
        self._owners: dict[tuple[str, str, str], set[str]] = {}
        for path, _, _, *owner in rows:
            self._owners.setdefault(tuple(owner), set()).add(path)
        self.broken = samples_in.broken_files(connection, parts)  # not yet read again

    def has(self, file: SampleFile) -> bool:
        """Whether its samples are there as the file has them, and no other's in their place."""
        stored = (*file.stamp(), file.run_id, file.attempt, file.node)
        others = self._owners.get(stored[2:], set()) - {file.key}
        return self._stored.get(file.key) == stored and not others and file.key not in self.broken

    def instead_of(self, file: SampleFile) -> list[str]:
        """Keys of the files whose samples go when this one is read: of a node one file counts."""
        keys = {file.key} | self._owners.get((file.run_id, file.attempt, file.node), set())
        self.broken -= keys
        return sorted(keys & self._stored.keys())


def sample_files(
    study_dir: Path, attempts: Iterable[Attempt], gaps: list[Gap]
) -> Iterator[SampleFile]:
    """The files of samples that records name; a missing file is a gap."""
    for attempt in attempts:
        for node, record in attempt.records.items():
            path = record.samples_path
            if path is None:
                continue
            if not path.is_file():
                reason = f"the record names {path.name}, which is not beside it"
                gaps.append(Gap(attempt.run_id, attempt.attempt, node, "samples", reason))
                continue
            key = str(path.relative_to(study_dir))
            yield SampleFile(path, key, attempt.run_id, attempt.attempt, storable(node))


def sample_gaps(connection: DuckDBPyConnection) -> Iterator[Gap]:
    """Lines that were left out, now or in an earlier collect."""
    rows = connection.execute(
        "SELECT run_id, attempt, node, path, reason FROM sources WHERE reason IS NOT NULL "
        "ORDER BY path"
    ).fetchall()
    for run_id, attempt, node, path, reason in rows:
        what = "cut_samples" if reason.startswith(samples_in.CUT) else "samples"
        yield Gap(run_id, attempt, node, what, f"{path}: {reason}")
