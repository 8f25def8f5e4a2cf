"""Since when is a study slower, by how much, and what changed then?

Each `steelyard submit STUDY --session` adds a session to the study. Once the sessions are
collected, this command finds the sessions at which a main figure changed its level, and prints what
else changed there: tags of nodes (kernel, governor, …), programs, and the nodes that took part. A
change at the same time is not proof of the cause."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.sources.study_sessions import SUFFIX
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import console, options
from steelyard.wrappers.base.errors import DONE, REGRESSION, UsageError, did_you_mean
from steelyard.wrappers.study import folder as studydir

if TYPE_CHECKING:
    from steelyard.analysis.history.history import FigureChange, History

FIGURE_FORMATS = ("svg", "png", "pdf")
HEADINGS = ("figure", "metric", "level now", "since", "last change", "detectable")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "study", metavar="STUDY", nargs="?",
        help="the study file, its name or its folder NAME.sessions (default: the only study here)",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on", metavar="PERCENT",
        help="exit code 6 where a figure is worse by this much, such as 3%%, and the latest sessions still "
        "show it",
    )  # fmt: skip
    parser.add_argument(
        "--since", metavar="SESSION",
        help="with --fail-on: earlier changes are accepted, only those from this session on count",
    )  # fmt: skip
    parser.add_argument(
        "--junit", metavar="FILE", type=Path,
        help="with --fail-on: also write a test case for each figure, as JUnit's XML, for GitLab, Jenkins "
        "and others",
    )  # fmt: skip
    parser.add_argument(
        "--figure", metavar="FILE", nargs="?", const="",
        help=f"also draw the figures over the sessions, as {', '.join(FIGURE_FORMATS)} by FILE's ending "
        "(default: NAME.history.svg next to NAME.sessions)",
    )  # fmt: skip
    parser.add_argument(
        "--narrow", action="store_true",
        help="with --figure: 9.4 cm wide, for a telephone or a column of a paper, not 16.8 cm",
    )  # fmt: skip
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Print what changed; exit code 6 if a change is a regression."""
    share = None if args.fail_on is None else options.percent_of("--fail-on", args.fail_on, "3%")
    check_together(args)
    # Imported here because scipy and duckdb would make `--help` slow.
    from steelyard.analysis.base.process_tuning import reduce_startup_cost

    reduce_startup_cost()
    from steelyard.analysis.history.history import find_regressions, read_history

    history = read_history(sessions_folder(args.study))
    since = 0 if args.since is None else find_session(history, args.since)
    regressions = [] if share is None else find_regressions(history, share, since)
    if args.json:
        from steelyard.analysis.report.history_document import history_document

        console.print_json(history_document(history, regressions))
    else:
        print_history(history)
    if args.figure is not None:
        write_figure(args, history)
    if args.junit is not None:
        from steelyard.analysis.report.history_document import junit_text

        args.junit.write_text(junit_text(history, regressions), encoding="utf-8")
    if share is not None and not args.json:
        print(decide_exit(history, regressions, args.fail_on))
    return REGRESSION if regressions else DONE


def sessions_folder(text: str | None) -> Path:
    """Return NAME.sessions of a study; for None, of the only study here. Raises UsageError if it
    has no sessions."""
    study = studydir.find_study(None) if text is None else Path(text)
    folder = studydir.sessions_folder(study)
    if folder.is_dir():
        return folder
    name, at, session = study.name.partition("@")
    if at and studydir.sessions_folder(study.with_name(name)).is_dir():
        raise UsageError(f"{text}: a history is of all sessions: leave out @{session}", text)
    known = [path.stem for path in study.parent.glob(f"*{SUFFIX}")]
    raise UsageError(
        f"{text or study}: {folder} is not there{did_you_mean(study.name, known)}; expected a study with "
        "sessions; `steelyard submit STUDY.toml --session` adds one",
        text,
    )


def check_together(args: argparse.Namespace) -> None:
    """Raise UsageError for options that have no effect together."""
    for name in ("junit", "since"):
        if getattr(args, name) is not None and args.fail_on is None:
            raise UsageError(
                f"--{name} needs --fail-on PERCENT, which states how much worse is a failure", name
            )
    if args.narrow and args.figure is None:
        raise UsageError("--narrow needs --figure, which draws", "narrow")
    if args.figure and Path(args.figure).suffix[1:] not in FIGURE_FORMATS:
        raise UsageError(
            f"--figure '{args.figure}': expected a file that ends in .{', .'.join(FIGURE_FORMATS)}; put "
            "STUDY before --figure",
            args.figure,
        )


def find_session(history: History, name: str) -> int:
    """Return the index of a session. Raises UsageError, which names the last ones."""
    names = [session.name for session in history.sessions]
    if name not in names:
        raise UsageError(
            f"--since '{name}': no such session; the last ones are {', '.join(names[-5:])}", name
        )
    return names.index(name)


def print_history(history: History) -> None:
    """Print sentences, then a table of levels."""
    from steelyard.analysis.report.history_text import build_level_rows, describe_history
    from steelyard.analysis.report.terminal_text import format_paragraph

    first, last = history.sessions[0].name, history.sessions[-1].name
    print(f"{history.name}: {counted(len(history.sessions), 'session')}, {first} to {last}\n")
    for text in describe_history(history):
        print(f"{console.plain(format_paragraph(text))}\n")
    console.print_table(HEADINGS, build_level_rows(history))
    print("level now: mean of the sessions since the last change, with its 95 % interval;")
    print("detectable: a change of this size is found within five sessions, 9 times in 10")


def write_figure(args: argparse.Namespace, history: History) -> None:
    """Draw the history to one file."""
    from steelyard.analysis.figures.drawing import save
    from steelyard.analysis.figures.history import draw_history

    file = Path(args.figure or history.folder.with_name(f"{history.name}.history.svg"))
    found = draw_history(history, args.narrow)
    if found is None:
        raise UsageError(
            f"no session of {history.name} has a value of a main figure: nothing to draw"
        )
    save(replace(found, name=file.stem), file.parent, (file.suffix[1:],))
    if not args.json:
        print(f"\nfigure: {file}")


def decide_exit(history: History, regressions: Sequence[FigureChange], text: str) -> str:
    """Return the line that answers --fail-on."""
    if not regressions:
        return f"\n--fail-on {text}: passed, no figure is worse by that much"
    from steelyard.analysis.report.history_text import format_figure_name

    names = ", ".join(format_figure_name(history, one.series) for one in regressions)
    return f"\n--fail-on {text}: FAILED, worse: {names}"
