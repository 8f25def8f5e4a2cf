"""Two conditions of a collected study side by side; or two jobs.

STUDY A B: what B costs against A, in sentences, and a table of means. A and B are conditions as the
report names them (clients=1); put those with blanks in quotes. A factor that you leave out has the
level of the study's baseline.

STUDY STUDY, such as nightly@2026-11-01 nightly@2026-11-14: two sessions, or two studies: what the
main figures of the second cost against those of the first, for each condition that both have. Their
runs were not interleaved: whatever changed between the two is in the difference.

JOB JOB: what differs between two jobs of the same program: conditions, node, kernel, tags,
allocation and use, and the time from which on they differ. One run of each shows no cause."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.wrappers.base import console, options
from steelyard.wrappers.base.errors import DONE, UsageError
from steelyard.wrappers.study import folder as studydir

if TYPE_CHECKING:
    from steelyard.analysis.summary.rows import Group, Row
    from steelyard.analysis.summary.summary import Judged, Summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "steelyard compare [OPTIONS] STUDY A B | STUDY STUDY | JOB JOB"
    parser.add_argument(
        "study", metavar="STUDY", help="the study file, its folder or its name; NAME@SESSION"
    )
    parser.add_argument(
        "a", metavar="A",
        help="the condition to compare with, such as clients=1; or another NAME@SESSION",
    )  # fmt: skip
    parser.add_argument(
        "b", metavar="B", nargs="?", help="the condition that is compared, such as clients=4"
    )
    options.add_equivalent(parser)
    options.add_include_invalid(parser)
    options.add_energy_shares(parser)
    options.add_record_dir(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Print the comparison."""
    if args.b is not None:
        return compare_conditions(args)
    if studydir.is_study(args.study) and studydir.is_study(args.a):
        return compare_studies(args)
    return compare_jobs(args)


def compare_jobs(args: argparse.Namespace) -> int:
    """Compare two jobs. Raises UsageError unless both words are job ids."""
    from steelyard.analysis.sources import accounting_readers

    kinds = [reader.job_ids for reader in accounting_readers.READERS.values()]
    others = [text for text in (args.study, args.a) if not any(k.fullmatch(text) for k in kinds)]
    for text in others:
        if "@" in text:
            studydir.find_study(text)  # raises UsageError with the existing sessions
    for text in others:
        if studydir.is_study(args.study):
            raise UsageError(
                f"'{args.study}' is a study, and '{args.a}' is none: expected another study or "
                "session (STUDY STUDY), or two conditions of this one (STUDY A B)",
                args.a,
            )
        raise UsageError(
            f"'{text}' is no job id: expected two job ids (4711 4712), or a study and two of "
            "its conditions (STUDY A B)",
            text,
        )
    of_studies = (args.include_invalid, args.energy_shares, args.idle_power, args.equivalent)
    if any(value not in (None, False) for value in of_studies):
        raise UsageError("two jobs take no option but --json and --record-dir", args.study)
    from steelyard.wrappers.show import job_data, job_pair

    a, b = (job_data.find_job(text, args.record_dir) for text in (args.study, args.a))
    if args.json:
        console.print_json(job_pair.as_json(a, b))
    else:
        job_pair.print_pair(a, b)
    return DONE


def compare_studies(args: argparse.Namespace) -> int:
    """Compare two sessions or studies: the main figures of the conditions that both have."""
    from steelyard.analysis.base.process_tuning import reduce_startup_cost

    reduce_startup_cost()
    from steelyard.analysis.report.terminal_text import format_paragraph
    from steelyard.analysis.summary.summary import summarize

    idle = options.idle_power_of_shares(args)
    folders = [studydir.resolve_study(text) for text in (args.study, args.a)]
    if folders[0].resolve() == folders[1].resolve():
        raise UsageError(f"'{args.study}' and '{args.a}' are the same: name two of them", args.a)
    a, b = (summarize(one, args.include_invalid, idle, args.equivalent) for one in folders)
    found = pair_studies(a, b)
    names = a.data.meta.study, b.data.meta.study
    if names[0] == names[1]:
        names = args.study, args.a
    if args.json:
        documents = [{"condition": pair[0].group.label, **row_json(*pair)} for pair in found]
        console.print_json(
            head_json(names[0].partition("@")[0], *names)
            | {"interleaved": False, "rows": documents}
        )
        return DONE
    print(f"{names[1]} (B) against {names[0]} (A):\n")
    for text in (*format_answers(b, found, names[0]), f"{format_paragraph(NOT_INTERLEAVED)}\n"):
        print(text)
    rows = [(left.group.variant, left.group.label, *format_cells(left, right, judged))
            for left, right, judged in found]  # fmt: skip
    columns = ("benchmark", "condition", "metric", f"A: {names[0]}", f"B: {names[1]}")
    console.print_table((*columns, "B against A"), rows)
    print(LEGEND)
    for one, other in ((a, names[1]), (b, names[0])):
        if lacking := list_conditions(one) - {
            (l.group.variant, l.group.label) for l, _, _ in found
        }:
            listed = ", ".join(f"{variant} {label}".strip() for variant, label in sorted(lacking))
            print(f"{one.data.meta.study} alone has, or {other} has no values of: {listed}")
    return DONE


NOT_INTERLEAVED = (
    "The runs of the two were not interleaved: whatever changed between them is in the difference, "
    "be it software, nodes or load."
)
LEGEND = (
    "n = runs of B + runs of A; ± and brackets: 95 % intervals. Differences are those that stay\n"
    "significant after Holm's correction for all main figures here, or for all other metrics."
)


