"""From a study to its runs: benchmarks x factor levels x repeats, in blocks, in random order.

Every block holds every condition; repeats are dealt to the blocks as evenly as possible. The order
inside a block follows a hash of the recorded seed and the run id: the same everywhere, for ever.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import PLAN_FORMAT, PLAN_VERSION, PlannedRun
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.launchers import launcher as launchers
from steelyard.wrappers.launchers.launcher import Launcher
from steelyard.wrappers.study.benchmarks import Variant, text
from steelyard.wrappers.study.factors import Level, has_meaning
from steelyard.wrappers.study.study import Study

NO_FACTORS = "no factors"


class Run(PlannedRun):
    """A run of a plan, with what its condition says about how it is started."""

    @property
    def clients(self) -> int:
        """How many instances of the benchmark run side by side, each on its node."""
        return int(self.condition.get("clients", 1))

    @property
    def launcher(self) -> Launcher:
        """Inside what each of them runs."""
        return launchers.of_condition(self.condition)


def condition_label(condition: dict[str, Level]) -> str:
    """`clients=2 node_type=virtual`."""
    return " ".join(f"{name}={text(level)}" for name, level in condition.items()) or NO_FACTORS


def identity(benchmark: str, parameters: dict[str, Level], condition: dict[str, Level]) -> str:
    """8 hex digits that stay the same as long as what is measured does."""
    canonical = json.dumps(
        {"benchmark": benchmark, "parameters": parameters, "condition": condition},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
    )
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:8]


def make_plan(study: Study) -> list[Run]:
    """All runs of a study, block after block, in the order of execution."""
    runs: list[Run] = []
    used = study.benchmarks().values()
    parameters = {name for name in study.factors if not has_meaning(name, used)}
    for variant in study.variants:
        for levels in itertools.product(*study.factors.values()):
            condition = dict(zip(study.factors, levels, strict=True))
            free = {name: level for name, level in condition.items() if name in parameters}
            runs += condition_runs(study, variant, condition, free)
    check_ids(runs)
    return in_order(runs, study.seed)


def condition_runs(
    study: Study, variant: Variant, condition: dict[str, Level], free: dict[str, Level]
) -> list[Run]:
    """The repeats of one variant under one condition; repeat r falls in block r modulo blocks.

    `free`: the levels that are parameters of the benchmark.
    """
    benchmark = variant.benchmark
    parameters = dict(benchmark.check_parameters({**dict(variant.given), **free}))
    key = f"{benchmark.name}-{identity(benchmark.name, parameters, condition)}"
    label = condition_label(condition)
    return [
        Run(
            run_id=f"{key}-{repeat:03}",
            block=(repeat - 1) % study.blocks + 1,
            position=0,
            benchmark=benchmark.name,
            parameters=parameters,
            variant=variant.label,
            condition=condition,
            condition_label=label,
            is_baseline=condition == study.baseline,
            repeat=repeat,
        )
        for repeat in range(1, study.repeat + 1)
    ]


def check_ids(runs: Sequence[Run]) -> None:
    """Eight hex digits can meet: then it is said, never passed over."""
    if len({run.run_id for run in runs}) != len(runs):
        raise UsageError("two conditions have the same run id: change any parameter a little")


def in_order(runs: Iterable[Run], seed: int) -> list[Run]:
    """Blocks in turn, each in the seed's random order, with positions counted from 1."""

    def key(run: Run) -> tuple[int, bytes]:
        place = f"{seed}:{run.block}:{run.run_id}"
        return run.block, hashlib.sha256(place.encode("ascii")).digest()

    ordered: list[Run] = []
    for _, block in itertools.groupby(sorted(runs, key=key), key=lambda run: run.block):
        ordered += [replace(run, position=number) for number, run in enumerate(block, start=1)]
    return ordered


def grow(
    old: Sequence[Run], new: Sequence[Run], submitted: Collection[str], seed: int
) -> list[Run]:
    """`new` with the places its runs have in the old plan; added runs follow in blocks of their own.

    As long as nothing was submitted there is nothing to keep. UsageError when a submitted run is
    gone: what was measured is never forgotten.
    """
    places = {run.run_id: run for run in old} if submitted else {}
    gone = sorted(places.keys() & set(submitted) - {run.run_id for run in new})
    if gone:
        raise UsageError(
            f"{len(gone)} runs that were submitted are not in the study file any more "
            f"({places[gone[0]].variant}, {places[gone[0]].condition_label}, …): put them back, "
            "or give the study another name"
        )
    last = max((run.block for run in places.values()), default=0)
    kept = [
        replace(run, block=places[run.run_id].block, position=places[run.run_id].position)
        for run in new
        if run.run_id in places
    ]
    added = [run for run in new if run.run_id not in places]
    numbers = {block: last + n for n, block in enumerate(sorted({r.block for r in added}), 1)}
    moved = [replace(run, block=numbers[run.block]) for run in added]
    return sorted(kept, key=lambda run: (run.block, run.position)) + in_order(moved, seed)


def document(study: Study, runs: Sequence[Run]) -> str:
    """plan.json, a line for each run: json's C code, five times as fast, writes no indents."""
    head = {
        "format": PLAN_FORMAT,
        "version": PLAN_VERSION,
        "steelyard": importlib.metadata.version("steelyard"),
        "study": {
            "name": study.name,
            "seed": study.seed,
            "repeat": study.repeat,
            "blocks": study.blocks,
            "baseline": study.baseline,
            "factors": study.factors,
            "toml_sha256": study.toml_sha256,
        },
    }
    lines = ",\n".join(json.dumps(vars(run), ensure_ascii=False) for run in runs)
    begin = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{begin},\n "runs": [\n{lines}\n]\n}}\n'


def read_runs(path: Path) -> list[Run]:
    """The runs of a plan.json; UsageError when it is not one that this version knows."""
    return [Run(**vars(run)) for run in study_files.read_plan(path.parent).runs]
