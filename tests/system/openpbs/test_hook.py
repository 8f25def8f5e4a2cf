"""The hook with the data of a real OpenPBS, and a real steelyard-node below it."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.system.openpbs.conftest import REPOSITORY, Mom, job, recorded

DELAY = {"place": "pack", "steelyard": "netem=delay%3D50ms"}
TOO_FEW_WORDS = (
    "steelyard: --netem=delay=50: netem: delay=50: "
    "expected a time with unit us, ms or s, such as 50ms"
)
EXCLUSIVE = "the job shares its node, and has no cgroup there"


@pytest.mark.parametrize(
    "event", ["QUEUEJOB", "EXECJOB_BEGIN", "EXECJOB_EPILOGUE", "EXECJOB_END", "EXECHOST_PERIODIC"]
)
def test_what_a_real_server_told_is_accepted(mom: Mom, event: str) -> None:
    seen = list(recorded(event))[:4]
    assert len(seen) >= 2
    for said in seen:
        told = mom.run(said)
        assert (told["accepted"], told["log"]) == (True, [])


def test_a_job_is_measured_and_told_to_the_server(mom: Mom, tmp_path: Path) -> None:
    zone = tmp_path / "tree/sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    (zone / "energy_uj").write_text("00000000001000000\n")
    mom.config["root"] = str(tmp_path / "tree")
    alone = job(Resource_List={"place": "scatter:excl", "steelyard": "tag=a%3Db"}, run_count="2")
    assert mom.run({"event": "EXECJOB_BEGIN", "job": alone})["log"] == []
    (zone / "energy_uj").write_text("00000000013500000\n")
    told = mom.run({"event": "EXECJOB_EPILOGUE", "job": {**alone, "Exit_status": "3"}})
    assert told["log"] == []
    assert told["used"]["energy"] == pytest.approx(12.5, abs=1e-9)
    assert set(json.loads(told["used"]["steelyard_used"])) == {"vm"}
    totals = json.loads(told["used"]["steelyard_used"])["vm"]
    assert totals["energy_j"] == pytest.approx(12.5, abs=1e-9)
    assert totals["tags"] == {"a": "b"}
    who = mom.record("41.vm")["job"]
    assert who["scheduler"] == "pbs"
    assert who["job_id"] == "41.vm"
    assert who["restart_count"] == "1"
    assert who["user_id"] == "65533"
    assert who["nodes"] == "vm"
    assert who["exclusive"] is True
    assert mom.record("41.vm")["incomplete_of"] == "processes"


@pytest.mark.parametrize("event", ["EXECJOB_END", "EXECJOB_ABORT"])
def test_an_end_without_a_begin(mom: Mom, event: str) -> None:
    """After a failed begin nothing ran."""
    told = mom.run({"event": event, "job": job(Exit_status="-2")})
    assert (told["accepted"], told["log"]) == (True, [])
    assert not list(mom.records.iterdir())


def test_a_job_whose_begin_nobody_told_has_a_record_that_says_so(mom: Mom) -> None:
    """The job is older than the hook, or the hook was off for a moment."""
    odd = job(Resource_List={"place": "excl", "steelyard": "netem=delay%3D50ms:tag=a%3Db"})
    for event in ("EXECJOB_EPILOGUE", "EXECJOB_END"):
        told = mom.run({"event": event, "job": {**odd, "Exit_status": "0"}})
        assert (told["accepted"], told["log"]) == (True, [])
        assert "energy" not in told["used"], "no joules of a moment"
    record = mom.record("41.vm")
    assert record["complete"] is False
    assert record["incomplete_reason"].startswith("the job's start was not reported on this node")
    assert record["tags"] == {"a": "b"}
    assert record["network_conditions"] is None
    assert "was not reported" in record["missing"]["network_conditions"]


def test_a_job_that_is_known_gets_no_second_record(mom: Mom) -> None:
    for event in ("EXECJOB_BEGIN", "EXECJOB_END", "EXECJOB_EPILOGUE"):
        assert mom.run({"event": event, "job": job()})["accepted"]
    assert mom.record("41.vm")["incomplete_of"] == "processes"


def test_begun_twice_is_one_record(mom: Mom) -> None:
    for _ in range(2):
        assert mom.run({"event": "EXECJOB_BEGIN", "job": job()})["accepted"]
    mom.run({"event": "EXECJOB_END", "job": job()})
    assert mom.record("41.vm")["incomplete_of"] == "processes"


def test_what_pbs_attach_brings_is_told(mom: Mom) -> None:
    """The kernel does not count here: the record states that."""
    mom.run({"event": "EXECJOB_BEGIN", "job": job()})
    told = mom.run({"event": "EXECJOB_ATTACH", "job": job(), "pid": os.getpid()})
    assert (told["accepted"], told["log"]) == (True, [])
    mom.run({"event": "EXECJOB_EPILOGUE", "job": {**job(), "Exit_status": "0"}})
    record = mom.record("41.vm")
    assert record["complete"] is False
    assert record["incomplete_reason"].startswith("neither the kernel nor a cgroup has counted")


def test_a_task_of_an_array(mom: Mom) -> None:
    task = job(id="8[1].vm")
    assert mom.run({"event": "EXECJOB_BEGIN", "job": task})["log"] == []
    mom.run({"event": "EXECJOB_EPILOGUE", "job": task})
    who = json.loads(_only_json(mom, "8[1].vm"))["job"]
    assert (who["job_id"], who["array_job_id"], who["array_task_id"]) == ("8[1].vm", "8[].vm", "1")


def _only_json(mom: Mom, job_id: str) -> str:
    (path,) = (p for p in (mom.records / job_id).iterdir() if p.suffix == ".json")
    return path.read_text()


@pytest.mark.parametrize("name", ['a"b $(touch pwned) `touch pwned`', "größer", "a\nb", "-x", "'"])
def test_names_that_somebody_chose(mom: Mom, name: str) -> None:
    variables = {"V": "x" * 4096, "W": "q\"'\n$(touch pwned)", "STEELYARD_TAGS": "a=b;b=c d"}
    odd = job(Job_Name=name, Variable_List=variables)
    assert mom.run({"event": "EXECJOB_BEGIN", "job": odd})["accepted"]
    told = mom.run({"event": "EXECJOB_EPILOGUE", "job": odd})
    assert json.loads(told["used"]["steelyard_used"])["vm"]["tags"] == {"a": "b", "b": "c d"}
    assert mom.record("41.vm")["job"]["name"] == (None if "\n" in name else name)
    assert list(mom.home.rglob("pwned")) == []


def test_variables_become_the_resource(mom: Mom) -> None:
    variables = {"STEELYARD_NETEM": "delay=50ms\\,loss=1%", "STEELYARD_TAGS": "a=b;c=d"}
    told = mom.run({"event": "QUEUEJOB", "job": job(Variable_List=variables)})
    assert told["refused"] is None
    text = "netem=delay%3D50ms%2Closs%3D1%25:tag=a%3Db:tag=c%3Dd"
    assert told["asked"] == {"place": "pack", "steelyard": text}


def test_the_resource_wins_over_variables(mom: Mom) -> None:
    both = job(
        Variable_List={"STEELYARD_NETEM": "delay=1ms", "STEELYARD_CACHE": "warm"},
        Resource_List={"steelyard": "netem=delay%3D50ms"},
    )
    told = mom.run({"event": "QUEUEJOB", "job": both})
    assert told["asked"] == {"steelyard": "netem=delay%3D50ms:cache=warm"}


@pytest.mark.parametrize("event", ["QUEUEJOB", "MODIFYJOB"])
@pytest.mark.parametrize(
    "asks",
    [
        {"Variable_List": {"STEELYARD_NETEM": "delay=50"}},
        {"Resource_List": {"steelyard": "netem=delay%3D50"}},
    ],
)
def test_a_bad_specification_hears_what_sbatch_says(mom: Mom, event: str, asks: Any) -> None:
    told = mom.run({"event": event, "job": job(**asks)})
    assert told["refused"] == TOO_FEW_WORDS
    assert not told["deleted"]


def test_a_comma_that_qsub_took(mom: Mom) -> None:
    variables = {"STEELYARD_NETEM": "delay=50ms", "loss": "1%"}
    told = mom.run({"event": "QUEUEJOB", "job": job(Variable_List=variables)})
    assert told["refused"] == (
        "steelyard: -v STEELYARD_NETEM=delay=50ms,loss=1%: "
        "qsub ends a variable at a comma: write '\\,' for it"
    )


def test_a_condition_that_cannot_be_had(mom: Mom) -> None:
    """Deleted, then rejected: a rejection alone is tried 21 times by the server."""
    told = mom.run({"event": "EXECJOB_BEGIN", "job": job(Resource_List=DELAY)})
    assert told["deleted"]
    assert told["refused"].startswith("steelyard: --netem=delay=50ms: ")
    assert EXCLUSIVE in told["refused"] or "policy" in told["refused"], told["refused"]
    assert list((mom.home / "run/job").glob("*.json")) == []


NETEM = {"STEELYARD_NETEM": "delay=50ms"}
SHARED = (
    "steelyard: --netem=delay=50ms: netem: only for jobs that have their nodes for themselves "
    "(exclusive_only in {}): ask for --exclusive (Slurm), -n (Torque) or "
    "-l select=1:ncpus=1 -l place=scatter:excl (OpenPBS)"
)


def qsub(mom: Mom, resources: dict[str, str], policy: str, **more: Any) -> str | None:
    """Return the answer of the server's hook to `qsub -l ... -v STEELYARD_NETEM=delay=50ms`.

    None: queued. The server has nodes of 4 processors; a job names no queue, as most do.
    """
    path = mom.home / "netem.conf"
    path.write_text(policy)
    mom.config["netem_policy"] = str(path)
    asked = {**job(), "queue": "", "Variable_List": NETEM, "Resource_List": resources}
    told = mom.run({"event": "QUEUEJOB", "job": asked}, **more)
    said = told["refused"]
    return None if said is None else str(said).replace(str(path), "{}")


@pytest.mark.parametrize(
    "resources",
    [
        {},
        {"walltime": "00:01:00", "ncpus": "2"},
        {"select": "1:ncpus=3", "place": "scatter"},
        {"nodes": "1:ppn=2+1"},
        {"select": "1:ncpus=1", "place": "scatter:shared"},
    ],
)
def test_a_condition_without_whole_nodes_is_refused_at_qsub(
    mom: Mom, resources: dict[str, str]
) -> None:
    assert qsub(mom, resources, "enabled yes\n") == SHARED
    assert qsub(mom, resources, "enabled yes\nexclusive_only no\n") is None


@pytest.mark.parametrize(
    ("resources", "more"),
    [
        ({"select": "1:ncpus=1", "place": "scatter:excl"}, {}),
        ({"nodes": "1:ppn=1#excl"}, {}),
        ({"select": "2:ncpus=2"}, {}),  # may be packed on a node of 4: the node decides
        ({"nodes": "1:ppn=4"}, {}),
        ({}, {"server_default": {"place": "scatter:excl"}}),
        ({}, {"queue_default": {"workq": {"place": "exclhost"}}}),
        ({}, {"vnodes": {"vm": 1}}),
        ({}, {"broken": ["vnodes"]}),
    ],
)
def test_what_may_have_whole_nodes_is_queued(
    mom: Mom, resources: dict[str, str], more: dict[str, Any]
) -> None:
    assert qsub(mom, resources, "enabled yes\n", **more) is None


def test_processors_do_not_count_where_the_site_says_so(mom: Mom) -> None:
    mom.config["exclusive_by_ncpus"] = False
    assert qsub(mom, {"select": "1:ncpus=4"}, "enabled yes\n") == SHARED


def test_the_command_of_the_page_is_queued(mom: Mom) -> None:
    """README's own qsub on OpenPBS: its -l and -v as qsub hands them to the server."""
    row = next(
        line for line in (REPOSITORY / "README.md").read_text().splitlines()
        if line.startswith("| a job under other conditions |")
    )  # fmt: skip
    command = re.findall(r"`(qsub [^`]*)`", row.split("|")[4])
    assert len(command) == 1
    resources = dict(re.findall(r"-l (\w+)=(\S+)", command[0]))
    assert re.findall(r"-v (\S+)", command[0]) == ["STEELYARD_NETEM=delay=50ms"]
    assert qsub(mom, resources, "enabled yes\n") is None


