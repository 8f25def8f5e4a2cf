"""Submitting to a PBS of paper, in both dialects: exact scripts, no run twice, nothing lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers import ledger, retries
from steelyard.wrappers.schedulers.pbs import command, doctor_checks
from steelyard.wrappers.schedulers.pbs import task_states as pbs_task_states
from steelyard.wrappers.schedulers.pbs.dialects import Torque
from steelyard.wrappers.schedulers.pbs.scheduler import Pbs
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study.folder import StudyDir

from .conftest import PaperPbs

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
NETWORK = ("[factors]", '[factors]\nnetwork = ["none", "delay=50ms,loss=1%"]')


def submitted(path: Path, *options: str) -> int:
    return cli.main(["submit", str(path), "--scheduler", "pbs", *options])


def folder_of(path: Path) -> StudyDir:
    return StudyDir(studydir.derive_folder(path).absolute())


def progress(path: Path, capsys: Capture) -> dict[str, object]:
    capsys.readouterr()
    cli.main(["status", str(folder_of(path).path), "--json"])
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_one_array_per_block_and_set_of_options(pbs: PaperPbs, write_study: Write) -> None:
    path = write_study(("[factors]", '[job]\ntime_limit = "1-00:10:00"\n[factors]'))
    assert submitted(path) == 0
    entries = ledger.read_submissions(folder_of(path))
    assert [(e.block, len(e.run_ids), e.job_id) for e in entries] == [
        (1, 4, "7[].vm"), (1, 4, "8[].vm"), (2, 4, "9[].vm"), (2, 4, "10[].vm"),
    ]  # fmt: skip
    assert {e.cluster for e in entries} == {"vm" if pbs.dialect == "torque" else "opbs"}
    study = folder_of(path).path
    for entry, options in zip(entries, pbs.options(), strict=True):
        run = next(iter(entry.run_ids))
        nodes = 2 if "SY_CLIENTS=2" in (folder_of(path).run(run) / "run.sh").read_text() else 1
        out = f"{study}/submissions/{entry.submission_id}.out"
        array, where = {
            "torque": (["-t 0-3"], [f"-o {out}", f"-l nodes={nodes}", "-n"]),
            "openpbs": (["-J 0-3"], [f"-o {out}-^array_index^", f"-l select={nodes}",
                                     "-l place=scatter:exclhost"]),
        }[pbs.dialect]  # fmt: skip
        assert options == [
            f"-N small.{entry.submission_id}", *array, "-S /bin/bash", "-j oe", where[0],
            "-l walltime=24:10:00", "-m n", *where[1:],
        ]  # fmt: skip


def test_one_run_is_no_array(pbs: PaperPbs, write_study: Write) -> None:
    """`-J 0-0` is refused by OpenPBS."""
    path = write_study(("repeat = 4", "repeat = 1"), ("blocks = 2", "blocks = 1"),
                       ('["large_file_copy", "small_file_write"]', '"small_file_write"'))  # fmt: skip
    submitted(path)
    assert [entry.job_id for entry in ledger.read_submissions(folder_of(path))] == ["7.vm", "8.vm"]
    assert not [o for options in pbs.options() for o in options if o[:2] in ("-t", "-J")]
    pbs.set_tasks("7.vm", "R")
    assert {t.state for t in Pbs(folder_of(path).path).active_runs(ledger.read_submissions(folder_of(path))).values()} == {"running", "pending"}  # fmt: skip


def test_at_once_holds_over_all_submissions(pbs: PaperPbs, write_study: Write) -> None:
    submitted(write_study(("[factors]", "[job]\nat_once = 1\n[factors]")))
    kind = "afteranyarray" if pbs.dialect == "torque" else "afterany"
    waits = [[o for o in options if o.startswith("-W")] for options in pbs.options()]
    assert waits == [[], *([f"-W depend={kind}:{n}[].vm"] for n in (7, 8, 9))]
    assert all("-t 0-3%1" in o or "-J 0-3%1" in o for o in pbs.options())


def test_a_job_that_is_forgotten_is_waited_for_no_more(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    """Torque's words, where the job before ended and was purged since it was looked at."""
    no = "qsub: submit error (Invalid Job Dependency)"
    pbs.fail("qsub", "", no)
    path = write_study(("[factors]", "[job]\nat_once = 1\n[factors]"))
    assert submitted(path) == 0
    waits = [any(o.startswith("-W") for o in options) for options in pbs.options()]
    assert waits == [False, False, True, True]
    entry = ledger.read_submissions(folder_of(path))[1]
    assert "depend=" not in folder_of(path).script(entry.submission_id).read_text()
    pbs.fail("qsub", no, no)
    assert submitted(write_study(("repeat = 4", "repeat = 5"))) == 3
    assert "Invalid Job Dependency" in capsys.readouterr().err


