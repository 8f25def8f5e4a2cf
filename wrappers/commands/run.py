"""Measure commands on this machine, without a scheduler: seconds, joules, bytes, CPU, memory.

A program with its arguments is one command. Command lines in quotes are one command each, and are
compared. A line goes through a shell only where it needs one, and the output says so.

One run alone uses the terminal, as under time(1). With several runs the output goes to files, so
that all runs are alike: you see what the first run of a single command printed, and what a failed
run printed on stderr. Their stdin is empty, or the file of --input. Runs of several commands are
interleaved, so that what drifts on the machine affects all alike. Intervals are of 95 %.

The first failed run ends the measurement, and its exit code is returned (128 + the signal's
number); with -i the other runs follow and the exit code is 5. After Ctrl-C (130) and failures the
results so far are printed.

--netem and --cache=cold need root (on a cluster any user passes them to sbatch or qsub). The
conditions are applied before every run, measured, and undone when the run ends or is killed. What
cannot be applied is exit code 4, and nothing runs. A run that was not under the requested
conditions is named and left out of the results.

With --in the command runs in a container (docs/launchers.md): unshare, docker:IMAGE, podman:IMAGE
and others, with options as in unshare,cpus=2,memory=1GiB. The current folder exists inside under
the same name. `elapsed` is the time of the command alone, with and without a container; `start` is
the time until its container was ready. CPU and bytes are of the command; memory and energy are of
the whole run. With docker there is no memory: the daemon starts the containers, so they are not
children of this program."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.wrappers.launchers.launcher_grammar import Launcher
    from steelyard.wrappers.run.benchmark import Chosen
    from steelyard.wrappers.run.measurement import Options
    from steelyard.wrappers.run.results import RunResults
    from steelyard.wrappers.run.run import RunRequest
    from steelyard.wrappers.run.run_plan import Plan


def parse_positive(text: str) -> int:
    """Parse a whole number from 1 for argparse."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, found '{text}'")
    return int(text)


def parse_count(text: str) -> int:
    """Parse a whole number from 0 for argparse."""
    return 0 if text == "0" else parse_positive(text)


def parse_seconds(text: str) -> float:
    """Parse a time for argparse: 90, 90s, 10min; return seconds."""
    found = re.fullmatch(r"(\d+\.?\d*)(s|min|h)?", text)
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError(
            f"expected seconds, or as in 90s, 10min, 1h; found '{text}'"
        )
    return float(found[1]) * {"min": 60, "h": 3600}.get(found[2], 1)


