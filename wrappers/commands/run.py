"""Weigh a command on this machine, no scheduler needed: seconds, joules, bytes, CPU, memory.

With --repeat 1 the command has the terminal for itself, as under time(1). With more, each run
writes to files, so that all run alike: what the first one said is shown when it has ended, and
what a failed one said on stderr. Failed runs are told, and kept out of the figures; exit code 5.
Intervals are Student's, 95 %.

With --netem or --cache=cold (root; on a cluster any user says the same to sbatch or qsub) every
run is preceded by what was asked for, the network is put back when the run ends or is killed, and
what was measured is shown. What cannot be applied is exit code 4, and nothing is run; a run that was
not under the conditions asked for is told and kept out of the figures like a failed one.

With --in the command runs in a container (docs/launchers.md): unshare, docker:IMAGE, podman:IMAGE
and others, with options as in unshare,cpus=2,memory=1GiB; this folder is there inside, under its
own name. `elapsed` is the command's own time with and without, from just before it is started to its
end as waited for; `start` is how long its container took to be ready. CPU and bytes are the
command's, too; memory and energy are of the whole run. Of docker memory is left out: its containers
are no children of ours.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.wrappers.launchers.launcher import Launcher
    from steelyard.wrappers.netem.program import Conditions
    from steelyard.wrappers.run.benchmark import Chosen
    from steelyard.wrappers.run.run import Summary, Weighed

MIN_RATE_HZ, MAX_RATE_HZ = 0.001, 1000.0


def positive(text: str) -> int:
    """A count for argparse."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, found '{text}'")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `steelyard run`."""
    parser.usage = (
        "steelyard run [OPTIONS] -- COMMAND [ARGUMENT…]\n"
        "       steelyard run [OPTIONS] --benchmark NAME [-p NAME=VALUE]…"
    )
    add = parser.add_argument
    add("--repeat", type=positive, default=1, metavar="N", help="how often to run it (1)")
    add("--tag", action="append", default=[], metavar="KEY=VALUE", help="a tag for the records")
    add("--sample-rate", metavar="HZ", help="samples per second; 0: totals only")
    add("--netem", metavar="SPEC", default="none", help="network conditions: delay=50ms (root)")
    add("--peer", metavar="HOST", help="with --netem: measure round-trip times to this host")
    add(
        "--cache",
        choices=("cold", "warm"),
        default="warm",
        help="cold: drop the caches of files before every run (root); warm: leave them alone",
    )
    add(
        "--capture",
        action="store_true",
        help="record the headers of packets beside the records (root; with -o; docs/netem.md)",
    )
    add(
        "--in",
        dest="launcher",
        default="bare",
        metavar="LAUNCHER",
        help="run it in a container: unshare, docker:IMAGE, … (docs/launchers.md)",
    )
    add("--json", action="store_true", help="figures as JSON; the command's stdout goes to stderr")
    add("-o", "--output", type=Path, metavar="DIR", help="keep records, samples and outputs there")
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
    add("command", nargs="*", metavar="COMMAND", help="the command and its arguments, after --")


def main(args: argparse.Namespace) -> int:
    """Weigh and print."""
    from dataclasses import replace

    from steelyard.wrappers.base import errors
    from steelyard.wrappers.launchers import launcher as launchers
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.run import benchmark as run_benchmark
    from steelyard.wrappers.run import left_behind, run

    launcher = checked_launcher(args.launcher)
    chosen = checked_benchmark(args, launcher)
    options = run.Options(
        command=tuple(args.command),
        repeat=args.repeat,
        sample_rate_hz=checked_rate(args.sample_rate),
        tags=checked_tags(args.tag),
        quiet=args.json,
        conditions=checked_conditions(args),
        run_dir=netem.run_dir(),
        capture=checked_capture(args),
        device=device_of(args.netem),
        launcher=launcher if chosen is None else launchers.BARE,
    )
    with left_behind.folder() as temporary:
        folder = temporary if args.output is None else args.output.absolute()
        options = replace(options, scratch=temporary)  # swept with it, should all be killed
        if chosen is not None:
            runs = run_benchmark.weigh_all(chosen, options, folder)
        else:
            runs = run.weigh_all(options, folder)
    found = run.summaries(runs)
    if chosen is not None:
        found = run_benchmark.summaries(chosen, runs) + found
    show(args, runs, found)
    return errors.DONE if all(entry.counts for entry in runs) else errors.RUNS_FAILED


def checked_benchmark(args: argparse.Namespace, launcher: Launcher) -> Chosen | None:
    """The benchmark that was asked for; None: a command was."""
    from steelyard.wrappers.base.errors import UsageError
    from steelyard.wrappers.run import benchmark as run_benchmark

    if (args.benchmark is None) == (not args.command):
        raise UsageError("give a command after --, or --benchmark NAME, and not both")
    if args.benchmark is None:
        if args.parameter:
            raise UsageError(f"-p {args.parameter[0]}: goes with --benchmark", part="-p")
        return None
    return run_benchmark.choose(args.benchmark, args.parameter, launcher)


def checked_conditions(args: argparse.Namespace) -> Conditions:
    """What was asked for, of the right form, and possible here as far as that can be told now."""
    from steelyard.wrappers.base.errors import UsageError
    from steelyard.wrappers.netem import program as netem

    if args.netem != netem.NONE:
        netem.parse(args.netem)
    elif args.peer is not None:
        raise UsageError("--peer: goes with --netem=SPEC, whose round-trip times are measured")
    peer = None if args.peer is None else netem.address_of(args.peer)
    wanted = netem.Conditions(args.netem, args.cache, peer)
    netem.check_here(wanted)
    return wanted


def checked_launcher(text: str) -> Launcher:
    """A launcher that this machine has, and this user may use."""
    from steelyard.wrappers.base.errors import UsageError
    from steelyard.wrappers.launchers import launcher as launchers
    from steelyard.wrappers.launchers import needs as launcher_checks

    try:
        launcher = launchers.parse(text)
    except UsageError as error:
        raise UsageError(f"--in: {error}", part=text) from error
    launcher_checks.check_here(launcher)
    return launcher


def checked_capture(args: argparse.Namespace) -> bool:
    """Whether packets are to be recorded."""
    from steelyard.wrappers.base.errors import UsageError
    from steelyard.wrappers.netem import program as netem

    if args.capture and args.output is None:
        raise UsageError("--capture: goes with -o DIR, where the captures stay")
    if args.capture:
        netem.need_root("--capture")
    return bool(args.capture)


def device_of(text: str) -> str | None:
    """dev= of a specification that was checked."""
    from steelyard.wrappers.netem import program as netem

    named = None if text == netem.NONE else netem.parse(text).spec.get("device")
    return None if named is None else str(named)


def checked_rate(text: str | None) -> float | None:
    """A rate that the sampler can keep: the grammar and the words of plugins/node/base/rate.c."""
    from steelyard.wrappers.base.errors import UsageError

    if text is None:
        return None
    plain = re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", text)
    rate_hz = float(text) if plain else -1.0
    if rate_hz != 0 and not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise UsageError(
            f"--sample-rate={text}: expected a rate in Hz: 0 (totals only), or {MIN_RATE_HZ:g} "
            f"to {MAX_RATE_HZ:g}",
            part=text,
        )
    return rate_hz


def checked_tags(tags: list[str]) -> tuple[str, ...]:
    """KEY=VALUE each."""
    from steelyard.wrappers.base.errors import UsageError
    from steelyard.wrappers.study.job import TAG_KEY

    for tag in tags:
        key, equals, value = tag.partition("=")
        if not (equals and TAG_KEY.fullmatch(key) and value and value.isprintable()):
            raise UsageError(f"--tag {tag}: allowed is KEY=VALUE, the key a word", part=tag)
    return tuple(tags)


def show(args: argparse.Namespace, runs: list[Weighed], found: list[Summary]) -> None:
    """Print the figures."""
    from dataclasses import asdict

    from steelyard.wrappers.base import console

    if args.json:
        console.print_json(
            {
                "command": args.command,
                "benchmark": args.benchmark,
                "repeat": args.repeat,
                "confidence": 0.95,
                "runs": [asdict(entry) for entry in runs],
                "metrics": [asdict(entry) for entry in found],
                "scopes": {"energy": "node"},
                "records": None if args.output is None else str(args.output.absolute()),
            }
        )
        return
    print_table(found)
    for entry in found if any(run.counts for run in runs) else []:
        if entry.reason is not None and entry.mean is None:
            print(f"{entry.metric}: not measured: {entry.reason}")
        elif entry.reason is not None:
            print(f"{entry.metric}: known of {entry.n} runs only: {entry.reason}")
    show_scopes(runs, found)
    if any(entry.metric == "energy" and entry.mean is not None for entry in found):
        print("energy is the whole machine's, whoever used it: let nothing else run")
    show_conditions(runs)
    show_captures(args.output, runs)
    for run in runs:
        if not run.failed and run.invalid_reason is not None:
            print(f"run {run.number} is not in the figures: {run.invalid_reason}")
        if run.failed:
            end = f"signal {run.signal}" if run.signal else f"exit code {run.exit_code}"
            print(f"run {run.number} failed ({end}): it is not in the figures")


def show_scopes(runs: list[Weighed], found: list[Summary]) -> None:
    """What else is in the figures of a run in containers."""
    whole = [one.metric for one in found if one.mean is not None and one.scope != "command"]
    if whole:
        print(f"{', '.join(whole)}: of the whole run, the container's start and end are in it")
    count = max((run.containers for run in runs), default=1)
    if count > 1:
        print(f"elapsed: of the slowest of {count} containers; cpu, memory, bytes: sums over them")


def show_conditions(runs: list[Weighed]) -> None:
    """What was asked, applied and measured; of several runs in a line each."""
    from steelyard.wrappers.netem import words as netem_words

    held = [run for run in runs if run.network_conditions is not None]
    for run in held[:1]:
        print("network conditions" + (f" of run {run.number}" if len(runs) > 1 else ""))
        print("\n".join(f"  {line}" for line in netem_words.summary(run.network_conditions or {})))
    for run in held[1:]:
        trips = netem_words.round_trips(run.network_conditions or {})
        print(f"  run {run.number}: " + (trips or "round trips were not measured"))


def show_captures(folder: Path | None, runs: list[Weighed]) -> None:
    """Where the packets are, or why there are none."""
    from steelyard.wrappers.base import console

    for run in runs:
        if run.capture is not None and folder is not None:
            (path,) = folder.glob(f"run-{run.number:03}/*/{run.capture['file']}")
            size = console.format_bytes(path.stat().st_size)
            full = ", which is full: the end is not in it" if run.capture.get("truncated") else ""
            print(f"packets of run {run.number}: {path} ({size}){full}")


def print_table(found: list[Summary]) -> None:
    """The metrics that were measured."""
    from steelyard.wrappers.base import console

    rows = []
    for entry in found:
        if entry.mean is None:
            continue
        text = {
            key: formatted(value, entry.unit)
            for key, value in (("low", entry.low), ("high", entry.high))
        }
        interval = None if entry.low is None else f"{text['low']} … {text['high']}"
        numbers = [formatted(value, entry.unit) for value in (entry.mean, entry.min, entry.max)]
        rows.append((entry.metric, numbers[0], interval, *numbers[1:], entry.n))
    if rows:
        console.print_table(("metric", "mean", "95 % interval", "min", "max", "n"), rows)


def formatted(value: float | None, unit: str) -> str:
    """A value as people read it."""
    from steelyard.analysis.stats import readable
    from steelyard.wrappers.base import console

    if unit == "s":
        return console.format_seconds(value)
    if unit == "bytes":
        return console.format_bytes(value)
    if value is None:
        return "–"
    factor, name = readable.scale(value, unit)
    return f"{value / factor:.4g} {name}".removesuffix(" 1")
