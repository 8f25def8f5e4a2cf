"""Make a program's man page from its --help, so that there is only one text.

man_of_help.py PROGRAM PAGE: PAGE is named NAME.SECTION. Its @PREFIX@ is replaced at installation.
Needs Python 3.6 or later, and nothing else. It reads these parts of a help text: `usage: …` up to
the first empty line; paragraphs, of which the first sentence describes the program; rows ` WORDS
text`, with or without a title such as `options:` above; `'NAME COMMAND --help' tells …`: those rows
name commands, whose help is appended to the page.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^ {2}(?P<words>[^\s'].*?)(?: {2,}(?P<text>\S.*))?$")
TITLE = re.compile(r"^([a-z][a-z ]*):$")
MORE = re.compile(r"^'\S.* [A-Z]+ --help' tells .*$", re.MULTILINE)


def help_of(program, words):
    """Return the output of --help; exit with a message if the program has none."""
    argv = [str(program)] + words + ["--help"]
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False,
        env=dict(os.environ, COLUMNS="80", LC_ALL="C.UTF-8"),
    )  # fmt: skip
    text = done.stdout.decode("utf-8")
    if done.returncode != 0 or not text.startswith("usage: "):
        found = f"exit code {done.returncode}, {text[:80]!r}"
        sys.exit(
            "{}: expected a text that begins 'usage: ', found {}".format(" ".join(argv), found)
        )
    return text


def escaped(text):
    """Escape what troff would interpret or replace by typographic characters."""
    for one, other in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga")):
        text = text.replace(one, other)
    text = text.replace("^", "\\(ha").replace("~", "\\(ti")
    return re.sub(r"(?m)^\.", r"\\&.", text)


def as_is(lines):
    """Return lines that man(1) must not join."""
    return ".nf\n{}\n.fi\n".format(escaped("\n".join(lines)))


def synopsis(usage):
    """Return the usage, with its lines aligned as after `usage: `."""
    return as_is(textwrap.dedent(" " * len("usage: ") + usage).splitlines())


def items(block):
    """Return the lines of a block as (kind, lines).

    Kinds are text, title, literal, and row (its words, then their description).
    """
    found = [("", [])]
    for line in block.splitlines():
        (kind, last), row, title = found[-1], ROW.match(line), TITLE.match(line)
        if title:
            found.append(("title", [title.group(1)]))
        elif row and (row.group("text") or line.startswith("  -")):
            found.append(("row", [one for one in row.groups() if one]))
        elif kind == "row" and line.startswith("   "):
            continued(last, line.strip())
        elif kind == ("literal" if line.startswith(" ") else "text"):
            last.append(line)
        else:
            found.append(("literal" if line.startswith(" ") else "text", [line]))
    return found[1:]


def continued(row, line):
    """Append a line to a row whose words or description need more than one."""
    words, _, text = line.partition("  ")
    if len(row) == 1 and text:
        row[0] += " " + words
        line = text.strip()
    row.append(line)


def body(text, heading):
    """Return the text after usage, with `heading` (.SH, .SS) for titles."""
    page, options = "", False
    for block in re.split(r"\n\s*\n", MORE.sub("", text).strip("\n")):
        for at, (kind, lines) in enumerate(items(block)):
            if kind == "title":
                options = options or lines[0] == "options"
                page += f'{heading} "{lines[0].upper()}"\n'
            elif kind == "row":
                if len(lines) < 2:
                    sys.exit(f"{lines[0]!r}: expected two blanks and what it does")
                if re.match("--?[a-zA-Z]", lines[0]) and not options and heading == ".SH":
                    options, page = True, page + ".SH OPTIONS\n"
                page += ".TP\n\\fB{}\\fR\n{}\n".format(
                    escaped(lines[0]), escaped("\n".join(lines[1:]))
                )
            elif kind == "literal":
                page += as_is(lines)
            else:
                page += ("" if at else ".PP\n") + escaped("\n".join(lines)) + "\n"
    return page


def commands(program, words, text):
    """Return the help of each command that `text` names, and of their commands."""
    if not MORE.search(text):
        return ""
    page = ""
    names = [one[0] for block in text.split("\n\n") for kind, one in items(block) if kind == "row"]
    for name in names:
        below = words + [name]
        help_text = help_of(program, below)
        usage, _, rest = help_text[len("usage: ") :].partition("\n\n")
        page += '.SH "{}"\n'.format(escaped(" ".join(below)))
        page += synopsis(usage) + body(rest, ".SS") + commands(program, below, help_text)
    return page


def page_of(program, name, section):
    """Return the complete page."""
    text = help_of(program, [])
    usage, _, rest = text[len("usage: ") :].partition("\n\n")
    sentence = re.split(r"[.:](?:\s|$)", " ".join(rest.split("\n\n")[0].split()))[0]
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    return (
        f'.TH {escaped(name.upper())} {section} "" "Steelyard {version}" "Steelyard"\n'
        + f".SH NAME\n{escaped(name)} \\- {escaped(sentence)}\n"
        + ".SH SYNOPSIS\n" + synopsis(usage)
        + ".SH DESCRIPTION\n" + body(rest, ".SH") + commands(program, [], text)
        + f".SH FILES\n@PREFIX@/libexec/steelyard/{escaped(name)}\n"
        + '.SH "SEE ALSO"\n.BR steelyard (1)\n'
    )  # fmt: skip


def main():
    """Write the page of `man_of_help.py PROGRAM PAGE`."""
    program, target = (Path(one) for one in sys.argv[1:3])
    name, _, section = target.name.rpartition(".")
    page = page_of(program.resolve(), name, section)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
