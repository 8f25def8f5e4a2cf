"""Every run of the thesis and of a study, on physical and virtual nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import Drawing
from steelyard.analysis.figures.iterations import Level, draw_panel, label_averages, make_legend
from steelyard.analysis.papers.conditions import Studies, has_facts
from steelyard.analysis.papers.jungels2012.thesis_study import (
    NODE_TYPES,
    Series,
    find_variant,
    read_series,
)
from steelyard.analysis.papers.printed_comparisons import PrintedComparison, describe_sizes
from steelyard.analysis.report.figures import Draw
from steelyard.analysis.stats.number_format import format_unit
from steelyard.analysis.summary.rows import Row

RUN_COLUMNS = ("benchmark", "whose", "node_type", "number", "value", "unit")


def draws(studies: Studies, values: Sequence[PrintedComparison]) -> Iterator[Draw]:
    """Yield a figure for each printed series and each of the study's counterparts."""
    groups: dict[tuple[str, ...], dict[str, list[PrintedComparison]]] = {}
    for one in values:
        if one.row is not None:
            mine = groups.setdefault(one.value.place[:-1], {})  # all except the node type
            mine.setdefault(find_side(studies, one.row), []).append(one)
    for name, by_side in groups.items():
        for side, found in by_side.items():
            yield partial(draw_runs, name, side if len(by_side) > 1 else "", found)


def find_side(studies: Studies, row: Row) -> str:
    """Return a row's description without its node type; rows with the same one are compared."""
    levels = (f"{k}={v}" for k, v in row.group.condition.items() if k != "node_type")
    return studies.add_study_name(studies.find_study(row), " ".join((row.group.variant, *levels)))


def draw_runs(name: tuple[str, ...], side: str, found: Sequence[PrintedComparison]) -> Drawing:
    """Draw the printed iterations at the left and our runs at the right.

    `side` names which of our runs, if there are several.
    """
    printed = printed_levels(name)
    rows = {one.value.place[-1]: one.row for one in found}
    ours = [
        Level(
            kind,
            index,
            row.interval.mean if (row := rows.get(kind)) and row.interval else None,
            [(0, row.values)] if row else [],
        )
        for index, kind in enumerate(NODE_TYPES)
    ]
    first = found[0].row
    assert first is not None
    label = " ".join(name)
    unit = format_unit(first.metric.unit)
    with drawing.use_style():
        figure = drawing.new_figure(2.8)
        left, right = figure.subplots(1, 2)
        for axes, levels, title in ((left, printed, "as printed"), (right, ours, "this study")):
            draw_panel(axes, levels, "not measured")
            axes.set_title(title)
            axes.set_xlabel("run")
            axes.margins(y=0.15)
            label_averages(axes, levels)
        left.set_ylabel(f"{label} ({unit})")
        figure.legend(handles=list(make_legend(ours, ())), loc="outside lower center", ncols=2)
    return Drawing(
        name=drawing.make_slug("jungels2012", *name, *([side] if side else [])),
        title=f"{label}: every run, physical and virtual nodes, printed and here"
        + (f" ({side})" if side else ""),
        caption=(
            f"Every run in the order in which it ran; black lines and numbers are means. At the left the "
            f"thesis' iterations (of all nodes), at the right this study's runs. {describe_sizes(found)}"
            "The axes have scales of their own and need not start at 0."
        ),
        figure=figure,
        columns=RUN_COLUMNS,
        rows=[
            *build_run_rows(label, "printed", printed, unit),
            *build_run_rows(label, "ours", ours, unit),
        ],
    )


def printed_levels(name: tuple[str, ...]) -> list[Level]:
    """Return the thesis' own iterations."""
    series = [one for one in read_series() if has_series(one, name)]
    found = []
    for index, kind in enumerate(NODE_TYPES):
        selected = [one for one in series if one.node_type == kind]
        values = [value for one in selected for value in one.values]
        mean = sum(values) / len(values) if values else None
        found.append(
            Level(kind, index, mean, [(one.node_index - 1, one.values) for one in selected])
        )
    return found


def has_series(one: Series, name: tuple[str, ...]) -> bool:
    """Return whether a printed series belongs to this row of the tables."""
    if len(name) == 1:
        return one.variant == find_variant(name[0])
    test, filesystem, at_once = name
    condition = {"filesystem": filesystem, "concurrent_nodes": int(at_once)}
    return one.variant.endswith(f"test={test}") and has_facts(one.condition, condition)


def build_run_rows(
    label: str, whose: str, levels: Sequence[Level], unit: str
) -> Iterator[tuple[object, ...]]:
    for level in levels:
        for _, values in level.lines:
            for number, value in enumerate(values, start=1):
                yield (label, whose, level.name, number, value, unit)
