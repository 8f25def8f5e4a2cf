"""Merge a study's accounting, records, samples and output into one database.

Run it at any time and as often as you like: it adds what is new and duplicates nothing. Of a study
with sessions it collects every session that may still change; NAME@SESSION collects one.

With --cluster it collects the jobs of all users of a cluster, without a study, for `steelyard top`.
That is for an administrator or a service user, from cron (docs/cluster.md).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import console, errors, options
from steelyard.wrappers.commands import collect_cluster, gap_list
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.submit import output_pattern_updates

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.analysis.collect.collect import Collected
    from steelyard.analysis.collect.record_import import Gap
    from steelyard.analysis.sources.study_sessions import Session

# Descriptions of each kind of gap, and what to do about it.
KINDS = {
    "accounting": (
        "the accounting did not answer, or could not be read completely",
        "collect again when it answers",
    ),
    "job": (
        "jobs unknown to the scheduler",
        "submit again to add the missing runs",
    ),
    "result": ("attempts without a usable result.json", "look at the job's output in their folder"),
    "output": (
        "outputs that could not be parsed",
        "look at out.* and err.* in the run's folder",
    ),
    "figure": (
        "figures of the study whose pattern did not match",
        "correct the pattern in the study file and collect again; the saved output is re-read",
    ),
    "record": (
        "nodes without a record of the job",
        "check the plugin on the node (steelyard doctor) and the record folder (--record-dir)",
    ),
    "incomplete_record": ("incomplete records", "fields that they lack are left out of the means"),
    "clock": (
        "nodes whose clock was set while a job ran",
        "counters and elapsed_s are right; check chrony or ntpd on the node",
    ),
    "record_version": ("records of a newer version", "update this Steelyard"),
    "samples": (
        "sample files that are missing, thinned by a sweep or have lines left out",
        "totals are not affected",
    ),
    "cut_samples": (
        "truncated sample files",
        "all lines but the last were read",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard collect`."""
    options.add_study(parser, optional=True)
    options.add_record_dir(parser)
    collect_cluster.add_arguments(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Collect, then print what was collected and what is missing."""
    if args.cluster is not None:
        return collect_cluster.main(args)
    if args.since is not None:
        raise errors.UsageError("--since needs --cluster; of a study all jobs are collected")
    from steelyard.analysis.base.process_tuning import collect_garbage_rarely

    collect_garbage_rarely()
    if sessions := studydir.find_sessions(args.study):
        return collect_sessions(sessions, args)
    done = collect_study(studydir.resolve_study(args.study), args.study, args.record_dir)
    if args.json:
        console.print_json(as_json(done))
    else:
        print_summary(done)
    return errors.DONE


def collect_study(
    study_dir: Path, given: str | None, record_dirs: Sequence[Path] | None
) -> Collected:
    """Collect one study or session, with the current figures of its study file."""
    from steelyard.analysis.collect.collect import collect

    for note in output_pattern_updates.update_plan(study_dir, given):
        print(f"steelyard collect: note: {note}", file=sys.stderr)
    with console.progress_bar() as progress:
        return collect(study_dir, record_dirs=record_dirs, progress=progress)


def collect_sessions(sessions: Sequence[Session], args: argparse.Namespace) -> int:
    """Collect every session that is not complete; one that fails does not prevent the others. Exit
    code 3 if any fails."""
    from steelyard.analysis.sources.study_sessions import format_label
    from steelyard.wrappers.submit.collected_sessions import SettledSessions

    settled = SettledSessions(sessions)
    documents, failed = [], {}
    for session in settled.list_unsettled():
        label = format_label(session.folder)
        try:
            done = collect_study(session.folder, None, args.record_dir)
        except errors.SteelyardError as error:
            failed[label] = str(error)
            print(f"steelyard collect: {label}: {error}", file=sys.stderr)
            continue
        settled.record(session.folder, done.states, {gap.kind for gap in done.gaps})
        documents.append({"session": session.name, **as_json(done)})
        if not args.json:
            print(f"{label}: {format_states(done)}")
            print_gaps(done.gaps)
    unchanged = len(sessions) - len(documents) - len(failed)
    if args.json:
        console.print_json({"sessions": documents, "unchanged": unchanged, "failed": failed})
    else:
        print(
            f"{len(documents)} of {counted(len(sessions), 'session')} collected, {unchanged} {inflect(unchanged, 'is', 'are')} settled"
        )
        last = format_label(sessions[-1].folder)
        print(f"next: steelyard report {last}, steelyard history {last.rpartition('@')[0]}")
    return errors.MISSING if failed else errors.DONE


def as_json(done: Collected) -> dict[str, object]:
    """Return the document of --json."""
    return {
        "study_dir": str(done.study_dir),
        "database": str(done.database),
        "runs": dict(done.states),
        "attempts": done.attempts,
        "records": done.records,
        "new_sample_files": done.sample_files,
        "notes": done.notes,
        "elapsed_s": done.elapsed_s,
        "gaps": [asdict(gap) for gap in done.gaps],
    }


def print_summary(done: Collected) -> None:
    """Print the runs by state, then what is missing, then the next command."""
    print(format_states(done))
    print(
        f"{counted(done.attempts, 'attempt')}, {counted(done.records, 'record')}, {counted(done.sample_files, 'new file')} of "
        f"samples, in {console.format_seconds(done.elapsed_s)}"
    )
    if done.notes:
        print(
            f"{counted(done.notes, 'line')} of the outputs {inflect(done.notes, 'was', 'were')} ignored; no figure depends on them (table `notes`)"
        )
    print_gaps(done.gaps)
    print(f"{done.database}\nnext: steelyard report {done.study_dir}")


def format_states(done: Collected) -> str:
    """Return, for example, `24 runs: 23 completed, 1 failed`."""
    states = ", ".join(f"{count} {state}" for state, count in sorted(done.states.items()))
    return f"{counted(sum(done.states.values()), 'run')}: {states or 'none planned'}"


def print_gaps(gaps: Sequence[Gap]) -> None:
    """Print each kind of gap once with its number and what to do, then its reasons."""
    if gaps:
        print("missing:")
    found = (
        (gap.kind, " ".join(filter(None, (gap.run_id, gap.attempt))), gap.reason) for gap in gaps
    )
    for line in gap_list.format_kinds(found, KINDS, "  "):
        print(line)
