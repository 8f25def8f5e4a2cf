"""The syntax of a command line that needs a shell."""

from __future__ import annotations

import re

SYNTAX = "|&;<>()$`*?[\n"  # outside of quotes
# POSIX' reserved words and built-in utilities that are not also programs.
BUILT_IN = frozenset(
    re.findall(
        r"\S+",
        """! . : { } alias bg break case cd command continue do done elif else esac eval exec exit
        export fc fg fi for getopts hash if in jobs read readonly return set shift then times trap
        type ulimit umask unalias unset until wait while""",
    )
)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
