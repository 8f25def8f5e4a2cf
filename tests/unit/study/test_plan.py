"""The plan: every block holds every condition, in an order that only the seed decides."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.analysis.sources import study_files
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study import plan, study
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study


def condition(run: Run) -> tuple[str, str]:
    return run.variant, run.condition_label


def random_study(seed: int) -> Study:
    """A study of random size; seeded, so that a failure can be looked at again."""
    rng = random.Random(seed)
    repeat = rng.randint(1, 12)
    levels = rng.sample(range(1, 40), rng.randint(1, 4))
    iterations = rng.sample(range(1, 9), rng.randint(1, 3))
    text = (
        f"[study]\nrepeat = {repeat}\nblocks = {rng.randint(1, repeat)}\nseed = {seed}\n"
        f"[factors]\nclients = {levels}\niterations = {iterations}\n"
        '[[benchmark]]\nuse = "filesystem"\ntest = ["large_file_copy", "small_file_copy"]\n'
    )
    return study.parse_study(text.encode(), Path("random.toml"))


@pytest.mark.parametrize("seed", range(30))
def test_every_block_holds_every_condition_and_each_comes_repeat_times(seed: int) -> None:
    found = random_study(seed)
    runs = plan.make_plan(found)
    blocks: dict[int, Counter[tuple[str, str]]] = {}
    for run in runs:
        blocks.setdefault(run.block, Counter())[condition(run)] += 1
    conditions = {condition(run) for run in runs}
    assert sorted(blocks) == list(range(1, found.blocks + 1))
    for counts in blocks.values():
        assert counts.keys() == conditions
        # As evenly as possible: the repeats of a condition in two blocks differ by one at most.
        assert set(counts.values()) <= {
            found.repeat // found.blocks,
            -(-found.repeat // found.blocks),
        }
    assert Counter(map(condition, runs)) == dict.fromkeys(conditions, found.repeat)


@pytest.mark.parametrize("seed", range(10))
def test_the_order_is_the_seeds_and_positions_count_it(seed: int) -> None:
    found = random_study(seed)
    runs = plan.make_plan(found)
    assert plan.make_plan(found) == runs
    for block in range(1, found.blocks + 1):
        inside = [run for run in runs if run.block == block]
        assert [run.position for run in inside] == list(range(1, len(inside) + 1))


def test_another_seed_is_another_order_of_the_same_runs(write_study: Callable[..., Path]) -> None:
    one = study.load_study(write_study())
    ids = [run.run_id for run in plan.make_plan(one)]
    others = [run.run_id for run in plan.make_plan(replace(one, seed=8))]
    assert ids != others
    assert sorted(ids) == sorted(others)


def test_a_study_may_keep_the_order_as_written() -> None:
    text = (
        '[study]\nrepeat = 3\nblocks = 1\norder = "as_written"\n[factors]\nclients = [2, 1]\n'
        '[[benchmark]]\nuse = "npb"\nkernel = ["lu", "cg"]\n'
    )
    runs = plan.make_plan(study.parse_study(text.encode(), Path("s.toml")))
    assert [(run.parameters["kernel"], run.condition["clients"], run.repeat) for run in runs] == [
        (kernel, clients, repeat) for kernel in ("lu", "cg") for clients in (2, 1) for repeat in (1, 2, 3)
    ]  # fmt: skip
    assert [run.position for run in runs] == list(range(1, 13))


def test_blocks_do_not_all_begin_with_the_same_condition() -> None:
    text = (
        "[study]\nrepeat = 20\nblocks = 20\n[factors]\nclients = [1, 2, 3, 4]\n"
        '[[benchmark]]\nuse = "filesystem"\n'
    )
    runs = plan.make_plan(study.parse_study(text.encode(), Path("s.toml")))
    assert {run.condition["clients"] for run in runs if run.position == 1} == {1, 2, 3, 4}


def test_run_ids_are_what_they_were() -> None:
    """Ids are in users' folders: should this fail, old studies cannot be continued.

    printf '%s' CANONICAL_JSON | sha256sum gives the same eight digits.
    """
    condition: dict[str, plan.Level] = {"clients": 2, "node_type": "virtual"}
    parameters: dict[str, plan.Level] = {"n": 4000, "xhpl": "/ü"}
    assert plan.hash_run("hpl", parameters, condition) == "de16beec"


@pytest.mark.parametrize("seed", range(10))
def test_growth_keeps_ids_places_and_order(seed: int) -> None:
    found = random_study(seed)
    old = plan.make_plan(found)
    more = plan.make_plan(replace(found, repeat=found.repeat + 3))
    ids = {run.run_id for run in old}
    grown = plan.grow_plan(old, more, ids, found.seed)
    assert [run for run in grown if run.run_id in ids] == old
    assert sorted(run.run_id for run in grown) == sorted(run.run_id for run in more)
    assert min(run.block for run in grown if run.run_id not in ids) == found.blocks + 1
    assert [run.block for run in grown] == sorted(run.block for run in grown)


def test_repeated_runs_share_new_blocks_where_the_rest_of_theirs_has_run() -> None:
    found = random_study(0)
    runs = plan.make_plan(replace(found, repeat=3, blocks=3))
    of_block = [[run.run_id for run in runs if run.block == block] for block in (1, 2, 3)]
    repeated = {of_block[0][0], *of_block[1][:2], *of_block[2]}
    moved = plan.separate_repeated(runs, repeated, repeated, found.seed)
    blocks = {run.run_id: run.block for run in moved}
    assert sorted(blocks) == sorted(run.run_id for run in runs)
    assert [blocks[of_block[0][0]], *(blocks[run] for run in of_block[1][:2])] == [4, 5, 5]
    assert all(blocks[run] == 3 for run in of_block[2])  # all of it is to run: it stays
    rest = [run for run in runs if run.run_id not in {of_block[0][0], *of_block[1][:2]}]
    assert [run for run in moved if run.block < 4] == rest
    assert plan.separate_repeated(runs, set(), repeated, found.seed) == runs


def test_before_anything_was_submitted_a_plan_is_made_anew(
    write_study: Callable[..., Path],
) -> None:
    one = study.load_study(write_study())
    other = plan.make_plan(replace(one, blocks=4))
    assert plan.grow_plan(plan.make_plan(one), other, set(), one.seed) == other


def test_a_study_never_forgets_a_submitted_run(write_study: Callable[..., Path]) -> None:
    one = study.load_study(write_study())
    old = plan.make_plan(one)
    new = plan.make_plan(replace(one, repeat=2))
    with pytest.raises(UsageError, match=r"^8 runs that were submitted are not in the study file"):
        plan.grow_plan(old, new, {run.run_id for run in old}, one.seed)


def test_a_run_has_all_its_parameters_and_says_if_it_is_the_baseline(
    write_study: Callable[..., Path],
) -> None:
    runs = plan.make_plan(study.load_study(write_study()))
    first = next(run for run in runs if run.clients == 1)
    assert first.is_baseline
    assert first.condition_label == "clients=1"
    assert first.parameters["size"] == 1024 * 1024
    assert first.parameters["sync"] == "each"
    assert not next(run for run in runs if run.clients == 2).is_baseline


def test_a_factor_that_is_a_parameter_reaches_the_benchmark() -> None:
    text = '[factors]\niterations = [3, 4]\n[[benchmark]]\nuse = "filesystem"\n'
    runs = plan.make_plan(study.parse_study(text.encode(), Path("s.toml")))
    assert {(run.condition["iterations"], run.parameters["iterations"]) for run in runs} == {
        (3, 3),
        (4, 4),
    }


def test_a_study_without_factors_has_one_condition() -> None:
    runs = plan.make_plan(study.parse_study(b'[[benchmark]]\nuse = "filesystem"\n', Path("s.toml")))
    assert {(run.condition_label, run.is_baseline) for run in runs} == {("no factors", True)}


def test_the_document_is_read_back_as_it_was(
    write_study: Callable[..., Path], tmp_path: Path
) -> None:
    found = study.load_study(write_study())
    runs = plan.make_plan(found)
    path = tmp_path / "plan.json"
    path.write_text(plan.plan_json(found, runs), encoding="utf-8")
    assert plan.read_runs(path) == runs
    head = study_files.read_plan(tmp_path).study
    assert head["baseline"] == {"clients": 1}
    assert head["factors"] == {"clients": [1, 2]}


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"format": "steelyard-plan", "version": 2}'])
def test_a_plan_of_another_version_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"plan\.json(:| is not JSON)"):
        plan.read_runs(path)


PAIRS = '[[benchmark]]\nuse = "iperf3"\n[[benchmark]]\nuse = "nuttcp"\n'


def test_mode_of_a_benchmark_that_has_the_whole_job_is_its_parameter(
    write_study: Callable[..., Path],
) -> None:
    file = write_study(text='[factors]\nmode = ["sequential", "parallel"]\n' + PAIRS)
    runs = plan.make_plan(study.load_study(file))
    assert {(run.condition["mode"], run.parameters["mode"]) for run in runs} == {
        ("sequential", "sequential"),
        ("parallel", "parallel"),
    }


def test_mode_of_clients_is_no_parameter(write_study: Callable[..., Path]) -> None:
    file = write_study(
        text='[factors]\nclients = [2]\nmode = ["sequential", "parallel"]\n'
        '[[benchmark]]\nuse = "iozone"\n'
    )
    runs = plan.make_plan(study.load_study(file))
    assert {(run.condition["mode"], run.parameters["mode"]) for run in runs} == {
        ("sequential", "throughput"),
        ("parallel", "throughput"),
    }


def test_clients_of_a_benchmark_that_has_the_whole_job_are_its_own(
    write_study: Callable[..., Path],
) -> None:
    """One instance, on the nodes of [job]; else clients are instances, a node for each."""
    head = "[job]\nnodes = 4\n[factors]\nclients = [1, 5, 10]\n"
    wide = study.load_study(write_study(text=head + '[[benchmark]]\nuse = "xrootd"\n'))
    runs = plan.make_plan(wide)
    assert {(run.clients, run.parameters["clients"]) for run in runs} == {(1, 1), (1, 5), (1, 10)}
    both = (
        head.replace("nodes = 4", "")
        + '[[benchmark]]\nuse = "xrootd"\n[[benchmark]]\nuse = "hpl"\n'
    )
    with pytest.raises(UsageError, match="xrootd works on all nodes of a job at once"):
        study.load_study(write_study(text=both))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[factors]\nmode = ["together"]\n' + PAIRS,
            'factors.mode = "together": allowed is one of sequential, parallel',
        ),
        (
            '[factors]\nmode = ["parallel"]\n[[benchmark]]\nuse = "fio"\n' + PAIRS,
            (
                "factors.mode: iperf3, nuttcp works on all nodes of a job at once and has a mode of its "
                "own: give it a study of its own"
            ),
        ),
    ],
)
def test_a_mode_that_a_benchmark_does_not_know_is_refused(
    text: str, words: str, write_study: Callable[..., Path]
) -> None:
    with pytest.raises(UsageError) as caught:
        study.load_study(write_study(text=text))
    assert str(caught.value).endswith(words)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_whole_plan_of_another_version_is_refused_by_all_who_read_it(
    write_study: Callable[..., Path], tmp_path: Path, version: object
) -> None:
    """Nothing is missing in it; its words may mean something else."""
    found = study.load_study(write_study())
    document = json.loads(plan.plan_json(found, plan.make_plan(found)))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert len(plan.read_runs(path)) == len(study_files.read_plan(tmp_path).runs) > 0
    path.write_text(json.dumps(document | {"version": version}), encoding="utf-8")
    with pytest.raises(UsageError, match="version"):
        plan.read_runs(path)
    with pytest.raises(UsageError, match="version"):
        study_files.read_plan(tmp_path)


def test_each_level_of_a_factor_within_has_its_own_baseline() -> None:
    factors = "[factors]\nsize = [200, 400]\nthreads = [1, 2]\n"
    text = factors + '[baseline]\nwithin = ["size"]\n'
    app = '[[benchmark]]\nuse = "app"\ncommand = "./a {size} {threads}"\n'
    of = study.parse_study((text + app).encode(), Path("s.toml"))
    runs = [run for run in plan.make_plan(of) if run.repeat == 1]
    assert {(run.condition["size"], run.condition["threads"]): run.is_baseline for run in runs} == {
        (200, 1): True,
        (200, 2): False,
        (400, 1): True,
        (400, 2): False,
    }
    assert json.loads(plan.plan_json(of, runs))["study"]["baseline"] == {"threads": 1}
