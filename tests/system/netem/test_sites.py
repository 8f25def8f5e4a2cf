"""Files of sites: what each node shapes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.netem.test_sites import compiled as compiled  # noqa: PLC0414 - a fixture
from tests.unit.netem.test_sites import file as file  # noqa: PLC0414 - a fixture
from tests.unit.netem.test_sites import run

from steelyard.wrappers.base.errors import ConditionError, UsageError
from steelyard.wrappers.netem import program


def test_the_node_reads_what_was_compiled(compiled: Path) -> None:
    """This machine has none of these addresses; every line is read before that is reported."""
    with pytest.raises(ConditionError, match=r"sites\.sites: this node .* is in no site of it"):
        program.read_sites("sites", compiled.parent)


def test_write_tells_what_it_means_here(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [str(file), "--write", "--into", str(tmp_path / "made")]
    assert run(*argv) == 0
    out = capsys.readouterr().out
    assert (
        "made/sites.sites: written; jobs on nodes that have it: sbatch --netem=sites=sites" in out
    )
    assert "on this machine: " in out
    assert run(*argv, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["node"] is None
    assert "is in no site of it" in told["missing"]["node"]
    with pytest.raises(UsageError, match="--into goes with --write"):
        run(str(file), "--into", "x")
