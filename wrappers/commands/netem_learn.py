"""steelyard netem learn: a delay table from measured round-trip times."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import stdev
from typing import TYPE_CHECKING

from steelyard.wrappers.base import console, errors, options
from steelyard.wrappers.netem import delay_table, round_trips

if TYPE_CHECKING:
    from steelyard.wrappers.netem.round_trips import RoundTrips

NODES_FOLDER = "/etc/steelyard/netem"  # plugins/node/netem/kernel/delay_table.h
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}", re.ASCII)  # spec.c, parse_table()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of learn."""
    parser.description = (
        "Make a delay table of round-trip times that were measured, so that a condition can have "
        "their distribution. SOURCE is a capture of packets (.pcap, .pcapng, .cap; needs tshark), "
        "or a job whose record has a capture or samples with round-trip times."
    )
    parser.add_argument("source", metavar="SOURCE", help="FILE.pcap, or a job's id")
    text = "the table's name, and of the file NAME.dist: letters, digits, _ and -"
    parser.add_argument("--name", metavar="NAME", default="learnt", help=f"{text} (learnt)")
    parser.add_argument("--peer", metavar="ADDRESS", help="only round trips to this host")
    options.add_record_dir(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Read, write NAME.dist here, say how to use it."""
    if not NAME.fullmatch(args.name):
        raise errors.UsageError(
            f"--name {args.name}: expected at most 31 letters, digits, _ and -, not first - or _"
        )
    measured = find(args)
    table = delay_table.learn(measured.seconds)
    file = Path(f"{args.name}.dist")
    file.write_text(table.text([f"steelyard netem learn {args.source}", measured.what]), "utf-8")
    if args.json:
        console.print_json(as_json(measured, table, file))
    else:
        print("\n".join(told(measured, table, file)))
    return errors.DONE


def find(args: argparse.Namespace) -> RoundTrips:
    """Of a capture, or of a job's record."""
    if round_trips.is_capture(args.source):
        return round_trips.of_capture(Path(args.source), args.peer)
    if "/" in args.source:
        raise errors.UsageError(
            f"{args.source}: expected FILE.pcap, FILE.pcapng, FILE.cap or a job's id", args.source
        )
    return of_job(args)


def of_job(args: argparse.Namespace) -> RoundTrips:
    """The captures of its nodes, else their samples."""
    from steelyard.wrappers.show import find as jobs

    nodes = jobs.one(args.source, args.record_dir).nodes
    captures = [path for n in nodes if (path := n.record.beside("capture.file")) and path.is_file()]
    samples = [path for n in nodes if (path := n.record.samples_path) and path.is_file()]
    found = [round_trips.of_capture(path, args.peer) for path in captures]
    if not found and not args.peer:
        found = [round_trips.of_samples(path) for path in samples]
    if not any(one.seconds for one in found):
        raise errors.UsageError(
            f"job {args.source} has no round-trip times: they come from --capture, or from samples "
            "of a job whose TCP connections last (without --peer)", args.source
        )  # fmt: skip
    return round_trips.RoundTrips(
        [second for one in found for second in one.seconds],
        "; ".join(one.what for one in found if one.seconds),
    )


def specification(table: delay_table.DelayTable, name: str) -> str:
    """What is asked for with it."""
    return f"delay={table.delay_us}us~{table.jitter_us}us/table:{name}"


def told(measured: RoundTrips, table: delay_table.DelayTable, file: Path) -> Iterator[str]:
    """For people."""
    ordered = sorted(measured.seconds)
    yield (
        f"{len(ordered)} round-trip times ({measured.what}): {ordered[0] * 1e3:.3f} to "
        f"{ordered[-1] * 1e3:.3f} ms, mean {table.delay_us / 1e3:.3f} ms, standard deviation "
        f"{stdev(ordered) * 1e3:.3f} ms"
    )
    yield "quantile   measured ms   of the table ms"
    for share in delay_table.SHARES:
        pair = (delay_table.quantile(ordered, share), table.delay_s(share))
        yield f"{share:7.0%}  {pair[0] * 1e3:12.3f}  {pair[1] * 1e3:15.3f}"
    if table.cut:
        yield f"{table.cut:.2%} of them lie more than 4 × {table.jitter_us / 1e3:.3f} ms from the mean: cut there"
    yield f"wrote {file}. Root, once on each node:"
    yield f"  install -D -m 644 {file} {NODES_FOLDER}/{file}"
    yield f"Then ask for: --netem={specification(table, file.stem)}"


def as_json(measured: RoundTrips, table: delay_table.DelayTable, file: Path) -> dict[str, object]:
    """For programs; times in seconds."""
    ordered = sorted(measured.seconds)
    return {
        "file": str(file),
        "netem": specification(table, file.stem),
        "of": measured.what,
        "round_trips": len(ordered),
        "mean_s": table.delay_us / 1e6,
        "sd_s": stdev(ordered),
        "jitter_s": table.jitter_us / 1e6,
        "cut": table.cut,
        "quantiles": [
            {"share": share, "measured_s": delay_table.quantile(ordered, share),
             "table_s": table.delay_s(share)}
            for share in delay_table.SHARES
        ],
    }  # fmt: skip