def test_an_altered_job_keeps_its_place(mom: Mom) -> None:
    path = mom.home / "netem.conf"
    path.write_text("enabled yes\n")
    mom.config["netem_policy"] = str(path)
    altered = job(Resource_List={"steelyard": "netem=delay%3D50ms"})
    for place, is_refused in (("scatter:excl", False), ("scatter", True)):
        before = job(Resource_List={"select": "1:ncpus=1", "place": place})
        told = mom.run({"event": "MODIFYJOB", "job": altered, "job_o": before})
        assert (told["refused"] is not None) is is_refused


@pytest.mark.parametrize("program", ["missing", "hangs", "dies"])
def test_a_node_without_a_working_program(mom: Mom, tmp_path: Path, program: str) -> None:
    path = tmp_path / program
    mom.config.update(node_program=str(path), begin_limit_s=0.5, check_limit_s=0.5, end_limit_s=0.5)
    if program != "missing":
        path.write_text(
            "#!/bin/sh\n" + ("exec sleep 60\n" if program == "hangs" else "kill -9 $$\n")
        )
        path.chmod(0o755)
    tagged = job(Resource_List={"steelyard": "tag=a%3Db"})
    for event in ("QUEUEJOB", "EXECJOB_BEGIN", "EXECJOB_EPILOGUE", "EXECJOB_END"):
        told = mom.run({"event": event, "job": tagged})
        assert told["accepted"]
        assert len(told["log"]) == 1, told["log"]
    asked = mom.run({"event": "QUEUEJOB", "job": job(Resource_List=DELAY)})
    assert "cannot be checked on the server's host" in asked["refused"]
    begun = mom.run({"event": "EXECJOB_BEGIN", "job": job(Resource_List=DELAY)})
    assert begun["deleted"]
    assert begun["refused"].startswith("steelyard: ")


