"""Parses `qstat -f` as text (both dialects) and as XML (Torque).

The JSON of OpenPBS is not used: it is invalid for all jobs as soon as one is named `nan`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from steelyard.analysis.base.errors import MissingError

Job = dict[str, str]

HEAD = "Job Id: "
ATTRIBUTE = re.compile(r"    ([A-Za-z][\w.-]*) = (.*)", re.ASCII | re.DOTALL)
VARIABLES = "Variable_List"  # set by the user: its values may have lines like qstat's
# Characters that XML 1.0 forbids. A job's name may have them, and all jobs are in one document.
FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:x0*1?[0-9a-f]|0*[12]?\d|0*3[01]);",
    re.IGNORECASE,
)


def parse_text(text: str) -> dict[str, Job]:
    """Return attributes of each job by its id: `{"1.srv": {"Resource_List.walltime": "00:02:00"}}`.

    A long value continues in lines that begin with a tab. Any other line that is no attribute
    follows a line break in a value (of a variable). If an attribute occurs twice, the first counts.
    After Variable_List the last counts, since the first may be a line of a variable.
    """
    jobs: dict[str, Job] = {}
    job: Job = {}
    behind: set[str] = set()
    name = ""
    for line in text.split("\n"):
        match = ATTRIBUTE.fullmatch(line)
        if line.startswith(HEAD):
            job, name = jobs.setdefault(line[len(HEAD) :].strip(), {}), ""
            behind.clear()
        elif match is not None:
            name = "" if match[1] in job and match[1] not in behind else match[1]
            if name:
                job[name] = match[2]
            if VARIABLES in job and name:
                behind.add(name)
        elif name and line.startswith("\t"):
            job[name] += line[1:]
        elif name and line:
            job[name] += "\n" + line
    return jobs


def parse_xml(text: str) -> dict[str, Job]:
    """Do the same for Torque's `qstat -x`, which is one document per job.

    Times are in Unix seconds.
    """
    jobs: dict[str, Job] = {}
    for document in re.split(r"<\?xml[^>]*\?>", text):
        if not document.strip():
            continue
        try:
            # the document is qstat's own; the parser loads nothing else
            root = ElementTree.fromstring(FORBIDDEN.sub("\ufffd", document))
        except ElementTree.ParseError as error:
            raise MissingError(f"qstat -x is not XML: {error}") from None
        jobs |= {
            job.findtext("Job_Id") or "": dict(read_attributes(job)) for job in root.iter("Job")
        }
    return jobs


def read_attributes(element: ElementTree.Element, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values as in the text form: nested names are joined by a period."""
    for child in element:
        if len(child):
            yield from read_attributes(child, f"{prefix}{child.tag}.")
        elif child.tag != "Job_Id":
            yield prefix + child.tag, child.text or ""
