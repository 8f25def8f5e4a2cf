"""Main figures over a study's sessions: means with intervals, levels, and changes at steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, Drawing
from steelyard.analysis.history.history import Event, History, Series
from steelyard.analysis.history.machine_tags import tag_label
from steelyard.analysis.stats.basics import Interval, mean_interval
from steelyard.analysis.stats.number_format import choose_prefix, is_never_negative
from steelyard.jobscripts.plurals import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "variant", "condition", "metric", "unit", "session", "number", "began_unix_s", "n", "mean", "low",
    "high", "level", "outlier",
)  # fmt: skip
MAX_PANELS = 8  # series below each other; the CSV has all
PANEL_IN = 1.65
MAX_NOTES = 8  # number of latest events
LINE_IN = 0.165
Y_LETTERS = 16
STEP_IN = 0.25  # width of a step's number, with two digits at most, and the gap to the next
TICK_LETTERS, TICK_GAP = 14, 2  # letters of a session's name, and the gap to the next
FEW = 60  # sessions up to which the markers are large
STEP_COLOUR = "#b00000"


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes that fit into a width."""

    width_in: float
    title_letters: int
    note_letters: int  # of a line below the panels
    note_lines: int  # of one event
    tick_letters: int  # of all session names, with the blanks between them
    name_suffixes: tuple[str, ...] = ()  # appended to the files' names


WIDE = Shape(drawing.WIDTH_IN, label_fitting.TITLE, 88, 2, 84)
NARROW = Shape(drawing.NARROW_IN, 40, 44, 3, 36, ("narrow",))  # for a page on a telephone


def draw_history(history: History, narrow: bool = False) -> Drawing | None:
    """Draw a panel for each series, changed ones first; None if no series has a value."""
    shape = NARROW if narrow else WIDE
    series = [one for one in history.series if any(one.runs)]
    if not series:
        return None
    with drawing.use_style():
        ranked = sorted(series, key=lambda one: (not one.is_current, not one.course.changes))
        return plot_history(history, ranked, shape)


def plot_history(history: History, series: Sequence[Series], shape: Shape) -> Drawing:
    chosen = series[:MAX_PANELS]
    notes = list(list_notes(history, shape))
    lines = sum(text.count("\n") + 1 for text in notes)
    heights = [PANEL_IN] * len(chosen) + ([LINE_IN * lines] if notes else [])
    figure = drawing.new_figure(0.6 + sum(heights))
    figure.set_figwidth(shape.width_in)
    grid = figure.subplots(
        len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]  # fmt: skip
    for axes, one in zip(grid, chosen, strict=False):
        draw_series(axes, history, one, shape)
        set_ticks(axes, history, shape, is_last=one is chosen[-1])
    if notes:
        grid[-1].axis("off")
        grid[-1].text(
            0, 1, "\n".join(notes), transform=grid[-1].transAxes, va="top", fontsize=8,
            color=STEP_COLOUR,
        )  # fmt: skip
    return Drawing(
        name=drawing.make_slug("history", history.name, *shape.name_suffixes),
        title=f"{history.name}: main figures over the sessions",
        caption=format_caption(history, chosen, series),
        figure=figure,
        columns=COLUMNS,
        rows=[row for one in series for row in data_rows(history, one)],
        page_only=shape is NARROW,
    )


def draw_series(axes: Axes, history: History, series: Series, shape: Shape) -> None:
    """Draw session means, the level of each segment, and a line at each step."""
    means = compute_session_means(series)
    largest = max(abs(one.mean) for one in means.values())
    factor, unit = choose_prefix(largest, series.metric.unit)
    places = list(means)
    axes.plot(
        places, [one.mean / factor for one in means.values()], linestyle="", marker="o",
        markersize=3.2 if len(history.sessions) <= FEW else 1.8, color=COLOURS[0],
    )  # fmt: skip
    draw_intervals(axes, means, factor)
    for one in build_segments(series):
        axes.plot(
            [one.begin - 0.5, one.end - 0.5], [one.first / factor, one.last / factor],
            color="#222222", linewidth=1.3,
        )  # fmt: skip
    odd = [index for index in series.course.outliers if index in means]
    if odd:
        axes.plot(
            odd, [means[index].mean / factor for index in odd], linestyle="", marker="o", markersize=8,
            markerfacecolor="none", markeredgecolor=STEP_COLOUR,
        )  # fmt: skip
    axes.set_ylabel(label_fitting.wrap_label(f"{series.metric.name} ({unit})", Y_LETTERS))
    title = " · ".join([series.variant, *([series.label] if series.condition else [])])
    axes.set_title(label_fitting.shorten_name(title, shape.title_letters), pad=13)
    axes.margins(y=0.12)
    draw_steps(axes, history, series, shape)


def compute_session_means(series: Series) -> dict[int, Interval]:
    """Return the means of sessions with values, by place of the session."""
    return {
        index: mean_interval(
            values,
            never_negative=is_never_negative(series.variant, series.metric.unit, min(values)),
        )
        for index, values in enumerate(series.values)
        if values
    }


def draw_intervals(axes: Axes, means: dict[int, Interval], factor: float) -> None:
    """Draw the intervals of sessions with several runs."""
    known = [
        (index, one.low / factor, one.high / factor)
        for index, one in means.items()
        if one.low is not None and one.high is not None
    ]
    if known:
        places, low, high = zip(*known, strict=True)
        axes.vlines(places, low, high, color=COLOURS[0], alpha=0.5, linewidth=0.9)


