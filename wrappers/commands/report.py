"""One file with the answer, tables and figures of a collected study; it opens offline.

Prints the overheads in words. Collect again and report again at any time. `--preset jungels2012`
reports the published measurements that come with Steelyard instead of a study; `--beside ruiz2015`
sets a study beside a paper: its claims with a verdict for this study, its numbers beside ours;
several studies of that paper are judged together, and the page is the first one's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import console, options
from steelyard.wrappers.base.errors import DONE, UsageError
from steelyard.wrappers.study import folder as studydir

if TYPE_CHECKING:
    from steelyard.analysis.findings.finding import Finding
    from steelyard.analysis.papers.jungels2012.measurements_report import ThesisReport
    from steelyard.analysis.papers.report import ComparisonReport
    from steelyard.analysis.summary.summary import Summary

FORMATS = ("svg", "pdf", "png", "csv")
EXPORTS = ("csv", "parquet", "json", "latex")
PRESETS = ("jungels2012",)
PAPERS = ("bourilkov2012", "jungels2012", "kommeri2016", "ruiz2015")
REPORT = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_study(parser, several=True)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path,
        help="the report's file (default: NAME.html next to the study's folder NAME.study)",
    )  # fmt: skip
    parser.add_argument(
        "--figures", metavar="DIR", nargs="?", const="",
        help="also write each figure to separate files, in DIR (default: NAME.figures/ next to the report, "
        "or figures/ next to a FILE of -o)",
    )  # fmt: skip
    parser.add_argument(
        "--format", metavar="LIST",
        help=f"formats of --figures, comma-separated: {', '.join(FORMATS)} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--export", metavar="LIST",
        help=f"also write all tables in these formats, comma-separated: {', '.join(EXPORTS)}; to NAME.tables/ "
        "next to the report, or tables/ next to a FILE of -o",
    )  # fmt: skip
    parser.add_argument(
        "--preset", choices=PRESETS,
        help="report published measurements: jungels2012, a thesis on virtual nodes",
    )  # fmt: skip
    parser.add_argument(
        "--beside", choices=PAPERS, metavar="PAPER",
        help="compare one study or several with a paper: a verdict on each of its claims, its printed "
        f"numbers next to yours, the shapes of its figures: {', '.join(PAPERS)}",
    )  # fmt: skip
    options.add_equivalent(parser)
    options.add_tolerate(parser)
    options.add_include_invalid(parser)
    options.add_energy_shares(parser)
    parser.add_argument(
        "--json", action="store_true",
        help="print all numbers as JSON instead; writes no file (`--export json` does)",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Write the report and print its sentences."""
    check_together(args)
    formats = (
        parse_choices("--format", args.format, FORMATS) if args.format is not None else FORMATS
    )
    exports = () if args.export is None else parse_choices("--export", args.export, EXPORTS)
    # Imported here because scipy and duckdb would make `--help` slow.
    from steelyard.analysis.base.process_tuning import reduce_startup_cost

    reduce_startup_cost()
    if args.preset:
        return report_preset(args, formats, exports)
    from steelyard.analysis.report.export import document
    from steelyard.analysis.summary.summary import summarize

    folders = [studydir.resolve_study(one) for one in args.study or (None,)]
    idle = options.idle_power_of_shares(args)
    shares = (args.equivalent, args.tolerate)
    summaries = [summarize(one, args.include_invalid, idle, *shares) for one in folders]
    if args.beside:
        return report_with_paper(args, formats, exports, summaries, folders[0])
    (summary,) = summaries
    args.page = args.output or report_path(folders[0])
    if args.json:
        console.print_json(document(summary))
        return DONE
    return write_report(args, formats, exports, summary)


def check_together(args: argparse.Namespace) -> None:
    """Raise UsageError for options that would be ignored, or do something else than they seem
    to."""
    if args.json:
        for name in ("output", "figures", "format", "export"):
            if getattr(args, name) is not None:
                raise UsageError(
                    f"--json prints, and writes no file: leave out --{name}, or write the numbers by "
                    "--export json",
                    name,
                )
    if args.beside and args.preset:
        raise UsageError(
            f"--preset reports published data alone: leave it out, or --beside {args.beside}",
            args.preset,
        )
    if args.preset and args.tolerate is not None:
        raise UsageError(
            "--tolerate is for a study of yours: leave it out with --preset", str(args.preset)
        )
    if len(args.study) > 1 and not args.beside:
        raise UsageError(
            f"{len(args.study)} studies: a report is of one; several are judged together beside a "
            f"paper: add --beside {'|'.join(PAPERS)}, or report each by itself",
            args.study[1],
        )
    if args.format is not None and args.figures is None:
        raise UsageError("--format is of the files of --figures: add --figures", args.format)
    if args.figures and not args.study and studydir.is_study(args.figures):
        raise UsageError(
            f"--figures {args.figures}: that is a study, not a folder for figures; write `steelyard "
            f"report {args.figures} --figures`",
            args.figures,
        )
    if args.output is not None and args.output.is_dir():
        raise UsageError(
            f"-o {args.output}: that is a folder; name a file in it: {args.output / REPORT}",
            str(args.output),
        )


