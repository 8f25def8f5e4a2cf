"""Sessions with a database each: made once, then copied, with values that a test changes."""

from __future__ import annotations

import functools
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb

from steelyard.analysis.sources.study_sessions import INDEX_FILE

from ..summary.study_maker import StudyMaker

FIRST_UNIX_S = 1_793_500_000.0  # 1 November 2026
NODES = ("n1", "n2")


def write_sessions(parent: Path, factors: Sequence[float], kernels: Sequence[str]) -> Path:
    """Make nightly.sessions in `parent`: a session per factor, which multiplies its seconds."""
    folder = parent / "nightly.sessions"
    folder.mkdir()
    lines = []
    for place, (factor, kernel) in enumerate(zip(factors, kernels, strict=True)):
        name = f"2026-11-{place + 1:02}"
        change_session(write_first_session(folder / f"{name}.study"), factor, kernel)
        began = FIRST_UNIX_S + 86400 * place
        lines.append(json.dumps({"name": name, "number": place + 1, "began_unix_s": began}))
    (folder / INDEX_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def change_session(session: Path, factor: float, kernel: str) -> None:
    """Change a session's values and kernel, as if it had been measured and collected so."""
    with duckdb.connect(str(session / "study.duckdb")) as connection:
        connection.execute("UPDATE results SET value = value * ?", [factor])
        connection.execute("UPDATE meta SET study = ?", [f"nightly@{session.stem}"])
        connection.execute(
            "UPDATE records SET record = replace(record::VARCHAR, '6.1.0-30', ?)::JSON", [kernel]
        )


def write_first_session(folder: Path) -> Path:
    """Make `folder`, a session of three runs of `app` on each of two nodes."""
    folder.mkdir()
    for name, content in first_session_files().items():
        (folder / name).write_bytes(content)
    return folder


@functools.cache
def first_session_files() -> dict[str, bytes]:
    """Return the files of that session, by name; one more run failed, one is invalid."""
    maker = StudyMaker("nightly", {"clients": [1]}, {"clients": 1})
    chance = random.Random(9)
    for repeat in range(1, 7):
        node = NODES[repeat % 2]
        run = maker.run("app", {}, {"clients": 1}, repeat, nodes=(node,))
        maker.result(run, "seconds", 10 * chance.gauss(1, 0.002), "s")
        probe = {"kernel": {"release": "6.1.0-30"}, "cpu": {"microcode": None}}
        memory = {"source": "bpf"}
        document = {"steelyard": "0.1.0", "probe": probe, "missing": {}, "memory": memory}
        maker.record(run, node, 10.0, record=json.dumps(document))
        maker.tag(run, node, "governor", "performance")
        maker.tag(run, node, "launcher_container", f"c{repeat}")
        use_file(maker, run, node, "program", "/opt/app", "ab" * 32)
        use_file(maker, run, node, "library", "/lib/libm.so.6", "cd" * 32)
    maker.run("app", {}, {"clients": 1}, 7, state="failed", reason="it crashed")
    run = maker.run("app", {}, {"clients": 1}, 8, valid=False)
    maker.result(run, "seconds", 99.0, "s")
    maker.run("app", {}, {"clients": 1}, 9, state="pending")
    with tempfile.TemporaryDirectory() as parent:
        folder = maker.write(Path(parent))
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def use_file(
    maker: StudyMaker, run: tuple[str, str], node: str, kind: str, path: str, sha256: str
) -> None:
    """Add a row of `environment`."""
    names = ("run_id", "attempt", "node", "kind", "path", "sha256")
    maker.rows["environment"].append(
        dict(zip(names, (*run, node, kind, path, sha256), strict=True))
    )
