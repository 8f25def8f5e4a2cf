"""Every job on every node leaves a record; its tags and totals are in the accounting."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.throwaway_lab import LIMIT_S, Lab

from steelyard.wrappers.cluster.cluster_config import Layout

RUN = "touch running.$SLURM_JOB_ID"


def test_a_batch_job_on_one_node_has_a_record_and_samples(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", "-J", "one", script="head -c 3000000 /dev/zero >out; sleep 0.5")
    (record,) = lab.records(job, 1)
    assert record["node"] == "n1"
    assert record["job"]["job_id"] == job
    assert record["job"]["scheduler"] == "slurm"
    assert record["job"]["name"] == "one"
    assert record["job"]["array_job_id"] is None
    assert record["job"]["restart_count"] == "0"
    assert record["tags"] == {}
    assert 0.5 <= record["elapsed_s"] < LIMIT_S
    assert 3_000_000 <= record["io"]["wchar_bytes"] < 3_010_000
    assert 0 < record["cpu"]["cpu_s"] < 2
    assert record["probe"]["node_type"] in ("physical", "virtual", "container")
    with (lab.folder(job) / record["samples_file"]).open() as file:
        samples = list(csv.DictReader(file))
    assert len(samples) == record["sampler"]["samples"]
    # A busy machine lets it miss some.
    assert record["sampler"]["samples"] + record["sampler"]["missed_deadlines"] >= 4
    comment = lab.comment(job)
    assert comment["nodes"] == comment["nodes_measured"] == 1
    assert comment["node_type"] == record["probe"]["node_type"]
    assert 3_000_000 <= comment["wchar_bytes"] < 3_010_000
    energy = record["energy"]["energy_j"]
    assert (comment["energy_j"] is None) == (energy is None)


def test_a_job_on_three_nodes_has_three_records_and_publish_writes_their_sum(lab: Lab) -> None:
    script = "srun sh -c 'head -c 1000000 /dev/zero >out.$SLURM_PROCID; sleep 0.7'"
    for _ in range(5):  # until the plugin's half second was enough
        job = lab.sbatch("-N3", "-w", "n[1-3]", script=script)
        records = lab.records(job, 3)
        lab.wait_state(job, "COMPLETED")
        if lab.sacct(job, "AdminComment")[0][0]:
            break
    assert [record["node"] for record in records] == ["n1", "n2", "n3"]
    assert all(1_000_000 <= record["io"]["wchar_bytes"] < 1_020_000 for record in records)
    first = lab.comment(job, by_plugin=True)
    assert (first["nodes"], first["nodes_measured"], first["partial"]) == (3, 1, True)
    assert 1_000_000 <= first["wchar_bytes"] < 1_020_000
    lab.publish()
    comment = lab.comment(job)
    assert (comment["nodes"], comment["nodes_measured"], comment["partial"]) == (3, 3, False)
    assert 3_000_000 <= comment["wchar_bytes"] < 3_060_000


def test_a_node_that_no_step_comes_to_takes_nothing_from_the_sum(lab: Lab) -> None:
    job = lab.sbatch("-N2", "-w", "n1,n2", script="head -c 3000000 /dev/zero >out; sleep 0.5")
    first, idle = lab.records(job, 2)
    assert (first["processes"]["named"], idle["processes"]["named"]) == (True, False)
    assert idle["cpu"]["cpu_s"] is None
    lab.wait_state(job, "COMPLETED")
    lab.sacct(job, "End")  # publish queries sacct
    lab.publish()
    comment = lab.comment(job)
    assert (comment["nodes_measured"], comment["nodes_idle"]) == (2, 1)
    shown = json.loads(lab.steelyard("show", "--json", job))["totals"]
    for totals in (comment, shown):
        assert totals["wchar_bytes"] == pytest.approx(3_000_000, abs=100_000)
        assert totals["cpu_s"] == pytest.approx(first["cpu"]["cpu_s"], abs=0.2)
        assert totals["max_memory_bytes"] > 0


def test_what_is_the_whole_nodes_is_not_given_as_the_jobs(lab: Lab) -> None:
    """The nodes of this cluster share a host, so that none is a job's own."""
    job = lab.sbatch("-w", "n1", "--exclusive", script="sleep 0.3")
    (record,) = lab.records(job, 1)
    assert record["network"]["rx_bytes"] >= 0
    assert (record["network"]["scope"], record["energy"]["scope"]) == ("node", "node")
    comment = lab.comment(job)
    shown = json.loads(lab.steelyard("show", "--json", job))
    assert comment["exclusive"] is record["job"]["exclusive"] is None
    for totals, missing in (
        (comment, comment["missing"]),
        (shown["totals"], shown["totals_missing"]),
    ):
        for name in ("energy_j", "rx_bytes", "tx_bytes"):
            assert totals[name] is None
            assert missing[name]


