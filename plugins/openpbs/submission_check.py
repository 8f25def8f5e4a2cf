"""Events in the server: a request is refused before it is queued."""

import pwd
import re

import pbs
from base import Refused, log, options, run_node
from request import RESOURCE, has_condition, request_of, resource


def asker(event):
    """Return the name of the user for whom a request is checked."""
    before = getattr(event, "job_o", None) if event.type == pbs.MODIFYJOB else None
    owner = getattr(before, "Job_Owner", None)
    return str(owner).split("@")[0] if owner else str(event.requestor)


def requested(event, name):
    """Return a resource of the job as text, '' if it has none.

    An altered job also has its earlier resources.
    """
    jobs = [event.job]
    if event.type == pbs.MODIFYJOB:
        jobs.append(getattr(event, "job_o", None))
    for job in jobs:
        value = job.Resource_List[name] if job is not None else None
        if value is not None and str(value):
            return str(value)
    return ""


def default_place(event):
    """Return the place that the job's queue or the server adds to a job without one."""
    server = pbs.server()
    queue = event.job.queue or (server.default_queue and server.queue(str(server.default_queue)))
    for owner in (queue, server):
        value = owner.resources_default["place"] if owner else None
        if value:
            return str(value)
    return ""


def requested_cpus(event):
    """Return the processors of all chunks: 9 for `2:ncpus=4+ncpus=1`, 8 for `2:ppn=4`."""
    text = requested(event, "select") or requested(event, "nodes")
    if not text:
        return int(requested(event, "ncpus") or 1)
    total = 0
    for chunk in text.split("#")[0].split("+"):
        count = re.match(r"[0-9]+", chunk)
        cpus = re.search(r"(?:^|:)(?:ncpus|ppn)=([0-9]+)", chunk)
        total += int(count.group() if count else 1) * int(cpus.group(1) if cpus else 1)
    return total


def node_cpus():
    """Return the processors of each node of the server."""
    counts = [vnode.resources_available["ncpus"] for vnode in pbs.server().vnodes()]
    return [int(count) for count in counts if count is not None]


def requests_exclusive_nodes(event, by_ncpus):
    """Return yes or no: whether the job requests whole nodes; None: the node decides.

    A job that requests as many processors as the smallest node has may have that node for itself.
    """
    place = requested(event, "place") or default_place(event)
    if {"excl", "exclhost"} & set(place.split(":")) or "#excl" in requested(event, "nodes"):
        return "yes"
    if by_ncpus and requested_cpus(event) >= min(node_cpus()):
        return None
    return "no"


def exclusive_option(event, config):
    """Return --exclusive for `job check`; [] if it is unknown."""
    try:
        exclusive = requests_exclusive_nodes(event, config["exclusive_by_ncpus"])
    except Exception as error:
        log("whether the job requests whole nodes is not known: %r" % error)
        exclusive = None
    return ["--exclusive=" + exclusive] if exclusive else []


def check(event, config):
    """Check a job that is queued or altered; raise Refused with the message of sbatch."""
    job = event.job
    request = request_of(job)
    if not request:
        return
    try:
        who = ["--uid=%d" % pwd.getpwnam(asker(event)).pw_uid]
    except KeyError:
        who = ["--no-policy"]  # unknown on the server's host: the nodes check the policy
    known = options(config, ("config", "netem_policy", "max_rate"))
    known += exclusive_option(event, config) if has_condition(request) else []
    code, _, message = run_node(
        config, ["check", "--request=" + request] + who + known, config["check_limit_s"]
    )
    if code == 2:
        raise Refused(
            message[len("steelyard: ") :] if message.startswith("steelyard: ") else message
        )
    if code != 0 and has_condition(request):
        raise Refused(
            "the conditions asked for cannot be checked on the server's host: %s: ask your administrator"
            % message
        )
    if code != 0:
        log("request %s not checked: %s" % (request, message))
    if request != resource(job):
        job.Resource_List[RESOURCE] = request
