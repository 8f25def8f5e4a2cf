"""One MPI program in several containers (ranks=across): the words, and what they are told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.launchers import launcher_checks, launcher_grammar
from steelyard.wrappers.run import benchmark as run_benchmark
from steelyard.wrappers.run import container_run
from steelyard.wrappers.study import study


def test_one_program_across_containers_is_one_client() -> None:
    found = launcher_grammar.parse("unshare,ranks=across,network=macvlan,containers=4")
    assert found.text == "unshare,network=macvlan,containers=4,ranks=across"
    assert launcher_grammar.parse("unshare,ranks=each") == launcher_grammar.parse("unshare")
    assert found.clients_per_node == 1
    told = launcher_grammar.launcher_variables(found)
    assert (told["SY_LAUNCHER_CONTAINERS"], told["SY_LAUNCHER_ACROSS"]) == ("1", "4")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unshare,ranks=one", "ranks=one: allowed is each or across"),
        ("unshare,rank=across", "did you mean 'ranks'?"),
        (
            "unshare,network=macvlan",
            "nothing would give the container an address (with ranks=across",
        ),
    ],
)
def test_what_is_no_such_word_is_said(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        launcher_grammar.parse(text)
    assert message in str(caught.value)


def test_a_network_between_containers_is_roots() -> None:
    text = "unshare,ranks=across,network=bridge"
    said = launcher_checks.refusal_reason(launcher_grammar.parse(text), 1000)
    assert said is not None and "only root can give its containers a network" in said
    assert launcher_checks.refusal_reason(launcher_grammar.parse(text), 0) is None
    assert (
        launcher_checks.refusal_reason(launcher_grammar.parse("unshare,ranks=across"), 1000) is None
    )


def level_of(text: str, benchmark: str) -> tuple[object, ...]:
    toml = (
        f'[job]\nnodes = 2\n[factors]\nlauncher = ["{text}"]\n[[benchmark]]\nuse = "{benchmark}"\n'
    )
    return study.parse_study(toml.encode(), Path("s.toml")).factors["launcher"]


@pytest.mark.parametrize(
    "text", ["unshare,containers=2,ranks=across", "docker:a,network=bridge,ranks=across"]
)
def test_on_several_nodes_it_takes_in_all_containers(text: str) -> None:
    assert level_of(text, "mpi") == (text,)
    with pytest.raises(
        UsageError, match="one MPI program into all containers, and iperf3 starts none"
    ):
        level_of(text, "iperf3")


def test_a_command_of_the_users_cannot_be_spread(tmp_path: Path) -> None:
    launcher = launcher_grammar.parse("unshare,containers=2,ranks=across")
    with pytest.raises(UsageError, match="for a command leave it out"):
        container_run.prepare(launcher, ["true"], tmp_path)
    with pytest.raises(UsageError, match="and filesystem starts none"):
        run_benchmark.choose_benchmark("filesystem", [], launcher)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_a_missing_image_names_the_line_that_makes_it(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """As docs/recipes/container.md has it."""
    monkeypatch.setattr(
        launcher_checks, "error_line", lambda *argv: "none" if "inspect" in argv else None
    )
    said = launcher_checks.check_engine(launcher_grammar.parse(f"{program}:mine:1"))
    line = f"`steelyard image make {program}:mine:1`"
    assert said is not None and said.endswith(f"or make one with Open MPI: {line}")
    recipe = (Path(__file__).parents[3] / "docs/recipes/container.md").read_text(encoding="utf-8")
    assert f"steelyard image make {program}:my-app:1" in recipe
