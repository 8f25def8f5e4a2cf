"""Merge a study's accounting, records, samples and output into one database.

May be run at any time and as often as you like: it takes up what is new, and duplicates nothing.

With --cluster all jobs of a cluster, whoever's they are, without any study: for the admin or a
service user, from cron (docs/cluster.md); `steelyard top` reads it.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.wrappers.base import console, errors, options
from steelyard.wrappers.commands import collect_cluster
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.submit import figure_updates

if TYPE_CHECKING:
    from steelyard.analysis.collect.merge import Collected
    from steelyard.analysis.collect.record_import import Gap

# Gaps of a kind, in words, and what to do about them.
WHAT = {
    "accounting": (
        "the accounting could not be asked, or a part of it not be read",
        "collect again when it answers",
    ),
    "job": (
        "jobs that the scheduler does not know",
        "submit again: it adds what is missing",
    ),
    "result": ("attempts without a usable result.json", "look at the job's output in their folder"),
    "output": (
        "outputs that were not understood",
        "they are kept: look at out.* and err.* in the run's folder",
    ),
    "figure": (
        "figures of the study's own that their pattern did not find",
        "mend the pattern in the study file and collect again: it is applied to the kept output",
    ),
    "record": (
        "nodes without a record of the job",
        "plugin there (steelyard doctor)? record folder readable from here (--record-dir)?",
    ),
    "incomplete_record": ("incomplete records", "what they lack stays out of the means"),
    "clock": (
        "nodes whose clock was set while a job ran",
        "what was counted and elapsed_s hold: look at chrony or ntpd there",
    ),
    "record_version": ("records of a version this Steelyard does not know", "use a newer one"),
    "samples": (
        "files of samples with lines left out, thinned by a sweep, or missing",
        "the totals are not touched",
    ),
    "cut_samples": (
        "files of samples cut short",
        "everything before their last line was read",
    ),
}
SHOWN = 3  # gaps of a kind that are told one by one; --json has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `steelyard collect`."""
    options.add_study(parser, optional=True)
    options.add_record_dir(parser)
    collect_cluster.add_arguments(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Collect, then say what there is and what is missing."""
    if args.cluster is not None:
        return collect_cluster.main(args)
    if args.since is not None:
        raise errors.UsageError("--since goes with --cluster: a study's jobs are all collected")
    study_dir = studydir.resolve(args.study)
    for note in figure_updates.update_plan(study_dir, args.study):
        print(f"steelyard collect: note: {note}", file=sys.stderr)
    from steelyard.analysis.base.process_tuning import seldom_look_for_garbage
    from steelyard.analysis.collect.merge import collect

    seldom_look_for_garbage()
    with console.progress_bar() as progress:
        done = collect(study_dir, record_dirs=args.record_dir, progress=progress)
    if args.json:
        console.print_json(as_json(done))
    else:
        print_summary(done)
    return errors.DONE


def as_json(done: Collected) -> dict[str, object]:
    """What a program wants to know."""
    return {
        "study_dir": str(done.study_dir),
        "database": str(done.database),
        "runs": dict(done.states),
        "attempts": done.attempts,
        "records": done.records,
        "new_sample_files": done.sample_files,
        "notes": done.notes,
        "elapsed_s": done.elapsed_s,
        "gaps": [
            {
                "run_id": gap.run_id,
                "attempt": gap.attempt,
                "node": gap.node,
                "what": gap.what,
                "reason": gap.reason,
            }
            for gap in done.gaps
        ],
    }


def print_summary(done: Collected) -> None:
    """Runs by state, then what is missing, then what comes next."""
    total = sum(done.states.values())
    states = ", ".join(f"{count} {state}" for state, count in sorted(done.states.items()))
    print(f"{total} runs: {states or 'none planned'}")
    print(
        f"{done.attempts} attempts, {done.records} records, {done.sample_files} new files of "
        f"samples, in {console.format_seconds(done.elapsed_s)}"
    )
    if done.notes:
        print(f"{done.notes} lines of noise in the outputs change no figure: the table `notes`")
    print_gaps(done.gaps)
    print(f"{done.database}\nnext: steelyard report {done.study_dir}")


def print_gaps(gaps: Sequence[Gap]) -> None:
    """Each kind once with its number and what to do, the first few one by one."""
    by_kind = defaultdict(list)
    for gap in gaps:
        by_kind[gap.what].append(gap)
    if by_kind:
        print("missing:")
    for what, (words, advice) in WHAT.items():
        found = by_kind.get(what, [])
        if not found:
            continue
        print(f"  {len(found)} × {words}: {advice}")
        for gap in found[:SHOWN]:
            where = " ".join(part for part in (gap.run_id, gap.attempt) if part)
            print(f"    {where}{': ' if where else ''}{gap.reason}")
        if len(found) > SHOWN:
            print(f"    … and {len(found) - SHOWN} more (--json has them all)")
