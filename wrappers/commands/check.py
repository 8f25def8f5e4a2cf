"""Before anything is submitted: what a study costs, what is missing for it on this cluster, and
which difference it would detect. Nothing is written, nothing is submitted.

Times and joules are those of earlier runs of the same benchmarks: of this study's own database,
and of others named by --earlier. Exit code 3 if `submit` would refuse it.

  steelyard check study.toml
  steelyard check study.toml --earlier trial.study --node-power 350
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import options

if TYPE_CHECKING:
    from steelyard.analysis.summary.earlier_runs import EarlierRuns
    from steelyard.wrappers.submit.cost_estimate import Cost, ScaleCost
    from steelyard.wrappers.submit.statistical_power import DetectableDifference
    from steelyard.wrappers.submit.study_preview import StudyPreview


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard check`."""
    add = parser.add_argument
    add("study", metavar="STUDY.toml", type=Path, help="the study file")
    add("--scheduler", metavar="NAME", help="as in `steelyard submit`")
    add("--dir", type=Path, metavar="DIR", help="as in `steelyard submit`")
    add(
        "--session", metavar="NAME", nargs="?", const=options.TODAY, help="as in `steelyard submit`"
    )
    add(
        "--earlier",
        metavar="STUDY",
        action="append",
        default=[],
        help="a collected study with runs to estimate times, joules and spreads from (repeatable)",
    )
    add(
        "--node-power",
        metavar="WATTS",
        type=float,
        help="watts of a busy node, used where no earlier run has joules",
    )
    add("--json", action="store_true", help="print everything as JSON")


def main(args: argparse.Namespace) -> int:
    """Check the study and print the result. Exit code 3 if `submit` would reject it."""
    from steelyard.analysis.summary import earlier_runs
    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.schedulers import registry
    from steelyard.wrappers.study import folder as studydir
    from steelyard.wrappers.study import sessions
    from steelyard.wrappers.study import study as study_study
    from steelyard.wrappers.submit import each_node_levels, statistical_power, study_preview, submit

    if args.node_power is not None and not 0 < args.node_power < float("inf"):
        raise errors.UsageError(f"--node-power {args.node_power:g}: allowed is watts above 0")
    study, path = study_study.load_with_folder(
        args.study, args.dir, sessions.session_name(args.session)
    )
    folder = studydir.StudyDir(path.absolute())
    scheduler = submit.prepare_scheduler(
        study, folder, args.scheduler or registry.detect_scheduler(), dry=True
    )
    study = each_node_levels.draw_nodes(study, folder, scheduler, "check")
    found = study_preview.make_preview(study, folder, scheduler)
    earlier = earlier_runs.read_earlier_runs(
        [*sessions.list_history_folders(folder.path), *map(studydir.resolve_study, args.earlier)]
    )
    cost = found.estimate_cost(earlier, args.node_power)
    sights = statistical_power.find_detectable_differences(study, found.runs, earlier)
    if args.json:
        console.print_json(as_json(found, cost, sights, earlier))
    else:
        print_all(found, cost, sights, earlier)
    return errors.MISSING if any(one.sure for one in found.problems) else errors.DONE


def as_json(
    found: StudyPreview, cost: Cost, sights: list[DetectableDifference], earlier: EarlierRuns
) -> dict[str, Any]:
    """Return the document of --json."""
    from dataclasses import asdict

    from steelyard.analysis.stats.planning import POWER
    from steelyard.wrappers.submit import statistical_power, study_preview

    return {
        "format": "steelyard-check",
        "version": 1,
        "study": found.study.name,
        "scheduler": found.scheduler.name,
        "runs": len(found.runs),
        "to_submit": len(found.missing),
        "submissions": len(found.batches),
        "cost": asdict(cost),
        "max_core_hours": found.study.max_core_hours,
        "earlier_studies": list(earlier.studies),
        "power": POWER,
        "comparisons": statistical_power.count_comparisons(found.study, found.runs, earlier),
        "level": statistical_power.significance_level(found.study, found.runs, earlier),
        "sights": [asdict(one) for one in sights],
        "kernels": found.kernels,
        "notes": list(study_preview.list_notes(found.study)),
        "problems": [asdict(one) for one in found.problems],
    }


def print_all(
    found: StudyPreview, cost: Cost, sights: list[DetectableDifference], earlier: EarlierRuns
) -> None:
    """Print everything for the terminal."""
    from steelyard.wrappers.submit import study_preview

    print_cost(found, cost, earlier.studies)
    print()
    print_detectable(found, sights, earlier)
    for note in study_preview.list_notes(found.study):
        print(f"note: {note}")
    for problem in found.problems:
        print(f"{'missing' if problem.sure else 'warning'}: {problem.text}")
    sure = sum(one.sure for one in found.problems)
    if sure:
        print(f"{sure} thing{'s are' if sure > 1 else ' is'} missing: `steelyard submit` refuses")
    elif not found.missing:
        print("nothing is to be submitted: all runs are done, waiting, running or failed")
    elif found.scheduler.is_absent:
        print(
            "nothing found against it here, where no cluster answers: check it where it does, too"
        )
    else:
        print("no problem was found: `steelyard submit` submits it")


