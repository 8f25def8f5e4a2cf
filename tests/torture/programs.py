"""steelyard-node under torture: its commands, and the allowed results if a call has failed.

It must end without a signal. A record is missing with a message about it, or has the numbers of the
undisturbed run, or marks each as unknown with a reason.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
TREE = DATA / "trees" / "physical"
METERS = ("amd-energy", "cray-ex", "perf-power", "grace-hopper")
CUT = next((DATA / "records" / "cut").glob("*.csv"))
# Fields that differ between runs: times, and the machine's other load.
VOLATILE = (
    "start_unix_s", "end_unix_s", "samples_file", "cpu.", "memory.", "sampler.", "io.read_bytes",
    "io.write_bytes", "probe.taken", "tcp.",
)  # fmt: skip
POLICY = "enabled yes\nnetem yes\nusers root\nmax_delay 10ms\nexclusive_only no\n"
# Of a job whose slurmstepd has ended before it touched a device.
STATE = {"requested": "delay=50ms", "node": "n1", "job_id": "7", "undo": {"places": []},
         "watch_pid": 1, "watch_start_ticks": 1}  # fmt: skip


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf with its dotted path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from numbers(inner, f"{path}.{index}")
    else:
        yield path, value


def has_reason(path: str, missing: dict[str, str]) -> bool:
    """Whether a field, or a part that contains it, has a reason."""
    for whole, total in (
        ("energy.zones.", "energy.energy_j"),
        ("network.devices.", "network.rx_bytes"),
    ):
        if path.startswith(whole) and missing.get(total):
            return True
    parts = path.split(".")
    return any(missing.get(".".join(parts[:end])) for end in range(1, len(parts) + 1))


def differs(found: dict[str, Any], truth: dict[str, Any]) -> str:
    """Return where a document differs from the truth, or omits a number without a reason."""
    told = dict(numbers(found))
    missing = found.get("missing") or {}
    probed = (found.get("probe") or {}).get("missing") or {}
    reasons = missing | {f"probe.{path}": why for path, why in probed.items()}
    integrated = (truth.get("energy") or {}).get("integrated")  # over different times in each run
    whole = found.get("complete", True)
    if not whole:
        return "" if found.get("incomplete_reason") else "incomplete without a reason"
    for path, value in numbers(truth):
        if (
            path == "complete"
            or path.startswith(("missing", "probe.missing", *VOLATILE))
            or path.endswith("elapsed_s")
            or (integrated and path.startswith("energy.") and told.get(path) is not None)
            or not isinstance(value, int | float)
        ):
            continue
        now = told.get(path)
        if now is None and not has_reason(path, reasons):
            return f"{path} is {'null' if path in told else 'left out'} without a reason"
        if now is not None and now != value:
            return f"{path} is {now} and not {value}"
    return ""


def document(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class Judge:
    """Takes the undisturbed run's result as the truth, and checks the other runs against it."""

    def __init__(
        self, measure: Callable[[Path, int, Any], str], read: Callable[[Path], Any]
    ) -> None:
        self.truth: Any = None
        self.measure, self.read = measure, read

    def __call__(self, folder: Path, code: int) -> str:
        if self.truth is None:
            self.truth = self.read(folder)
            return "" if self.truth else "no answer"
        return self.measure(folder, code, self.truth)


def output(folder: Path) -> str:
    return (folder / "output").read_text(errors="replace")


def answer(folder: Path) -> str:
    return (folder / "answer").read_text(errors="replace")


def measure_document(folder: Path, code: int, truth: str) -> str:
    """Check for one JSON document on stdout, or a message and an exit code."""
    said = answer(folder)
    if code:
        return "" if output(folder) else f"exit code {code} without a word"
    found, whole = document(said), document(truth)
    return differs(found, whole or {}) if found else f"exit code 0, and no document: {said[:200]}"


def measure_words(folder: Path, code: int, truth: str) -> str:
    """Check for the same output, or a message and an exit code."""
    if code:
        return (
            "" if output(folder) or answer(folder) == truth else f"exit code {code} without a word"
        )
    return "" if answer(folder) == truth else f"said {answer(folder)!r} and not {truth!r}"


def the_record(folder: Path) -> dict[str, Any] | None:
    records = sorted((folder / "records").glob("*/*.json"))
    return document(records[-1].read_text()) if records else None


def log(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.glob("run/*.log"))


def measure_record(folder: Path, code: int, truth: dict[str, Any]) -> str:
    """Check a measured command: it ran and its exit code is ours, or neither."""
    done = (folder / "eight").exists() and (folder / "eight").stat().st_size == 8 << 20
    found = the_record(folder)
    left = [path.name for path in (folder / "records").rglob(".*")]
    if left:
        return f"left behind: {left}"
    if code == 0 and not done:
        return "exit code 0, and the command did not run"
    if not found:
        return "" if output(folder) else "no record, and not a word about it"
    return differs(found, truth)