@pytest.mark.parametrize("broken", ["job", "in_ms_mom", "resources_used", "log"])
@pytest.mark.parametrize("event", ["QUEUEJOB", "EXECJOB_BEGIN", "EXECJOB_EPILOGUE", "EXECJOB_END"])
def test_no_fault_reaches_the_job(mom: Mom, event: str, broken: str) -> None:
    said = {"event": event, "job": job(Resource_List={"steelyard": "sample-rate=x"})}
    if event == "QUEUEJOB":
        said["job"] = job()
    assert mom.run(said, broken=[broken])["accepted"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"begin_limit_s": "x", "who": 1}'])
def test_a_configuration_that_is_wrong(mom: Mom, text: str) -> None:
    config = mom.home / "wrong.json"
    config.write_text(text)
    told = mom.run({"event": "EXECJOB_BEGIN", "job": job()}, config=str(config))
    assert told["accepted"]
    assert told["log"] != []


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("begin_limit_s", "25", "a number of seconds above 0"),
        ("end_limit_s", -1, "a number of seconds above 0"),
        ("protect", "ldap", "a list of hosts"),
        ("exclusive_by_ncpus", "no", "true or false"),
        ("record_dir", ["/r"], "a text or a number"),
        ("bpf", False, '"yes" or "no"'),
    ],
)
def test_a_setting_of_another_kind_is_told_and_not_used(
    mom: Mom, key: str, value: Any, wanted: str
) -> None:
    mom.config[key] = value
    told = mom.run({"event": "EXECHOST_STARTUP", "job": {}})
    assert told["log"] == [f"steelyard: config: {key}: expected {wanted}, found {value!r}"]


