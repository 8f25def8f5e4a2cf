"""`job begin` and `job end` of steelyard-node under torture, around a job that writes 8 MiB.

Neither refuses a job that requests nothing. When both are over and no call fails any more, one
sweep leaves only the job's record or its reported loss: its numbers are those of the undisturbed
run, or they are marked as unknown, or a message states why there is none.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import programs

JOB = Path(__file__).with_name("job.sh")
WRITTEN = 8 << 20
# Values of the machine's other load, or that a tick or a last byte may change.
NOT_THE_JOBS = ("probe", "network", "energy", "pressure", "cpu", "memory", "processes")


def with_folders(folder: Path) -> None:
    programs.with_folders(folder)
    (folder / "pbs.conf").touch(mode=0o600)


def truth(folder: Path) -> dict[str, Any] | None:
    """Return a record; of its own bytes only written ones, since some last reads may be missed."""
    record = programs.the_record(folder)
    if not record or record["io"]["wchar_bytes"] != WRITTEN:
        return None
    kept = {key: value for key, value in record.items() if key not in NOT_THE_JOBS}
    return kept | {"io": {"wchar_bytes": WRITTEN}}


def sweep(node: str, folder: Path) -> str:
    """Sweep as the next job's begin does, with states that are not recent any more."""
    for path in (folder / "run" / "job").glob("*.json"):
        os.utime(path, (0, 0))
    words = ["--node", "n1", "--run-dir", f"{folder}/run", "--record-dir", f"{folder}/records"]
    done = subprocess.run(
        [node, "job", "sweep", "--only-alive", *words, "--config", f"{folder}/pbs.conf"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    left = [str(path) for path in (folder / "run").rglob("*") if path.is_socket()]
    left += [str(path) for path in (folder / "run" / "job").glob("*.json")]
    return f"after a sweep ({done.stderr}) there is {left}" if left or done.returncode else ""


def measure(node: str, folder: Path, code: int, wanted: dict[str, Any]) -> str:
    """Return what is wrong with the run; "" if nothing is."""
    if code:
        return f"exit code {code}: {programs.output(folder)}"
    if wrong := sweep(node, folder):
        return wrong
    records = sorted((folder / "records").glob("*/*.json"))
    if not records:
        told = programs.output(folder) + programs.log(folder)
        return "" if told else "no record, and not a word about it"
    found = programs.document(records[-1].read_text())
    if not found:
        return f"half a record: {records[-1].read_text()[:200]}"
    return programs.differs(found, wanted) or measure_totals(folder)


def measure_totals(folder: Path) -> str:
    """Check the output of `job end`: nothing, null, or the truth, of which the record may lack
    some.
    """
    said = programs.answer(folder)
    totals = programs.document(said) if said else {}
    if totals is None:
        return f"no document: {said[:200]}"
    told = totals.get("wchar_bytes")
    return "" if told in (None, WRITTEN) else f"{told} bytes written were told"


def question(node: str) -> tuple[str, list[str], programs.Judge]:
    """Return (name, arguments, judge)."""
    node = str(Path(node).resolve())
    judge = programs.Judge(lambda folder, code, wanted: measure(node, folder, code, wanted), truth)
    return "job begin, end", [str(JOB), node, "{}"], judge
