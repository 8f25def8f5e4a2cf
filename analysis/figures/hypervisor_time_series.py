"""Power of a host and traffic of the guest's job over the same time (Kommeri 2016, figure 1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import COLOURS, DASHES
from steelyard.analysis.job.hypervisor_record import Joined, Side, compute_rates
from steelyard.analysis.stats.number_format import choose_prefix

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(joined: Joined, path: Path) -> None:
    """Draw two panels on one time axis, in the format of the path's suffix (svg, png, pdf)."""
    with drawing.use_style():
        figure = drawing.new_figure(4.0)
        power, traffic = figure.subplots(2, 1, sharex=True)
        power.set_ylabel("power (W)")
        draw_line(power, joined, joined.host, "energy_j", 1.0, 0, "host")
        if not power.lines:
            reason = joined.host.missing.get("energy_j", "no samples")
            power.text(0.5, 0.5, reason, transform=power.transAxes, ha="center", wrap=True)
        draw_traffic(traffic, joined)
        traffic.set_xlabel("time since the job's start (s)")
        traffic.set_xlim(0, joined.end_unix_s - joined.begin_unix_s)
        for axes in (power, traffic):
            top = max((value for line in axes.lines for value in line.get_ydata()), default=0)
            axes.set_ylim(0, 1.35 * top or 1)  # room for the legend
            if axes.lines:
                axes.legend(loc="upper right", ncols=4, fontsize=7.5)
        drawing.lay_out(figure)
        figure.savefig(path, metadata=drawing.make_metadata(path.suffix.removeprefix(".")))


def draw_traffic(axes: Axes, joined: Joined) -> None:
    """Draw received and sent bytes per second of guest and host."""
    sides = (("guest", joined.guest), ("host", joined.host))
    counters = (("rx_bytes", "received"), ("tx_bytes", "sent"))
    most = max(
        (
            value
            for _, side in sides
            for counter, _ in counters
            for value in compute_rates(side, counter, joined.begin_unix_s, joined.end_unix_s)[1]
        ),
        default=0.0,
    )
    factor, unit = choose_prefix(most, "bytes_per_s")
    axes.set_ylabel(f"traffic ({unit})")
    for colour, (who, side) in enumerate(sides):
        for dash, (counter, what) in enumerate(counters):
            draw_line(axes, joined, side, counter, factor, colour, f"{who} {what}", dash)


def draw_line(
    axes: Axes, joined: Joined, side: Side, counter: str, factor: float, colour: int, label: str,
    dash: int = 0,
) -> None:  # fmt: skip
    """Draw the rates of a counter, if there are any."""
    times, values = compute_rates(side, counter, joined.begin_unix_s, joined.end_unix_s)
    if times:
        axes.plot(
            times, [value / factor for value in values], drawstyle="steps-pre", linewidth=1.3,
            color=COLOURS[colour], linestyle=DASHES[dash], label=label,
        )  # fmt: skip
