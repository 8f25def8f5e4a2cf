"""Finds why a job's network condition was refused: the line in the job's output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.jobscripts.regular_files import read_tail

if TYPE_CHECKING:
    from steelyard.analysis.collect.attempt_building import Attempt

EXIT_CONDITION = 4  # exit code of a job whose condition could not be applied
REFUSAL = re.compile(
    r"^(?:[\w.-]+: )*(?P<line>(?:steelyard: )?--(?:netem|cache)=.+)$", re.MULTILINE
)
TAIL_BYTES = 65536  # of a job's output, whose last line matters


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
