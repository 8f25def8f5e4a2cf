"""AdminComment on a real Slurm: others write there, too, and no job waits for it."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.throwaway_lab import Lab, command_line, processes_of, until

from steelyard.analysis.sources.sacct import Sacct
from steelyard.wrappers.base.programs import find_program
from steelyard.wrappers.publish import publish

RUN = "touch running.$SLURM_JOB_ID"
UNTIL_TOLD = "until [ -e go ]; do sleep 0.05; done"


def of_job_that_has_one(lab: Lab, text: str) -> str:
    """AdminComment of a job that somebody else has given `text` while it ran."""
    job = lab.sbatch("-w", "n1", script=f"{RUN}; {UNTIL_TOLD}")
    lab.wait_running(job)
    done = lab.run("scontrol", "update", f"JobId={job}", f"AdminComment={text}")
    assert done.returncode == 0, done.stderr
    (lab.work / "go").touch()
    lab.records(job, 1)
    return lab.sacct(job, "AdminComment")[0][0]


def test_an_object_of_others_has_ours_beside_it(lab: Lab) -> None:
    theirs = '{"site": {"cost":0.10},"x":"}"'
    found = of_job_that_has_one(lab, theirs + "}")
    assert found.startswith(theirs + ',"steelyard":{"node_type":')


def test_text_of_others_is_left_alone_and_the_log_tells_it(lab: Lab) -> None:
    assert of_job_that_has_one(lab, "JS1:H4sI") == "JS1:H4sI"
    log = lab.cluster.dir / "log" / "slurmd.n1.log"
    words = f"AdminComment of job {lab.jobs[-1]}: left as it is: there is text of somebody else"
    until(lambda: words in log.read_text(), "slurmd's log has it", seen=log.read_text)


def lines_of(path: Path, job: str) -> list[str]:
    """Return slurmctld's log lines on updates of a job."""
    found = path.read_text().splitlines()
    return [x for x in found if f"JobId={job} " in x + " " and "update_job" in x]


def completed(path: Path, job: str) -> list[bool]:
    """Of each of these lines: is it that of an update's end?"""
    return ["complete" in line for line in lines_of(path, job)]


def refused(path: Path, job: str) -> int:
    """How many updates came when srun had ended the job."""
    return sum("finished" in line for line in lines_of(path, job))


def updates(path: Path, job: str) -> int:
    """How many were made; -1 as long as one is on its way."""
    done = completed(path, job)
    whole = done.count(False) - refused(path, job) == done.count(True)
    return done.count(True) if whole else -1


def test_slurmctlds_log_grows_by_two_short_lines_and_no_error(lab: Lab) -> None:
    batch = lab.sbatch("-w", "n1", script="sleep 0.2")
    lab.comment(batch)
    alone = lab.srun("-w", "n2")
    tagged = lab.srun("-w", "n3", "--tag=a=b")
    lab.comment(tagged)
    until(lambda: not lab.stepds(alone, "0") + lab.stepds(tagged, "0"), "their steps have ended")
    log = lab.cluster.dir / "log" / "slurmctld.log"
    until(lambda: completed(log, batch) == [False, True], "both lines of an update")
    assert sum(map(len, lines_of(log, batch))) < 600, lines_of(log, batch)
    # srun ends the job before its update comes, or meanwhile: of the tagged one where the node is so busy
    # that it was not written within half a second.
    for job in (tagged, alone):
        seen = partial(lines_of, log, job)
        until(lambda: 0 <= updates(log, job) <= 1, "whole lines", seen=seen)  # noqa: B023
        assert refused(log, job) <= 1


def test_a_job_has_one_update_with_its_tags_and_totals(lab: Lab) -> None:
    log = lab.cluster.dir / "log" / "slurmctld.log"
    job = lab.sbatch("-w", "n1", "--tag=a=b", script="sleep 2.2")
    comment = lab.comment(job)
    assert comment["tags"] == {"a": "b"}
    assert comment["elapsed_s"] >= 2
    (record,) = lab.records(job, 1)
    assert comment["memory_source"] == record["memory"]["source"]
    over = f"_job_complete: JobId={job} done"  # logged behind all updates
    until(lambda: over in log.read_text(), "its end", seen=log.read_text)
    assert completed(log, job) == [False, True]


