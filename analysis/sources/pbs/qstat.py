"""What `qstat -f` says, as text (both dialects) and as XML (Torque).

Its JSON (OpenPBS) is invalid for every job as soon as one is named `nan`, and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from steelyard.analysis.base.errors import MissingError

Job = dict[str, str]

HEAD = "Job Id: "
ATTRIBUTE = re.compile(r"    ([A-Za-z][\w.-]*) = (.*)", re.ASCII | re.DOTALL)
VARIABLES = "Variable_List"  # the user's own: its values may have lines like qstat's
# What XML 1.0 forbids; a job's name may have it, and all jobs stand in one document.
FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:x0*1?[0-9a-f]|0*[12]?\d|0*3[01]);",
    re.IGNORECASE,
)


def parse_text(text: str) -> dict[str, Job]:
    """Attributes of each job, by its id: `{"1.srv": {"Resource_List.walltime": "00:02:00"}}`.

    A long value goes on in lines that begin with a tab; a line break in a value (of a variable) is
    one that is neither that nor an attribute. Of what is told twice the first counts; where the first
    stands behind Variable_List, and may be a line of a variable, the last.
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
    """The same of Torque's `qstat -x`, a document a job; times are seconds since 1970 there."""
    jobs: dict[str, Job] = {}
    for document in re.split(r"<\?xml[^>]*\?>", text):
        if not document.strip():
            continue
        try:
            # qstat's own; the parser fetches nothing.
            root = ElementTree.fromstring(FORBIDDEN.sub("\ufffd", document))
        except ElementTree.ParseError as error:
            raise MissingError(f"qstat -x is not XML: {error}") from None
        jobs |= {
            job.findtext("Job_Id") or "": dict(read_attributes(job)) for job in root.iter("Job")
        }
    return jobs


def read_attributes(element: ElementTree.Element, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names as in the text: those inside of another with a point."""
    for child in element:
        if len(child):
            yield from read_attributes(child, f"{prefix}{child.tag}.")
        elif child.tag != "Job_Id":
            yield prefix + child.tag, child.text or ""
