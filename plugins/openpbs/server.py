"""In the server: a request is refused before it is queued."""

import pwd

import pbs
from base import Refused, log, options, run_node
from request import RESOURCE, has_condition, request_of, resource


def asker(event):
    """The user for whom a request is checked, by name."""
    before = getattr(event, "job_o", None) if event.type == pbs.MODIFYJOB else None
    owner = getattr(before, "Job_Owner", None)
    return str(owner).split("@")[0] if owner else str(event.requestor)


def check(event, config):
    """A job is queued or altered: its request is refused here, with the words of sbatch."""
    job = event.job
    request = request_of(job)
    if not request:
        return
    try:
        who = ["--uid=%d" % pwd.getpwnam(asker(event)).pw_uid]
    except KeyError:
        who = ["--no-policy"]  # not known on the server's host: the nodes ask the policy
    known = options(config, ("config", "netem_policy", "max_rate"))
    code, _, said = run_node(
        config, ["check", "--request=" + request] + who + known, config["check_limit_s"]
    )
    if code == 2:
        raise Refused(said[len("steelyard: ") :] if said.startswith("steelyard: ") else said)
    if code != 0 and has_condition(request):
        raise Refused(
            "the conditions asked for cannot be checked on the server's host: %s: ask your administrator"
            % said
        )
    if code != 0:
        log("request %s not checked: %s" % (request, said))
    if request != resource(job):
        job.Resource_List[RESOURCE] = request
