"""A run as plan.json has it, for commands that need nothing else of a study."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis.sources.study_files import PlannedRun

if TYPE_CHECKING:
    from steelyard.wrappers.launchers.launcher_grammar import Launcher
    from steelyard.wrappers.study.job_settings import Job


class Run(PlannedRun):
    """A run of a plan, with what its condition requires of its start."""

    @property
    def condition_id(self) -> str:
        """Return the run's id without its repeat."""
        return self.run_id.rpartition("-")[0]

    @property
    def clients(self) -> int:
        """Return how many instances of the benchmark run in parallel, each on its own node. A
        benchmark that uses the whole job counts as one, even if it has its own clients."""
        return int(self.condition.get("clients", 1)) if is_node_local(self.benchmark) else 1

    def resolve_job(self, job: Job) -> Job:
        """Return [job] for this run: with the levels of its condition, and a node for each
        client."""
        own = job.apply_levels(self.condition)
        return replace(own, nodes=max(own.nodes, self.clients))

    @property
    def launcher(self) -> Launcher:
        """Return the launcher in which each client runs."""
        from steelyard.wrappers.launchers import launcher_grammar

        return launcher_grammar.launcher_of_levels(self.condition)


@functools.cache
def is_node_local(benchmark: str) -> bool:
    """Return whether each client of the benchmark works on its own node only."""
    from steelyard.jobscripts import registry  # `status` reads 10,000 runs without a benchmark

    return registry.load(benchmark).span == "node"
