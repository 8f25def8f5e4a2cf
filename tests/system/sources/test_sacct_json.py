"""`sacct --json` says what `sacct -P` says, field by field, or is not used; recorded answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import sacct_json


def test_what_sacct_has_to_say_is_not_hidden(tmp_path: Path) -> None:
    program = tmp_path / "sacct"
    program.write_text("#!/bin/sh\necho 'sacct: error: refused' >&2; exit 1\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(MissingError, match="refused"):
        list(sacct_json.SacctJson(str(program), tries=1).rows(["1"]))