def test_a_condition_is_refused_where_nobody_hears_it(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    path = write_study(NETWORK)
    assert submitted(path) == 4
    part = {"torque": "prologue and epilogue", "openpbs": "hook"}[pbs.dialect]
    assert (
        f"--netem=delay=50ms,loss=1%: Steelyard's {part} cannot be seen" in capsys.readouterr().err
    )
    assert not folder_of(path).plan.exists() and pbs.jobs == {}


def test_after_a_lost_answer_nothing_comes_twice(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    pbs.fail("qsub", "accepted: qsub: End of File", "qsub: cannot connect to server vm (errno=111)")
    path = write_study()
    assert submitted(path) == 0
    assert [entry.job_id for entry in ledger.read_submissions(folder_of(path))] == [*pbs.jobs]
    assert len(pbs.jobs) == 4
    assert "trying again" in capsys.readouterr().err


def test_what_was_accepted_and_not_recorded_is_found(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    lines = folder_of(path).submissions.read_text().splitlines(keepends=True)
    folder_of(path).submissions.write_text("".join(lines[:-1]))
    assert submitted(path) == 0
    assert "had been accepted as job 10[].vm" in capsys.readouterr().err
    assert len(pbs.jobs) == 4 and len(ledger.read_submissions(folder_of(path))) == 4


def test_states_of_waiting_running_and_ended_runs(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    over = "C" if pbs.dialect == "torque" else "F"
    pbs.set_tasks("7[].vm", "R", "Q", over, over)
    status = {"torque": "exit_status", "openpbs": "Exit_status"}[pbs.dialect]
    pbs.change(attributes={"7[1].vm": {"comment": "Not Running: no room"},
                           "7[2].vm": {status: 271, "run_count": 1, "exec_host": "vm/0"},
                           "7[3].vm": {status: 3, "run_count": 1, "exec_host": "vm/0"}})  # fmt: skip
    seen = progress(path, capsys)
    assert (seen["running"], seen["waiting"], seen["failed"], seen["cancelled"]) == (1, 13, 1, 1)
    assert seen["waiting_reasons"] == {"Not Running: no room": 1}
    failures = seen["failures"]
    assert isinstance(failures, list)
    assert sorted(one["state"] for one in failures) == ["cancelled", "failed"]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"Hold_Types": "l"}, "held by at_once"),
        ({"Hold_Types": "sl", "depend": "afteranyarray:6[].vm"},
         "held until the job before it has ended"),
        ({"Hold_Types": "u"}, "held"),
        ({"Hold_Types": "u", "comment": "by hand"}, "by hand"),
    ],
)  # fmt: skip
def test_why_a_run_is_held(told: dict[str, str], why: str) -> None:
    assert pbs_task_states.waiting_reason("H", told) == why


