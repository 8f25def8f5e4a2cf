"""One `steelyard run` from its request to its results: measures every command with its own options
and folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.wrappers.base import leftovers, programs
from steelyard.wrappers.run import benchmark as run_benchmark
from steelyard.wrappers.run import comparisons, measurement, progress, run_plan
from steelyard.wrappers.run.benchmark import Chosen
from steelyard.wrappers.run.measurement import Measurement, Options
from steelyard.wrappers.run.measurement_rounds import Session
from steelyard.wrappers.run.results import CommandResults, RunResults
from steelyard.wrappers.run.run_plan import Command, Hooks, Plan


@dataclass(frozen=True)
class RunRequest:
    """The whole request; a benchmark is one command without hooks."""

    commands: Sequence[Command]
    hooks: Sequence[Hooks]
    plan: Plan
    options: Options  # without the command
    chosen: Chosen | None = None

    def run(self, output: Path | None) -> RunResults:
        """Measure all commands. `output` is the folder for the records; None removes them
        afterwards."""
        program = str(programs.find_node_program())
        if self.chosen is None and self.options.launcher.has_our_programs:
            for command in self.commands:
                run_plan.check_on_this_machine(command)
        with leftovers.make_run_folder() as temporary:
            folder = temporary / "kept" if output is None else output.absolute()
            measurement.check_empty(folder)
            # removed with that folder, even after a SIGKILL
            options = replace(self.options, scratch=temporary)
            return Measurer(self, options, program, folder).run(output)

    def name_commands(self) -> list[str]:
        """Return the commands' names for sentences: their parameters alone if these identify
        them."""
        names = [
            ", ".join(f"{key}={value}" for key, value in one.parameters.items())
            for one in self.commands
        ]
        alone = len(set(names)) == len(names) and all(names)
        return names if alone else [one.text for one in self.commands]


class Measurer:
    """Measures runs one after another, and shows their output."""

    def __init__(self, task: RunRequest, options: Options, program: str, folder: Path) -> None:
        self.task, self.program, self.folder = task, program, folder
        self.executed = 0
        if task.chosen is not None:
            options = run_benchmark.write_script(task.chosen, options, folder)
        self.options = [self.command_options(options, one) for one in task.commands]

    def command_options(self, options: Options, command: Command) -> Options:
        """Return the options of one command: its arguments, and its parameters as tags."""
        if self.task.chosen is not None:
            return options
        tags = [f"{k}={v}" for k, v in command.parameters.items() if v and v.isprintable()]
        return replace(options, command=command.argv, tags=(*options.tags, *tags))

    def record_folder(self, index: int) -> Path:
        """Return the folder of a command's records."""
        several = len(self.task.commands) > 1
        return self.folder / f"command-{index + 1}" if several else self.folder

    def run(self, output: Path | None) -> RunResults:
        """Execute all runs and summarize them."""
        task, load = self.task, os.getloadavg()[0]
        names = {one.shell for one in task.commands if one.shell is not None}
        bare = task.options.launcher.is_bare
        costs = {
            name: cost
            for name in sorted(names)
            if bare and (cost := measurement.measure_shell(name))
        }
        with progress.show_progress(task.name_commands(), task.plan) as bars:
            self.bars = bars
            course = Session(task.commands, task.hooks, task.plan, self.measure, bars.update).run()
        found = [
            self.summarize_command(index, runs, output) for index, runs in enumerate(course.runs)
        ]
        name = None if task.chosen is None else task.chosen.benchmark.name
        return RunResults(found, task.plan, course, costs, name, output, task.name_commands(), load)

    def measure(self, index: int, number: int, warm_up: bool) -> Measurement:
        """Measure one run; the records of warm-ups are removed."""
        options, folder = self.options[index], self.record_folder(index)
        if warm_up:
            folder = (options.scratch or folder) / f"warm-up-{index + 1}"
            options = replace(options, shows_first=False)
        with self.bars.show_running(index, f"{'warm-up' if warm_up else 'run'} {number}"):
            measured = measurement.measure(options, self.program, folder, number)
        self.executed += 1
        if self.task.chosen is not None:
            measured = run_benchmark.add_figures(
                self.task.chosen, self.folder, measured, self.executed
            )
        if measurement.has_output(options, measured):
            with self.bars.pause():
                measurement.show_output(options, folder, measured)
        return measured

    def summarize_command(
        self, index: int, runs: Sequence[Measurement], output: Path | None
    ) -> CommandResults:
        """Return the figures and notes of one command."""
        confidence = self.task.plan.confidence
        metrics = measurement.summarize_runs(runs, confidence)
        if self.task.chosen is not None:
            metrics = run_benchmark.summarize_figures(self.task.chosen, runs, confidence) + metrics
        notes = [
            *comparisons.list_notes(runs, self.task.plan.warm_up > 0),
            *comparisons.note_memory_sources(runs),
            *comparisons.note_unseen_usage(runs),
        ]
        folder = (
            None if output is None else output / self.record_folder(index).relative_to(self.folder)
        )
        return CommandResults(self.task.commands[index], runs, metrics, notes, folder)
