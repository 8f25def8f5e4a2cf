"""Throwaway Slurms that differ only in the plugin.

None, this checkout's, the same with `bpf=no`, an earlier one's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig

PLAIN, OURS, BEFORE, UNCOUNTED = "plain", "plugin", "before", "bpf=no"


def parser(words: str, repeat: int) -> argparse.ArgumentParser:
    """Return a parser with the options of such a benchmark."""
    found = argparse.ArgumentParser(description=words)
    found.add_argument("--repeat", type=int, default=repeat, help=f"rounds ({repeat})")
    found.add_argument(
        "--before",
        type=Path,
        default=os.environ.get("STEELYARD_BEFORE"),
        help="another checkout, built: its plugin is measured, too (or $STEELYARD_BEFORE)",
    )
    return found


def plugins(before: Path | None) -> dict[str, tuple[Path | None, Path | None]]:
    """Return the plugin and the node program of each arm."""
    found: dict[str, tuple[Path | None, Path | None]] = {PLAIN: (None, None)}
    if before is not None:
        found[BEFORE] = built(Path(before).absolute() / "build")
    return found | {OURS: cluster.find_plugin()}


def built(folder: Path) -> tuple[Path, Path]:
    """Return what a checkout has built."""
    plugin = folder / "lib" / "spank_steelyard.so"
    node_program = folder / "bin" / "steelyard-node"
    for path in (plugin, node_program):
        if not path.is_file():
            raise MissingError(f"{path} is not there: run 'make all' in that checkout")
    return plugin, node_program


@contextmanager
def up(
    folder: Path, before: Path | None, uncounted: bool = False, nodes: int = 1
) -> Iterator[dict[str, cluster.Cluster]]:
    """Start one cluster per arm, of one node, or of several with one job each at a time.

    `uncounted` adds an arm whose jobs the kernel does not count.
    """
    arms = plugins(before) | ({UNCOUNTED: cluster.find_plugin()} if uncounted else {})
    with ExitStack() as stack:
        found = {}
        for number, (name, (plugin, node_program)) in enumerate(arms.items()):
            config = ClusterConfig(
                dir=folder / str(number), physical_nodes=nodes, virtual_nodes=0,
                cpus=1 if nodes > 1 else 0,
                plugin=plugin, node_program=node_program, bpf=name != UNCOUNTED,
            )  # fmt: skip
            found[name] = stack.enter_context(cluster.start_cluster(config))
        yield found
