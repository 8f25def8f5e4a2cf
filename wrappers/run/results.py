"""The results of `steelyard run`, for the terminal and for exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.wrappers.run import comparisons as run_comparisons
from steelyard.wrappers.run import shell_overhead
from steelyard.wrappers.run.comparisons import Comparison
from steelyard.wrappers.run.measured_command import Command
from steelyard.wrappers.run.measurement import Measurement, Summary
from steelyard.wrappers.run.measurement_rounds import Course
from steelyard.wrappers.run.run_plan import Plan


@dataclass(frozen=True)
class CommandResults:
    """One command: its runs, its figures, and notes on them."""

    command: Command
    runs: Sequence[Measurement]
    metrics: Sequence[Summary]
    notes: Sequence[str]
    folder: Path | None  # with its records; None: they were removed

    @property
    def elapsed(self) -> Summary:
        """The summary of the elapsed time, which every command has."""
        return next(one for one in self.metrics if one.metric == run_comparisons.METRIC)


@dataclass(frozen=True)
class RunResults:
    """The results of all commands."""

    commands: Sequence[CommandResults]
    plan: Plan
    course: Course
    shells: Mapping[str, shell_overhead.Cost] = field(default_factory=dict)
    benchmark: str | None = None
    records: Path | None = None
    names: Sequence[str] = ()
    load_average: float = 0.0  # over a minute, before the first run

    @property
    def comparisons(self) -> list[Comparison]:
        """Comparisons with the fastest command; empty for a single command."""
        runs = [one.runs for one in self.commands]
        best = run_comparisons.find_fastest(runs)
        if best is None:
            return []
        return run_comparisons.compare_commands(
            runs, best, self.plan.interleaved, self.plan.confidence
        )

    def as_json(self) -> dict[str, object]:
        """Return the document of docs/formats.md part 12."""
        ended = self.course.ended
        return {
            "format": "steelyard-measured",
            "version": 1,
            "benchmark": self.benchmark,
            "confidence": CONFIDENCE,
            "plan": asdict(self.plan),
            "order": self.course.order,
            "load_average": self.load_average,
            "ended_early": None if ended is None else ended.text,
            "commands": [self.command_json(one) for one in self.commands],
            "comparisons": [asdict(one) for one in self.comparisons],
            "scopes": {"energy": "node"},
            "records": None if self.records is None else str(self.records.absolute()),
        }

    def command_json(self, one: CommandResults) -> dict[str, object]:
        """Return one entry of `commands`."""
        cost = self.shells.get(one.command.shell or "")
        return {
            "command": one.command.text,
            "argv": one.command.argv,
            "parameters": one.command.parameters,
            "shell": one.command.shell,
            "shell_s": None if cost is None else cost.mean_s,
            "runs": [asdict(entry) for entry in one.runs],
            "metrics": [asdict(entry) for entry in one.metrics],
            "notes": list(one.notes),
        }
