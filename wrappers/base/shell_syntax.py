"""What of a command line only a shell understands."""

from __future__ import annotations

import re

SYNTAX = "|&;<>()$`*?[\n"  # outside of quotes
# Of POSIX' reserved words and built-in utilities those that are no programs.
BUILT_IN = frozenset(
    re.findall(
        r"\S+",
        """! . : { } alias bg break case cd command continue do done elif else esac eval exec exit
        export fc fg fi for getopts hash if in jobs read readonly return set shift then times trap
        type ulimit umask unalias unset until wait while""",
    )
)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