def test_an_end_that_fails_does_not_let_a_refused_job_run(mom: Mom, tmp_path: Path) -> None:
    program = tmp_path / "answers"
    program.write_text('#!/bin/sh\n[ "$2" = end ] && echo "{" && exit 0\nkill -9 $$\n')
    program.chmod(0o755)
    mom.config["node_program"] = str(program)
    told = mom.run({"event": "EXECJOB_BEGIN", "job": job(Resource_List=DELAY)})
    assert told["deleted"]
    assert told["refused"].startswith("steelyard: ")


@pytest.mark.parametrize("at", ["begin", "end"])
def test_an_alarm_does_not_let_a_job_run_without_its_condition(
    mom: Mom, tmp_path: Path, at: str
) -> None:
    """PBS raises it as KeyboardInterrupt, also while an incomplete begin is undone."""
    program = tmp_path / "hangs"
    program.write_text(f'#!/bin/sh\n[ "$2" = {at} ] || exit 1\nkill -INT $PPID\nexec sleep 1\n')
    program.chmod(0o755)
    mom.config["node_program"] = str(program)
    told = mom.run({"event": "EXECJOB_BEGIN", "job": job(Resource_List=DELAY)})
    assert told["deleted"]
    assert not told["accepted"]
    assert mom.run({"event": "EXECJOB_BEGIN", "job": job()})["accepted"]