def test_jobs_that_the_server_no_longer_knows_are_lost(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    jobs = pbs.jobs
    pbs.change(jobs={key: jobs[key] for key in list(jobs)[1:]})
    seen = progress(path, capsys)
    assert (seen["waiting"], seen["failed"]) == (12, 4)


def test_cancel_deletes_arrays_whole(pbs: PaperPbs, write_study: Write, capsys: Capture) -> None:
    path = write_study()
    submitted(path)
    assert cli.main(["cancel", str(folder_of(path).path)]) == 0
    assert "16 runs cancelled" in capsys.readouterr().out
    assert {letter for job in pbs.jobs.values() for letter in job["tasks"]} <= {"C", "F"}


def test_a_server_that_is_down_is_told_after_a_while(
    pbs: PaperPbs, write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(retries, "PATIENCE_S", 0.05)
    down = "Connection refused\nqstat: cannot connect to server vm (errno=111)"
    pbs.fail("qstat", *[down] * 50)
    assert submitted(write_study()) == 3
    assert "cannot connect to server vm (errno=111); given up after" in capsys.readouterr().err
    found = list(doctor_checks.run_checks())
    assert [(c.name, c.state) for c in found] == [("PBS", "warning")]
    assert "its server does not answer" in found[0].found


def test_what_qsub_refuses_is_passed_on(pbs: PaperPbs, write_study: Write, capsys: Capture) -> None:
    pbs.fail("qsub", "qsub: Maximum number of jobs already in queue for user")
    assert submitted(write_study()) == 3
    said = "Maximum number of jobs already in queue for user; submit again when some have ended"
    assert said in capsys.readouterr().err
    pbs.fail("qsub", "steelyard: --netem=delay=9s: more than your site allows\nqsub: refused")
    assert submitted(write_study()) == 4
    assert "refused by the server: steelyard: --netem=delay=9s" in capsys.readouterr().err


def test_a_job_that_requests_too_much_is_not_to_be_submitted_again(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    said = "Job exceeds queue resource limits MSG=cannot satisfy queue max walltime requirement"
    pbs.fail("qsub", f"qsub: submit error ({said})")
    assert submitted(write_study()) == 3
    assert "some have ended" not in capsys.readouterr().err


def test_features(pbs: PaperPbs) -> None:
    found = Pbs(Path()).node_features()
    physical, virtual = ({"physical"}, {"virtual"}) if pbs.dialect == "torque" else (set(), set())
    assert found == {"vm": physical, "vmb": virtual}


def test_an_answer_without_any_node_is_no_crash(pbs: PaperPbs) -> None:
    (pbs.folder / "nodes.txt").write_text("")
    assert Pbs(Path()).node_features() == {}


def test_what_doctor_says(pbs: PaperPbs) -> None:
    before = [(c.name, c.state) for c in doctor_checks.run_checks()]
    pbs.with_node_part()
    after = list(doctor_checks.run_checks())
    part = {"torque": "submit filter", "openpbs": "hook"}[pbs.dialect]
    assert before[:2] == [("PBS", "ok"), (part, "warning")]
    assert [(c.name, c.state) for c in after][:2] == [("PBS", "ok"), (part, "ok")]
    version = {"torque": "Torque 6.1.3, server vm answers",
               "openpbs": "OpenPBS 23.06.06, server opbs answers"}  # fmt: skip
    assert after[0].found == version[pbs.dialect]


def test_a_node_of_torque_needs_no_submit_filter(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        "steelyard.analysis.sources.pbs.pbs_commands.find_torque_home", lambda: tmp_path
    )
    assert [check.state for check in Torque().run_checks()] == ["warning"]
    (tmp_path / "mom_priv").mkdir()
    assert [check.state for check in Torque().run_checks()] == ["warning"]
    (tmp_path / "mom_priv/mom.lock").write_text("4711\n")
    assert [check.state for check in Torque().run_checks()] == ["ok"]


@pytest.mark.parametrize(
    ("version", "state"),
    [("6.1.3", "ok"), ("6.1.3.1", "ok"), (None, "ok"), ("6.1.2", "warning"), ("4.2.10", "warning"),
     ("6.1.30", "warning"), ("7.0.0", "warning")],
)  # fmt: skip
def test_the_submit_filter_needs_a_qsub_that_quotes(
    tmp_path: Path, monkeypatch: Patch, version: str | None, state: str
) -> None:
    monkeypatch.setattr(
        "steelyard.analysis.sources.pbs.pbs_commands.find_torque_home", lambda: tmp_path
    )
    monkeypatch.setattr("steelyard.analysis.sources.pbs.pbs_commands.read_version", lambda: version)
    (tmp_path / "torque.cfg").write_text(
        "SUBMITFILTER /usr/libexec/steelyard/torque-submitfilter\n"
    )
    (check,) = Torque().run_checks()
    assert check.state == state
    assert "6.1.3" in check.advice or state == "ok"


def test_slurms_imitation_is_told_as_that(
    tmp_path: Path, write_study: Write, monkeypatch: Patch, capsys: Capture
) -> None:
    """Debian's slurm-wlm-torque: qsub, qstat and pbsnodes in Perl."""
    for name in ("qsub", "qstat", "pbsnodes"):
        (tmp_path / name).write_text("#!/usr/bin/perl\nuse Slurm ':all';\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert not Pbs.is_installed()
    said = f"{tmp_path}/qsub is Slurm's imitation of Torque's qsub: its jobs are Slurm's"
    assert [(c.state, c.found) for c in doctor_checks.run_checks()] == [("warning", said)]
    assert submitted(write_study()) == 3
    assert said in capsys.readouterr().err


def test_a_users_variables_do_not_change_the_answers(monkeypatch: Patch) -> None:
    for name in ("PBS_QSTAT_NO_COMPLETE", "PBS_DPREFIX", "PBSDEBUG", "PBS_JOBID", "QSTATRCHOME"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("PBS_CONF_FILE", "/etc/other.conf")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    own = pbs_commands.build_environment()
    assert {n for n in own if n.startswith("PBS")} - {"PBS_CONF_FILE"} <= set(pbs_commands.WAY)
    assert (own["PBS_CONF_FILE"], own["TZ"]) == ("/etc/other.conf", "UTC")
    assert own["QSTATRCHOME"] == "/dev/null"


# Messages of Torque 6.1.3 and OpenPBS 23.06, stopped or called by a wrong name.
SAID = [
    (("\nUnable to communicate with vm(10.231.0.11)\nCannot connect to specified server host 'vm'.\n"
     "qstat: cannot connect to server vm (errno=111) Connection refused\n"
     "qstat: Error (-111 - Unknown error -111) \n"),
     True, "cannot connect to server vm (errno=111) Connection refused"),
    ("Connection refused\nqsub: cannot connect to server opbs (errno=15010)\n",
     True, "cannot connect to server opbs (errno=15010)"),
    (("Can not resolve name for server no.example. (rc = -1 - )\n"
     "Cannot resolve specified server host 'no.example'.\nqstat: cannot connect to server "
     "no.example (errno=15010) Access from host not allowed, or unknown host\n"),
     False, "cannot connect to server no.example (errno=15010) Access from host not allowed, or unknown host"),
    ("Unknown Host.\nqstat: cannot connect to server no.example (errno=15008)\n",
     False, "cannot connect to server no.example (errno=15008)"),
    ("qsub: Unknown queue MSG=cannot locate queue\n", False, "Unknown queue MSG=cannot locate queue"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "lost", "line"), SAID)
def test_a_server_that_is_away_is_told_from_a_no(said: str, lost: bool, line: str) -> None:
    found = command.format_error("qstat", said, 1)
    assert (isinstance(found, retries.LostError), str(found)) == (lost, f"qstat: {line}")


def test_jobs_of_another_server_are_not_taken_for_lost(
    pbs: PaperPbs, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    text = (pbs.folder / "server.txt").read_text()
    (pbs.folder / "server.txt").write_text(re.sub("Server: .*", "Server: other.example", text))
    seen = progress(path, capsys)
    assert (seen["waiting"], seen["failed"]) == (16, 0)
    assert "of the PBS server" in str(seen["note"]) and "other.example answers" in str(seen["note"])
    assert submitted(path) == 3 and len(pbs.jobs) == 4
