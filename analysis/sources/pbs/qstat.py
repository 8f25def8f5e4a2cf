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


def parse_text(text: str) -> dict[str, Job]:
    """Attributes of each job, by its id: `{"1.srv": {"Resource_List.walltime": "00:02:00"}}`.

    A long value goes on in lines that begin with a tab; a line break in a value (of a variable) is
    one that is neither that nor an attribute. What is told twice counts as it was told first.
    """
    jobs: dict[str, Job] = {}
    job: Job = {}
    name = ""
    for line in text.split("\n"):
        match = ATTRIBUTE.fullmatch(line)
        if line.startswith(HEAD):
            job, name = jobs.setdefault(line[len(HEAD) :].strip(), {}), ""
        elif match is not None:
            name = "" if match[1] in job else match[1]
            job.setdefault(match[1], match[2])
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
            root = ElementTree.fromstring(document)  # qstat's own; the parser fetches nothing
        except ElementTree.ParseError as error:
            raise MissingError(f"qstat -x is not XML: {error}") from None
        jobs |= {job.findtext("Job_Id") or "": dict(attributes(job)) for job in root.iter("Job")}
    return jobs


def attributes(element: ElementTree.Element, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names as in the text: those inside of another with a point."""
    for child in element:
        if len(child):
            yield from attributes(child, f"{prefix}{child.tag}.")
        elif child.tag != "Job_Id":
            yield prefix + child.tag, child.text or ""
