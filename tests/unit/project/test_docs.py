"""The pages are correct: targets of links, commands and make targets exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    """Return relative links, from the page's own folder."""
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """Yield each `steelyard WORD` at the start of a line of code, or in backquotes."""
    text = page.read_text(encoding="utf-8")
    used = set(re.findall(r"(?:^\s*\$ |`|^    )steelyard ([a-z]+(?:-[a-z]+)?)", text, re.MULTILINE))
    assert used <= set(cli.COMMANDS)


def test_every_command_is_in_the_readme_or_a_page() -> None:
    """A command that no page names is not found."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    missing = [name for name in cli.COMMANDS if f"steelyard {name}" not in text]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page: Path) -> None:
    """`make WORD` in code is a target, or a component of packaging/install.sh."""
    text = page.read_text(encoding="utf-8")
    used = set(re.findall(r"(?:`|^    |; )make (?:-s )?([a-z][a-z-]+)", text, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    script = (ROOT / "packaging/install.sh").read_text(encoding="utf-8")
    components = set(re.findall(r"^([a-z-]+)\(\) \{", script, re.MULTILINE))
    targets |= components | {f"install-{name}" for name in components}
    assert used <= targets


def test_headings_that_programs_name_exist() -> None:
    """`docs/PAGE.md, "HEADING"` in what a program prints; the heading may have more words."""
    sources = [
        *ROOT.glob("packaging/*.sh"),
        *ROOT.glob("plugins/**/*.[ch]"),
        *ROOT.glob("wrappers/**/*.py"),
    ]
    named = {
        found
        for source in sources
        for found in re.findall(
            r'(docs/[\w-]+\.md), (?:"\n\s+")?\\"([^"\\]+)\\"', source.read_text("utf-8")
        )
    }
    assert len(named) > 6
    unquoted = [
        found
        for source in sources
        for found in re.findall(r"docs/[\w-]+\.md, [A-Z].*", source.read_text("utf-8"))
    ]
    assert not unquoted, "a heading in quotation marks is looked up here"
    for page, heading in named:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert re.search(rf"^#+ {re.escape(heading)}", text, re.MULTILINE), (page, heading)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_sources_exist(page: Path) -> None:
    """`plugins/node/record/end.c` in a page; NAME and KIND are placeholders."""
    rooms = "plugins|wrappers|analysis|jobscripts|facts|packaging|setup|contrib|bench|tests"
    named = re.findall(rf"(?<![\w/.-])((?:{rooms})/[\w./-]*\w)", page.read_text(encoding="utf-8"))
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not [name for name in missing if not re.search("NAME|KIND", name)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_example_files_exist(page: Path) -> None:
    """`steelyard-sweep.timer.example` in a page: packaging/install.sh has it from the sources."""
    named = set(
        re.findall(
            r"[\w@.-]+\.(?:conf|json|service|timer|cron)\.example\b",
            page.read_text(encoding="utf-8"),
        )
    )
    rooms = ("plugins", "setup", "contrib")
    there = {file.name for room in rooms for file in (ROOT / room).rglob("*.example")}
    assert named <= there


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_cron_finds_the_command(page: Path) -> None:
    """cron(8) looks in /usr/bin and /bin only; install.sh puts `steelyard` into /usr/local/bin."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"(?ms)^```.*?^```$", text):
        for line in re.findall(r"(?m)^[\d*/]+(?: [\d*/]+){4} .*steelyard .*$", block):
            assert re.search(r"^PATH=/usr/local/bin:\S*$", block, re.MULTILINE) or re.search(
                r"(/usr/local/bin/|PATH=/usr/local/bin:\S* )steelyard ", line
            )


def test_the_changelog_has_this_version() -> None:
    """Unreleased work, or the version that VERSION names."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    assert "## [Unreleased]" in text or f"## [{version}]" in text


def test_every_dependency_has_its_line() -> None:
    """docs/dependencies.md states why each is needed."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    names = re.findall(
        r"^    ([a-z0-9-]+)(?:>=|$)", setup.split("[options.entry_points]")[0], re.MULTILINE
    )
    wanted = {name for name in names if not name.startswith(("steelyard", "types-"))}
    assert {"duckdb", "scipy"} <= wanted
    assert not [name for name in wanted if name not in page]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_below_a_numbered_item_are_rendered_as_code(page: Path) -> None:
    """Code in an item `1. ` begins 4 blanks right of its text, at 7; at 4 it is a paragraph."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^\d\. .*\n\n( {4,6}\S.*)", text, re.MULTILINE)