def measure_recovered(folder: Path, code: int, truth: dict[str, Any]) -> str:
    """Check that a record was finished as in the undisturbed run, or not changed."""
    found = the_record(folder)
    if code:
        before = document(CUT.with_suffix(".json").read_text())
        same = found == before and output(folder)
        return (
            "" if same else f"exit code {code} without a word, or another record: {output(folder)}"
        )
    return differs(dict(found, complete=True), truth) if found else "exit code 0, and no record"


def measure_state(folder: Path, code: int, truth: list[str]) -> str:
    """Check that a condition was undone and reported, or is left for the next sweep."""
    left = names(folder)
    if code == 0:
        return "" if left == truth else f"exit code 0, and there is {left}"
    return "" if output(folder) and left else f"exit code {code}, and there is {left}"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "run" / "netem").glob("n1*"))


def with_state(folder: Path) -> None:
    place = folder / "run" / "netem"
    place.mkdir(parents=True)
    for path in (folder / "run", place):
        path.chmod(0o700)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    state = STATE | {"boot_id": boot, "network_namespace": Path("/proc/self/ns/net").stat().st_ino}
    (place / "n1.7.json").write_text(json.dumps(state))
    (place / "n1.7.json").chmod(0o600)


def with_cut_record(folder: Path) -> None:
    place = folder / "records" / "7"
    place.mkdir(parents=True)
    shutil.copy(CUT, place)
    shutil.copy(CUT.with_suffix(".json"), place)


def with_policy(folder: Path) -> None:
    (folder / "netem.conf").write_text(POLICY)
    (folder / "netem.conf").chmod(0o600)


def with_folders(folder: Path) -> None:
    for name in ("run", "records"):
        (folder / name).mkdir(mode=0o755)


def with_meter_file(folder: Path) -> None:
    """Write a recent file of an administrator's meter."""
    with_folders(folder)
    place = folder / "tree" / "run" / "steelyard-meters" / "site"
    place.mkdir(parents=True)
    for path in (place, place.parent):
        path.chmod(0o755)
    said = f"covers node\nwatts 344\nat {time.monotonic():.6f}\nperiod 60\n"
    (place / "node.meter").write_text(said)
    (place / "node.meter").chmod(0o644)


def questions(node: str) -> list[tuple[str, list[str], Judge, Callable[[Path], None]]]:
    """Return (name, arguments, judge, preparation)."""
    dd = ["dd", "if=/dev/zero", "of={}/eight", "bs=1M", "count=8", "status=none"]
    measured = [
        "--record-dir",
        "{}/records",
        "--job-id",
        "7",
        "--node",
        "n1",
        "--run-dir",
        "{}/run",
    ]
    told = ["--node", "n1", "--job-id", "7", "--run-dir", "{}/run"]
    words = [
        ("probe", ["probe", "--root", str(TREE)], Judge(measure_document, answer), with_folders),
        ("netem parse", ["netem", "parse", "delay=50ms~5ms/normal,loss=0.1%,to=10.0.0.0/8"],
         Judge(measure_document, answer), with_folders),
        ("netem check", ["netem", "check", "--policy", "{}/netem.conf", "delay=50ms"],
         Judge(measure_refusal, output), with_policy),
        ("job encode", ["job", "encode", "--netem", "delay=50ms", "--tag", "a=b c"],
         Judge(measure_words, answer), with_folders),
        ("netem finish", ["netem", "finish", *told], Judge(measure_state, names), with_state),
        ("record", ["record", "--samples", f"{{}}/records/7/{CUT.name}"],
         Judge(measure_recovered, the_record), with_cut_record),
        ("sample", ["sample", *measured, "--rate", "0", "--root", str(TREE), "--", *dd],
         Judge(measure_record, the_record), with_folders),
        ("sample at 20 Hz", ["sample", *measured, "--rate", "20", "--root", str(TREE), "--", *dd],
         Judge(measure_record, the_record), with_folders),
    ]  # fmt: skip
    for name in METERS:
        tree = ["--root", str(DATA / "meters" / name)]
        words.append(
            (f"probe {name}", ["probe", *tree], Judge(measure_document, answer), with_folders)
        )
    for name in ("cray-ex", "grace-hopper"):  # read with every sample, in a separate process
        tree = ["--root", str(DATA / "meters" / name)]
        said = ["sample", *measured, "--rate", "20", *tree, "--", *dd]
        words.append((f"sample {name}", said, Judge(measure_record, the_record), with_folders))
    said = ["sample", *measured, "--rate", "20", "--root", "{}/tree", "--", *dd]
    words.append(("sample a file", said, Judge(measure_record, the_record), with_meter_file))
    return [(name, [node, *said], judge, before) for name, said, judge, before in words]


def measure_refusal(folder: Path, code: int, truth: str) -> str:
    """Check that a condition that the policy forbids is refused, whatever fails."""
    if code == 0:
        return f"allowed: {answer(folder)}{output(folder)}"
    return "" if output(folder) else f"exit code {code} without a word"
