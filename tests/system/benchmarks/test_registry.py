"""The benchmarks' descriptions: what is read, what is refused and with which words."""

from __future__ import annotations

import subprocess
import sys


def test_jobscripts_knows_nothing_of_its_users_and_imports_no_parser_before_its_time() -> None:
    code = (
        "import sys; from steelyard.jobscripts import registry, runscript;"
        "[registry.load(n) for n in registry.names()];"
        "print([m for m in sys.modules if m.startswith(('steelyard.analysis',"
        "'steelyard.wrappers', 'steelyard.jobscripts.hpl.'))])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"
