"""Expands a study to runs: benchmarks x factor levels x repeats, in blocks, in random order.

Every block contains every condition; repeats are distributed to the blocks as evenly as possible.
The order inside a block follows a hash of the recorded seed and the run id, which is the same
everywhere. Each session of a study has its own seed, a hash of the study's seed and the session's
name. With order = "as_written" a block runs benchmark after benchmark, level after level, repeats
in a row."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from steelyard.analysis.base.level_names import Texts, format_level
from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import PLAN_FORMAT, PLAN_VERSION
from steelyard.analysis.sources.study_sessions import Session
from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study.benchmarks import Variant
from steelyard.wrappers.study.factors import Level
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study

NO_FACTORS = "no factors"


def condition_label(condition: dict[str, Level], texts: Texts) -> str:
    """Return a label such as `clients=2 network=far`."""
    levels = (f"{name}={texts[name][format_level(level)]}" for name, level in condition.items())
    return " ".join(levels) or NO_FACTORS


def hash_run(benchmark: str, parameters: dict[str, Level], condition: dict[str, Level]) -> str:
    """Return 8 hex digits that depend only on what is executed."""
    canonical = json.dumps(
        {"benchmark": benchmark, "parameters": parameters, "condition": condition},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
    )
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:8]


def make_plan(study: Study) -> list[Run]:
    """Return all runs of a study, block by block, in the order of execution."""
    runs: list[Run] = []
    for variant in study.variants:
        for levels in itertools.product(*(study.factors[name] for name in variant.factors)):
            condition = dict(zip(variant.factors, levels, strict=True))
            runs += condition_runs(study, variant, condition)
    check_ids(runs)
    return order_runs(runs, order_seed(study))


def condition_runs(study: Study, variant: Variant, condition: dict[str, Level]) -> list[Run]:
    """Return the repeats of one variant under one condition; repeat r is in block (r - 1) modulo
    blocks + 1."""
    benchmark = variant.benchmark
    parameters = variant.values_for_levels(condition)
    known = benchmark.parameters
    executed = {name: value for name, value in parameters.items() if known[name].is_executed}
    key = f"{benchmark.name}-{hash_run(benchmark.name, executed, condition)}"
    label = condition_label(condition, study.level_texts)
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
            is_baseline=all(
                condition[name] == level
                for name, level in study.baseline.items()
                if name in condition
            ),
            repeat=repeat,
        )
        for repeat in range(1, study.repeat + 1)
    ]


def check_ids(runs: Sequence[Run]) -> None:
    """Raise UsageError for two runs with the same hash of eight hex digits."""
    if len({run.run_id for run in runs}) != len(runs):
        raise UsageError("two conditions have the same run id: change any parameter a little")


def order_seed(study: Study) -> int | None:
    """Return the seed of the order inside the blocks; None keeps the order of the file."""
    if study.order != "random":
        return None
    return study.seed if study.session is None else session_seed(study.seed, study.session)


def session_seed(seed: int, session: str) -> int:
    """Return 63 bits of a hash: every session has its own order, which is reproducible."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{session}".encode("ascii")).digest()[:8]) >> 1


def order_runs(runs: Iterable[Run], seed: int | None) -> list[Run]:
    """Return the runs block by block, each block in the seed's random order, positions counted from
    1."""

    def key(run: Run) -> tuple[int, bytes]:
        if seed is None:
            return run.block, b""  # sorting is stable: the order of the file remains
        seed_text = f"{seed}:{run.block}:{run.run_id}"
        return run.block, hashlib.sha256(seed_text.encode("ascii")).digest()

    ordered: list[Run] = []
    for _, block in itertools.groupby(sorted(runs, key=key), key=lambda run: run.block):
        ordered += [replace(run, position=number) for number, run in enumerate(block, start=1)]
    return ordered