def list_conditions(summary: Summary) -> set[tuple[str, str]]:
    """Return the variants and conditions of a summary."""
    return {(group.variant, group.label) for group in summary.groups}


def pair_studies(a: Summary, b: Summary) -> list[Pair]:
    """Return (row of A, row of B, B against A) of every main figure that both have. Raises
    UsageError if they share none.

    Block 1 of A is not block 1 of B: B's blocks get other numbers, so that no runs are paired by
    block."""
    from steelyard.analysis.summary.summary import judge_all

    found = []
    for right in b.rows:
        left = a.row(right.group.variant, right.group.label, right.metric.name)
        if left is not None and right.metric.is_primary and (left.values or right.values):
            runs = tuple(replace(run, block=None if run.block is None else -run.block)
                         for run in right.group.runs)  # fmt: skip
            found.append((left, replace(right, group=replace(right.group, runs=runs))))
    if not found:
        raise UsageError(
            f"{a.data.meta.study} and {b.data.meta.study} have no main figure of a benchmark and "
            "condition in common: expected two sessions of one study, or studies that share some"
        )
    judged = judge_all([(right, left) for left, right in found])
    return [(left, right, j) for (left, right), j in zip(found, judged, strict=True)]


def compare_conditions(args: argparse.Namespace) -> int:
    """Compare two conditions of a study."""
    # Imported here because scipy and duckdb would make `--help` slow.
    from steelyard.analysis.base.process_tuning import reduce_startup_cost

    reduce_startup_cost()
    from steelyard.analysis.summary.condition_parser import check_label
    from steelyard.analysis.summary.summary import summarize

    idle = options.idle_power_of_shares(args)
    folder = studydir.resolve_study(args.study)
    summary = summarize(folder, args.include_invalid, idle, args.equivalent)
    a, b = (check_label(summary, text) for text in (args.a, args.b))
    if a == b:
        raise UsageError(f"A and B are both '{a}': name two different conditions", b)
    if args.json:
        console.print_json(as_json(summary, a, b))
        return DONE
    found = pair_conditions(summary, a, b)
    for paragraph in format_answers(summary, found):
        print(paragraph)
    for variant in summary.variants:
        rows = [format_cells(*pair) for pair in found if pair[0].group.variant == variant]
        if not rows:
            print(f"{variant}: no values under either condition\n")
            continue
        console.print_table(("metric", f"A: {a}", f"B: {b}", "B against A"), rows, title=variant)
    print(LEGEND)
    return DONE


Pair = tuple["Row", "Row", "Judged"]


def pair_conditions(summary: Summary, a: str, b: str) -> list[Pair]:
    """Return (row of A, row of B, B against A) of every metric of every variant."""
    from steelyard.analysis.summary.summary import judge_all

    found = []
    for variant in summary.variants:
        for metric in summary.data.metrics.get(variant, []):
            left, right = (summary.row(variant, label, metric.name) for label in (a, b))
            if left is not None and right is not None and (left.values or right.values):
                found.append((left, right))
    judged = judge_all([(right, left) for left, right in found])
    return [(left, right, j) for (left, right), j in zip(found, judged, strict=True)]


def format_answers(summary: Summary, found: list[Pair], base: str | None = None) -> list[str]:
    """Return sentences on what B costs in the benchmarks' main figures, against condition A or,
    with `base`, the same condition of another study."""
    from steelyard.analysis.report.answer import Namer, describe_rows
    from steelyard.analysis.report.terminal_text import format_paragraph

    rows = [
        replace(
            right,
            group=replace(right.group, baseline_label=left.group.label)
            if base is None
            else name_condition(right.group),
            overhead=judged.overhead, verdict=judged.verdict, p=judged.p,
        )
        for left, right, judged in found
        if right.metric.is_primary
    ]  # fmt: skip
    return [f"{format_paragraph(text)}\n" for text in describe_rows(Namer.of(summary), rows)]


def name_condition(group: Group) -> Group:
    """Return the group with its name in a sentence that compares it with itself in another study:
    its levels, if any."""
    return replace(group, baseline_label=None, label=group.label if group.condition else "")


def format_cells(left: Row, right: Row, judged: Judged) -> tuple[str, ...]:
    from steelyard.analysis.report.phrases import format_mean_and_n

    return left.metric.name, format_mean_and_n(left), format_mean_and_n(right), judged.verdict.text


def as_json(summary: Summary, a: str, b: str) -> dict[str, Any]:
    """Return the document of --json."""
    rows = [row_json(*pair) for pair in pair_conditions(summary, a, b)]
    return head_json(summary.data.meta.study, a, b) | {"rows": rows}


def head_json(study: str, a: str, b: str) -> dict[str, Any]:
    return {"format": "steelyard-compare", "version": 1, "study": study, "a": a, "b": b}


def row_json(left: Row, right: Row, judged: Judged) -> dict[str, Any]:
    result, effect = judged.overhead, judged.effect
    return {
        "variant": left.group.variant,
        "metric": left.metric.name,
        "unit": left.metric.unit,
        "better": left.metric.better,
        "a": side_json(left),
        "b": side_json(right),
        "overhead": result and result.value,
        "overhead_low": result and result.low,
        "overhead_high": result and result.high,
        "p_holm": judged.p,
        "equivalent_within": right.margin,
        "p_equivalent": judged.p_equivalent,
        "p_non_inferior": judged.p_non_inferior,
        "effect_size": effect and effect.value,
        "verdict": judged.verdict.text,
        "meaning": judged.verdict.direction.value,
    }


def side_json(row: Row) -> dict[str, Any]:
    interval = row.interval
    return {
        "n": row.n,
        "mean": interval and interval.mean,
        "low": interval and interval.low,
        "high": interval and interval.high,
    }
