"""A study run repeatedly: each session has its own folder, plan and order."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources import study_files, study_sessions
from steelyard.analysis.sources.study_sessions import list_sessions
from steelyard.wrappers.base import options
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study import plan, sessions, study
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.submit import collected_sessions

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def submitted(path: Path, *names: str, code: int = 0) -> Path:
    """Submit these sessions; return the folder of all of them."""
    for name in names:
        assert cli.main(["submit", str(path), "--session", name]) == code
    return path.with_name("small.sessions")


def order_of(folder: Path) -> list[str]:
    return [run.run_id for run in plan.read_runs(folder / "plan.json")]


def test_a_session_has_all_runs_and_an_order_of_its_own(slurm: Any, write_study: Write) -> None:
    path = write_study()
    folder = submitted(path, "a", "b")
    first, second = (order_of(folder / f"{name}.study") for name in "ab")
    assert (
        sorted(first)
        == sorted(second)
        == sorted(r.run_id for r in plan.make_plan(study.load_study(path)))
    )
    assert first != second
    assert len(ledger.read_submissions(StudyDir(folder / "b.study"))) == 4
    assert not path.with_name("small.study").exists()


def test_the_order_is_made_of_seed_and_name_and_recorded(slurm: Any, write_study: Write) -> None:
    folder = submitted(write_study(), "a")
    said, runs = study_files.read_plan_as(folder / "a.study", Run)
    # The first 63 bits of `printf 7:a | sha256sum`, by hand.
    assert said["session"]["seed"] == 0x82D9D62BAA6A7870 >> 1 == plan.session_seed(7, "a")
    assert [run.run_id for run in plan.order_runs(runs, said["session"]["seed"])] == order_of(
        folder / "a.study"
    )
    (session,) = list_sessions(folder)
    assert (said["session"]["name"], said["session"]["number"]) == ("a", 1)
    assert said["session"]["began_unix_s"] == session.began_unix_s


def test_submitted_again_a_session_adds_only_what_is_missing(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    folder = submitted(path, "a")
    before = (folder / "a.study/plan.json").read_bytes()
    submitted(path, "a")
    assert "nothing to add" in capsys.readouterr().out
    assert (folder / "a.study/plan.json").read_bytes() == before
    submitted(write_study(("repeat = 4", "repeat = 5")), "a")
    assert "4 of 20 runs" in capsys.readouterr().out
    assert [one.number for one in list_sessions(folder)] == [1]


def test_its_name_is_todays_date_by_default(
    slurm: Any, write_study: Write, monkeypatch: Patch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(UsageError, match="<%Y-%m-%d>"):
        patch.setattr(time, "strftime", lambda form: f"<{form}>")
        sessions.session_name(options.TODAY)
    path = write_study()
    assert cli.main(["submit", str(path), "--session"]) == 0
    (session,) = list_sessions(path.with_name("small.sessions"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", session.name)


@pytest.mark.parametrize("name", ["", "a@b", "../up", ".hidden", "x" * 65, "a b"])
def test_a_name_that_is_none_is_refused(
    name: str, slurm: Any, write_study: Write, capsys: Capture
) -> None:
    submitted(write_study(), name, code=2)
    words = f"--session '{name}' is no name: expected letters, digits, '_', '.' and '-', at most 64"
    assert words in capsys.readouterr().err


def test_a_folder_of_a_study_takes_no_session(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    folder = submitted(path, "a")
    for words in (
        [str(path), "--dir", "x.study"],
        [str(folder / "a.study/study.toml")],
    ):
        assert cli.main(["submit", *words, "--session", "b"]) == 2
        assert "to continue a session, leave --session out" in capsys.readouterr().err


def test_a_session_continues_by_its_own_file(slurm: Any, write_study: Write) -> None:
    folder = submitted(write_study(), "a")
    before = study_files.read_plan(folder / "a.study").study["session"]
    assert cli.main(["submit", str(folder / "a.study/study.toml")]) == 0
    assert study_files.read_plan(folder / "a.study").study["session"] == before


def test_dir_has_the_sessions(slurm: Any, write_study: Write, tmp_path: Path) -> None:
    words = ["--dir", str(tmp_path / "far"), "--session", "a"]
    assert cli.main(["submit", str(write_study()), *words]) == 0
    assert [one.name for one in list_sessions(tmp_path / "far/small.sessions")] == ["a"]


def test_a_dry_run_begins_no_session(slurm: Any, write_study: Write, capsys: Capture) -> None:
    path = write_study()
    assert cli.main(["submit", str(path), "--session", "a", "--dry-run"]) == 0
    assert "#SBATCH" in capsys.readouterr().out
    assert not path.with_name("small.sessions").exists()


def test_a_submit_that_was_refused_leaves_no_session(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    slurm.fail("sbatch", *["Invalid qos"] * 9)
    assert cli.main(["submit", str(path), "--session", "a"]) != 0
    slurm.change(faults={})
    folder = submitted(path, "b", "a")
    assert {one.name for one in list_sessions(folder)} == {"a", "b"}
    assert len(ledger.read_submissions(StudyDir(folder / "a.study"))) == 4


def test_a_half_made_session_is_taken_up_again(slurm: Any, write_study: Write) -> None:
    path = write_study()
    folder = submitted(path, "a", "b")
    (folder / "b.study/plan.json").unlink()  # Ctrl-C after the index was written
    assert [one.name for one in list_sessions(folder)] == ["a"]
    submitted(path, "b")
    assert [(one.name, one.number) for one in list_sessions(folder)] == [("a", 1), ("b", 3)]


def test_a_number_is_never_given_twice(slurm: Any, write_study: Write) -> None:
    path = write_study()
    folder = submitted(path, "a", "b")
    shutil.rmtree(folder / "b.study")
    submitted(path, "c")
    assert [(one.name, one.number) for one in list_sessions(folder)] == [("a", 1), ("c", 3)]


def test_a_renamed_session_keeps_number_and_begin_when_it_is_submitted_again(
    slurm: Any, write_study: Write
) -> None:
    path = write_study()
    folder = submitted(path, "a")
    (before,) = list_sessions(folder)
    (folder / "a.study").rename(folder / "old.study")
    submitted(path, "old")
    (after,) = list_sessions(folder)
    assert (after.name, after.number, after.began_unix_s) == ("old", 1, before.began_unix_s)


def test_a_line_cut_short_in_the_index_is_ended_first(slurm: Any, write_study: Write) -> None:
    path = write_study()
    folder = submitted(path, "a")
    with (folder / "sessions.jsonl").open("a") as index:
        index.write('{"name": "b", "numb')
    submitted(path, "c")
    assert [(one.name, one.number) for one in list_sessions(folder)] == [("a", 1), ("c", 2)]
    assert study_sessions.read_index(folder).keys() == {"a", "c"}


def test_a_clock_that_stepped_back_is_told(
    slurm: Any, write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    path = write_study()
    folder = submitted(path, "a")
    began = list_sessions(folder)[0].began_unix_s
    monkeypatch.setattr(sessions.time, "time", lambda: began - 3600)
    submitted(path, "b")
    words = "by this machine's clock session 2 begins before session 1, small@a: check the clock"
    assert words in capsys.readouterr().err
    assert [one.name for one in list_sessions(folder)] == ["a", "b"]


def test_another_study_under_the_name_is_refused(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    folder = submitted(write_study(), "a")
    other = '[study]\nname = "small"\n[[benchmark]]\nuse = "app"\ncommand = "true"\n'
    submitted(write_study(text=other), "b", code=2)
    error = capsys.readouterr().err
    assert "the last one, small@a, ran filesystem, and this study file runs app" in error
    assert "give it another name than small" in error
    assert [one.name for one in list_sessions(folder)] == ["a"]


def test_a_changed_study_is_accepted_and_told_in_one_line(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    submitted(write_study(), "a")
    submitted(write_study(("clients = [1, 2]", "clients = [1, 3]")), "b")
    (line,) = [
        one for one in capsys.readouterr().err.splitlines() if "changed since small@a" in one
    ]
    assert "new: filesystem test=large_file_copy (clients=3), " in line
    assert "; gone: filesystem test=large_file_copy (clients=2), " in line


# ---- names


def test_every_way_to_name_a_session(
    slurm: Any, write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    path = write_study()
    folder = submitted(path, "a", "b")
    monkeypatch.chdir(path.parent)
    capsys.readouterr()
    for text in ("small@a", "small.toml@a", "study@a", "study.toml@a", f"{folder}/a.study",
                 "small.sessions@a", "small.study@a"):  # fmt: skip
        assert studydir.resolve_study(text).absolute() == folder / "a.study", text
    assert capsys.readouterr().err == ""
    for name in ("small", "study", "study.toml", "small.sessions", None):
        assert studydir.resolve_study(name).absolute() == folder / "b.study", name
        assert capsys.readouterr().err == "small@b: the latest of 2 sessions\n"
        assert [one.name for one in studydir.find_sessions(name)] == ["a", "b"]
    assert studydir.find_sessions("small@a") == []


def test_a_study_beside_its_sessions_keeps_its_plain_name(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    assert cli.main(["submit", str(path)]) == 0
    folder = submitted(path, "a")
    capsys.readouterr()
    for text in (path, path.with_name("small")):
        assert studydir.resolve_study(str(text)) == path.with_name("small.study")
        assert studydir.find_sessions(str(text)) == []
    assert [one.name for one in studydir.find_sessions(str(folder))] == ["a"]
    assert studydir.resolve_study(f"{path.with_name('small')}@a") == folder / "a.study"


def test_an_unknown_session_names_the_last_ones(slurm: Any, write_study: Write) -> None:
    path = write_study()
    submitted(path, *"abcdefg")
    words = "no such session; the last of 7: c, d, e, f, g "
    for name in ("x", ""):
        with pytest.raises(UsageError, match=words):
            studydir.resolve_study(f"{path}@{name}")
    with pytest.raises(UsageError, match=r"there are no sessions in .*/other\.sessions"):
        studydir.resolve_study(str(path.with_name("other@a")))


# ---- commands about all sessions


def test_status_prints_a_line_for_each_of_the_last_sessions(
    slurm: Any, write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    from steelyard.wrappers.commands import status

    monkeypatch.setattr(status, "MOST_SESSIONS", 2)
    path = write_study()
    submitted(path, "a", "b", "c")
    capsys.readouterr()
    assert cli.main(["status", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small: 3 sessions"
    rows = [line.split() for line in lines if line.startswith((" a ", " b ", " c "))]
    assert [(row[0], *row[3:]) for row in rows] == [
        (name, *["0", "0", "16", "0", "0", "0", "16", "time", "left", "unknown", "yet"])
        for name in "bc"
    ]
    assert lines[-1] == "1 earlier ones: --all"
    assert cli.main(["status", str(path), "--all", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["session"], one["number"], one["waiting"]) for one in found] == [
        ("a", 1, 16), ("b", 2, 16), ("c", 3, 16),
    ]  # fmt: skip


def test_all_is_of_sessions(slurm: Any, write_study: Write, capsys: Capture) -> None:
    path = write_study()
    assert cli.main(["submit", str(path)]) == 0
    assert cli.main(["status", str(path), "--all"]) == 2
    assert "expected a study that is run as sessions" in capsys.readouterr().err


def test_cancel_stops_the_jobs_of_all_sessions_or_of_one(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path, "a", "b", "c")
    capsys.readouterr()
    assert cli.main(["cancel", f"{path}@b"]) == 0
    assert capsys.readouterr().out.startswith("16 runs cancelled")
    assert cli.main(["cancel", str(path)]) == 0
    assert capsys.readouterr().out.startswith("32 runs cancelled")


# ---- what is settled


def collected(folder: Path) -> None:
    (folder / "study.duckdb").write_bytes(b"stands for a database")


def test_a_session_stays_settled_until_something_of_it_changes(
    slurm: Any, write_study: Write
) -> None:
    path = write_study()
    folder = submitted(path, "a")
    session = folder / "a.study"

    def look() -> collected_sessions.SettledSessions:
        return collected_sessions.SettledSessions(list_sessions(folder))

    assert not look().is_settled(session)
    collected(session)
    look().record(session, {"completed", "failed"}, {"output"})
    assert look().is_settled(session)
    assert look().list_unsettled() == []
    for name in ("plan.json", "submissions.jsonl", "study.duckdb"):
        (session / name).write_bytes((session / name).read_bytes() + b"\n")
        assert not look().is_settled(session), name
        look().record(session, {"completed"}, ())
        assert look().is_settled(session)
    (session / ".settled").write_text("{")
    assert not look().is_settled(session)
    look().record(session, {"completed"}, ())
    (session / "study.duckdb").unlink()
    assert not look().is_settled(session)


@pytest.mark.parametrize("states, gaps", [
    ({"completed", "running"}, ()), ({"planned"}, ()), ({"requeued"}, ()),
    ({"completed"}, {"record"}), ({"completed"}, {"accounting", "output"}),
])  # fmt: skip
def test_a_session_of_which_more_may_come_is_not_settled(
    states: set[str], gaps: set[str], slurm: Any, write_study: Write
) -> None:
    folder = submitted(write_study(), "a")
    collected(folder / "a.study")
    look = collected_sessions.SettledSessions(list_sessions(folder))
    look.record(folder / "a.study", states, gaps)
    assert not look.is_settled(folder / "a.study")


def test_figures_that_were_mended_unsettle_all_sessions(slurm: Any, write_study: Write) -> None:
    text = '[study]\nname = "small"\n[[benchmark]]\nuse = "app"\ncommand = "true"\n'
    path = write_study(text=text).rename(write_study(text=text).with_name("small.toml"))
    folder = submitted(path, "a")
    collected(folder / "a.study")
    look = collected_sessions.SettledSessions(list_sessions(folder))
    look.record(folder / "a.study", {"completed"}, ())
    assert look.is_settled(folder / "a.study")
    path.write_text(text + '[benchmark.figures.rate]\npattern = "x ([0-9]+)"\nunit = "1/s"\n')
    assert not collected_sessions.SettledSessions(list_sessions(folder)).is_settled(
        folder / "a.study"
    )