def print_cost(found: StudyPreview, cost: Cost, studies: tuple[str, ...]) -> None:
    """Print jobs, core-hours, joules and time."""
    from steelyard.analysis.stats.number_format import format_quantity
    from steelyard.wrappers.base import console

    study = found.study
    conditions = len({run.condition_label for run in found.runs})
    variants = len({run.variant for run in found.runs})
    several = variants > 1
    what = f"{counted(variants, 'variant')}, " if several else ""
    what += counted(conditions, "condition")
    each = "variant and condition" if several else "condition"
    jobs = f"{len(found.missing)} of {len(found.runs)} are to be submitted"
    if not found.scheduler.runs_here:
        jobs += f", as {len(found.batches)} submissions"
    limit = "" if study.max_core_hours is None else f"; max_core_hours = {study.max_core_hours:g}"
    used = f"; {cost.core_hours_used:.3g} used already" if cost.core_hours_used else ""
    energy = None if cost.energy_j is None else format_quantity(cost.energy_j, "J")
    end = (
        None
        if cost.end_s is None
        else f"{console.format_seconds(cost.end_s)} {describe_basis(found, cost)}"
    )
    print_row("study", f"{study.name}, on {found.scheduler.name}: {what}")
    print_row("runs", f"{study.repeat} of each {each}, in {counted(study.blocks, 'block')}: {jobs}")
    print_row(
        "core-hours",
        (format_number(cost.core_hours) or missing_reason(cost, "core_hours")) + used + limit,
    )
    at_most = format_number(cost.core_hours_at_most)
    allowed = None if at_most is None else f"{at_most} core-hours are possible by the time limit"
    print_row("at most", allowed or missing_reason(cost, "core_hours_at_most"))
    for scale in cost.scales:
        print_row("", format_scale(scale))
    print_row("energy", energy or missing_reason(cost, "energy_j"))
    print_row("to the end", end or missing_reason(cost, "end_s"))
    if cost.scales and cost.known_nodes:
        print_row("nodes", format_nodes(cost))
    if found.kernels:
        listed = (f"{release}: {', '.join(nodes)}" for release, nodes in found.kernels.items())
        print_row("kernels", "; ".join(listed))
    if studies:
        by_basis = ", ".join(f"{count} by {basis}" for basis, count in cost.earlier.items())
        print_row("judged by", f"earlier runs of {', '.join(studies)}: {by_basis}")
    if "expected_s" in cost.missing:
        print_row("not known", cost.missing["expected_s"])


def format_scale(scale: ScaleCost) -> str:
    """Return, for example, `nodes=4: 20 runs, 1.6 core-hours, at most 13.3 core-hours`, without
    unknown values."""
    levels = " ".join(f"{name}={level}" for name, level in scale.levels.items())
    expected, most = format_number(scale.core_hours), format_number(scale.core_hours_at_most)
    sizes = [
        f"{counted(scale.runs, 'run')}",
        *([] if expected is None else [f"{expected} core-hours"]),
        *([] if most is None else [f"at most {most} core-hours"]),
    ]
    return f"{levels}: {', '.join(sizes)}"


def format_nodes(cost: Cost) -> str:
    """Return, for example, `partition main: 12 nodes of up to 64 cores, 10 idle now, at most 8 a
    job`."""
    text = f"{cost.place}: {counted(cost.known_nodes or 0, 'node')}"
    text += "" if cost.node_cores is None else f" of up to {counted(cost.node_cores, 'core')}"
    text += "" if cost.idle_nodes is None else f", {cost.idle_nodes} idle now"
    return text + ("" if cost.most_nodes is None else f", at most {cost.most_nodes} a job")


def print_row(name: str, text: str) -> None:
    """Print a line."""
    print(f"{name:<11} {text}")


def missing_reason(cost: Cost, name: str) -> str:
    """Return the text in place of a figure; a shared reason is printed once, below."""
    reason = cost.missing.get(name, "?")
    return "not known" if reason == cost.missing.get("expected_s") else f"not known: {reason}"


def describe_basis(found: StudyPreview, cost: Cost) -> str:
    """Return the nodes that the estimate of the end time assumes."""
    from steelyard.wrappers.base import console

    if found.scheduler.runs_here:
        return "on this machine"
    if cost.idle_nodes is None:
        return "on nodes of which nothing is known here"
    text = f"on the {counted(cost.idle_nodes, 'node')} that {inflect(cost.idle_nodes, 'is', 'are')} idle now"
    if cost.end_all_s is not None and cost.known_nodes != cost.idle_nodes:
        text += f"; {console.format_seconds(cost.end_all_s)} when all {cost.known_nodes} are free"
    return text


def format_number(value: float | None) -> str | None:
    """Format with three significant digits."""
    return None if value is None else f"{value:.3g}"


def format_percent(share: float) -> str:
    """Format with two significant digits."""
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.0f} %"


def print_detectable(
    found: StudyPreview, sights: list[DetectableDifference], earlier: EarlierRuns
) -> None:
    """Print which differences are detectable."""
    from steelyard.wrappers.base import console
    from steelyard.wrappers.submit import statistical_power

    level = statistical_power.significance_level(found.study, found.runs, earlier)
    count = statistical_power.count_comparisons(found.study, found.runs, earlier)
    if not count:
        print("nothing is compared: the study has one condition of each variant")
        return
    rows = [
        (
            one.variant if one.figure is None else f"{one.variant} · {one.figure}",
            format_percent(one.spread),
            f"{one.runs}, {one.near}" if one.runs else "a guess",
            "none" if one.seen is None else format_percent(one.seen),
            *(n if n is not None else "–" for n in one.repeats_for.values()),
        )
        for one in sights
    ]
    console.print_table(
        ("figure", "spread", "from runs", f"seen with {found.study.repeat}",
         *(f"runs for {share}" for share in sights[0].repeats_for)),
        rows,
        title="Differences that are seen in 4 studies of 5",
    )  # fmt: skip
    together = "one comparison" if count == 1 else f"all {count} comparisons together"
    print(
        f"spread: standard deviation inside a condition over its mean. Two-sided t test as in the "
        f"report, at {level * 100:.2g} %:\n5 % for {together}. Runs are per "
        "condition.\n"
        if found.study.stop is None
        else f"Two-sided t test at {level * 100:.2g} %: 4 % for {together}.\n"
    )