def test_what_the_readme_shows_has_the_whole_of_it(lab: Lab) -> None:
    """The README's command, unchanged, against the tags that the job was given."""
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    (command,) = re.findall(r"sacct -[^`\n]*AdminComment\b", readme)
    tags = {f"k{number}": "v" * 200 for number in range(15)}
    job = lab.sbatch("-w", "n1", *(f"--tag={key}={tags[key]}" for key in tags), script="true")
    assert lab.comment(job)["tags"] == tags
    shown_job, _, shown = lab.run(*command.split(), "-n", "-j", job).stdout.partition("|")
    assert (shown_job, json.loads(shown)["steelyard"]["tags"]) == (job, tags)


@pytest.fixture
def deaf_slurmdbd(lab: Lab) -> Iterator[None]:
    """slurmdbd takes connections and answers nothing."""
    pid = int((lab.cluster.dir / "run" / "slurmdbd.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


def test_no_job_waits_for_a_slurmctld_that_does_not_answer(lab: Lab) -> None:
    """The step ends while the program that writes its comment still waits for slurmctld."""
    job = lab.sbatch("-w", "n1", script=f"{RUN}; {UNTIL_TOLD}")
    lab.wait_running(job)
    log = lab.cluster.dir / "log" / "slurmd.n1.log"
    pid = int((lab.cluster.dir / "run" / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        (lab.work / "go").touch()
        ended = f"[{job}.batch] job {job} completed with"
        until(lambda: ended in log.read_text(), "its end", seen=log.read_text)
        assert writers(lab), "nobody has waited for it"
    finally:
        os.kill(pid, signal.SIGCONT)
    lab.wait_state(job, "COMPLETED")
    until(lambda: not writers(lab), "it ends")


def writers(lab: Lab) -> list[int]:
    """Return the processes that write a comment."""
    program = str(lab.cluster.dir / "lib" / publish.PROGRAM)
    return [pid for pid in processes_of(lab.cluster.dir) if command_line(pid).startswith(program)]


@pytest.mark.usefixtures("deaf_slurmdbd")
def test_no_job_waits_for_a_slurmdbd_that_does_not_answer(lab: Lab) -> None:
    """Slurm 22.05 delays updates of a job for 5 s while it reports the job to slurmdbd.

    It begins a report every 5 s, so that the job must take that long.
    """
    took = [held_s(lab)]
    while min(took) >= 9.5 and len(took) < 4:  # a busy machine may be late, too
        took.append(held_s(lab))
    assert min(took) < 9.5, took


def held_s(lab: Lab) -> float:
    """Return how many seconds a job of 5.2 s lasts for a waiting client."""
    began = time.monotonic()
    done = lab.run("srun", "-w", "n1", "sleep", "5.2")
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began


def test_publish_fills_in_what_was_missed_and_no_more(lab: Lab) -> None:
    """Of a cancelled array, of which Slurm takes no comment; byte by byte, and of each its own."""
    array = lab.sbatch("--array=1-2", "--tag=K=It's `\"", script=f"{RUN}; exec sleep 60")
    until(lambda: len(list(lab.work.glob("running.*"))) == 2, "both tasks run")
    lab.run("scancel", array)
    raw = {task: lab.sacct(f"{array}_{task}", "JobIDRaw")[0][0] for task in "12"}
    records = {task: lab.records(job, 1)[0] for task, job in raw.items()}
    found = lab.publish()
    tasks = {f"{array}_{task}" for task in raw}
    assert tasks <= {wish.job_id for wish in found.planned}
    assert not tasks & found.failed.keys(), found.failed
    for task, record in records.items():
        comment = lab.comment(f"{array}_{task}")
        assert (comment["tags"], comment["nodes_measured"]) == ({"K": "It's `\""}, 1)
        assert comment["elapsed_s"] == pytest.approx(record["elapsed_s"], abs=1e-6)
        assert comment["cpu_s"] == pytest.approx(record["cpu"]["cpu_s"], abs=1e-6)
        assert comment["memory_source"] == record["memory"]["source"]
    assert not tasks & {wish.job_id for wish in lab.publish().planned}


def written(lab: Lab, **wish: object) -> dict[str, object]:
    """Return the answer of steelyard-slurmdb to a request for a comment."""
    program = find_program(publish.PROGRAM)
    if program is None:
        pytest.skip(f"{publish.PROGRAM} was not built: no libslurm (Debian: libslurm-dev)")
    line = json.dumps({"cluster": "steelyard", "own": '{"k":1}', **wish}) + "\n"
    done = lab.run(str(program), input=line)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_each_component_gets_its_own_comment_and_a_job_of_another_time_none(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first component's id stood for all: its comment was refused. Ids recur."""
    for name, value in lab.cluster.environment().items():
        monkeypatch.setenv(name, value)
    first = lab.sbatch(script="#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1\ntrue")
    before = {n: lab.sacct(f"{first}+{n}", "AdminComment") for n in (0, 1)}
    (leader, _) = Sacct().read_starts(["Submit"], "-j", first)
    then = int(leader.submit_unix_s or 0)
    assert "another job" in str(written(lab, job_id=int(first), submit_unix_s=then - 1))
    assert lab.sacct(f"{first}+0", "AdminComment") == before[0]
    assert written(lab, job_id=int(first), submit_unix_s=then) == {"modified": 1}
    assert lab.sacct(f"{first}+0", "AdminComment") == [['{"steelyard":{"k":1}}']]
    assert lab.sacct(f"{first}+1", "AdminComment") == before[1]


def test_who_writes_it_is_no_part_of_the_job(lab: Lab) -> None:
    """It starts with the first step of an allocation, and its usage is not the job's.

    With tagged steps, the comment is written before the step's final message.
    """
    used = []
    for options in ([], ["--tag=a=b"], ["--tag=a=b"]):
        step = "srun -n1 sleep 0.3; echo $SLURM_JOB_ID"
        argv = ("salloc", "-Q", "-w", "n1", "--sample-rate=100", *options, "sh", "-c", step)
        done = lab.run(*argv)
        assert done.returncode == 0, done.stderr
        lab.jobs.append(job := done.stdout.strip())
        (record,) = lab.records(job, 1)
        used.append((record["io"]["rchar_bytes"], record["io"]["wchar_bytes"]))
    # A task gets some arguments before it is the job's program, whoever counts them.
    assert used == [pytest.approx(used[0], abs=64)] * 3


def test_a_brief_last_step_of_salloc_is_in_the_comment(lab: Lab) -> None:
    """Two steps that write a known number of bytes each, and nothing behind them.

    On a busy node Slurm ends the job before the last step's comment comes. What is there then says
    that it is a part, and publish completes it.
    """
    size = 20_000_000
    shown = []
    for _ in range(5):
        job = run_two_steps(lab, size)
        comment = lab.comment(job)
        shown.append(comment["wchar_bytes"])
        assert comment["so_far"] is True
        if shown[-1] < 2 * size:
            lab.records(job, 1)
            lab.publish()
            comment = lab.comment(job)
            assert not comment.get("so_far")
        assert 2 * size <= comment["wchar_bytes"] < 2 * size + 50_000
        if shown[-1] >= 2 * size:
            return
    pytest.fail(f"none of five jobs had its last step's bytes at its end: {shown}")


def run_two_steps(lab: Lab, size: int) -> str:
    """Return the id of an allocation whose two steps wrote so many bytes each, and have ended."""
    step = f"srun dd if=/dev/zero of=/dev/null bs={size} count=1 2>/dev/null"
    script = f"{step}; {step}; echo $SLURM_JOB_ID"
    done = lab.run("salloc", "-Q", "-w", "n1", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    lab.jobs.append(job := done.stdout.strip())
    until(lambda: not lab.stepds(job, "1"), "the last step's end")
    return job
