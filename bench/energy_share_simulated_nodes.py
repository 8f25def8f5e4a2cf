"""Simulated nodes that jobs share: their power, the sampler's readings, and each job's joules.

The model is more detailed than the method under test (docs/energy.md has the sources): waking the
package, turbo, two threads per core, memory, leakage, other programs' instruction mixes, the
system's own work. Such power is not a sum of the programs', so that a job's true energy needs a
definition. It is its Shapley value (Shapley 1953; for power: Jiang et al., IEEE TPDS 28, 2017): the
mean of what it adds to the node over all orders in which the programs could start. These values of
all programs sum to the node's energy above idle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Chance = np.random.Generator
Values = NDArray[np.float64]

STEP_S = 0.1
TICK_S = 0.01  # of /proc/stat
RAPL_J = 61e-6  # 2^-14 J, Intel SDM volume 3, MSR_RAPL_POWER_UNIT


@dataclass(frozen=True)
class Node:
    """The parameters of its power; watts, shares of 1."""

    cores: int
    idle_w: float
    wake_w: float  # of the package, if any program runs
    core_w: float  # of a core that runs a program of intensity 1 while all cores are busy
    turbo: float  # additional share if only one core is busy
    second: float  # power of a core's second thread, as a share of its first one's
    leakage: float  # additional share when it is hot


def draw_node(chance: Chance) -> Node:
    cores = int(chance.choice([8, 16, 32, 48, 64, 96, 128]))
    core_w = chance.uniform(2, 8)
    most_w = cores * core_w
    return Node(
        cores=cores,
        idle_w=most_w * chance.uniform(0.15, 0.6),
        wake_w=most_w * chance.uniform(0.0, 0.10),
        core_w=core_w,
        turbo=chance.uniform(0.0, 0.6),
        second=chance.uniform(0.1, 0.5),
        leakage=chance.uniform(0.0, 0.1),
    )


@dataclass(frozen=True)
class Mix:
    """The programs on a node; arrays of [program, step], the system's own work last."""

    node: Node
    busy: Values  # CPUs in use
    intensity: Values  # power of a CPU second, relative to the node's usual one


def draw_mix(chance: Chance, steps: int, spread: float = 1.0) -> Mix:
    """Draw a mix; `spread` is the exponent that widens the programs' intensities."""
    node = draw_node(chance)
    jobs = int(chance.integers(2, 6))
    room = chance.dirichlet(np.ones(jobs)) * chance.uniform(0.3, 1.0)
    busy = np.empty((jobs + 1, steps))
    intensity = np.empty((jobs + 1, steps))
    for place in range(jobs):
        cores = max(1.0, math.floor(room[place] * node.cores))
        paired = chance.random() < 0.25  # uses both threads of its cores
        busy[place] = cores * activity(chance, steps) * (2 if paired else 1)
        intensity[place] = mixture(chance, steps) * ((1 + node.second) / 2 if paired else 1)
    busy[-1] = node.cores * chance.uniform(0.0, 0.01) * chance.uniform(0.2, 1.8, steps)
    intensity[-1] = chance.uniform(0.6, 1.4)
    return Mix(node, busy, intensity**spread)


def activity(chance: Chance, steps: int) -> Values:
    """Draw how much of its CPUs a job uses: constant, in phases, in bursts, or temporarily."""
    kind = chance.integers(4)
    if kind == 0:
        return np.full(steps, chance.uniform(0.7, 1.0))
    if kind == 1:  # compute and communicate in turn
        period = chance.uniform(0.3, 10) / STEP_S
        on = (np.arange(steps) / period + chance.random()) % 1 < chance.uniform(0.3, 0.9)
        return np.where(on, 1.0, chance.uniform(0.0, 0.3))
    if kind == 2:
        return chance.beta(0.5, 0.5, steps)
    begin, end = sorted(chance.integers(0, steps + 1, 2))
    here = np.zeros(steps)
    here[begin:end] = 1.0
    return here


def mixture(chance: Chance, steps: int) -> Values:
    """Draw the power of a job's CPU seconds, which varies by phases.

    It ranges from waiting loops and pointer chasing to vector units and memory bandwidth, like
    published workloads (docs/energy.md).
    """
    usual = math.exp(chance.uniform(math.log(0.6), math.log(1.6)))
    phases = np.exp(0.15 * chance.standard_normal(1 + steps // 20))
    return usual * np.repeat(phases, 20)[:steps]


def power_w(mix: Mix, taking_part: NDArray[np.bool_]) -> Values:
    """Return the power above idle in W, of each step, if only these programs ran."""
    node = mix.node
    busy = mix.busy[taking_part]
    total = busy.sum(0)
    boost = 1 + node.turbo * (1 - np.minimum(1, total / node.cores))
    cores_w = node.core_w * (busy * mix.intensity[taking_part]).sum(0) * boost
    hot = 1 + node.leakage * np.minimum(1, cores_w / (node.cores * node.core_w))
    return node.wake_w * (1 - np.exp(-total)) + cores_w * hot


def true_shares(mix: Mix) -> tuple[Values, Values]:
    """Return the node's energy above idle, [step], and each program's Shapley value of it.

    The latter is an array of [program, step].
    """
    programs = len(mix.busy)
    sets = [np.array([n >> p & 1 for p in range(programs)], bool) for n in range(1 << programs)]
    worth = [power_w(mix, taking_part) for taking_part in sets]
    shares = np.zeros_like(mix.busy)
    for number, taking_part in enumerate(sets):
        size = int(taking_part.sum())
        for program in np.flatnonzero(~taking_part):
            weight = 1 / (programs * math.comb(programs - 1, size))
            shares[program] += weight * (worth[number | 1 << int(program)] - worth[number])
    return worth[-1], shares
