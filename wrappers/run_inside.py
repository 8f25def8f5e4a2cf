"""`steelyard run --in LAUNCHER`: the command as a run of its own, in a container.

Everything is done by the job scripts' own library, as in a study: the container is started before
the measured time, `containers=N` are N clients that start together.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts import registry, runscript
from steelyard.wrappers import launchers
from steelyard.wrappers.launchers import Launcher

RUN_ID = "run"
ATTEMPT = "local.1"
# Figures of the job's own processes, which a daemon's children are not.
OF_PROCESSES = ("cpu", "memory", "read calls", "write calls", "from storage", "to storage")


@dataclass(frozen=True)
class Inside:
    """What the run left: seconds of the slowest client, exit codes, and what the clients noted."""

    elapsed_s: float | None
    exit_codes: tuple[int | None, ...]
    tags: Mapping[str, str]  # of the first client

    @property
    def exit_code(self) -> int | None:
        """The first that is not 0; None where a client left none."""
        return next((code for code in self.exit_codes if code != 0), 0)

    def not_weighed(self) -> dict[str, str]:
        """Why figures of the record are not the command's, by their names."""
        if self.tags.get("launcher_weighed") == "yes":
            return {}
        why = "the container's processes are not the job's, but children of another daemon"
        return dict.fromkeys(OF_PROCESSES, why)


def prepare(launcher: Launcher, command: Sequence[str], folder: Path) -> list[str]:
    """Make the run's script below `folder`; the command line that executes it."""
    here = str(Path.cwd())
    body = f"cd -- {shlex.quote(here)} || return\n    {shlex.join(command)} </dev/null"
    benchmark = registry.Benchmark(
        name="command",
        summary="a command",
        parameters={},
        results={},
        needs=(),
        template=f"sy_client() {{\n    {body}\n}}",
    )
    script = folder / "runs" / RUN_ID / "run.sh"
    script.parent.mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib" / "steelyard.sh").write_text(registry.library(), encoding="utf-8")
    fixed = {"SY_SCHEDULER": "local", "SY_ATTEMPT": ATTEMPT, "SY_LAUNCHER_FOLDER": here}
    text = runscript.render(
        benchmark,
        {},
        study_dir=folder,
        run_id=RUN_ID,
        clients=launcher.containers,
        environment=fixed | launchers.variables(launcher),
    )
    script.write_text(text, encoding="utf-8")
    return ["/bin/bash", str(script)]


def gather(folder: Path, place: Path) -> None:
    """Append what the clients wrote to `out` and `err` of `place`, in their order."""
    for stream in ("out", "err"):
        found = (folder / "runs" / RUN_ID / ATTEMPT).glob(f"{stream}.[0-9]*")
        with (place / stream).open("ab") as whole:
            for path in sorted(found, key=lambda path: int(path.suffix[1:])):
                whole.write(path.read_bytes())


def read(folder: Path) -> Inside:
    """How it ended."""
    attempt = folder / "runs" / RUN_ID / ATTEMPT
    result = json.loads((attempt / "result.json").read_bytes())
    codes = tuple(result["exit_codes"]) or (None,)
    return Inside(result["elapsed_s"], codes, tags(attempt / "tags.0"))


def tags(path: Path) -> dict[str, str]:
    """KEY=VALUE lines; none where there is no file."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)
