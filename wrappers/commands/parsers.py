"""The argument parsers: of one command with its examples, and of all, for completion and man pages.

What a command's module says is filled to the terminal's width, at most 80 columns; a paragraph
that is laid out (indented, or in columns) stays as it is.
"""

from __future__ import annotations

import argparse
import importlib
import re
import textwrap
from collections.abc import Mapping

WIDTH = 78  # argparse leaves two columns of 80 free
LAID_OUT = re.compile(r"^\s|\S  ", re.MULTILINE)
# Commands whose name alone does not say what their module does.
MODULES = {"join-host": "guest_job_with_host_record", "metrics": "prometheus_metrics"}


class Formatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that fills prose, but neither lists nor examples."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24)
        self._width = min(self._width, WIDTH)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            paragraph if LAID_OUT.search(paragraph) else textwrap.fill(paragraph, width)
            for paragraph in split_paragraphs(text)
        )


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs between empty lines."""
    return re.split(r"\n\s*\n", text.strip("\n"))


def make_parser(name: str, text: str) -> argparse.ArgumentParser:
    """Return the parser of one command; `text` is its line of help, used if its module has no
    docstring."""
    parser = argparse.ArgumentParser(prog=f"steelyard {name}", formatter_class=Formatter)
    fill_parser(parser, name, text)
    return parser


def find_module(name: str) -> str:
    """Return the name of a command's module."""
    return f"steelyard.wrappers.commands.{MODULES.get(name, name)}"


def fill_parser(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """Add the options, description and examples of a command's module."""
    module = importlib.import_module(find_module(name))
    description = getattr(module, "__doc__", None) or text
    parser.description = description
    if f"  steelyard {name}" not in description and name in EXAMPLES:
        lines = textwrap.indent(EXAMPLES[name], "  ")
        parser.epilog = f"examples:\n{lines}"
    module.add_arguments(parser)


def make_main_parser(commands: Mapping[str, str], description: str) -> argparse.ArgumentParser:
    """Return the parser of `steelyard` with all its commands."""
    parser = argparse.ArgumentParser(
        prog="steelyard", description=description, formatter_class=Formatter
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    verbs = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, text in commands.items():
        fill_parser(verbs.add_parser(name, help=text, formatter_class=Formatter), name, text)
    return parser


EXAMPLES = {
    "run": """\
steelyard run ./app input.dat                       one run: what did it take?
steelyard run --repeat 10 -- ./app input.dat        with intervals
steelyard run --warmup 2 'gzip -kf x' 'bzip2 -kf x'  which is faster?
steelyard run -L threads=1,2,4 -- ./app -t {threads}
steelyard run --until 2% --export times.csv -- ./app
steelyard run --prepare 'rm -f x.gz' 'gzip -k x' 'gzip -k1 x'
steelyard run --in podman:debian:12 --repeat 10 -- ./app""",
    "submit": """\
steelyard submit study.toml --dry-run            prints the batch scripts
steelyard submit study.toml                      again: only what is missing
steelyard submit study.toml --scheduler local    here, one after another
steelyard submit study.toml --retry-failed""",
    "status": """\
steelyard status                  the only study in this folder
steelyard status disks --watch    until it is done""",
    "cancel": """\
steelyard cancel disks    results stay; submit again continues""",
    "collect": """\
steelyard collect disks
steelyard collect disks --record-dir /shared/records
steelyard collect --cluster          all users' jobs, as in a cron line
steelyard collect --cluster /srv/jobs --since 90d""",
    "report": """\
steelyard report disks                    disks.html, tables and figures
steelyard report disks -o today.html
steelyard report disks --export csv       every table as a file
steelyard report --preset jungels2012""",
    "summary": """\
steelyard summary disks
steelyard summary disks --engine spark""",
    "history": """\
steelyard history nightly                      all changes, the latest first
steelyard history nightly --figure year.png
steelyard history nightly --fail-on 3% --junit junit.xml    in CI
steelyard history nightly --fail-on 3% --since 2026-11-15   accepted before""",
    "compare": """\
steelyard compare disks clients=1 clients=4    two conditions of a study
steelyard compare 4711 4712                    two jobs""",
    "show": """\
steelyard show 4711                 one job, over its time, with advice
steelyard show 4711 4712 4800_3     several, a line each
steelyard show --mine --since 7d    mine of the last seven days
steelyard show 4711 --json""",
    "top": """\
steelyard top                            users, the last 30 days
steelyard top --by account --since 7d --sort waste
steelyard top --by application --since 2026-10-01 --until 2026-11-01
steelyard top --by partition --csv >november.csv""",
    "metrics": """\
steelyard metrics                  what there is
steelyard metrics /var/lib/node_exporter/steelyard.prom""",
    "publish": """\
steelyard publish --dry-run    print what would be written
steelyard publish              as in a cron line
steelyard publish --hours 72 --energy""",
    "sweep": """\
steelyard sweep --dry-run                       print what would be packed
sudo steelyard sweep --older-than 90d           as in a cron line
sudo steelyard sweep --older-than 1w --quota 5G""",
    "list": """\
steelyard list              benchmarks, example studies, studies here
steelyard list npb          its parameters and figures""",
    "probe": """\
steelyard probe             a page to read
steelyard probe --json      one document for programs""",
    "calibrate": """\
steelyard calibrate                        every launch method that is here
steelyard calibrate --scheduler local      `steelyard run` alone
steelyard calibrate --details              every number""",
    "doctor": """\
steelyard doctor            what works here, what is missing, what to do
sudo steelyard doctor       with the checks that need root
steelyard doctor --nodes n[1-9]  a summary of these nodes""",
    "cluster": """\
steelyard cluster up                four nodes, as any user
sudo steelyard cluster up --virtual 2
steelyard cluster shell             sbatch, srun, sacct use it
steelyard cluster down""",
    "completion": """\
source <(steelyard completion bash)                for this shell alone
eval "$(steelyard completion zsh)"                 the same, in zsh
steelyard completion bash >/etc/bash_completion.d/steelyard
steelyard completion zsh >~/.zfunc/_steelyard      a folder of your $fpath
steelyard completion fish >~/.config/fish/completions/steelyard.fish""",
}
