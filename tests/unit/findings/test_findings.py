"""A test per finding that makes it fire, and one that keeps all quiet."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steelyard.analysis.findings import registry
from steelyard.analysis.findings.finding import Finding, Kind
from steelyard.analysis.findings.registry import RULES, find_all
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.study.job_settings import Job

from .meters import counted_by, two_meters, unlike_parts

ROOT = Path(__file__).parents[3]
KINDS = {rule.kind.code: rule.kind for rule in RULES}
RUNS = 12
STEADY = [10.0, 10.1, 9.9, 10.05, 9.95, 10.1, 9.9, 10.0, 10.02, 9.98, 10.06, 9.94]


def quiet(synthetic: ModuleType, clients: tuple[int, ...] = (1, 2)) -> Any:
    """Return a study without any finding."""
    maker = synthetic.StudyMaker("quiet", {"clients": list(clients)}, {"clients": 1})
    for number in range(RUNS):
        for level in clients:
            add_run(maker, level, number)
    return maker


def add_run(maker: Any, clients: int, number: int, record: bool = True, **more: Any) -> Any:
    # Not the same for all conditions of a block, which would be a drift of all of them.
    usual = STEADY[(number + 5 * (clients - 1)) % RUNS]
    value = more.pop("value", usual)
    node = more.pop("record_values", {})
    run = maker.run("x", {}, {"clients": clients}, number + 1, **more)
    if value is not None and more.get("state", "completed") == "completed":
        maker.result(run, "seconds", value, "s")
    if record:
        maker.record(run, "n1", 10.0, **({"energy_j": 900.0 + usual} | node))
    return run


def found(maker: Any, tmp_path: Path) -> dict[str, Finding]:
    return {finding.kind.code: finding for finding in find_all(summarize(maker.write(tmp_path)))}


def test_a_condition_without_any_value_has_no_mean_of_few_runs(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """SY01 reports its failed runs."""
    maker = quiet(synthetic)
    for number in range(RUNS):
        add_run(maker, 4, number, state="failed", reason="no memory")
    told = found(maker, tmp_path)
    assert "SY01" in told and "SY04" not in told


def test_a_clean_study_has_no_findings(synthetic: ModuleType, tmp_path: Path) -> None:
    assert found(quiet(synthetic), tmp_path) == {}


def with_runs(**more: Any) -> Any:
    def change(maker: Any) -> None:
        add_run(maker, 1, RUNS, **more)

    return change


def with_record(**values: Any) -> Any:
    return with_runs(record_values=values)


def drifting(maker: Any) -> None:
    for number in range(RUNS):
        maker.rows["results"][2 * number]["value"] = 10 + number * 0.05


def a_week_later(maker: Any) -> None:
    for attempt in maker.rows["attempts"][1::2]:
        attempt["start_unix_s"] += 7 * 86400


def two_more_attempts(maker: Any) -> None:
    maker.rows["runs"][0]["attempts"] = 3


def other_nodes(maker: Any) -> None:
    for record in maker.rows["records"][1::2]:
        record["kernel"] = "6.12.1"


def other_type(maker: Any) -> None:
    """Half of the runs of clients=1 were to be on physical nodes, and all nodes are physical."""
    maker.factors["node_type"] = ["physical", "virtual"]
    for number, row in enumerate(maker.rows["runs"]):
        condition = {"clients": 1, "node_type": ("physical", "virtual")[number // 2 % 2]}
        if number % 2 == 0:
            label = f"clients=1 node_type={condition['node_type']}"
            row |= {"condition": json.dumps(condition), "condition_label": label}


def only_few(maker: Any) -> None:
    for table in ("runs", "results", "records", "attempts"):
        del maker.rows[table][8:]


def no_baseline(maker: Any) -> None:
    maker.baseline = {}


def warming(maker: Any) -> None:
    for number in range(5):
        maker.rows["results"][2 * number]["value"] += 3 - number / 10


def two_humps(maker: Any) -> None:
    for number in range(RUNS, 2 * RUNS):
        add_run(maker, 1, number, value=STEADY[number % RUNS] + 2)


def not_undone(maker: Any) -> None:
    run = {key: maker.rows["runs"][0][key] for key in ("run_id", "attempt")}
    maker.rows["network"].append(run | {"node": "n1", "requested": "delay=50ms", "undone": False})


def disagreeing(maker: Any) -> None:
    run = {key: maker.rows["runs"][0][key] for key in ("run_id", "attempt")}
    check = {"source_a": "records", "value_a": 10.0, "source_b": "scheduler", "rule": "equal"}
    for quantity, unit, value in (("cpu_s", "s", 20.0), ("rchar_bytes", "bytes", 10.0)):
        maker.rows["checks"].append(
            run
            | check
            | {"quantity": quantity, "unit": unit, "value_b": value, "bound": 1.0}
            | {"agrees": value == 10.0}
        )


def told_by_qstat(maker: Any) -> None:
    for number, source in enumerate(("server log", "qstat", "qstat")):
        run = {key: maker.rows["runs"][number][key] for key in ("run_id", "attempt")}
        job = {"submission_id": "b1", "JobID": f"{number}.vm", "JobIDRaw": f"{number}.vm"}
        maker.rows["accounting"].append(run | job | {"extra": json.dumps({"source": source})})


def slow_node(maker: Any) -> None:
    for number in range(6):
        add_run(maker, 1, RUNS + number, value=10.2 + number / 100, nodes=("n2",))
        maker.rows["records"][-1]["node"] = "n2"


def other_unit(maker: Any) -> None:
    maker.rows["results"][0] |= {"value": 10_000.0, "unit": "ms"}


def slow_starts(maker: Any) -> None:
    """Of three iterations in each run the first is slow with one client."""
    for number, row in enumerate(list(maker.rows["results"])):
        for iteration in (2, 3):
            wobble = ((7 * number + 5 * iteration) % 11 - 5) / 100
            maker.rows["results"].append(
                row | {"iteration": iteration, "value": row["value"] + wobble}
            )
        if number % 2 == 0:
            row["value"] *= 1.1 + number / 1000


def unlike_bytes(maker: Any) -> None:
    maker.factors["site"], maker.baseline["site"] = ["near", "far"], "near"
    for number in range(4):
        for site, size in (("near", 1e9), ("far", 2e9)):
            condition = {"clients": 1, "site": site}
            run = maker.run("xrootd", {}, condition, number + 1)
            maker.result(run, "seconds", size / 1e8 + STEADY[number], "s")
            maker.result(run, "bytes_read", size, "bytes", None, primary=False)
            bulk = maker.run("xrootd", {"mode": "xrdcp"}, condition, number + 1)
            maker.result(bulk, "bytes_per_s", 1e8 + number, "bytes_per_s", "higher")


def narrower(maker: Any) -> None:
    """With two clients the node hides AVX from the program."""
    for row in list(maker.rows["runs"]):
        level = "x86-64-v3 256 bits" if row["is_baseline"] else "default 128 bits"
        maker.tag((row["run_id"], row["attempt"]), "n1", "npb.vectors", level)


CASES = {
    "SY01": (with_runs(state="timeout"), "1 of 25 runs gave no result: 1 timeout."),
    "SY02": (with_runs(state="pending"), "1 of 25 runs are waiting or running."),
    "SY03": (
        with_runs(valid=False, invalid_reason="17 packets dropped"),
        "1 run ended but did not meet the conditions: 17 packets dropped (1).",
    ),
    "SY04": (only_few, "2 means of a benchmark's main figure rest on fewer than 5 runs."),
    "SY05": (with_runs(value=12.0), "1 value of 25 of the main figures"),
    "SY06": (with_runs(value=30.0), "In 1 of 2 means of a main figure."),
    "SY07": (with_record(energy_j=None), "1 of 25 records have no joules."),
    "SY08": (
        lambda maker: maker.gap("record", "no record of n2"),
        "1 record of a job on a node could not be found.",
    ),
    "SY09": (
        with_record(complete=False, incomplete_reason="a kill"),
        "1 of 25 records are incomplete.",
    ),
    "SY10": (with_record(samples_lost=3), "In 1 of 25 records."),
    "SY11": (
        with_record(cpu_model="AMD EPYC"),
        "1 group of runs ran on nodes that differ among themselves.",
    ),
    "SY12": (other_nodes, "1 difference in what the nodes were."),
    "SY30": (other_type, "1 group of runs."),
    "SY32": (with_record(vm="uml"), "1 of 25 records."),
    "SY31": (narrower, "1 difference in what the program was or used."),
    "SY13": (with_record(exclusive=False), "1 of 25 records are of shared nodes."),
    "SY14": (no_baseline, "2 of 2 groups of runs have none."),
    "SY15": (None, "20 overheads have an interval; about 1 of them"),
    "SY16": (drifting, "In 1 of 4 looks at series of a main figure in the order of time"),
    "SY17": (
        lambda maker: maker.gap("accounting", "sacct did not answer"),
        "1 thing that should be there.",
    ),
    "SY18": (two_more_attempts, "1 of 24 runs."),
    "SY19": (with_runs(value=None), "1 run completed without a value."),
    "SY20": (warming, "In 1 of 2 series of a main figure; the means told are with"),
    "SY21": (two_humps, "In 1 of 2 series of a main figure."),
    "SY23": (not_undone, "After 1 job on a node."),
    "SY25": (slow_node, "In 1 of 1 series of a main figure with several nodes"),
    "SY26": (other_unit, "In 1 run of 24; in no mean."),
    "SY24": (
        disagreeing,
        "CPU time: further apart than the ways of counting explain in 1 of 1 run",
    ),
    "SY22": (with_runs(value=30.0), "1 of 2 means of a main figure."),
    "SY28": (slow_starts, "In 1 of 2 series with iterations inside the runs"),
    "SY29": (lambda maker: maker.rows.clear(), "There is nothing to report."),
    "SY33": (told_by_qstat, "The end of 2 runs is known from them."),
    "SY34": (two_meters, "In 1 of 24 records."),
    "SY35": (unlike_parts, "There are 2 kinds of them."),
    "SY36": (a_week_later, "1 of 1 condition."),
    "SY37": (
        counted_by("cgroup2", "processes"),
        "1 figure counted in one way in a condition and in another in its baseline.",
    ),
    "SY27": (unlike_bytes, "In 1 of 1 comparison with bulk transfers beside it."),
}


def test_there_is_a_case_for_every_code() -> None:
    assert list(KINDS) == sorted(CASES)


def test_names_of_nodes_as_levels_promise_no_type(synthetic: ModuleType, tmp_path: Path) -> None:
    """[place.n1] slurm = "--nodelist=n1": a comparison of two nodes, both physical."""
    maker = quiet(synthetic)
    other_type(maker)
    text = json.dumps(maker.rows["runs"])
    names = text.replace("physical", "n1").replace("virtual", "n2")
    maker.rows["runs"] = json.loads(names)
    maker.factors["node_type"] = ["n1", "n2"]
    assert "SY30" not in found(maker, tmp_path)


def test_the_advice_on_shared_nodes_is_not_what_studies_do_by_default() -> None:
    """It was `exclusive = true`, which every study has unless it says otherwise."""
    assert Job().exclusive
    assert "exclusive = true" not in KINDS["SY13"].advice
    assert "unless [job] has `exclusive = false`" in KINDS["SY13"].advice


def test_other_vectors_are_named_on_both_sides(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = quiet(synthetic)
    narrower(maker)
    for row in maker.rows["runs"]:  # the same on both sides: nothing to tell
        maker.tag((row["run_id"], row["attempt"]), "n1", "npb.version", "Steelyard 0.1.0")
    (place,) = found(maker, tmp_path)["SY31"].places
    assert place.endswith("npb.vectors default 128 bits, the baseline's x86-64-v3 256 bits")


def test_a_command_that_was_rebuilt_meanwhile_is_a_finding_and_another_level_is_none(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    maker = quiet(synthetic)
    for number, row in enumerate(maker.rows["runs"]):
        row |= {"benchmark": "app", "variant": "app"}
        said = row["condition_label"] if number < RUNS else "rebuilt"
        maker.tag((row["run_id"], row["attempt"]), "n1", "app.program_sha256", said)
    places = found(maker, tmp_path)["SY31"].places
    assert len(places) == 2
    assert all("rebuilt" in place for place in places)
    for tag in maker.rows["tags"]:
        tag["value"] = next(
            row["condition_label"] for row in maker.rows["runs"] if row["run_id"] == tag["run_id"]
        )
    (tmp_path / "again").mkdir()
    assert "SY31" not in found(maker, tmp_path / "again")


def test_equal_vectors_are_no_finding(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = quiet(synthetic)
    for row in maker.rows["runs"]:
        maker.tag((row["run_id"], row["attempt"]), "n1", "npb.vectors", "x86-64-v3 256 bits")
    assert found(maker, tmp_path) == {}


@pytest.mark.parametrize(
    ("sources", "places"),
    [
        (("cgroup2", "cgroup2"), []),
        (("cgroup1", "rusage"), []),  # the largest process is the least by every way
        (
            ("program", "cgroup2"),
            [
                "memory: sum of resident sets of the program alone and the job's cgroup",
                "CPU time and bytes: of all of the job and of the program alone",
            ],
        ),
        (("program", "program"), []),
    ],
)
def test_use_of_processes_that_is_counted_in_two_ways(
    synthetic: ModuleType, tmp_path: Path, sources: tuple[str, ...], places: list[str]
) -> None:
    maker = quiet(synthetic)
    counted_by(*sources)(maker)
    finding = found(maker, tmp_path).get("SY37")
    assert (list(finding.places) if finding else []) == [f"x · clients=2: {one}" for one in places]


@pytest.mark.parametrize("code", list(CASES), ids=str)
def test_the_finding_fires(code: str, synthetic: ModuleType, tmp_path: Path) -> None:
    change, text = CASES[code]
    clients = tuple(range(1, 12)) if code == "SY15" else (1, 2)
    maker = quiet(synthetic, clients)
    if change is not None:
        change(maker)
    findings = found(maker, tmp_path)
    assert code in findings
    assert text in findings[code].text
    assert KINDS[code].example in " ".join((findings[code].text, *findings[code].places))


def test_unlike_nodes_are_told_where_the_node_type_is_a_factor_too(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Unlike its baseline it is meant to be; among its own runs a condition is not."""
    types = ("physical", "virtual")
    maker = synthetic.StudyMaker("types", {"node_type": types}, {"node_type": "physical"})
    for number, node_type in enumerate(types * 6):
        run = maker.run("x", {}, {"node_type": node_type}, number // 2 + 1)
        maker.result(run, "seconds", 10 + STEADY[number], "s")
        kernel = "6.1.0-21-amd64" if number == 7 else "6.1.0-18-amd64"
        maker.record(run, "n1", 10.0, energy_j=900.0, node_type=node_type, kernel=kernel)
    findings = found(maker, tmp_path)
    assert findings["SY11"].places == (
        "x · node_type=virtual: kernel 6.1.0-18-amd64 and 6.1.0-21-amd64",
    )
    assert "SY12" not in findings


@pytest.mark.parametrize(("late", "fires"), [(0, False), (1, True)])
def test_late_samples_count_from_1_percent(
    late: int, fires: bool, synthetic: ModuleType, tmp_path: Path
) -> None:
    maker = quiet(synthetic)
    with_record(missed_deadlines=late, samples=60)(maker)
    assert ("SY10" in found(maker, tmp_path)) is fires


def test_a_mean_is_never_over_two_units(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = quiet(synthetic)
    other_unit(maker)
    summary = summarize(maker.write(tmp_path))
    row = summary.row("x", "clients=1", "seconds")
    assert row is not None and row.interval is not None
    assert (row.n, row.missing, row.metric.unit) == (RUNS - 1, 1, "s")
    assert row.interval.mean == pytest.approx(10.0, abs=0.05)
    (place,) = next(f for f in find_all(summary) if f.kind.code == "SY26").places
    assert place == f"x · seconds: ms in place of s in {maker.rows['runs'][0]['run_id']}"


def test_places_name_the_runs(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = quiet(synthetic)
    run_id, _ = add_run(maker, 1, RUNS, value=12.0)
    assert found(maker, tmp_path)["SY05"].places == (f"x · clients=1 · seconds: {run_id}",)


def test_warm_up_humps_and_repeats_are_told_with_numbers(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    maker = quiet(synthetic)
    warming(maker)
    findings = found(maker, tmp_path / "a")
    (place,) = findings["SY20"].places
    assert place == (
        "x · clients=1 · seconds: the first 6 of 12 runs: mean 11.2 ± 0.9 s with them, "
        "9.98 ± 0.06 s without"
    )
    (place,) = findings["SY22"].places
    assert re.fullmatch(
        r".*: ± 8.4 % of the mean with n = 12; \d+ runs give ± 1 % in 9 of 10.*", place
    )
    maker = quiet(synthetic)
    two_humps(maker)
    (place,) = found(maker, tmp_path / "b")["SY21"].places
    assert place.startswith("x · clients=1 · seconds: 12 runs around 10.0")
    assert ", 12 around 12 s (p = 0.002)" in place


def test_a_factor_of_node_types_is_no_surprise(synthetic: ModuleType, tmp_path: Path) -> None:
    levels = ["physical", "virtual"]
    maker = synthetic.StudyMaker("types", {"node_type": levels}, {"node_type": "physical"})
    for number in range(RUNS):
        for level in levels:
            run = maker.run("x", {}, {"node_type": level}, number + 1)
            maker.result(run, "seconds", STEADY[number], "s")
            maker.record(run, "n1", 10.0, energy_j=900.0, node_type=level, kernel=level)
    assert found(maker, tmp_path) == {}


def test_errors_come_first_then_codes_in_order(demo_folder: Path) -> None:
    findings = find_all(summarize(demo_folder))
    words = [finding.kind.severity.value for finding in findings]
    assert words == sorted(words, key=["error", "warning", "note"].index)
    assert findings[0].kind.code == "SY01"


def test_codes_count_up() -> None:
    assert list(KINDS) == [f"SY{number:02}" for number in range(1, len(RULES) + 1)]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.code)
def test_every_finding_says_why_and_from_where(kind: Kind) -> None:
    assert all((kind.title, kind.why, kind.advice, kind.example, kind.source))
    pages = re.findall(r"docs/\w+\.md", f"{kind.source} {kind.advice}")
    assert [page for page in pages if not (ROOT / page).is_file()] == []


def test_the_page_has_them_all() -> None:
    page = (ROOT / registry.PAGE).read_text(encoding="utf-8")
    assert registry.update_page(page) == page, f"{registry.PAGE} is stale: run `make docs`"
    assert page.count("\n| SY") == len(KINDS)


def test_the_luck_of_jobs_is_no_finding_about_runs(synthetic: ModuleType, tmp_path: Path) -> None:
    """4 jobs of 12 runs each on a node of its own: 4 values say nothing of nodes, humps or order."""
    maker = synthetic.StudyMaker("luck", {"clients": [1]}, {"clients": 1})
    for job, luck in enumerate((13.0, 10.0, 10.4, 9.8)):
        for number in range(12):
            run = maker.run("x", {}, {"clients": 1}, 12 * job + number + 1, nodes=(f"n{job}",))
            maker.rows["attempts"][-1]["job_id"] = f"7{job}"
            maker.result(run, "seconds", luck * STEADY[number] / 10, "s")
    told = found(maker, tmp_path)
    by_runs = {"SY20", "SY21", "SY25", "SY16"}
    assert not by_runs & set(told)
    (wide,) = told["SY22"].places
    assert re.search(r"± 23 % of the mean with n = 48; \d+ jobs give ± 1 %", wide)


@pytest.mark.parametrize(("others", "is_told"), [(0, True), (30, False)])
def test_a_weak_warm_up_is_none_among_many_series(
    synthetic: ModuleType, tmp_path: Path, others: int, is_told: bool
) -> None:
    """The first six of 12 runs are the slowest, as in 2 of C(12, 6) = 924 orders."""
    maker = synthetic.StudyMaker("weak", {"clients": [1]}, {"clients": 1})
    for variant in range(1 + others):
        for number, value in enumerate(STEADY):
            run = maker.run("x", {"v": variant}, {"clients": 1}, number + 1)
            slow = 1.0 if not variant and number < 6 else 0.0
            maker.result(run, "seconds", value + slow, "s")
    assert ("SY20" in found(maker, tmp_path)) is is_told


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ("processes", "what the processes used was not counted: 1 process ended unseen"),
        ("job", "the sampler ended before the job: 1 process ended unseen"),
    ],
)
def test_an_incomplete_record_says_what_is_missing(
    of: str, words: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    """Where only the processes' use is missing nothing was cut short."""
    record = json.dumps({"missing": {}, "incomplete_of": of})
    maker = quiet(synthetic)
    with_record(complete=False, incomplete_reason="1 process ended unseen", record=record)(maker)
    (place,) = found(maker, tmp_path)["SY09"].places
    assert place.partition(": ")[2] == words
