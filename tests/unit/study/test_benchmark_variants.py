"""Factors that are a benchmark's own: parameters, required ones too, and `{name}` in a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study import plan, study
from steelyard.wrappers.study.study import Study

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
