"""Network conditions of a run's nodes (docs/formats.md part 9): table `network` and refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.analysis.sources.records import Record, find_value, has_kind
from steelyard.jobscripts.regular_files import read_tail

if TYPE_CHECKING:
    from steelyard.analysis.collect.attempt_building import Attempt

FACTOR, NO_LEVEL = "network", "none"
EXIT_CONDITION = 4  # exit code of a job whose condition could not be applied

# Column of the table `network`: (dotted path in network_conditions, kind as in records.COLUMNS).
COLUMNS = {
    "requested": ("requested", "text"),
    "applied": ("applied", "text"),
    "scope": ("scope", "text"),
    "qdisc": ("devices", "qdiscs"),
    "devices": ("devices", "names"),
    "peer": ("peer", "text"),
    "rtt_before_s": ("rtt.before.median_s", "float"),
    "rtt_during_start_s": ("rtt.during_start.median_s", "float"),
    "rtt_during_end_s": ("rtt.during_end.median_s", "float"),
    "rtt_after_s": ("rtt.after.median_s", "float"),
    "loss_achieved": ("loss.achieved", "float"),
    "loss_low": ("loss.low", "float"),
    "loss_high": ("loss.high", "float"),
    "loss_packets": ("loss.packets", "int"),
    "duplicate_achieved": ("duplicate.achieved", "float"),
    "corrupt_achieved": ("corrupt.achieved", "float"),
    "reorder_achieved": ("reorder.achieved", "float"),
    "sent_packets": ("counters.sent_packets", "int"),
    "dropped_packets": ("counters.dropped_packets", "int"),
    "apply_s": ("apply_s", "float"),
    "undo_s": ("undo_s", "float"),
    "valid": ("valid", "bool"),
    "invalid_reason": ("invalid_reason", "text"),
    "undone": ("undone", "bool"),
}


REFUSAL = re.compile(
    r"^(?:[\w.-]+: )*(?P<line>(?:steelyard: )?--(?:netem|cache)=.+)$", re.MULTILINE
)
TAIL_BYTES = 65536  # of a job's output, whose last line matters


def find_conditions(record: Record) -> Mapping[str, Any] | None:
    """Return the record's network conditions; None: none were requested on that node."""
    document = record.get("network_conditions")
    return document if isinstance(document, dict) else None


def read_columns(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the table `network`. A field of an unexpected type is NULL."""
    return {name: read_column(document, path, kind) for name, (path, kind) in COLUMNS.items()}


def read_column(document: Mapping[str, Any], path: str, kind: str) -> Any:
    """Return one column of the table `network`."""
    if kind in ("qdiscs", "names"):
        devices = [d for d in document.get("devices") or () if isinstance(d, dict)]
        found = [str(d.get("qdisc" if kind == "qdiscs" else "device") or "?") for d in devices]
        return found if kind == "names" else ", ".join(dict.fromkeys(found)) or None
    value = find_value(document, path)
    return value if value is not None and has_kind(value, kind) else None


def find_refusal(study_dir: Path, attempt: Attempt) -> str | None:
    """Return the refusal line of a failed job whose condition could not be applied; None: no line.

    The line is in the attempt's own output. A job that was refused before it had a folder has it in
    the output of its submission, which array tasks share unless they have their own.
    """
    if attempt.state != "failed" or attempt.exit_code not in (EXIT_CONDITION, 1, None):
        return None
    lines = [line for path in list_outputs(attempt) for line in read_refusals(path)]
    if not lines:
        lines = list(read_refusals(find_submission_refusals(study_dir, attempt)))
    return lines[-1] if lines else None


def find_submission_refusals(study_dir: Path, attempt: Attempt) -> Path:
    """Return the output file of the time before the run had its folder."""
    common = study_dir / "submissions" / f"{attempt.submission_id}.out"
    own = common.with_name(f"{common.name}-{attempt.array_task_id}")
    shared = attempt.array_task_id is not None and attempt.exit_code == EXIT_CONDITION
    return common if attempt.array_task_id is None or (shared and not own.is_file()) else own


def list_outputs(attempt: Attempt) -> list[Path]:
    """Return the attempt's own output files."""
    if attempt.folder is None:
        return []
    names = ("job.out", "*.err", "err.*")  # *.err: from the launchers of clients
    return [path for name in names for path in sorted(attempt.folder.path.glob(name))]


def read_refusals(path: Path) -> Iterator[str]:
    """Yield the lines `--netem=…: …` and `--cache=…: …` of a file, without `steelyard: `."""
    try:
        text = read_tail(path, TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    for match in REFUSAL.finditer(text):
        yield match["line"].removeprefix("steelyard: ")
