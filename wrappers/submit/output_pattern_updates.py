"""Updates a plan's patterns for figures in the output that were changed or added after its runs.

A pattern is not executed, so a run's id does not depend on it. The plan contains the patterns.
`collect` updates them from the study file, then reads the figures from kept output."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_sessions import SUFFIX as SESSIONS
from steelyard.analysis.sources.study_sessions import find_session, is_session
from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.study import plan, study
from steelyard.wrappers.study.folder import SUFFIX, StudyDir, lock_study
from steelyard.wrappers.study.planned_run import Run


def update_plan(study_dir: Path, given: str | None) -> Iterator[str]:
    """Update the plan with the current figures of the study file; yield messages."""
    file, folder = find_study_file(study_dir, given), StudyDir(study_dir.absolute())
    if file is None or not folder.toml.is_file() or file.read_bytes() == folder.toml.read_bytes():
        return
    try:
        recorded_levels = study.read_drawn_levels(file, study_dir)
        now = study.load_study(file, recorded_levels)
        before = study.parse_study(folder.toml.read_bytes(), folder.toml, recorded_levels)
        with lock_study(folder):
            yield from write_plan(folder, before, now)
    except (UsageError, MissingError, OSError) as error:
        yield f"{error}: figures are read as the last submit had them"


def find_study_file(study_dir: Path, given: str | None) -> Path | None:
    """Return the file that the study was submitted from: the given one, or the one next to its
    folder."""
    file = Path(given) if given else study_dir
    if not file.is_file():
        of_study = study_dir.absolute().parent if is_session(study_dir) else study_dir
        name = of_study.name.removesuffix(SUFFIX).removesuffix(SESSIONS)
        file = of_study.with_name(f"{name}.toml")
    return file if file.is_file() else None


def write_plan(folder: StudyDir, before: study.Study, now: study.Study) -> Iterator[str]:
    """Write the plan's runs with the figures of their conditions in the current study; yield
    messages."""
    stored_study, runs = study_files.read_plan_as(folder.path, Run)
    new = {run.condition_id: run.parameters for run in plan.make_plan(now)}
    found = [replace(run, parameters=new.get(run.condition_id, run.parameters)) for run in runs]
    if remove_figures(now) != remove_figures(before):
        now, toml = before, before.toml
        if not is_session(folder.path):  # a session keeps the rest of its study file
            yield f"{folder.path} takes figures from the study file; `steelyard submit` takes the rest"
    else:
        toml = now.toml
    if found != runs:
        grown = replace(now, repeat=int(stored_study.get("repeat", now.repeat)))  # [study] stop
        ledger.write_atomically(
            folder.plan, plan.plan_json(grown, found, find_session(folder.path))
        )
    ledger.write_atomically(folder.toml, toml)


def remove_figures(found: study.Study) -> dict[str, Any]:
    """Return the study file's data without the figures that are read from output."""
    data = tomllib.loads(found.toml.decode("utf-8"))
    for table in data["benchmark"]:
        table.pop("figures", None)
    return data
