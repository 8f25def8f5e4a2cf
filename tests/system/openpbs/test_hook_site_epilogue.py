"""The site's own epilogue, which a mom no longer runs once a hook has the event."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.system.openpbs.conftest import DUMPS, USER, Mom, job

SAYS = '#!/bin/sh\nprintf "%s\\n" "$@" > "$(dirname "$0")/said"; echo out; echo err >&2\n'


def recorded_words() -> list[str]:
    """The ten arguments that a mom gave it."""
    text = (DUMPS / "openpbs.epilogue.0.vm").read_text()
    words = dict(re.findall(r"^argv\[(\d+)\]=(.*)$", text, re.MULTILINE))
    return [shlex.split(words[str(i)])[0] for i in range(1, 11)]


def the_same_job() -> dict[str, Any]:
    words = recorded_words()

    def resources(text: str) -> dict[str, str]:
        return dict(part.split("=", 1) for part in text.split(","))

    return job(
        id=words[0], euser=words[1], egroup=words[2], Job_Name=words[3], session_id=words[4],
        Resource_List=resources(words[5]), resources_used=resources(words[6]), queue=words[7],
        Account_Name=words[8], Exit_status=words[9], hashname=words[0], Join_Path="n",
    )  # fmt: skip


@pytest.fixture
def epilogue(mom: Mom) -> Path:
    path = mom.home / "mom_priv/epilogue"
    path.write_text(SAYS)
    path.chmod(0o500)
    return path


def ran(mom: Mom, **more: Any) -> list[str] | None:
    told = mom.run({"event": "EXECJOB_EPILOGUE", "job": the_same_job()}, **more)
    assert told["accepted"]
    said = mom.home / "mom_priv/said"
    return said.read_text().splitlines() if said.exists() else None


def test_it_is_given_what_mom_gave_it(mom: Mom, epilogue: Path) -> None:
    for ending in ("OU", "ER"):
        (mom.home / f"spool/0.vm.{ending}").write_text("before\n")
        os.chown(mom.home / f"spool/0.vm.{ending}", USER, USER)
    assert ran(mom) == recorded_words()
    assert (mom.home / "spool/0.vm.OU").read_text() == "before\nout\n"
    assert (mom.home / "spool/0.vm.ER").read_text() == "before\nerr\n"


def test_only_on_the_first_node(mom: Mom, epilogue: Path) -> None:
    assert ran(mom, in_ms=False) is None


def test_not_where_the_site_says_so(mom: Mom, epilogue: Path) -> None:
    mom.config["classic_epilogue"] = "leave"
    assert ran(mom) is None


@pytest.mark.parametrize(("line", "runs"), [("enabled=true", False), ("enabled=false", True)])
def test_not_where_a_hook_of_the_site_had_the_event(
    mom: Mom, epilogue: Path, line: str, runs: bool
) -> None:
    other = mom.home / "mom_priv/hooks/site.HK"
    other.write_text(f"hook_name=site\n{line}\nevent=execjob_begin,execjob_epilogue\n")
    (mom.home / "mom_priv/hooks/steelyard.HK").write_text("event=execjob_epilogue\n")
    assert (ran(mom) is not None) == runs


@pytest.mark.parametrize("mode", [0o520, 0o502, 0o400])
def test_not_with_rights_that_mom_refuses(mom: Mom, epilogue: Path, mode: int) -> None:
    epilogue.chmod(mode)
    assert ran(mom) is None


def test_a_link_in_the_spool_is_not_followed(mom: Mom, epilogue: Path) -> None:
    victim = mom.home / "victim"
    victim.write_text("mine\n")
    (mom.home / "spool/0.vm.OU").symlink_to(victim)
    os.link(victim, mom.home / "spool/0.vm.ER")
    assert ran(mom) == recorded_words()
    assert victim.read_text() == "mine\n"


def test_one_that_hangs_is_killed(mom: Mom, epilogue: Path) -> None:
    epilogue.write_text("#!/bin/sh\nsleep 60\n")
    mom.config["classic_epilogue_limit_s"] = 0.5
    told = mom.run({"event": "EXECJOB_EPILOGUE", "job": the_same_job()})
    assert told["accepted"]
    assert told["log"] == [f"steelyard: {epilogue}: killed after 0.5 s"]
