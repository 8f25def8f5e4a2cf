"""The command `steelyard`: finds the sub-command's module, runs it, turns errors into exit codes."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence

from steelyard.wrappers.base import errors

# The module of each command has add_arguments(parser) and main(args) -> int; the text is its line
# of help.
COMMANDS = {
    "run": "measure a command on this machine, no scheduler needed",
    "new": "write a commented study file from five answers",
    "check": "what a study costs, what it lacks here, what it would see",
    "submit": "turn a study into jobs; run again, it adds only what is missing",
    "status": "progress of a study: done, running, waiting, failed, time left",
    "cancel": "stop a study's jobs",
    "collect": "merge accounting, records, samples and output into one database",
    "report": "tables and figures in one file that opens offline",
    "summary": "means of every condition from Parquet, on DuckDB or Spark",
    "history": "since when is it slower, and what changed then? over sessions",
    "compare": "two conditions of a study side by side, or two jobs",
    "show": "one job or several: what was requested and used, where, advice",
    "top": "who uses the cluster: joules, CPU hours, bytes, waste",
    "metrics": "the cluster's joules, CPU and bytes as counters for Prometheus",
    "join-host": "a guest's job and its host: joules, CPU, traffic",
    "publish": "fill in what Slurm's accounting has missed, from records",
    "sweep": "old records packed, older ones removed, from a folder of records",
    "image": "make the image that runs in containers need",
    "list": "the benchmarks with their parameters and results",
    "netem": "network conditions on this machine: check, apply, show, clear",
    "probe": "what this node is",
    "calibrate": "is this scale right? known loads, measured with every launch method",
    "doctor": "is everything in place, and if not, what to do",
    "cluster": "a throwaway Slurm cluster on this machine",
    "completion": "completion for bash, zsh, fish",
}
QUESTION = "What does it cost my job, in seconds and in joules?"

EXIT_CODES = """\
exit codes: 0 done · 1 a bug, with traceback · 2 wrong usage or input ·
3 something needed is missing · 4 a condition could not be applied ·
5 some runs failed · 6 a figure is worse (`history --fail-on`)"""


def format_usage() -> str:
    """Return the text of `steelyard --help`."""
    rows = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    return (
        "usage: steelyard COMMAND [OPTIONS]\n\n"
        f"{QUESTION}\n\n"
        f"commands:\n{rows}\n\n"
        "'steelyard COMMAND --help' lists a command's options, with examples.\n"
        f"{EXIT_CODES}"
    )


def open_standard_streams() -> None:
    """Open /dev/null in the place of each stream that the parent has closed.

    Else a file of ours would take its number, and what is printed would be an error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest free number
            setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code of the process."""
    open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without `±` gets `?`
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        # As a parent may have left it: no exit code of a child could be read.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        code = run_request(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has ended, which is not our error. Prevent another flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.DONE
    except KeyboardInterrupt:  # also while our own modules are imported
        return errors.INTERRUPTED
    return code


def run_request(argv: Sequence[str] | None) -> int:
    """Do what the arguments request: help, the version or a command. Return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        print(format_usage(), file=sys.stderr)
        return errors.USAGE
    name, rest = arguments[0], arguments[1:]
    if name == "help" and rest:
        return run_request([rest[0], "--help"])
    if name in ("-h", "--help", "help"):
        print(format_usage())
        return errors.DONE
    if name in ("-V", "--version"):
        from importlib import metadata  # a third of every command's start-up time

        print(f"steelyard {metadata.version('steelyard')}")
        return errors.DONE
    if name not in COMMANDS:
        hint = errors.did_you_mean(name, COMMANDS) or "; `steelyard --help` lists them"
        print(f"steelyard: unknown command '{name}'{hint}", file=sys.stderr)
        return errors.USAGE
    return run_command(name, rest)


def run_command(name: str, rest: Sequence[str]) -> int:
    """Parse the command's own options and run it; expected errors become one line."""
    from steelyard.wrappers.commands import parsers

    try:
        parser = parsers.make_parser(name, COMMANDS[name])
        module = importlib.import_module(parsers.find_module(name))
        code: int = module.main(parser.parse_args(rest))
    except errors.EXPECTED as error:
        print(f"steelyard {name}: {error}", file=sys.stderr)
        return errors.exit_code(error)
    except OSError as error:
        if error.errno not in errors.NOT_OURS:
            raise
        if error.filename is None and error.errno not in errors.FULL:
            raise
        what = os.fsdecode(error.filename or error.strerror or name)
        print(f"steelyard {name}: {what}: {errors.NOT_OURS[error.errno]}", file=sys.stderr)
        return errors.MISSING
    return code


if __name__ == "__main__":
    sys.exit(main())
