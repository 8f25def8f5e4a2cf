"""Completions at a press of Tab, as printed by bash, zsh and fish themselves."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli

Capture = pytest.CaptureFixture[str]
ZSH_OFFERS = Path(__file__).with_name("zsh_offers.zsh")
# What is typed, what must be offered, and what must not.
TYPED: dict[str, tuple[set[str], set[str]]] = {
    "steelyard ru": ({"run"}, {"report"}),
    "steelyard ": ({"run", "check", "netem", "completion"}, set()),
    "steelyard run --war": ({"--warmup"}, set()),
    "steelyard run --benchmark np": ({"npb"}, {"hpl"}),
    "steelyard run --cache ": ({"cold", "warm"}, set()),
    "steelyard run --cache=c": ({"cold"}, {"warm"}),
    "steelyard netem a": ({"apply"}, {"clear"}),
    "steelyard netem apply --pe": ({"--peer"}, set()),
    "steelyard cluster ": ({"up", "down", "console"}, set()),
    "steelyard submit s": ({"study.toml"}, {"other"}),
    "steelyard report nightly@s": ({"nightly@s01", "nightly@s02"}, {"nightly@other", "study.toml"}),
    "steelyard compare nightly@s01 nightly@": (
        {"nightly@s01", "nightly@other"},
        {"nightly@cut"},
    ),
    "steelyard status s": ({"study.toml", "some.study"}, {"other"}),
    "steelyard history nightly@s": (set(), {"nightly@s01"}),
    "steelyard collect --record-dir s": ({"some.study"}, {"study.toml"}),
    "steelyard report --output=s": ({"study.toml"}, {"other"}),
    "steelyard report --figures s": ({"study.toml", "some.study"}, set()),
    "steelyard run gzi": ({"gzip"}, set()),
    "steelyard run --repeat 3 gzi": ({"gzip"}, set()),
    "steelyard run -- gzi": ({"gzip"}, set()),
    "steelyard run ls --repe": (set(), {"--repeat"}),
}
# What it makes of `=` and `--`, and whose options follow a program, is left to bash's own habits.
NOT_IN_BASH = {line for line in TYPED if "=" in line or "--figures" in line or "ls --" in line}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study and something else."""
    folder = tmp_path / "here"
    (folder / "some.study").mkdir(parents=True)
    (folder / "study.toml").touch()
    for name in ("s01", "s02", "other", "cut"):
        (folder / f"nightly.sessions/{name}.study").mkdir(parents=True)
        if name != "cut":
            (folder / f"nightly.sessions/{name}.study/plan.json").touch()
    (folder / "other").touch()
    monkeypatch.chdir(folder)
    return folder


def script(shell: str, capsys: Capture) -> str:
    """Return the script that the command prints."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is missing: apt-get install {shell}")
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


def judge(line: str, offered: set[str]) -> None:
    wanted, unwanted = TYPED[line]
    assert wanted <= offered, (line, offered)
    assert not unwanted & offered, (line, offered)


def ask(*command: str) -> set[str]:
    """The lines that a shell prints; a folder without its slash."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return {line.strip().rstrip("/") for line in done.stdout.splitlines()}


def test_bash_completes(here: Path, capsys: Capture) -> None:
    text = script("bash", capsys)
    for line in TYPED.keys() - NOT_IN_BASH:
        words = [*line.split(), *([""] if line.endswith(" ") else [])]
        judge(line, ask("bash", "-c", f"""{text}
COMP_WORDS=({" ".join(map(shlex.quote, words))})
COMP_CWORD={len(words) - 1} COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
_shtab_steelyard 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""))  # fmt: skip


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("report", "nightly", "@", "s"), {"s01", "s02"}),  # as bash cuts words at each @
        (("compare", "nightly", "@", "s01", "nightly", "@"), {"s01", "s02", "other"}),
        (("compare", "nightly", "@", "s01", "nightly", "@", "o"), {"other"}),
        (("status", "--json", "st"), {"study.toml"}),
    ],
)
def test_bash_completes_sessions_behind_the_at(
    words: tuple[str, ...], offered: set[str], here: Path, capsys: Capture
) -> None:
    text = script("bash", capsys)
    found = ask("bash", "-c", f"""{text}
COMP_WORDS=(steelyard {" ".join(map(shlex.quote, words))})
COMP_CWORD={len(words)}
_steelyard_whole_words 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
""")  # fmt: skip
    assert found == offered


def test_fish_completes(here: Path, capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "steelyard.fish"
    path.write_text(script("fish", capsys))
    assert ask("fish", "-n", str(path)) == set()
    for line in TYPED:
        command = f"source {path}; complete -C {shlex.quote(line)}"
        offered = {word.split("\t")[0] for word in ask("fish", "--no-config", "-c", command)}
        judge(line, {word.rpartition("=")[2].rstrip("/") for word in offered})


@pytest.mark.slow
def test_zsh_completes(here: Path, capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "_steelyard"
    path.write_text(script("zsh", capsys))
    assert ask("zsh", "-n", str(path)) == set()
    for number, line in enumerate(TYPED):
        answer = tmp_path / f"answer-{number}"
        judge(line, ask("zsh", "-f", str(ZSH_OFFERS), str(tmp_path), str(answer), "fpath", line))


def test_zsh_takes_it_without_a_file_too(here: Path, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "_steelyard").write_text(script("zsh", capsys))
    how = (str(ZSH_OFFERS), str(tmp_path), str(tmp_path / "answer"), "eval", "steelyard ru")
    assert ask("zsh", "-f", *how) == {"run"}
