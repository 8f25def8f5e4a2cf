"""Variants of benchmarks: factors that are a benchmark's own (parameters, required ones too, and `{name}`
in a command), and parameters that follow from the factors nodes, tasks_per_node and cpus_per_task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study import plan, study
from steelyard.wrappers.study.benchmarks import find_squarest_grid
from steelyard.wrappers.study.job_settings import Job
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study

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


APP = '[[benchmark]]\nuse = "app"\n'


def parse(text: str, file: Path = Path("s.toml")) -> Study:
    return study.parse_study(f"[study]\nrepeat = 1\n{text}".encode(), file)


def commands(found: Study) -> dict[str, str]:
    return {run.condition_label: run.parameters["command"] for run in plan.make_plan(found)}


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix("s.toml: ")


def test_a_required_parameter_may_be_a_factor() -> None:
    found = parse(f'[factors]\ncommand = ["a 1", "b"]\n{APP}')
    assert commands(found) == {"command=a 1": "a 1", "command=b": "b"}
    assert [run.is_baseline for run in plan.make_plan(found)].count(True) == 1


def test_a_factor_stands_in_the_command_and_in_its_variables() -> None:
    found = parse(
        '[factors]\nthreads = [1, 2]\ninput = ["a b"]\n'
        f'{APP}command = "x {{threads}} {{input}} \\"{{input}}\\""\n'
        'env = { OMP_NUM_THREADS = "{threads}", IN = "{input}" }\n'
    )
    assert commands(found) == {
        "threads=1 input=a b": "x 1 'a b' \"a b\"",
        "threads=2 input=a b": "x 2 'a b' \"a b\"",
    }
    variables = {json.loads(r.parameters["env"])["OMP_NUM_THREADS"] for r in plan.make_plan(found)}
    assert variables == {"1", "2"}
    assert {json.loads(r.parameters["env"])["IN"] for r in plan.make_plan(found)} == {"a b"}


def test_what_is_only_noted_changes_no_run_and_no_label() -> None:
    bare = plan.make_plan(parse(f'[factors]\nn = [1, 2]\n{APP}command = "x {{n}}"\n'))
    noted = plan.make_plan(
        parse(f'[factors]\nn = [1, 2]\n{APP}command = "x {{n}}"\nversion = "x{{n}} -V"\n')
    )
    assert [run.run_id for run in noted] == [run.run_id for run in bare]
    assert [run.variant for run in noted] == [run.variant for run in bare]
    assert {run.parameters["version"] for run in noted} == {"x1 -V", "x2 -V"}


def test_two_of_a_command_differ_in_more_than_what_is_noted() -> None:
    one = f'{APP}command = "x"\nversion = '
    assert "is in the study twice" in refused(f'{one}"-V"\n{one}"-v"\n')


def test_ids_of_a_command_are_what_they_were_before_versions_could_be_noted() -> None:
    (run,) = plan.make_plan(parse(f'{APP}command = "x"\n'))
    assert run.run_id == "app-f4d0738d-001"


def test_levels_of_a_command_take_those_of_another_factor() -> None:
    found = parse(f'[factors]\nn = [1, 2]\ncommand = ["a {{n}}", "b {{n}}"]\n{APP}')
    assert sorted(commands(found).values()) == ["a 1", "a 2", "b 1", "b 2"]


def test_a_factor_that_is_no_parameter_of_one_benchmark_leaves_it_alone() -> None:
    found = parse(
        f'[factors]\nclients = [1, 2]\nthreads = [1, 2, 4]\n{APP}command = "x {{threads}}"\n'
        '[[benchmark]]\nuse = "filesystem"\n'
    )
    runs = plan.make_plan(found)
    assert len(runs) == 6 + 2
    rest = [run for run in runs if run.benchmark == "filesystem"]
    assert [run.condition for run in rest if run.is_baseline] == [{"clients": 1}]
    assert {run.condition_label for run in rest} == {"clients=1", "clients=2"}


def test_a_factor_of_nothing_is_refused_with_a_hint() -> None:
    text = f'[factors]\nthreds = [1, 2]\n{APP}command = "x {{threads}}"\n'
    assert refused(text).startswith("factors.threds: no factor with a meaning (clients, ")
    assert refused(text).endswith(
        "and no parameter of app, and {threds} stands in no command or env of app; "
        "did you mean 'threads'?"
    )


def test_a_command_that_nobody_gives_is_named_with_file_and_key() -> None:
    assert refused(APP).startswith(
        "benchmark[1].command: missing: app needs it here, or a list of them in [factors]: "
    )


def test_a_level_in_backticks_is_refused() -> None:
    text = f'[factors]\nn = [1]\n{APP}command = "echo `cat {{n}}`"\n'
    assert "nothing can be quoted safely" in refused(text)
    assert refused(text).startswith("benchmark[1].")


@pytest.mark.parametrize(
    ("given", "levels"),
    [
        ("{ from = 1, to = 4 }", (1, 2, 3, 4)),
        ("{ from = 1, to = 100, factor = 4 }", (1, 4, 16, 64)),
        ("{ from = 0.1, to = 0.5, step = 0.1 }", (0.1, 0.2, 0.3, 0.4, 0.5)),
        ("{ from = 3, to = 3 }", (3,)),
        ("{ from = 1, to = 2, step = 0.5 }", (1.0, 1.5, 2.0)),
    ],
)
def test_a_range_is_the_list_that_it_stands_for(given: str, levels: tuple[object, ...]) -> None:
    found = parse(f'[factors]\nn = {given}\n{APP}command = "x {{n}}"\n').factors["n"]
    assert found == levels
    assert [type(level) for level in found] == [type(level) for level in levels]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{ from = 1 }", "factors.n.to: missing: a range has from and to"),
        ("{ from = 8, to = 1 }", "factors.n.to = 1: allowed is not less than from = 8"),
        ("{ from = 1, to = 8, step = 0 }", "factors.n.step = 0: allowed is above 0"),
        ("{ from = 1, to = 8, factor = 1 }", "factors.n.factor = 1: allowed is above 1"),
        (
            "{ from = 0, to = 8, factor = 2 }",
            "factors.n.from = 0: allowed is above 0 with a factor",
        ),
        ("{ from = 1, to = 8, step = 1, factor = 2 }", "factors.n.factor: step is given, too"),
        ("{ from = 1, to = 99999 }", "factors.n.to: more than 10000 levels"),
        ("{ from = true, to = 8 }", "factors.n.from = true: allowed is a number"),
        ("{ from = 1, to = inf }", "factors.n.to = inf: allowed is a number"),
        ("{ form = 1, to = 8 }", "factors.n.form: unknown key; known: from, to, step, factor"),
        ('"1..8"', 'factors.n = "1..8": allowed is a list of levels, at least one; a range {'),
        ('{ files = "nothing/*" }', "factors.n.files: nothing/*: no file there"),
    ],
)
def test_a_range_that_is_none_is_one_line(given: str, message: str) -> None:
    assert refused(f'[factors]\nn = {given}\n{APP}command = "x {{n}}"\n').startswith(message)


def write(folder: Path, files: str, sample: str = "sample = 3, seed = 5") -> Path:
    path = folder / "s.toml"
    path.write_text(
        f'[study]\nname = "s"\nrepeat = 1\n[factors]\ninput = {{ files = "{files}", {sample} }}\n'
        f'{APP}command = "wc {{input}}"\n'
    )
    return path


def test_a_sample_of_files_depends_on_the_seed_alone(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02} x.dat").touch()
    (tmp_path / "folder.dat").mkdir()
    three = study.load_study(write(tmp_path, "*.dat")).factors["input"]
    assert len(three) == 3
    assert three == study.load_study(write(tmp_path, "*.dat")).factors["input"]
    assert all(Path(str(path)).is_absolute() and Path(str(path)).is_file() for path in three)
    five = study.load_study(write(tmp_path, "*.dat", "sample = 5, seed = 5")).factors["input"]
    assert set(three) < set(five)
    assert (
        three != study.load_study(write(tmp_path, "*.dat", "sample = 3, seed = 6")).factors["input"]
    )
    every = study.load_study(write(tmp_path, "*.dat", "seed = 6")).factors["input"]
    assert len(every) == 20
    with pytest.raises(UsageError, match="20 files there, expected at least sample = 21"):
        study.load_study(write(tmp_path, "*.dat", "sample = 21"))


def test_what_a_plan_has_drawn_stays_drawn(tmp_path: Path) -> None:
    for name in "abcde":
        (tmp_path / name).touch()
    path = write(tmp_path, "?")
    found, folder = study.load_with_folder(path)
    folder.mkdir()
    (folder / "plan.json").write_text(plan.plan_json(found, plan.make_plan(found)))
    for name in "0123456789":
        (tmp_path / name).touch()
    again, _ = study.load_with_folder(path)
    assert again.factors == found.factors
    assert study.load_study(path).factors != found.factors  # it would have been another one
    other, _ = study.load_with_folder(write(tmp_path, "?", "sample = 4, seed = 5"))
    assert len(other.factors["input"]) == 4
