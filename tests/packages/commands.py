"""The commands that a page tells an admin to type, under some of its headings.

commands.py PAGE HEADING…: prints each line of code of those sections, without its comment, in their
order.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path


def commands(page: str, headings: list[str]) -> Iterator[str]:
    """Yield lines of code blocks: indented by four, or by seven in a list item.

    Raises LookupError for a missing heading.
    """
    sections = dict(re.findall(r"(?ms)^#+ ([^\n]+)\n(.*?)(?=^#+ |\Z)", page))
    for heading in headings:
        for line in re.findall(r"(?m)^ {4}(?: {3})?(\S.*)$", sections[heading]):
            yield re.sub(r"\s+# .*$", "", line)


if __name__ == "__main__":
    lines = commands(Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2:])
    sys.stdout.writelines(f"{line}\n" for line in lines)