def test_a_user_unknown_here(mom: Mom) -> None:
    stranger = {"users": {}}
    asked = mom.run({"event": "QUEUEJOB", "job": job(Resource_List=DELAY)}, **stranger)
    assert asked["accepted"]
    assert mom.run({"event": "EXECJOB_BEGIN", "job": job()}, **stranger)["accepted"]
    begun = mom.run({"event": "EXECJOB_BEGIN", "job": job(Resource_List=DELAY)}, **stranger)
    assert begun["deleted"]


def test_jobs_of_the_node_are_told_to_the_sweep(mom: Mom, tmp_path: Path) -> None:
    program = tmp_path / "says"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "${0%/*}/said"\n')
    program.chmod(0o755)
    mom.config = {"node_program": str(program), "run_dir": "/r", "protect": ["ldap"]}
    begin = {"event": "EXECHOST_PERIODIC", "job": {}, "job_list": ["41.vm", "8[1].vm"]}
    mom.run(begin)
    common = ["job", "sweep", "--node=vm", "--run-dir=/r", "--protect=ldap"]
    alive = ["--only-alive", "--alive=41.vm", "--alive=8[1].vm"]
    assert (tmp_path / "said").read_text().splitlines() == common + alive
    mom.run({"event": "EXECHOST_STARTUP", "job": {}})
    assert (tmp_path / "said").read_text().splitlines() == common


@pytest.mark.parametrize(
    ("hosts", "number"),
    [
        ("vm:15002/0", "0"),
        ("b:15002/0*2+vm:15002/0", "1"),
        ("b.site.org:15002/0+vm.site.org:15002/1+b.site.org:15002/2", "1"),
        ("vm:15002/0+vm:25002/0", None),  # two moms of one name
        ("b:15002/0", None),
    ],
)
def test_of_moms_that_share_a_machine_each_knows_its_own_tasks(
    mom: Mom, tmp_path: Path, hosts: str, number: str | None
) -> None:
    """Without PBS_NODENUM both counted all of them (seen with two moms on one machine)."""
    program = tmp_path / "says"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "${0%/*}/said"\n')
    program.chmod(0o755)
    mom.config = {"node_program": str(program)}
    mom.run({"event": "EXECJOB_BEGIN", "job": job(exec_host2=hosts)})
    said = (tmp_path / "said").read_text().splitlines()
    marks = {word.removeprefix("--mark=") for word in said if word.startswith("--mark=")}
    assert marks == {"PBS_JOBID=41.vm", *([f"PBS_NODENUM={number}"] if number else [])}


