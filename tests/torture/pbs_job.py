"""`job begin` and `job end` of steelyard-node under torture, around a job that writes 8 MiB.

Neither ever refuses a job that asks for nothing. When both are over and nobody disturbs any more, one
sweep leaves nothing of it but its record, whole or told: its numbers are those of the undisturbed
run, or it says that it does not know them, or there is a word about why there is none.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import programs

JOB = Path(__file__).with_name("job.sh")
WRITTEN = 8 << 20
# What the machine was busy with besides, and what a tick or a last byte may decide.
NOT_THE_JOBS = ("probe", "network", "energy", "pressure", "cpu", "memory", "processes")


def with_folders(folder: Path) -> None:
    programs.with_folders(folder)
    (folder / "pbs.conf").touch(mode=0o600)


def truth(folder: Path) -> dict[str, Any] | None:
    """Of its own bytes those that it wrote: of what it reads as it ends some may be unseen."""
    record = programs.the_record(folder)
    if not record or record["io"]["wchar_bytes"] != WRITTEN:
        return None
    kept = {key: value for key, value in record.items() if key not in NOT_THE_JOBS}
    return kept | {"io": {"wchar_bytes": WRITTEN}}


def sweep(node: str, folder: Path) -> str:
    """What the next job's begin does; of states that are not young any more."""
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
    """Why the run is wrong; "": it is not."""
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
    """What `job end` printed: nothing, null, or the truth, of which the record may say less."""
    said = programs.answer(folder)
    totals = programs.document(said) if said else {}
    if totals is None:
        return f"no document: {said[:200]}"
    told = totals.get("wchar_bytes")
    return "" if told in (None, WRITTEN) else f"{told} bytes written were told"


def question(node: str) -> tuple[str, list[str], programs.Judge]:
    """(name, words, judge)."""
    node = str(Path(node).resolve())
    judge = programs.Judge(lambda folder, code, wanted: measure(node, folder, code, wanted), truth)
    return "job begin, end", [str(JOB), node, "{}"], judge