def grow_plan(
    old: Sequence[Run], new: Sequence[Run], submitted: Collection[str], seed: int | None
) -> list[Run]:
    """Return `new` with the positions that its runs have in the old plan; added runs follow in new
    blocks.

    The old plan counts only after a submission. Raises UsageError if a submitted run is missing
    from `new`: measured runs are never dropped."""
    places = {run.run_id: run for run in old} if submitted else {}
    gone = sorted(places.keys() & set(submitted) - {run.run_id for run in new})
    if gone:
        raise UsageError(
            f"{counted(len(gone), 'run')} that {inflect(len(gone), 'was', 'were')} submitted "
            f"{inflect(len(gone), 'is', 'are')} not in the study file any more "
            f"({places[gone[0]].variant}, {places[gone[0]].condition_label}, …"
            f"{describe_removed(places[gone[0]], new)}): put them back, or give the study another name"
        )
    last = max((run.block for run in places.values()), default=0)
    unmoved = [
        replace(run, block=places[run.run_id].block, position=places[run.run_id].position)
        for run in new
        if run.run_id in places
    ]
    added = [run for run in new if run.run_id not in places]
    unmoved.sort(key=lambda run: (run.block, run.position))
    return unmoved + shift_blocks(last, added, seed)


def shift_blocks(last: int, runs: Sequence[Run], seed: int | None) -> list[Run]:
    """Renumber the runs' blocks to follow `last`; runs that shared a block still share one."""
    numbers = {block: last + n for n, block in enumerate(sorted({r.block for r in runs}), 1)}
    return order_runs([replace(run, block=numbers[run.block]) for run in runs], seed)


def separate_repeated(
    runs: Sequence[Run], repeated: Collection[str], missing: Collection[str], seed: int | None
) -> list[Run]:
    """Return the plan with resubmitted runs moved to new blocks.

    They execute later than the block that they had, and do not alternate with its other runs. A
    block whose runs are all missing is unchanged."""
    begun = {run.block for run in runs if run.run_id not in missing}
    late = [run for run in runs if run.run_id in repeated and run.block in begun]
    moved = {run.run_id for run in late}
    unmoved = [run for run in runs if run.run_id not in moved]
    return unmoved + shift_blocks(max((run.block for run in runs), default=0), late, seed)


def describe_removed(run: Run, new: Sequence[Run]) -> str:
    """Return `; the factor threads is gone` and the like: how a run's condition differs from the
    study file."""
    levels: dict[str, set[object]] = {}
    for one in new:
        if one.variant == run.variant:
            for name, level in one.condition.items():
                levels.setdefault(name, set()).add(level)
    if not any(one.variant == run.variant for one in new):
        return f"; {run.variant} is gone"
    found = [
        f"the factor {name} is gone" if name not in levels else f"the level {name}={level} is gone"
        for name, level in run.condition.items()
        if level not in levels.get(name, ())
    ]
    found += [f"the factor {name} is new" for name in levels if name not in run.condition]
    return "".join(f"; {change}" for change in found)


def plan_json(study: Study, runs: Sequence[Run], session: Session | None = None) -> str:
    """Return plan.json with a line for each run: json's C encoder, five times as fast, writes no
    indents."""
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
            "drawn": study.drawn,
            "scaling": study.scaling and vars(study.scaling),
            "toml_sha256": study.toml_sha256,
            "file": str(study.file.absolute()),
            "session": session and session_json(study, session),
        },
    }
    lines = ",\n".join(json.dumps(vars(run), ensure_ascii=False) for run in runs)
    begin = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{begin},\n "runs": [\n{lines}\n]\n}}\n'


def session_json(study: Study, session: Session) -> dict[str, object]:
    """Return the plan's entry on its session: its name, number, start and the seed of its order."""
    return {
        "name": session.name,
        "number": session.number,
        "began_unix_s": session.began_unix_s,
        "seed": session_seed(study.seed, session.name),
    }


def read_runs(path: Path) -> list[Run]:
    """Return the runs of a plan.json. Raises UsageError for a format that this version cannot
    read."""
    return study_files.read_plan_as(path.parent, Run)[1]
