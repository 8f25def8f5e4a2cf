"""HPL's input as job.sh writes it, with recorded output in place of a program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.jobscripts import registry

if TYPE_CHECKING:
    from .conftest import Study

ROOT = Path(__file__).parents[3]


def test_the_users_own_xhpl_gets_its_input_and_is_read(study: Study, tmp_path: Path) -> None:
    """No xhpl is packaged: a script prints a recorded output, if the input is as it should be."""
    recorded = ROOT / "tests/data/hpl/N1000.np2.NB64.out"
    xhpl = tmp_path / "my xhpl"
    xhpl.write_text(
        "#!/bin/bash\n"
        '[[ $(sed -n "6p;12p" HPL.dat) == "1000  Ns"$\'\\n\'"2  Qs" ]] || exit 9\n'
        f'[[ $OPENBLAS_NUM_THREADS == 3 ]] || exit 8\nexec cat "{recorded}"\n',
        encoding="utf-8",
    )
    xhpl.chmod(0o755)
    launcher = tmp_path / "launch"  # not Open MPI: gets -np and no more
    launcher.write_text('#!/bin/bash\n[[ $1 == -np && $2 == 2 ]] && exec "$3"\n', encoding="utf-8")
    launcher.chmod(0o755)
    benchmark = registry.load("hpl")
    given: dict[str, object] = {"n": 1000, "q": 2, "threads": 3, "xhpl": str(xhpl)}
    given["mpirun"] = str(launcher)
    study.write(benchmark, 1, **given)
    done = study.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert benchmark.parse(study.attempt(), 0, given)[0].value == 8.8125


def test_several_systems_are_lines_of_one_hpl_dat(study: Study, tmp_path: Path) -> None:
    recorded = ROOT / "tests/data/hpl/N494.np4.27systems.out"
    xhpl = tmp_path / "xhpl"
    xhpl.write_text(f'#!/bin/bash\nexec cat "{recorded}"\n', encoding="utf-8")
    xhpl.chmod(0o755)
    benchmark = registry.load("hpl")
    several: dict[str, object] = {"pfact": "left crout right", "rfact": "left crout right"}
    several |= {"nbmin": "2 4 6", "bcast": "1ring", "depth": 0}
    given = {"n": 494, "nb": 16, "q": 4, "xhpl": str(xhpl), "mpirun": "true", **several}
    study.write(benchmark, 1, **given)
    study.run()
    lines = (study.attempt() / "hpl.0.dat").read_text(encoding="utf-8").splitlines()
    # HPL reads a count and then so many values (HPL_pdinfo.c); PFACT, NBMIN, NDIV, RFACT, BCAST.
    assert [line.split(" ")[0] for line in lines[13:24:2]] == ["3", "3", "1", "3", "1", "1"]
    assert lines[14].startswith("0 1 2 PFACTs")
    assert lines[16].startswith("2 4 6 NBMINs")
    assert lines[20].startswith("0 1 2 RFACTs")


def test_no_function_of_the_library_is_defined_twice() -> None:
    """The files are one script: the later one would silently take the earlier one's place.

    A scheduler's own functions are called by its name, and begin with it.
    """
    defined = re.findall(r"^(sy_\w+)\(\) \{", registry.library(), re.MULTILINE)
    assert len(defined) > 100
    assert sorted(defined) == sorted(set(defined))