def report_path(folder: Path) -> Path:
    """Return the default path of a study's report, which no other study uses."""
    folder = folder if folder.name not in ("", "..") else folder.resolve()
    return folder.with_name(folder.name.removesuffix(studydir.SUFFIX) + ".html")


def choose_folder(args: argparse.Namespace, what: str) -> Path:
    """Return the folder for figures or tables; with the default report, its name begins with the
    study's."""
    page: Path = args.page
    return page.with_name(what) if args.output is not None else page.with_suffix(f".{what}")


def report_preset(
    args: argparse.Namespace, formats: tuple[str, ...], exports: tuple[str, ...]
) -> int:
    """Report published measurements instead of a study."""
    if args.study:
        raise UsageError(
            f"--preset reports published data: leave out the study '{args.study[0]}'", args.study[0]
        )
    from steelyard.analysis.papers.jungels2012.measurements_report import build_thesis_report

    report = build_thesis_report(equivalent=args.equivalent)
    if args.json:
        console.print_json(report.document())
        return DONE
    args.page = args.output or Path(f"{args.preset}.html")
    code = write_report(args, formats, exports, report.summary, report)
    print(report.describe_outcomes())
    return code


def report_with_paper(
    args: argparse.Namespace,
    formats: tuple[str, ...],
    exports: tuple[str, ...],
    summaries: Sequence[Summary],
    folder: Path,
) -> int:
    """Report studies beside a paper; the page does not replace the first study's own."""
    from steelyard.analysis.papers.report import build_comparison_report

    check_names(summaries)
    report = build_comparison_report(summaries, args.beside)
    if args.json:
        console.print_json(report.document())
        return DONE
    plain = report_path(folder)
    args.page = args.output or plain.with_name(f"{plain.stem}.{args.beside}.html")
    code = write_report(args, formats, exports, report.summary, report)
    print(f"\n{report.describe_claims()}")
    return code


def check_names(summaries: Sequence[Summary]) -> None:
    """Raise UsageError for a repeated name: the names distinguish the studies' conditions."""
    names = [one.data.meta.study for one in summaries]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise UsageError(
                f"two studies are called {name}: expected studies of different names, which distinguish their "
                "conditions apart; leave one out",
                name,
            )


def write_report(
    args: argparse.Namespace,
    formats: tuple[str, ...],
    exports: tuple[str, ...],
    summary: Summary,
    paper: ThesisReport | ComparisonReport | None = None,
) -> int:
    """Write page, figures and tables, then print the summary."""
    from steelyard.analysis.report.page import write_report
    from steelyard.analysis.report.terminal_text import format_summary

    figures = None
    if args.figures is not None:
        figures = Path(args.figures or choose_folder(args, "figures"))
    extra = paper.extra() if paper is not None else None
    paths, findings = write_report(summary, args.page, figures, formats, extra)
    print(format_summary(summary, findings))
    print(f"\nreport: {paths[0]}")
    if figures is not None:
        print(f"figures: {counted(len(paths) - 1, 'file')} in {figures}")
    if exports:
        folder = choose_folder(args, "tables")
        number = export_tables(folder, exports, summary, findings, paper)
        print(f"tables: {counted(number, 'file')} in {folder}")
    return DONE


def export_tables(
    folder: Path,
    exports: tuple[str, ...],
    summary: Summary,
    findings: list[Finding],
    paper: ThesisReport | ComparisonReport | None,
) -> int:
    """Write the tables as files; return their number."""
    from steelyard.analysis.report.export import build_study_content, export_tables

    content = build_study_content(summary, findings) if paper is None else paper.content()
    return len(export_tables(content, folder, exports))


def parse_choices(option: str, text: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Parse a list such as `svg,png`. Raises UsageError for an unknown name."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in allowed:
            raise UsageError(f"{option}: unknown '{name}', allowed: {', '.join(allowed)}", name)
    if not names:
        raise UsageError(f"{option}: expected one or more of {', '.join(allowed)}", text)
    return names
