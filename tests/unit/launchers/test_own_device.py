"""A device of the node that is a container's alone (network=phys): the words, and what is refused
before anything is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.launchers import launcher_checks, launcher_grammar
from steelyard.wrappers.run import option_checks
from steelyard.wrappers.study import study

ACROSS = "network=phys,device=eth1.5,ranks=across"


@pytest.mark.parametrize(
    "kind",
    ["unshare", "systemd-nspawn:/r", "lxc:box", "apptainer:/a.sif", "docker:a", "podman:a"],
)
def test_with_an_address_of_ours_every_kind_has_it(kind: str) -> None:
    found = launcher_grammar.parse(f"{kind},ranks=across,device=eth1.5,network=phys")
    assert found.text == f"{kind},{ACROSS}"
    told = launcher_grammar.launcher_variables(found)
    assert (told["SY_LAUNCHER_NETWORK"], told["SY_LAUNCHER_DEVICE"]) == ("phys", "eth1.5")
    assert told["SY_LAUNCHER_ACROSS"] == "1"


def test_lxcs_configuration_names_it() -> None:
    found = launcher_grammar.parse("lxc:box,cpus=1,network=phys")
    assert found.text == "lxc:box,network=phys,cpus=1"
    assert "SY_LAUNCHER_DEVICE" not in launcher_grammar.launcher_variables(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unshare,device=eth1", "device=eth1: goes with network=phys only"),
        ("unshare,network=bridge,device=", "device=: goes with network=phys only"),
        ("unshare,network=phys,ranks=across", "network=phys needs device=NAME"),
        ("lxc:box,network=phys,ranks=across", "network=phys needs device=NAME"),
        ("lxc:box,network=phys,device=eth1", "the configuration of box names it (lxc.net.0.link)"),
        ("lxc:box,network=phys,containers=2", "a device can be in one container only"),
        (f"unshare,containers=2,{ACROSS}", "containers=2: a device can be in one container only"),
        ("unshare,network=phys,device=eth1", "unshare has no network=phys: nothing would give"),
        ("systemd-nspawn:/r,network=phys,device=eth1", "systemd-nspawn has no network=phys"),
        ("apptainer:/a.sif,network=phys,device=eth1", "(with ranks=across Steelyard does)"),
        ("docker:a,network=phys,device=eth1", "docker has no network=phys: its engine cannot"),
        ("podman:a,network=phys,device=eth1", "podman has no network=phys: its engine cannot"),
        *(
            (
                f"unshare,network=phys,ranks=across,device={name}",
                f"device={name}: expected the name",
            )
            for name in ("lo", "", "a b", "-x", "../x", "sixteen_letters_", "eth1;id")
        ),
        ("unshare,devce=eth1", "did you mean 'device'?"),
    ],
)
def test_what_is_no_such_launcher_is_one_line_that_names_it(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        launcher_grammar.parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", [f"unshare,{ACROSS}", f"podman:a,{ACROSS}", "lxc:box,network=phys"]
)
def test_it_is_roots(text: str) -> None:
    launcher = launcher_grammar.parse(text)
    assert launcher_checks.refusal_reason(launcher, 0) is None
    assert "only root " in str(launcher_checks.refusal_reason(launcher, 1000))


def test_a_device_that_is_not_here_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(launcher_checks, "DEVICES", tmp_path)
    launcher = launcher_grammar.parse(f"unshare,{ACROSS}")
    assert "no network device eth1.5, or it is in a container" in str(
        launcher_checks.find_missing(launcher)
    )
    (tmp_path / "eth1.5").mkdir()
    assert launcher_checks.find_missing(launcher) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [(f"docker:a,{ACROSS}", "--network=none"), (f"apptainer:/a,{ACROSS}", "--net --network none")],
)
def test_a_trial_has_no_network(text: str, words: str) -> None:
    """What an engine does not know is given from outside."""
    asked: list[str] = []
    launcher = launcher_grammar.parse(text)
    assert (
        launcher_checks.try_container(launcher, launcher.network, lambda *argv: asked.extend(argv))
        is None
    )
    assert words in " ".join(asked)


# --- network conditions ---

STUDY = """
[factors]
launcher = ["bare", "{level}"]
network = ["none", "{condition}"]
[[benchmark]]
use = "npb"
"""


@pytest.mark.parametrize("level", [f"unshare,{ACROSS}", "lxc:box,network=phys"])
def test_a_condition_would_not_hold_for_it(level: str) -> None:
    """It shapes devices that the node has: nobody measures under another one in its name."""

    def parsed(condition: str, launcher: str = level) -> study.Study:
        text = STUDY.format(level=launcher, condition=condition)
        return study.parse_study(text.encode(), Path("s.toml"))

    with pytest.raises(UsageError, match='network = "delay=5ms": network conditions shape the dev'):
        parsed("delay=5ms")
    assert parsed("delay=5ms", level.replace("network=phys", "network=bridge").replace(
        "device=eth1.5,", "")).factors["launcher"]  # fmt: skip
    alone = STUDY.format(level=level, condition="x").replace(', "x"', "")
    assert study.parse_study(alone.encode(), Path("s.toml")).factors["launcher"] == ("bare", level)


def test_nor_by_hand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(launcher_checks, "check_on_this_machine", lambda launcher: None)
    words = ["run", "--in", "lxc:box,network=phys", "--netem=delay=5ms", "--", "true"]
    assert cli.main(words) == 2
    assert "with network=phys the container's is none of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    "variable", ["SLURM_SPANK__SLURM_SPANK_OPTION_steelyard_netem", "STEELYARD_NETEM"]
)
def test_a_job_with_a_condition_gives_its_device_to_no_container(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """`sbatch --netem=…` around `steelyard run --in …,network=phys`: what goes by the device of the
    container would not be shaped, and the record would say valid."""
    monkeypatch.setattr(
        "steelyard.wrappers.launchers.launcher_checks.check_on_this_machine", lambda _: None
    )
    monkeypatch.setenv(variable, "delay=50ms")
    with pytest.raises(
        UsageError, match="this job has --netem=delay=50ms: network conditions shape"
    ):
        option_checks.read_launcher(f"unshare,{ACROSS}")
    assert option_checks.read_launcher("unshare,network=bridge,ranks=across").network == "bridge"
    monkeypatch.setenv(variable, "none")
    assert option_checks.read_launcher(f"unshare,{ACROSS}").network == "phys"