def test_array_tasks_are_told_apart(lab: Lab) -> None:
    script = "echo $SLURM_JOB_ID > id.$SLURM_ARRAY_TASK_ID; sleep 0.2"
    array = lab.sbatch("--array=3,5", "-w", "n1,n2", "-N2", "--tag=k=v", script=script)
    ids = {}
    for task in ("3", "5"):
        lab.wait_state(f"{array}_{task}", "COMPLETED")
        ids[task] = (lab.work / f"id.{task}").read_text().strip()
        record = lab.records(ids[task], 2)[0]
        assert record["job"]["array_job_id"] == array
        assert record["job"]["array_task_id"] == task
        assert lab.comment(f"{array}_{task}")["tags"] == {"k": "v"}
    assert ids["3"] != ids["5"]


def test_a_job_of_srun_alone_has_records_and_admin_comment(lab: Lab) -> None:
    """srun may end a job before its step's comment comes (`steelyard publish` writes it then): of
    several jobs one has it."""
    for _ in range(20):
        job = lab.srun("-N2", "-w", "n1,n2", "--tag=how=srun")
        records = lab.records(job, 2)
        assert [record["tags"] for record in records] == [{"how": "srun"}] * 2
        if lab.sacct(job, "AdminComment")[0][0]:
            break
    comment = lab.comment(job)
    assert (comment["tags"], comment["nodes"]) == ({"how": "srun"}, 2)


def test_repeated_tags_reach_every_node_that_runs_a_step(lab: Lab) -> None:
    script = "srun --tag=step=1 true"
    job = lab.sbatch(
        "-N2", "-w", "n1,n2", "--tag=a=1", "--tag", "b=x y", "--tag=a=2", script=script
    )
    first, second = lab.records(job, 2, complete=False)
    assert first["tags"] == second["tags"] == {"a": "2", "b": "x y", "step": "1"}
    assert lab.comment(job)["tags"] == {"a": "2", "b": "x y"}


def test_tags_survive_a_job_without_environment_and_do_not_leak_into_jobs_of_jobs(lab: Lab) -> None:
    inner = "sbatch --parsable -w n1 -o /dev/null --wrap true > inner"
    path = lab.run("sh", "-c", "echo $PATH").stdout.strip()
    job = lab.sbatch("--export=NONE", "-w", "n1", "--tag=k=v", script=f"PATH={path}; {inner}")
    assert lab.records(job, 1, complete=False)[0]["tags"] == {"k": "v"}
    inner_job = (lab.work / "inner").read_text().strip()
    lab.jobs.append(inner_job)
    assert lab.records(inner_job, 1, complete=False)[0]["tags"] == {}


