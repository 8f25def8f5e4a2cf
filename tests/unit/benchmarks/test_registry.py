"""The benchmarks' descriptions: what is read, what is refused and with which words."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from steelyard.jobscripts import docs, registry
from steelyard.jobscripts.parameters import Parameter, parse_size

GOOD = """
name = "tiny"
summary = "a benchmark"
iterations = "single"
[parameters.n]
type = "int"
default = 3
minimum = 1
help = "how many"
[parameters.mode]
type = "string"
default = "a"
choices = ["a", "b"]
help = "which"
[results.seconds]
unit = "s"
better = "lower"
primary = true
help = "time"
[needs]
programs = [{ name = "true", debian = "coreutils", why = "it does the work" }]
"""


def folder_of(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "benchmark.toml").write_text(text, encoding="utf-8")
    (folder / "job.sh").write_text("sy_client() { true; }\n", encoding="utf-8")
    return folder


def test_every_benchmark_that_is_there_can_be_loaded() -> None:
    assert {"app", "filesystem", "fio", "hpcc", "hpl", "iozone", "npb"} <= set(registry.names())
    for name in registry.names():
        found = registry.load(name)
        assert found.name == name
        assert "sy_client()" in found.template
        needed = {key: "x" for key, parameter in found.parameters.items() if parameter.required}
        values = found.check_parameters(needed)
        assert values == found.check_parameters(values)


def test_a_parameter_that_is_needed_is_refused_when_it_is_not_given() -> None:
    for given in ({}, {"command": ""}):
        with pytest.raises(
            registry.ParameterError, match="^app needs command: the command line, given to"
        ):
            registry.load("app").check_parameters(given)


def test_an_unknown_benchmark_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(registry.UnknownBenchmarkError) as caught:
        registry.load("filesytem")
    known = ", ".join(registry.names())
    message = f"unknown benchmark 'filesytem'; known: {known}; did you mean 'filesystem'?"
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["", "../hpl", "hpl/", "__pycache__", "Hpl"])
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(registry.UnknownBenchmarkError):
        registry.load(name)


def test_a_description_is_read_whole(tmp_path: Path) -> None:
    found = registry.read(folder_of(tmp_path, GOOD))
    assert found.parameters["n"] == Parameter("int", 3, "", "how many", (), 1)
    assert found.parameters["mode"].choices == ("a", "b")
    assert found.results["seconds"] == registry.ResultSpec("s", "lower", "time", True)
    assert found.needs == (registry.Program("true", "coreutils", "it does the work"),)


BULK = """
[results.rate]
unit = "bytes_per_s"
better = "higher"
help = "rate"
[bulk]
metric = "rate"
kind = "file"
when = { mode = ["b"] }
[needs]"""

WRONG = [
    ('name = "tiny"', "", "name: missing: a text is needed"),
    ('name = "tiny"', 'name = "other"', "name: 'other' is not the folder's name 'tiny'"),
    ("minimum = 1", "minimun = 1", "parameters.n.minimun: unknown key; known: default, type"),
    (
        'type = "int"',
        'type = "integer"',
        'parameters.n.type = "integer": allowed is one of int, float',
    ),
    ("default = 3", "", "parameters.n.default: missing: every parameter needs one"),
    ("default = 3", "default = 0", "parameters.n.default: 0 is not allowed: a whole number, at"),
    ('default = "a"', 'default = "c"', "parameters.mode.default: 'c' is not allowed: one of a, b"),
    ('help = "which"', "", "parameters.mode.help: missing: a text is needed"),
    ("[parameters.mode]", "[parameters.Mode]", "parameters.Mode: a name is lower-case letters"),
    (
        'choices = ["a", "b"]',
        "choices = 1",
        "parameters.mode.choices = 1: allowed is a list of numbers or texts",
    ),
    (
        'better = "lower"',
        'better = "less"',
        'results.seconds.better = "less": allowed is one of lower, hig',
    ),
    ("primary = true", "", "results: one of them must have primary = true"),
    ("primary = true", "primary = 1", "results.seconds.primary = 1: allowed is true or false"),
    ("minimum = 1", 'minimum = "1"', 'parameters.n.minimum = "1": allowed is a number'),
    ('why = "it does the work"', "", "Invalid"),
    (', why = "it does the work"', "", "needs.programs[1].why: missing: a text is needed"),
    ("[needs]", "[need]", "need: unknown key; known: name, summary, span, parameters, results"),
    ("[needs]", "[[needs]]", "needs = [{ programs = [{ "),
    ('name = "tiny"', "name = ", "Invalid value"),
    ("[parameters.n]", 'span = "all"\n[parameters.n]', 'span = "all": allowed is one of node, job'),
    ('iterations = "single"', "", "iterations: missing: a text is needed"),
    ('"single"', '"none"', 'iterations = "none": allowed is one of time, unordered'),
    ("[needs]", "[bulk]\n[needs]", "bulk.metric: missing: a text is needed"),
    (
        "[needs]",
        BULK.replace('= "rate"\nk', '= "seconds"\nk'),
        'bulk.metric = "seconds": allowed is a result in bytes_per_s or bit/s',
    ),
    (
        "[needs]",
        BULK.replace('= "rate"\nk', '= "speed"\nk'),
        'bulk.metric = "speed": allowed is one of seconds, rate',
    ),
    ("[needs]", BULK.replace("file", "disk"), 'bulk.kind = "disk": allowed is one of file, timed'),
    (
        "[needs]",
        BULK.replace("file", "timed"),
        'bulk.kind = "timed": allowed is "timed" only with a parameter seconds',
    ),
    ("[needs]", BULK.replace("when", "if"), "bulk.if: unknown key; known: metric, kind, when"),
    ("[needs]", BULK.replace("mode", "m"), "bulk.when.m: no parameter of this benchmark; there"),
    (
        '"single"',
        '"single"\nprogram_tags = ["npb.v"]',
        'program_tags = "npb.v": allowed is tiny.WORD',
    ),
    ("programs = [", "program = [", "needs.program: unknown key; known: programs, python"),
    (
        ' work" }',
        ' work", unless = { m = [1] } }',
        "needs.programs[1].unless.m: no parameter of this benchmark; there are: n, mode",
    ),
    (' work" }', ' work", when = { n = 1 } }', "needs.programs[1].when.n = 1: allowed is a list"),
]


def test_a_program_may_be_needed_with_some_parameters_only(tmp_path: Path) -> None:
    some = GOOD.replace(' work" }', ' work", unless = { n = [1], mode = ["a"] } }')
    program = registry.read(folder_of(tmp_path, some)).needs[0]
    assert not program.is_needed({"n": 1, "mode": "a"})
    assert program.is_needed({"n": 1, "mode": "b"})
    only = registry.Program("p", "", "why", when={"url": ("*",), "n": (2, 3)})
    assert only.is_needed({"url": "root://x", "n": 3})
    assert not only.is_needed({"url": "", "n": 3})
    assert not only.is_needed({"url": "root://x", "n": 1})


def test_bulk_transfers_are_told_by_their_parameters(tmp_path: Path) -> None:
    found = registry.read(folder_of(tmp_path, GOOD.replace("[needs]", BULK))).bulk
    assert found is not None and (found.metric, found.kind, found.factor) == ("rate", "file", 1.0)
    assert [found.is_measured({"n": 1, "mode": mode}) for mode in "ab"] == [False, True]
    streams = registry.load("iperf3")
    assert streams.bulk is not None and streams.bulk.factor == 1 / 8
    assert streams.bulk.times_s(streams.defaults()) == (10.0, 1.0)
    assert streams.bulk.times_s({"seconds": 4}) == (4.0, 0.0)


def test_python_modules_are_read(tmp_path: Path) -> None:
    text = GOOD + 'python = [{ module = "numpy", why = "arrays", when = { mode = ["b"] } }]\n'
    found = registry.read(folder_of(tmp_path, text)).modules
    assert found == (registry.Module("numpy", "arrays", {"mode": ("b",)}),)
    assert not found[0].is_needed({"n": 1, "mode": "a"})


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_a_wrong_description_names_file_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in GOOD
    folder = folder_of(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(registry.DescriptionError) as caught:
        registry.read(folder)
    assert str(caught.value).startswith(f"{folder / 'benchmark.toml'}: {message}")


def test_a_folder_without_its_template_is_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, GOOD)
    (folder / "job.sh").unlink()
    with pytest.raises(registry.DescriptionError, match=r"job\.sh"):
        registry.read(folder)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("256MiB", 256 << 20),
        ("1kB", 1000),
        ("1 KiB", 1024),
        ("1KB", 1000),
        ("4096", 4096),
        ("7B", 7),
        ("1.5kB", 1500),
        ("0.5GiB", 1 << 29),
        ("2TB", 2 * 10**12),
        ("0", 0),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "B", "1kb", "1mib", "-1", "1e3", "0.1B", "1.5", "1 0", "1kiB", "1PB", "٣", "1MiB\x00"],
)
def test_no_sizes(text: str) -> None:
    assert parse_size(text) is None


def test_given_parameters_are_converted_and_the_rest_are_defaults() -> None:
    values = registry.load("filesystem").check_parameters({"size": "1kB", "iterations": 2.0})
    assert (values["size"], values["iterations"], values["buffer"]) == (1000, 2, 1 << 20)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sise": 1}, "filesystem has no parameter 'sise'; known: test, directory, size, "),
        (
            {"size": "1 apple"},
            "filesystem: size = '1 apple' is not allowed: a size such as 256MiB, ",
        ),
        ({"size": 0}, "filesystem: size = 0 is not allowed: a size such as"),
        ({"size": 2**63}, f"filesystem: size = {2**63} is not allowed"),
        ({"iterations": True}, "filesystem: iterations = True is not allowed: a whole number, at "),
        ({"iterations": 1.5}, "filesystem: iterations = 1.5 is not allowed"),
        ({"iterations": "3"}, "filesystem: iterations = '3' is not allowed"),
        (
            {"test": "copy"},
            "filesystem: test = 'copy' is not allowed: one of large_file_copy, smal",
        ),
        (
            {"directory": "a\nb"},
            "filesystem: directory = 'a\\nb' is not allowed: a text of one line",
        ),
        ({"directory": 1}, "filesystem: directory = 1 is not allowed"),
        ({"size": float("nan")}, "filesystem: size = nan is not allowed"),
    ],
)
def test_a_wrong_parameter_is_one_line_with_name_value_and_what_is_allowed(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(registry.ParameterError) as caught:
        registry.load("filesystem").check_parameters(given)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert caught.value.parameter == next(iter(given))


def test_the_nearest_parameter_is_suggested() -> None:
    with pytest.raises(registry.ParameterError, match="did you mean 'size'"):
        registry.load("filesystem").check_parameters({"sise": 1})


def test_the_page_of_benchmarks_names_each() -> None:
    page = (Path(__file__).parents[3] / "docs/benchmarks.md").read_text(encoding="utf-8")
    table = page.partition("## The list")[2].partition("| --- |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`([a-z0-9]+)`", table)) == registry.names()


def test_the_example_on_the_page_is_a_benchmark(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/add-a-benchmark.md").read_text(encoding="utf-8")
    text = page.split("```toml\n")[1].split("```")[0]
    folder = tmp_path / "stream"
    folder.mkdir()
    (folder / "benchmark.toml").write_text(text, encoding="utf-8")
    (folder / "job.sh").write_text(page.split("```bash\n")[1].split("```")[0], encoding="utf-8")
    assert registry.read(folder).parameters["elements"].default == 10000000


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="has not both marks"):
        docs.between("nothing", "BEGIN", "END", "")


@pytest.mark.parametrize("study", ["clients", "distance", "virtual"])
def test_the_demo_gives_only_what_the_benchmarks_take(study: str) -> None:
    demo = (Path(__file__).parents[3] / f"jobscripts/demo/{study}.toml").read_text(encoding="utf-8")
    for table in tomllib.loads(demo)["benchmark"]:
        benchmark = registry.load(table.pop("use"))
        tests = table.pop("test", ["large_file_copy"])
        for test in tests if isinstance(tests, list) else [tests]:
            given = {**table, "test": test} if "test" in benchmark.parameters else table
            assert benchmark.check_parameters(given)