def add_arguments(parser: argparse.ArgumentParser, again: bool = False) -> None:
    """Add the options of `steelyard run`; `again`: among command lines, for
    parse_intermixed_args()."""
    parser.usage = (
        "steelyard run [OPTIONS] [--] COMMAND [ARGUMENT…]\n"
        "       steelyard run [OPTIONS] 'COMMAND LINE' 'COMMAND LINE'…\n"
        "       steelyard run [OPTIONS] --benchmark NAME [-p NAME=VALUE]…"
    )
    add_commands(parser)
    add_repeats(parser.add_argument_group("how often, and in which order"))
    add_hooks(
        parser.add_argument_group("around the runs (lines for sh; {NAME} of -L in them, too)")
    )
    add_conditions(parser.add_argument_group("under which conditions"))
    add_output(parser.add_argument_group("what comes out"))
    parser.add_argument(
        "command",
        nargs="*" if again else argparse.REMAINDER,
        metavar="COMMAND",
        help="a program and its arguments, or command lines in quotes",
    )


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the options that select what is measured."""
    add = parser.add_argument
    add(
        "-c",
        "--command-line",
        action="append",
        default=[],
        metavar="LINE",
        help="a command line to measure; repeatable",
    )
    add(
        "-L",
        "--list",
        action="append",
        default=[],
        metavar="NAME=A,B,…",
        help="measure it with each value in the place of {NAME}; several: all combinations",
    )
    add(
        "--shell",
        metavar="SHELL",
        default="sh",
        help="for lines that need one (sh); none: no line may",
    )
    add(
        "--benchmark",
        metavar="NAME",
        help="a benchmark instead of a command, with its own figures (steelyard list)",
    )
    add(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="with --benchmark: a parameter of it; repeatable",
    )


def add_repeats(group: argparse._ArgumentGroup) -> None:
    """Add the options for the number of runs."""
    add = group.add_argument
    add(
        "--repeat",
        type=parse_positive,
        metavar="N",
        help="runs of each command (1; of several commands 10)",
    )
    add(
        "--warmup",
        type=parse_count,
        default=0,
        metavar="N",
        help="runs of each beforehand that do not count (default: 0)",
    )
    add(
        "--until",
        metavar="PERCENT",
        help="repeat until the 95%% interval of elapsed reaches at most so far to each side, as in 2%%; from 15 runs on",
    )
    add(
        "--max-repeat",
        type=parse_positive,
        metavar="N",
        help="with --until: no more runs of each than these (1000)",
    )
    add(
        "--max-time",
        type=parse_seconds,
        metavar="TIME",
        help="with --until: no run begins later (10min)",
    )
    add(
        "--order",
        choices=("rounds", "blocks"),
        help="of several commands. rounds: each once in every round, in random order (default); blocks: all runs of one, then the next's (with --setup)",
    )
    add(
        "-i",
        "--ignore-failure",
        action="store_true",
        help="go on when a run fails; it is kept out of the figures",
    )


def add_hooks(group: argparse._ArgumentGroup) -> None:
    """Add the hooks around runs."""
    when = {
        "setup": "once before a command's first run; of several commands all runs of one are then done before the next's (--order=blocks)",
        "prepare": "before every run",
        "conclude": "after every run",
        "cleanup": "once after a command's last run, also after Ctrl-C",
    }
    for name, text in when.items():
        group.add_argument(f"--{name}", action="append", default=[], metavar="LINE", help=text)


def add_conditions(group: argparse._ArgumentGroup) -> None:
    """Add the options for network, caches and containers."""
    add = group.add_argument
    add("--netem", metavar="SPEC", default="none", help="network conditions: delay=50ms (root)")
    add("--peer", metavar="HOST", help="with --netem: measure round-trip times to this host")
    add(
        "--cache",
        choices=("cold", "warm"),
        default="warm",
        help="cold: drop the caches of files before every run (root); warm: leave them alone",
    )
    add(
        "--in",
        dest="launcher",
        default="bare",
        metavar="LAUNCHER",
        help="run it in a container: unshare, docker:IMAGE, … (docs/launchers.md)",
    )
    add("--sample-rate", metavar="HZ", help="samples per second; 0: totals only")
    add(
        "--no-bpf",
        dest="bpf",
        action="store_false",
        help="count what the command uses by samples alone (default: as root the kernel counts it, where it can)",
    )
    add("--tag", action="append", default=[], metavar="KEY=VALUE", help="a tag for the records")
    add(
        "--input",
        metavar="FILE",
        help="stdin of every run; else one run alone has the terminal's, and several an empty one",
    )


def add_output(group: argparse._ArgumentGroup) -> None:
    """Add the options for the results."""
    add = group.add_argument
    add(
        "--export",
        action="append",
        default=[],
        metavar="FILE",
        help="figures as a file, FILE.csv, .json or .md; csv, json, md alone: on stdout instead of tables; repeatable",
    )
    add("--json", action="store_true", help="figures as JSON; the command's stdout goes to stderr")
    add("-o", "--output", type=Path, metavar="DIR", help="keep records, samples and outputs there")


def main(args: argparse.Namespace) -> int:
    """Measure and print."""
    from steelyard.wrappers.run import results

    words = take_command_words(args)
    exports = [
        results.parse_export(text) for text in (*args.export, *(["json"] if args.json else []))
    ]
    printed = [kind for kind, path in exports if path is None]
    if len(printed) > 1:
        raise usage_error(f"--export {printed[1]}: {printed[0]} is on stdout already: name a file")
    found = make_request(args, words, quiet=bool(printed)).run(args.output)
    for kind, path in exports:
        results.write_export(found, kind, path)
    if printed:
        results.print_end(found, sys.stderr)
    else:
        results.print_results(found)
    return exit_code(found)


def usage_error(text: str, quoted: str = "") -> Exception:
    """Return a UsageError; its import is late so that help stays fast."""
    from steelyard.wrappers.base.errors import UsageError

    return UsageError(text, quoted)


def exit_code(found: RunResults) -> int:
    """Return the exit code of how the session ended, else of its runs."""
    from steelyard.wrappers.base import errors

    if found.course.ended is not None:
        return found.course.ended.exit_code
    is_complete = all(run.counts for one in found.commands for run in one.runs)
    return errors.DONE if is_complete else errors.RUNS_FAILED


def take_command_words(args: argparse.Namespace) -> list[str]:
    """Return the words of commands; after quoted lines, our own options may follow, which are
    parsed."""
    from steelyard.wrappers.run import run_plan

    command: list[str] = args.command
    if command[:1] == ["--"]:
        return command[1:]
    if not command or not run_plan.has_command_lines(command):
        return command
    parser = argparse.ArgumentParser(prog="steelyard run", add_help=False)
    add_arguments(parser, again=True)
    parser.parse_intermixed_args(command, args)
    return list(args.command)


def make_request(args: argparse.Namespace, command: list[str], quiet: bool) -> RunRequest:
    """Return the checked request."""
    from steelyard.wrappers.run import option_checks, run_plan
    from steelyard.wrappers.run.run import RunRequest

    launcher = option_checks.read_launcher(args.launcher, args.netem)
    chosen = read_benchmark(args, command, launcher)
    made = run_plan.read_commands(command, args)
    plan = run_plan.read_plan(args, made)
    options = make_options(args, launcher, quiet, plan, len(made))
    return RunRequest(
        [one for _, one in made], run_plan.read_hooks(args, made), plan, options, chosen
    )


def make_options(
    args: argparse.Namespace, launcher: Launcher, quiet: bool, plan: Plan, commands: int
) -> Options:
    """Return the options of each run."""
    from steelyard.wrappers.launchers.launcher_grammar import BARE
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.run import option_checks
    from steelyard.wrappers.run.measurement import Options

    found = Options(
        command=(),
        is_alone=commands == 1 and plan.is_one_run,
        shows_first=commands == 1,
        sample_rate_hz=option_checks.read_rate(args.sample_rate),
        bpf=args.bpf,
        tags=option_checks.read_tags(args.tag),
        quiet=quiet,
        conditions=option_checks.read_conditions(args),
        run_dir=netem.choose_run_dir(),
        launcher=BARE if args.benchmark else launcher,
    )
    return replace(
        found, input=option_checks.read_input(args.input, args.benchmark, found.to_files)
    )


def read_benchmark(
    args: argparse.Namespace, command: list[str], launcher: Launcher
) -> Chosen | None:
    """Return the requested benchmark; None if a command is requested. Raises UsageError for both or
    none."""
    from steelyard.wrappers.run import benchmark as run_benchmark

    if (args.benchmark is None) == (not command and not args.command_line):
        raise usage_error("give a command, or --benchmark NAME, and not both")
    if args.benchmark is None:
        if args.parameter:
            raise usage_error(f"-p {args.parameter[0]}: goes with --benchmark", quoted="-p")
        return None
    if args.list:
        raise usage_error(
            f"-L {args.list[0]}: goes with commands, not with --benchmark", quoted="-L"
        )
    return run_benchmark.choose_benchmark(args.benchmark, args.parameter, launcher)
