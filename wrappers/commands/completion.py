"""Print the completion of commands, options and files for a shell: bash, zsh or fish.

Start a new shell afterwards. It is made from the same source as the help, so print it again after
an upgrade.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")
FOLDERS = frozenset(("DIR",))
FILES = frozenset(("FILE", "STUDY", "STUDY.toml"))
# Completion of a program and its arguments: programs in PATH, then files; zsh completes the
# program's own words.
PROGRAM = {
    "bash": "_steelyard_programs",
    "zsh": "_normal",
    "fish": "(__fish_complete_command) (__fish_complete_path (commandline -ct))",
    "preamble": {
        "bash": '_steelyard_programs() { _shtab_compgen_files "$1"; compgen -c -- "$1"; }',
    },
}

# Completion of files and, after `NAME@`, of the sessions of NAME: folders
# NAME.sessions/SESSION.study.
STUDIES = {
    "bash": "_steelyard_study_files",
    "zsh": "_steelyard_studies",
    "fish": "(_steelyard_studies)",
    "preamble": {
        "bash": r"""_steelyard_study_files() {
  [[ $1 == *@* ]] || { _shtab_compgen_files "$1"; return; }
  local path
  for path in "${1%@*}".sessions/"${1##*@}"*.study/plan.json; do
    [[ -e $path ]] || continue
    path=${path%.study/plan.json}
    printf '%s\n' "${1%@*}@${path##*/}"
  done
}""",
        "zsh": r"""_steelyard_studies() {
  if [[ $PREFIX != *@* ]]; then _files; return; fi
  local -a plans=(${PREFIX%@*}.sessions/*.study/plan.json(N:h:t:r))
  compadd -- ${PREFIX%@*}@${^plans}
}""",
        "fish": r"""function _steelyard_studies
  set -l word (string replace -r '^--[^=]*=' '' -- (commandline -ct))
  set -l parts (string split -m1 -r @ -- $word)
  if not set -q parts[2]
    __fish_complete_path $word
    return
  end
  for plan in $parts[1].sessions/*.study/plan.json
    echo $parts[1]@(string replace -r '.*/(.*)\.study/plan\.json$' '$1' -- $plan)
  end
end""",
    },
}
# Bash splits NAME@SESSION into three words (COMP_WORDBREAKS), and replaces only what follows the @.
WHOLE_WORDS = r"""
_steelyard_whole_words() {
  local -a words=()
  local place word last
  local -i current=0
  for place in "${!COMP_WORDS[@]}"; do
    word=${COMP_WORDS[place]}
    last=$((${#words[@]} - 1))
    if ((last > 0)) && [[ $word == @* || ${words[last]} == *@ ]]; then
      words[last]+=$word
    else
      words+=("$word")
    fi
    ((place != COMP_CWORD)) || current=$((${#words[@]} - 1))
  done
  COMP_WORDS=("${words[@]}") COMP_CWORD=$current
  _shtab_steelyard "$@"
  word=${COMP_WORDS[COMP_CWORD]}
  [[ $word != *@* || $COMP_WORDBREAKS != *@* ]] || COMPREPLY=("${COMPREPLY[@]#"${word%@*}@"}")
}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name of the shell."""
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def main(args: argparse.Namespace) -> int:
    """Print the completion."""
    import shtab

    from steelyard.wrappers.commands import cli, parsers

    parser = parsers.make_main_parser(cli.COMMANDS, cli.QUESTION)
    set_completion_types(parser)
    text = shtab.complete(parser, args.shell)
    mend = {"bash": fix_bash, "zsh": fix_zsh, "fish": fix_fish}[args.shell]
    print(mend(text, frozenset(with_optional_value(parser))))
    return 0


def set_completion_types(parser: argparse.ArgumentParser) -> None:
    """Set the completion of each action: a file, a folder, a study or session, a program, or a
    benchmark's name."""
    import shtab

    from steelyard.jobscripts import registry

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                set_completion_types(below)
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # where shtab looks
        elif not action.option_strings and "NAME@SESSION" in (action.help or ""):
            action.complete = STUDIES  # type: ignore[attr-defined]
        elif action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == "COMMAND":
            action.complete = PROGRAM  # type: ignore[attr-defined]
        elif action.dest == "benchmark":
            action.choices = registry.names()


def with_optional_value(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield options whose value is optional, such as `--figures`: it follows `=`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from with_optional_value(below)
        elif action.nargs == "?":
            yield from action.option_strings


def fix_bash(text: str, optional: frozenset[str]) -> str:
    """Make a word with an @ a single word."""
    return text.replace(
        "complete -o bashdefault -F _shtab_steelyard ",
        f"{WHOLE_WORDS}\ncomplete -o bashdefault -F _steelyard_whole_words ",
    )


def fix_zsh(text: str, optional: frozenset[str]) -> str:
    """Add `--cache=cold` to shtab's `--cache cold`, and `run -- PROGRAM`."""

    def with_equals(found: re.Match[str]) -> str:
        name, close, rest = found.groups()
        if name in optional:
            return f"{name}=-{close}[{rest}]::"
        return f"{name}={close}[{rest}]:"

    text = text.replace("_arguments -C -s ", "_arguments -C -s -S ")
    return re.sub(r"(?<=[\"*,])(--[\w-]+)(\}\"|)\[(.*?)(?<!\\)\]:", with_equals, text)


def fix_fish(text: str, optional: frozenset[str]) -> str:
    """Stop our options after the program of `run`, do not complete an optional value as a separate
    word, and start a file's name after `--output=`."""
    names, run = "set -g _shtab_steelyard_opts_with_value ", "'_shtab_steelyard_using run'"
    before = "'_shtab_steelyard_using run; and test $_shtab_steelyard_npos -eq 0'"
    value = "(string replace -r '^--[^=]*=' '' -- (commandline -ct))"
    text = text.replace("__fish_complete_path (commandline -ct)", f"__fish_complete_path {value}")
    text = text.replace("(__fish_complete_directories)", f"(__fish_complete_directories {value})")
    lines = text.replace(run, before).splitlines()
    for index, line in enumerate(lines):
        if line.startswith(names):
            words = line.removeprefix(names).split()
            lines[index] = names + " ".join(word for word in words if word not in optional)
        elif any(f" -l {name[2:]} -xka " in line for name in optional):
            lines[index] = line.replace(" -xka ", " -ka ", 1)
    return "\n".join(lines)
