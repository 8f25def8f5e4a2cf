"""Python finds the sources of a checkout by one line, not by what pip writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
LOOK = """\
import site, sys
site.addsitedir(sys.argv[1])
import steelyard.facts
import steelyard.wrappers.base.errors as errors
from importlib.util import find_spec
print(errors.__file__, find_spec("steelyard").submodule_search_locations)
print([name for name in sys.modules if "editable" in name])
"""


def test_a_line_takes_the_place_of_the_finder(tmp_path: Path) -> None:
    path = tmp_path / "__editable__.steelyard-1.pth"
    path.write_text("import __editable___steelyard_1_finder\n", encoding="utf-8")
    absent = tmp_path / "__editable__.steelyard-*.pth"
    script = ROOT / "setup/editable_pth.py"
    subprocess.run([sys.executable, script, ROOT, path, absent], check=True)
    assert [path] == list(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOOK, tmp_path],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == f"{ROOT}/wrappers/base/errors.py ['{ROOT}']\n[]\n"
