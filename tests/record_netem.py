"""Records the answers of `steelyard-node netem parse` for the unit tests, which start no process.

build/venv/bin/python tests/record_netem.py [SPEC…]

records the answers of all known specifications again, and those of the given ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/bin/steelyard-node"
ANSWERS = ROOT / "tests/data/netem_parse/answers.json"
Answer = tuple[int, str, str]  # exit code, output, error output


def ask_program(spec: str) -> Answer:
    """Return the real program's answer."""
    argv = [PROGRAM, "netem", "parse", "--", spec]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def read_answers() -> dict[str, Answer]:
    """Read the recorded answers."""
    found = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return {spec: (code, out, err) for spec, (code, out, err) in found.items()}


def main() -> None:
    """Write the file."""
    specs = sorted({*read_answers(), *sys.argv[1:]})
    text = json.dumps({spec: ask_program(spec) for spec in specs}, indent=1, ensure_ascii=False)
    ANSWERS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
