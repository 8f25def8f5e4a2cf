"""Traits that benchmarks state (jobscripts/NAME/benchmark.toml): no other module names one."""

from __future__ import annotations

import functools

from steelyard.jobscripts.errors import UnknownBenchmarkError
from steelyard.jobscripts.registry import Benchmark, load


@functools.cache
def find_description(name: str) -> Benchmark | None:
    """Return a benchmark's description; None: this version does not have the benchmark."""
    try:
        return load(name)
    except UnknownBenchmarkError:
        return None


def finds_own_figures(variant: str) -> bool:
    """Whether the study itself defines the figures; a variant begins with its benchmark."""
    benchmark = find_description(variant.split()[0])
    return benchmark is not None and benchmark.finds_own_figures


def elapsed_figures(variant: str) -> frozenset[str]:
    """Return the figures of a benchmark that are the time of a complete run, like `elapsed_s`."""
    benchmark = find_description(variant.split()[0])
    results = {} if benchmark is None else benchmark.results
    return frozenset(name for name, spec in results.items() if spec.is_elapsed)


def is_elapsed_figure(variant: str, metric: str) -> bool:
    """Whether a figure is the time of a complete run.

    The study's own figures precede such figures.
    """
    return metric in elapsed_figures(variant)


def has_time_order(name: str) -> bool:
    """Whether a run's iterations follow each other in time."""
    benchmark = find_description(name)
    return benchmark is None or benchmark.iterations == "time"


def is_program_tag(key: str) -> bool:
    """Whether a tag describes a benchmark's program, or its use of the processor."""
    benchmark = find_description(key.partition(".")[0])
    return benchmark is not None and key in benchmark.program_tags
