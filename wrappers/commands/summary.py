"""Means of every condition from the study's Parquet files, on DuckDB or on Spark.

For studies that are too large for one machine: the report reads the database, this reads `parquet/`
with the engine you name. DuckDB is always there; Spark is the extra `spark` (pip install
'steelyard[spark]'), and docs/collect.md has a batch script that starts it on the nodes of a job.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from steelyard.wrappers.base import console, errors, options
from steelyard.wrappers.study import folder as studydir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard summary`."""
    options.add_study(parser, optional=True)
    options.add_engine(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Compute the means and print them."""
    folder = studydir.resolve_study(args.study)
    from steelyard.analysis.summary import parquet_summary

    lines = parquet_summary.summarize(folder, args.engine, args.master)
    if args.json:
        console.print_json([asdict(line) for line in lines])
        return errors.DONE
    for line in lines:
        low, high = line.low, line.high
        interval = "" if low is None or high is None else f" ({low:.6g} … {high:.6g})"
        if line.reason:
            interval = " (no interval)"
        print(
            f"{line.variant} · {line.condition} · {line.metric}: {line.mean:.6g}{interval}, "
            f"median {line.median:.6g}, n = {line.n}"
        )
    if any(line.reason for line in lines):
        print(f"no interval: {parquet_summary.SHARED}")
    return errors.DONE