@pytest.mark.skipif(
    not Path("/sys/fs/cgroup/cpuacct/cpuacct.usage").exists(), reason="needs cgroup version 1"
)
@pytest.mark.parametrize(
    ("config", "name"),
    [
        (None, "pbs_jobs"),
        ("pbs_cgroups.CF", "pbs_jobs"),  # as it came with 23.06.06
        ({"cgroup_prefix": "site jobs/a"}, r"site\x20jobs-a"),
        ({"cgroup_prefix": ".a_b.c"}, r"\x2ea_b.c"),
    ],
)
def test_the_group_of_pbs_cgroups_is_told(mom: Mom, tmp_path: Path, config: Any, name: str) -> None:
    """It is the one that the real hook made.

    /proc/self/cgroup of jobs on 23.06.06 and master was
    `cpuacct:/pbs_jobs.service/jobid/2.o23-srv`; the other names are from its own systemd_escape().
    """
    job_id = f"{os.getpid()}.vm"
    if config is not None:
        text = '{"cgroup_prefix": "pbs_jobs"}' if isinstance(config, str) else json.dumps(config)
        (mom.home / "mom_priv/hooks/pbs_cgroups.CF").write_text(text)
    program = tmp_path / "says"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "${0%/*}/said"\n')
    program.chmod(0o755)
    mom.config = {"node_program": str(program)}
    top = Path(f"/sys/fs/cgroup/cpuacct/{name}.service")
    group = top / "jobid" / job_id
    group.mkdir(parents=True)
    try:
        mom.run({"event": "EXECJOB_BEGIN", "job": job(id=job_id)})
    finally:
        for folder in (group, group.parent, top):
            with contextlib.suppress(OSError):  # another's job may be in it
                folder.rmdir()
    said = (tmp_path / "said").read_text().splitlines()
    assert [w for w in said if w.startswith("--cgroup=")] == [
        f"--cgroup=/{name}.service/jobid/{job_id}"
    ]
    mom.run({"event": "EXECJOB_BEGIN", "job": job(id=job_id)})
    assert "--cgroup=" not in (tmp_path / "said").read_text()


@pytest.mark.parametrize(
    ("place", "chunks", "alone"),
    [
        ("scatter:excl", "(vm:ncpus=1)+(b:ncpus=1)", True),
        ("pack:exclhost", "(vm:ncpus=1)", True),
        ("pack", "(vm:ncpus=4:mem=5kb)", True),
        ("scatter", "(vm:ncpus=3+vm:ncpus=1)+(b:ncpus=4)", True),
        ("pack", "(vm:ncpus=3)", False),
        ("pack:shared", "(vm:ncpus=5)", None),  # the server has more than mom has found
        ("pack", "(b:ncpus=4)", False),
    ],
)
def test_whether_a_job_is_alone(mom: Mom, place: str, chunks: str, alone: bool | None) -> None:
    """Of another host's vnodes a mom knows no resources (seen with two moms)."""
    asks = job(Resource_List={"place": place}, exec_vnode=chunks)
    mom.run({"event": "EXECJOB_BEGIN", "job": asks}, vnodes={"vm": 4, "b": None})
    mom.run({"event": "EXECJOB_END", "job": asks})
    assert mom.record("41.vm")["job"]["exclusive"] is alone


def test_all_processors_do_not_tell_where_the_site_says_so(mom: Mom) -> None:
    mom.config["exclusive_by_ncpus"] = False
    asks = job(exec_vnode="(vm:ncpus=4)")
    mom.run({"event": "EXECJOB_BEGIN", "job": asks})
    mom.run({"event": "EXECJOB_END", "job": asks})
    assert mom.record("41.vm")["job"]["exclusive"] is None