def test_without_samples_there_are_totals(lab: Lab) -> None:
    script = "srun sh -c 'head -c 3000000 /dev/zero >out.$SLURM_PROCID; sleep 0.5'"
    job = lab.sbatch("-N2", "-w", "n1,n2", "--sample-rate=0", script=script)
    records = lab.records(job, 2)
    for record in records:
        assert record["sampler"]["rate_hz"] == 0
        assert 0.5 <= record["elapsed_s"] < LIMIT_S
        assert record["io"]["wchar_bytes"] == pytest.approx(3_000_000, abs=100_000)
        assert 0 < record["cpu"]["cpu_s"] < 2
        assert record["network"]["rx_bytes"] >= 0
        assert record["processes"]["max_processes"] is None
    lab.wait_state(job, "COMPLETED")
    lab.sacct(job, "End")
    lab.publish()
    comment = lab.comment(job)
    assert comment["nodes_measured"] == 2
    assert comment["wchar_bytes"] == pytest.approx(6_000_000, abs=200_000)
    assert comment["cpu_s"] == pytest.approx(sum(r["cpu"]["cpu_s"] for r in records), abs=0.3)
    assert comment["elapsed_s"] == pytest.approx(max(r["elapsed_s"] for r in records), abs=5)


def test_the_user_chooses_the_rate(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", "--sample-rate=50", script="sleep 1")
    (record,) = lab.records(job, 1)
    assert record["sampler"]["rate_hz"] == 50
    # A busy machine lets it miss some.
    assert record["sampler"]["samples"] + record["sampler"]["missed_deadlines"] > 30


TAG = (
    "expected KEY=VALUE, KEY a letter and up to 63 more of A-Z a-z 0-9 _ . -, "
    "VALUE 1 to 256 printable ASCII characters; found "
)
RATE = "expected a rate in Hz: 0 (totals only), or 0.001 to 100"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("tag", "nonsense", f"{TAG}no '='"),
        ("tag", "1k=v", f"{TAG}another character in KEY"),
        ("tag", "k=", f"{TAG}no VALUE"),
        ("tag", "k=a\tb", f"{TAG}another character in VALUE"),
        ("tag", "k" * 65 + "=v", f"{TAG}a KEY of 65 bytes"),
        ("sample-rate", "fast", RATE),
        ("sample-rate", "-1", RATE),
        ("sample-rate", "101", RATE),
        ("sample-rate", "1e-301", RATE),
    ],
)
@pytest.mark.parametrize("program", ["sbatch", "srun"])
def test_wrong_options_are_refused_before_anything_is_queued(
    commands: Lab, program: str, option: str, value: str, message: str
) -> None:
    wrong = f"--{option}={value}"
    command = ["--wrap", "true"] if program == "sbatch" else ["true"]
    done = commands.run(program, wrong, *command)
    assert done.returncode == 255
    first = done.stderr.split("\n")[0]
    shown = wrong.replace("\t", "?")  # what could write lines into a log is not repeated
    assert first == f"{program}: error: steelyard: {shown}: {message}"
    assert done.stdout == ""


def test_right_options_are_taken(lab: Lab) -> None:
    longest = "k" * 64 + "=" + "v" * 256
    job = lab.srun("--tag", longest, "--sample-rate=100", "-w", "n1")
    assert lab.records(job, 1, complete=False)[0]["tags"] == {"k" * 64: "v" * 256}


def test_help_says_whose_options_they_are(commands: Lab) -> None:
    for program in ("srun", "sbatch", "salloc"):
        text = commands.run(program, "--help").stdout
        assert text.count("[steelyard]") == 4


def test_what_a_program_writes_to_the_record_folder_is_not_believed(lab: Lab) -> None:
    """A user's own file in the folder of records cannot replace a record."""
    job = lab.sbatch("-w", "n1", script="sleep 0.3")
    (record,) = lab.records(job, 1)
    path = next(iter(lab.folder(job).glob("*.json")))
    assert path.stat().st_mode & 0o777 == 0o440
    assert lab.folder(job).stat().st_mode & 0o777 == 0o755
    assert json.loads(Path(path).read_text()) == record


def test_the_database_has_a_folder_of_its_own_for_temporary_tables(commands: Lab) -> None:
    """In /tmp another cluster's mariadbd removed them as it started: ours answered nothing."""
    at = Layout(commands.cluster.dir)
    client = ("mariadb", "--no-defaults", f"--socket={at.database_socket}", "-Ne")
    assert commands.run(*client, "SELECT @@tmpdir").stdout.strip() == str(at.dir / "private")
