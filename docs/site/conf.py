"""Configures the site of docs/: `make docs` (Sphinx; the pages are Markdown, read by MyST)."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

from steelyard.jobscripts import docs

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import tables

project = "Steelyard"
author = "the Steelyard developers"
project_copyright = author
version = release = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"Steelyard {version}"
html_show_sourcelink = False
html_copy_source = False
# Fragments of SQL and TOML on pages may be incomplete.
highlight_options = {"stripnl": False}
nitpicky = True


# Pages of the folder above, by their names on the site.
KEPT_ABOVE = {
    "index": "README.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "results": "bench/RESULTS.md",
    "security": "SECURITY.md",
}


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Insert text that is in other files or generated."""
    if page in KEPT_ABOVE:
        source[0] = f"{as_in_docs(KEPT_ABOVE[page])}\n{source[0]}"
        app.env.note_dependency(str(ROOT / KEPT_ABOVE[page]))
    up = "../" * page.count("/")
    for name, above in KEPT_ABOVE.items():
        source[0] = source[0].replace(f"]({up}../{above}", f"]({up}{name}.md")
    if page == "every-benchmark":
        source[0] += f"\n{docs.tables()}"
    source[0] = tables.filled(source[0])


def as_in_docs(name: str) -> str:
    """Return a page of the folder above, with links relative to docs/."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
    for page, above in KEPT_ABOVE.items():
        text = text.replace(f"]({above}", f"]({page}.md")
    return text


def setup(app: Sphinx) -> None:
    """Connect to Sphinx, which calls this function."""
    app.connect("source-read", fill)
