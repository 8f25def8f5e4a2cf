"""`make demo`: a study through a throwaway Slurm cluster, end to end, by the commands a user types.

Everything goes to demo/: the study's folder, named by the time, and report.html. The cluster is
ended whatever happens, on Ctrl-C and SIGTERM too.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType

from steelyard.wrappers.base import errors
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.config import ClusterConfig
from steelyard.wrappers.commands import cli

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "jobscripts" / "demo.toml"


def main() -> int:
    """Run the demo; the exit code of the first command that failed, else 0."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    begin = time.monotonic()
    try:
        code = _demo(ROOT / "demo")
    except KeyboardInterrupt:
        print("\ndemo: interrupted; the cluster has been ended", file=sys.stderr)
        return errors.INTERRUPTED
    except errors.EXPECTED as error:
        print(f"demo: {error}", file=sys.stderr)
        return errors.exit_code(error)
    print(f"demo: {time.monotonic() - begin:.0f} s; what it started has been ended")
    return code


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _demo(folder: Path) -> int:
    plugin, node_program = cluster.find_plugin()
    work = folder / f"{datetime.now().astimezone():%Y-%m-%dT%H-%M-%S}"
    work.mkdir(parents=True)
    study = work / "demo.toml"
    shutil.copyfile(STUDY, study)
    report = folder / "report.html"
    config = ClusterConfig(
        dir=ROOT / "build" / "demo-cluster",
        plugin=plugin,
        node_program=node_program,
        sample_rate_hz=10,  # runs of a second: enough points for a curve
    )
    with _running(config):
        return _commands(
            ["submit", str(study)],
            ["status", str(study), "--watch"],
            ["collect", str(study)],
            ["report", str(study), "-o", str(report), "--figures", str(folder / "figures")],
        )


@contextmanager
def _running(config: ClusterConfig) -> Iterator[None]:
    """The cluster, with this process led to it; ended afterwards."""
    begin = time.monotonic()
    print(f"$ steelyard cluster up --dir {_short(str(config.dir))}", flush=True)
    with cluster.up(config) as slurm:
        print(f"four nodes idle after {time.monotonic() - begin:.1f} s\n", flush=True)
        os.environ.update(slurm.variables())
        try:
            yield
        finally:
            # A second Ctrl-C must not leave daemons behind.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("$ steelyard cluster down", flush=True)


def _commands(*commands: list[str]) -> int:
    """Show and run each command; failed runs are part of a study, any other failure ends it."""
    worst = errors.DONE
    for command in commands:
        print("$ steelyard " + " ".join(_short(word) for word in command), flush=True)
        code = cli.main(command)
        print(flush=True)
        if code not in (errors.DONE, errors.RUNS_FAILED):
            return code
        worst = max(worst, code)
    return worst


def _short(word: str) -> str:
    """A path as seen from here, as a person would type it."""
    return os.path.relpath(word) if word.startswith("/") else word


if __name__ == "__main__":
    sys.exit(main())
