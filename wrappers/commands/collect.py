"""Merge a study's accounting, records, samples and output into one database.

Run it at any time and as often as you like: it adds what is new and duplicates nothing. Of a study
with sessions it collects every session that may still change; NAME@SESSION collects one.

With --cluster it collects the jobs of all users of a cluster, without a study, for `steelyard top`.
That is for an administrator or a service user, from cron (docs/cluster.md).
"""

from __future__ import annotations

import argparse
import getpass
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import console, errors, options
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.submit import output_pattern_updates

if TYPE_CHECKING:
    from steelyard.analysis.cluster.collect import Collected as ClusterCollected
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
    add_cluster_arguments(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Collect, then print what was collected and what is missing."""
    if args.cluster is not None:
        return collect_cluster(args)
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
    for line in format_kinds(found, KINDS, "  "):
        print(line)


# Descriptions of each kind of gap, and what to do about it.
CLUSTER_KINDS = {
    "accounting": ("lines of sacct without a job", "they are ignored; the reason quotes them"),
    "record": ("unreadable records", "their jobs are listed without measurements"),
    "record_version": ("records of a newer version", "update this Steelyard"),
    "incomplete_record": ("incomplete records", "totals of their jobs are unknown"),
    "changed": ("records that were modified", "their first contents count, else none"),
    "touched": (
        "records that a user may have modified",
        "they count unless something contradicts them",
    ),
    "contradiction": ("jobs whose records contradict the accounting", "the accounting counts"),
    "impossible": ("jobs whose TotalCPU is more than their CPUs have", "their records count"),
    "suspended": ("jobs that were suspended", "allocated time excludes the suspension"),
    "clock": (
        "nodes whose clock was set while a job ran",
        "counters are right; check chrony or ntpd",
    ),
    "clock_off": ("records whose start time is not their job's", "check the node's clock"),
}


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --cluster and --since."""
    parser.add_argument(
        "--cluster",
        metavar="DIR",
        nargs="?",
        type=Path,
        const=options.CLUSTER_DIR,
        help=f"collect all jobs of the cluster into a database in DIR (default: {options.CLUSTER_DIR}); Slurm only",
    )
    options.add_span(
        parser, "with --cluster: jobs since then, and re-read the records of completed jobs"
    )


def collect_cluster(args: argparse.Namespace) -> int:
    """Collect, then print what was collected and what is missing."""
    from steelyard.analysis.cluster.collect import collect
    from steelyard.analysis.collect.record_import import find_default_record_dirs
    from steelyard.analysis.sources.cluster_sacct import ClusterSacct

    if args.study is not None:
        raise errors.UsageError("--cluster takes no STUDY: leave it out")
    since = None if args.since is None else options.moment(args.since, time.time())
    record_dirs = args.record_dir or find_default_record_dirs()
    with console.progress_bar() as progress:
        done = collect(
            args.cluster, ClusterSacct(), record_dirs, since_unix_s=since, progress=progress
        )
    if args.json:
        console.print_json(cluster_json(done))
    else:
        for line in format_cluster_lines(done, record_dirs):
            console.print_line(line)
    return errors.DONE


def cluster_json(done: ClusterCollected) -> dict[str, object]:
    """Return the document of --json."""
    names = (
        *("since_unix_s", "until_unix_s", "new", "changed", "unchanged", "records"),
        *("lost", "days", "jobs", "running", "elapsed_s"),
    )
    keys = ("job", "node", "kind", "reason")
    return {
        "database": str(done.folder),
        **{name: getattr(done, name) for name in names},
        "gaps": [dict(zip(keys, gap, strict=True)) for gap in done.gaps],
    }


def format_cluster_lines(done: ClusterCollected, record_dirs: list[Path]) -> Iterator[str]:
    """Yield the lines for the terminal and for cron's mail."""
    since, until = (format_local_time(at) for at in (done.since_unix_s, done.until_unix_s))
    yield (
        f"{since} to {until}: {counted(done.new, 'new job')}, {done.changed} changed, {done.unchanged} "
        f"unchanged, {counted(done.records, 'record')} read, in {console.format_seconds(done.elapsed_s)}"
    )
    if done.lost:
        yield f"{counted(done.lost, 'job')} that ran at the last collection {inflect(done.lost, 'is', 'are')} no longer in the accounting"
    for folder in record_dirs:
        if not folder.is_dir():
            yield f"{folder} does not exist: no record was read (--record-dir)"
    if os.getuid() and done.users and done.users <= {getpass.getuser()}:
        yield (
            "all of these jobs are yours: with PrivateData=jobs only an operator "
            "(sacctmgr modify user NAME set adminlevel=operator) sees those of others"
        )
    gaps = ((kind, f"job {job}", reason) for job, _, kind, reason in done.gaps)
    yield from format_kinds(gaps, CLUSTER_KINDS, "")
    yield f"{counted(done.jobs, 'job')} in {done.folder}, of them {done.running} running"
    yield f"next: steelyard top{'' if done.folder == options.CLUSTER_DIR else f' --database {done.folder}'}"


def format_local_time(unix_s: float) -> str:
    """Format date and time in the local zone."""
    return datetime.fromtimestamp(unix_s).astimezone().strftime("%Y-%m-%d %H:%M")


SHOWN = 3  # reasons of a kind, and places of a reason; --json has all
# Removed from reasons, because equal reasons differ in NODE.START.json or the path of its samples.
FILE_NAME = re.compile(r"^\S+\.(?:json|csv)(?:: | was )")


def format_kinds(
    found: Iterable[tuple[str, str, str]], kinds: Mapping[str, tuple[str, str]], indent: str
) -> Iterator[str]:
    """Yield each kind of gap once with its number and what to do, then its reasons; `found`: kind,
    place and reason of each gap, `kinds`: description and advice, in the order of the lines. A kind
    that is not among them comes last, by its own name."""
    by_kind = defaultdict(list)
    for kind, path, reason in found:
        by_kind[kind].append((path, reason))
    for kind in (*kinds, *sorted(by_kind.keys() - kinds.keys())):
        title, advice = kinds.get(kind, (kind, "look at the reasons"))
        if kind in by_kind:
            yield f"{indent}{len(by_kind[kind])} × {title}: {advice}"
            yield from format_gaps(by_kind[kind], f"{indent}  ")


def format_gaps(found: Iterable[tuple[str, str]], indent: str) -> Iterator[str]:
    """Yield lines for the gaps of one kind, each `(place, reason)`: a run with its attempt, and
    why.

    A reason of one gap is `place: reason`; that of several is `12 × reason`, with the first places
    below it."""
    by_reason = defaultdict(list)
    for path, reason in found:
        by_reason[FILE_NAME.sub("", reason)].append((path, reason))
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    for message, gaps in groups[:SHOWN]:
        if len(gaps) == 1:
            path, reason = gaps[0]
            yield f"{indent}{path}{': ' if path else ''}{reason}"
            continue
        yield f"{indent}{len(gaps)} × {message}"
        if places := list(dict.fromkeys(path for path, _ in gaps if path)):
            more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
            yield f"{indent}  {', '.join(places[:SHOWN])}{more}"
    if rest := sum(len(gaps) for _, gaps in groups[SHOWN:]):
        yield f"{indent}… and {rest} more (--json has them all)"
