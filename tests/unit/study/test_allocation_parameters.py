"""The factors nodes, tasks_per_node and cpus_per_task: the job of a run, and its parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study import plan, study
from steelyard.wrappers.study.benchmarks import find_squarest_grid
from steelyard.wrappers.study.job_settings import Job
from steelyard.wrappers.study.planned_run import Run

NPB = '[[benchmark]]\nuse = "npb"\nkernel = "ep"\n'
HPL = '[[benchmark]]\nuse = "hpl"\n'
STREAM = '[[benchmark]]\nuse = "stream"\n'


def runs_of(text: str) -> tuple[study.Study, list[Run]]:
    of = study.parse_study(("[study]\nrepeat = 1\n" + text).encode(), Path("s.toml"))
    return of, plan.make_plan(of)


def parameter(text: str, name: str) -> dict[tuple[object, ...], object]:
    """Return a parameter of a run by the levels of its condition."""
    _, runs = runs_of(text)
    return {tuple(run.condition.values()): run.parameters[name] for run in runs}


def test_ranks_are_nodes_times_tasks() -> None:
    factors = "[factors]\nnodes = [1, 2, 4]\ntasks_per_node = [1, 2]\n"
    found = parameter(factors + NPB, "ranks")
    assert found == {(n, t): n * t for n in (1, 2, 4) for t in (1, 2)}


def test_tasks_of_the_job_count_for_a_factor_nodes() -> None:
    text = "[job]\ntasks_per_node = 4\n[factors]\nnodes = [1, 2]\n"
    assert parameter(text + NPB, "ranks") == {(1,): 4, (2,): 8}


def test_what_the_study_gives_stays() -> None:
    text = "[factors]\nnodes = [1, 2]\n" + NPB + "ranks = 2\n"
    assert parameter(text, "ranks") == {(1,): 2, (2,): 2}
    text = "[factors]\nnodes = [1, 2]\nranks = [2, 4]\n" + NPB
    assert parameter(text, "ranks") == {(n, r): r for n in (1, 2) for r in (2, 4)}


def test_without_such_a_factor_the_ranks_are_the_benchmarks() -> None:
    assert parameter("[job]\nnodes = 2\n[factors]\nclass = ['S', 'W']\n" + NPB, "ranks") == {
        ("S",): 1,
        ("W",): 1,
    }


SQUARE = "a square (1, 4, 9, 16, 25 …)"
POWER = "a power of two (1, 2, 4, 8, 16 …)"
NASA = 'folder = "/nasa"\n'


@pytest.mark.parametrize(
    ("factors", "benchmark", "words"),
    [
        ("nodes = [1, 2]", 'kernel = "bt"',
         f"factors.nodes: with nodes = 2: npb: ranks = 2: kernel = bt takes {SQUARE}"),
        ("nodes = [1, 2]\ntasks_per_node = [1, 2]", 'kernel = ["cg", "sp"]',
         f"with nodes = 1, tasks_per_node = 2: npb: ranks = 2: kernel = sp takes {SQUARE}"),
        ("tasks_per_node = [2, 3]", 'kernel = "cg"',
         f"with tasks_per_node = 3: npb: ranks = 3: kernel = cg takes {POWER}"),
        ("nodes = [1, 3]", 'kernel = "ep"',
         f"with nodes = 3: npb: ranks = 3: kernel = ep takes {POWER}"),
        ("nodes = [1, 3]", f'kernel = "is"\n{NASA}',
         f"with nodes = 3: npb: ranks = 3: kernel = is takes {POWER}"),
        ('kernel = ["cg", "bt"]', "ranks = 2",
         f"factors.kernel: with kernel = bt: npb: ranks = 2: kernel = bt takes {SQUARE}"),
        ("clients = [1, 2]", 'kernel = "lu"\nranks = 6',
         f"benchmark[1].ranks: npb: ranks = 6: kernel = lu takes {POWER}"),
    ],
)  # fmt: skip
def test_ranks_that_a_kernel_cannot_take_are_refused(
    factors: str, benchmark: str, words: str
) -> None:
    """It failed at run time only, each run of this level."""
    with pytest.raises(UsageError) as refused:
        runs_of(f'[factors]\n{factors}\n[[benchmark]]\nuse = "npb"\n{benchmark}\n')
    assert words in str(refused.value)


@pytest.mark.parametrize("kernel", ["ep", "lu"])
def test_nasas_own_programs_that_take_any_number_get_it(kernel: str) -> None:
    text = f'[factors]\nnodes = [1, 3]\n[[benchmark]]\nuse = "npb"\nkernel = "{kernel}"\n{NASA}'
    assert parameter(text, "ranks") == {(1,): 1, (3,): 3}


@pytest.mark.parametrize(
    ("ranks", "grid"), [(1, (1, 1)), (2, (1, 2)), (6, (2, 3)), (7, (1, 7)), (16, (4, 4))]
)
def test_a_grid_is_as_square_as_it_can_be(ranks: int, grid: tuple[int, int]) -> None:
    assert find_squarest_grid(ranks) == grid


def test_hpl_has_a_grid_of_all_ranks_and_threads() -> None:
    _, runs = runs_of("[factors]\nnodes = [2]\ntasks_per_node = [3]\ncpus_per_task = [4]\n" + HPL)
    (run,) = runs
    assert [run.parameters[name] for name in ("p", "q", "threads")] == [2, 3, 4]


def test_a_grid_that_is_given_in_part_is_the_studys() -> None:
    _, runs = runs_of("[factors]\nnodes = [4]\n" + HPL + "q = 2\n")
    assert (runs[0].parameters["p"], runs[0].parameters["q"]) == (1, 2)


def test_threads_are_the_processors_of_a_task() -> None:
    assert parameter("[factors]\ncpus_per_task = [1, 4]\n" + STREAM, "threads") == {
        (1,): 1,
        (4,): 4,
    }
    _, runs = runs_of("[job]\ncpus_per_task = 3\n" + STREAM)
    assert runs[0].parameters["threads"] == 3


def test_a_run_has_the_job_of_its_condition() -> None:
    of, runs = runs_of(
        "[job]\ntasks_per_node = 2\n[factors]\nnodes = [1, 4]\ncpus_per_task = [2]\n" + NPB
    )
    jobs = {run.resolve_job(of.job).nodes: run.resolve_job(of.job) for run in runs}
    assert jobs.keys() == {1, 4}
    assert (jobs[4].tasks_per_node, jobs[4].cpus_per_task, jobs[4].cpus_per_node) == (2, 2, 4)


def test_a_job_without_sizes_asks_for_none() -> None:
    assert Job().cpus_per_node is None
    assert Job().thread_count() == {}
    assert Job(tasks_per_node=4).cpus_per_node == 4


def test_threads_of_openmp_are_the_processors_of_a_task() -> None:
    assert Job(cpus_per_task=4).thread_count() == {"OMP_NUM_THREADS": "4"}
    assert Job(cpus_per_task=4, export=("OMP_NUM_THREADS",)).thread_count() == {}
