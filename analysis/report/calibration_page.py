"""The page of `steelyard calibrate`: one HTML file that opens offline, in the reports' style."""

from __future__ import annotations

import importlib.resources
from typing import Any


def page(whole: dict[str, Any]) -> str:
    """All that calibration.html.j2 sets."""
    import jinja2

    folder = importlib.resources.files(__package__)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(folder.joinpath("calibration.html.j2").read_text("utf-8"))
    return template.render(css=folder.joinpath("report.css").read_text("utf-8"), **whole)
