"""What the fuzzer of AdminComment's merging has found, given to its twin in Python: the same answer.

twins.py FUZZER CORPUS: analysis/sources/admin_comment.py against plugins/node/job/comment_merge.c,
blanks between members aside.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from steelyard.analysis.sources.admin_comment import ForeignError, merged

OWN = '{"cpu_s":1.5,"tags":{"a":"}\\""}}'  # fuzz_merge.c
WORDS = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', re.DOTALL)


def squeezed(text: str) -> str:
    return WORDS.sub(lambda found: found[1] or "", text)


def by_python(present: bytes) -> str:
    try:
        return merged(present.decode(), OWN)
    except (ForeignError, UnicodeDecodeError):
        return ""


def answers(fuzzer: str, corpus: Path) -> list[tuple[bytes, str]]:
    """(what was there, what the C part makes of it)."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        files = sorted(str(path) for path in corpus.iterdir())
        for at in range(0, len(files), 500):
            subprocess.run(
                [fuzzer, *files[at : at + 500]], check=True, stderr=subprocess.DEVNULL,
                env=os.environ | {"FUZZ_TELL": str(told)},
            )  # fmt: skip
        pairs = [line.split(" ") for line in told.read_text().splitlines()]
    return [(bytes.fromhex(before), bytes.fromhex(after).decode()) for before, after in pairs]


def main(fuzzer: str, corpus: str) -> int:
    pairs = answers(fuzzer, Path(corpus))
    other = [
        (present, by_c) for present, by_c in pairs if squeezed(by_c) != squeezed(by_python(present))
    ]
    for present, by_c in other[:10]:
        print(
            f"not ok twins of merge: {present!r}\n#  C: {by_c!r}\n#  Python: {by_python(present)!r}"
        )
    print(f"twins of merge: {len(pairs)} comments, {len(other)} answers that differ")
    return int(bool(other) or not pairs)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