@dataclass(frozen=True, slots=True)
class Segment:
    """Sessions between two steps, with the level at both ends; a drift has two levels."""

    begin: int
    end: int
    first: float
    last: float

    def level(self, index: int) -> float:
        """Return the level at a session."""
        share = (index - self.begin) / max(self.end - 1 - self.begin, 1)
        return self.first + share * (self.last - self.first)


def build_segments(series: Series) -> list[Segment]:
    """Return the segments between steps; none if there are too few sessions for a level."""
    course = series.course
    if course.level is None:
        return []
    ends = [0, *(change.index for change in course.changes), len(series.runs)]
    lasts = [*(change.before for change in course.changes), course.level.mean]
    firsts = [lasts[0], *(change.after for change in course.changes)]
    if course.drift is not None and not course.changes and course.drift.ratio:
        firsts[0] = lasts[0] / course.drift.ratio
    return list(map(Segment, ends, ends[1:], firsts, lasts))


def draw_steps(axes: Axes, history: History, series: Series, shape: Shape) -> None:
    """Draw a line at each step, with the number of its note; close ones share a label `1, 2`."""
    numbers = {event.index: number for number, event in enumerate(history.events, 1)}
    least_distance = len(history.sessions) * STEP_IN / shape.width_in
    groups: list[list[int]] = []
    for index in sorted(change.index for change in series.course.changes):
        axes.axvline(index - 0.5, color=STEP_COLOUR, linewidth=0.9, linestyle="--")
        if groups and index - groups[-1][-1] < least_distance:
            groups[-1].append(index)
        else:
            groups.append([index])
    for group in groups:
        x = (group[0] + group[-1]) / 2 - 0.5
        axes.annotate(
            ", ".join(str(numbers[index]) for index in group), (x, 1), xycoords=("data", "axes fraction"),
            xytext=(0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=8,
            color=STEP_COLOUR,
        )  # fmt: skip


def list_notes(history: History, shape: Shape = WIDE) -> Iterator[str]:
    """Yield `1  2026-11-14: kernel 6.1.0-30 → 6.1.0-31`, the changes at each of the latest
    steps.
    """
    for number, event in list(enumerate(history.events, 1))[-MAX_NOTES:]:
        text = f"{number}  {history.sessions[event.index].name}: {'; '.join(list_changes(event))}"
        lines = label_fitting.wrap_label(text, shape.note_letters).split("\n")
        lines = [line.strip() for line in lines]
        last = shape.note_lines - 1
        if len(lines) > shape.note_lines:
            lines[last] = f"{lines[last][: shape.note_letters - 2]} …"
        yield "\n    ".join(lines[: last + 1])


def list_changes(event: Event) -> list[str]:
    """Return a phrase for each change of a state; a single node with a change is first."""
    state = event.state
    alone = sorted({one.node.node for one in event.changes if one.node is not None})
    moved = ((state.left, "left"), (state.joined, "joined"))
    found = [
        *(f"{tag_label(one.key)} {one.before} → {one.after}" for one in state.tags),
        *(f"{one.key} {one.before} → {one.after}" for one in state.programs),
        *(f"{', '.join(nodes)} {word}" for nodes, word in moved if nodes),
    ]
    return [*(f"only {node}" for node in alone), *(found or ["nothing else changed"])]


def set_ticks(axes: Axes, history: History, shape: Shape, is_last: bool) -> None:
    """Put the names of some sessions, evenly spaced, below the last panel."""
    number = len(history.sessions)
    longest = min(max(len(session.name) for session in history.sessions), TICK_LETTERS)
    most = max(shape.tick_letters // (longest + TICK_GAP), 2)
    places = list(range(0, number, max(1, -(-number // most))))
    session_names = [history.sessions[index].name for index in places]
    names = label_fitting.shorten_names(session_names, TICK_LETTERS)
    labels = [names[history.sessions[index].name] for index in places]
    axes.set_xticks(places, labels if is_last else [""] * len(places))
    axes.set_xlim(-0.8, number - 0.2)
    if is_last:
        axes.set_xlabel("session")


def format_caption(history: History, chosen: Sequence[Series], series: Sequence[Series]) -> str:
    """Return the explanation of the figure."""
    caption = (
        f"Means of {counted(len(history.sessions), 'session')} with 95 % intervals over their runs (Student), the "
        "level of each stretch, and a numbered line at each step; below, what changed at that session."
    )
    if any(one.course.outliers for one in chosen):
        caption += " Rings mark outliers among the sessions."
    if len(series) > len(chosen):
        caption += f" The first {len(chosen)} of {len(series)} figures; the CSV has all."
    return caption


def data_rows(history: History, series: Series) -> list[tuple[object, ...]]:
    stretches = build_segments(series)
    levels = {n: one.level(n) for one in stretches for n in range(one.begin, one.end)}
    return [
        (
            series.variant, series.label, series.metric.name, series.metric.unit,
            history.sessions[index].name, history.sessions[index].number,
            history.sessions[index].began_unix_s, one.n, one.mean, one.low, one.high,
            levels.get(index), index in series.course.outliers,
        )
        for index, one in compute_session_means(series).items()
    ]  # fmt: skip
