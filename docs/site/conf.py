"""The pages of docs/ as a site: `make docs` (Sphinx; pages are Markdown, by MyST)."""

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
# SQL and TOML as pages have them need not be whole.
highlight_options = {"stripnl": False}
nitpicky = True


# Pages that lie in the folder above, by the name that they have here.
KEPT_ABOVE = {
    "index": "README.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "results": "bench/RESULTS.md",
    "security": "SECURITY.md",
}


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """What is kept elsewhere, or nowhere as a text."""
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
    """A page of the folder above, its links as seen from here."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
    for page, above in KEPT_ABOVE.items():
        text = text.replace(f"]({above}", f"]({page}.md")
    return text


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", fill)
