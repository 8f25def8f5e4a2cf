"""Growth of a study with `stop`: each submission adds blocks until its intervals are narrow
enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.study import plan
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit import run_state

Say = Callable[[str], None]
MOST_NAMED = 3
OVER = ("completed", *run_state.FAILED, *run_state.CANCELLED)


def read_grown_study(study: Study, folder: StudyDir) -> Study:
    """Return the study with the number of repeats to which it has already grown."""
    if study.stop is None or not folder.plan.is_file():
        return study
    repeats = [run.repeat for run in plan.read_runs(folder.plan)]
    return replace(study, repeat=max(study.repeat, *repeats))


def grow_study(study: Study, folder: StudyDir, report: Say) -> Study:
    """Return the study, with more repeats if all runs have ended and an interval is still too
    wide."""
    study = read_grown_study(study, folder)
    if study.stop is None or not folder.plan.is_file():
        return study
    states = run_state.read_run_states(folder, patient=True)
    open_runs = sum(entry.state not in OVER for entry in states)
    if open_runs:
        report(
            f"{counted(open_runs, 'run')} {inflect(open_runs, 'is', 'are')} not over: whether more are needed is judged when they are"
        )
        return study
    from steelyard.analysis.collect import collect
    from steelyard.analysis.summary import stopping, summary

    collect.collect(folder.path)
    need = stopping.compute_need(summary.summarize(folder.path), study.stop.half_width)
    if need.failing:
        report(
            f"{counted(len(need.failing), 'condition')} {inflect(len(need.failing), 'is', 'are')} not judged, most of "
            "their runs gave no value "
            f"(see `steelyard status`): {', '.join(need.failing[:MOST_NAMED])}"
            + (", …" if len(need.failing) > MOST_NAMED else "")
        )
    wanted = f"± {study.stop.half_width * 100:g} %"
    if not need.judged:
        report("no run gave a value of a main figure: nothing is added (see `steelyard status`)")
    elif not need.repeats:
        which = "all" if not need.failing else "the other"
        number = f"{which} {need.judged}" if need.judged != 1 else "the"
        report(
            f"enough: {number} main {inflect(need.judged, 'figure is', 'figures are')} within {wanted}"
        )
    elif study.repeat >= study.stop.max_repeat:
        report(f"{need.too_wide} of {counted(need.judged, 'main figure')} "
            f"{inflect(need.judged, 'is', 'are')} wider than {wanted}, and "
            f"max_repeat = {study.stop.max_repeat} is reached")  # fmt: skip
    else:
        repeat = min(study.repeat + need.repeats, study.stop.max_repeat)
        report(f"{need.too_wide} of {counted(need.judged, 'main figure')} "
            f"{inflect(need.judged, 'is', 'are')} wider than {wanted}: "
            f"{counted(repeat - study.repeat, 'more repeat')} of every condition")  # fmt: skip
        return replace(study, repeat=repeat)
    return study
