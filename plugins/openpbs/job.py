"""In a mom: a job begins and ends on this node."""

import grp
import json
import os
import pwd

import pbs
from base import Refused, log, node_options, run_node
from classic import classic_epilogue
from request import has_condition, request_of

RESULT = "steelyard_used"  # {"HOST": {totals}}: the server merges the objects of a job's hosts
FULL_RESULT_HOSTS = 16  # above, only numbers: every host's object goes through the first one
CGROUPS = (
    "/sys/fs/cgroup/cpuacct",
    "/sys/fs/cgroup/cpu,cpuacct",
    "/sys/fs/cgroup/memory",
    "/sys/fs/cgroup",
)


def hosts_of(job):
    """The hosts of a job, the first one first."""
    hosts = []
    for slot in str(job.exec_host2 or "").split("+"):
        host = slot.split("/")[0].split(":")[0]
        if host and host not in hosts:
            hosts.append(host)
    return hosts


def number_of(job, node):
    """PBS_NODENUM of the job's tasks on this node; None: not known. Moms may share a machine."""
    moms = {slot.split("/")[0] for slot in str(job.exec_host2 or "").split("+")}
    hosts = [host.split(".")[0] for host in hosts_of(job)]
    if len(moms) != len(hosts) or hosts.count(node.split(".")[0]) != 1:
        return None
    return hosts.index(node.split(".")[0])


def exclusive(event, by_ncpus):
    """yes: placed so, or all processors that this mom has seen; None: not known. A mom hears of no
    ncpus but what it has found itself: where the server was told of more, others may come.
    """
    job = event.job
    if {"excl", "exclhost"} & set(str(job.Resource_List["place"] or "").split(":")):
        return "yes"
    seen = {}
    for name, vnode in event.vnode_list.items():
        if vnode.resources_available["ncpus"] is not None:  # of other hosts a mom knows none
            seen[name] = int(vnode.resources_available["ncpus"])
    used = 0
    for chunk in str(job.exec_vnode).replace("(", "").replace(")", "").split("+"):
        words = chunk.split(":")
        if words[0] in seen:
            used += sum(int(w[len("ncpus=") :]) for w in words if w.startswith("ncpus="))
    if not seen or used > sum(seen.values()):
        return None
    if used < sum(seen.values()):
        return "no"
    return "yes" if by_ncpus else None


def cgroup_prefix():
    """As the site has set it for pbs_cgroups, escaped as that does for systemd; a mom's hooks run in
    mom_priv/hooks/tmp, the configuration lies above.
    """
    try:
        with open("../pbs_cgroups.CF", encoding="utf-8") as file:
            prefix = str(json.load(file)["cgroup_prefix"])
    except (OSError, ValueError, KeyError, TypeError):
        return "pbs_jobs"
    kept = [c if c.isalnum() or c in "_." and (i or c != ".") else
            "-" if c == "/" else "".join("\\x%02x" % b for b in c.encode("utf-8"))
            for i, c in enumerate(prefix)]  # fmt: skip
    return "".join(kept)


def cgroup_of(job_id):
    """The group that the hook pbs_cgroups has made of the job, as /proc/PID/cgroup says it."""
    for prefix in (cgroup_prefix(), "pbspro"):  # the latter before OpenPBS 20
        path = "/%s.service/jobid/%s" % (prefix, job_id)
        if any(os.path.isdir(base + path) for base in CGROUPS):
            return path
    return None


def job_fields(job, hosts):
    """--job options: who the job is, for its record."""
    fields = {"scheduler": "pbs", "name": job.Job_Name, "nodes": ",".join(hosts)}
    head, _, rest = str(job.id).partition("[")
    index, _, server = rest.partition("]")
    if index:
        fields["array_job_id"] = "%s[]%s" % (head, server)
        fields["array_task_id"] = index
    return ["--job=%s=%s" % (key, value) for key, value in sorted(fields.items()) if value]


def servers():
    """The hosts by which PBS itself lives: no condition may cut the node off from them."""
    conf = getattr(pbs, "pbs_conf", None) or {}
    names = ("PBS_SERVER", "PBS_PRIMARY", "PBS_SECONDARY", "PBS_LEAF_ROUTERS")
    hosts = [word.split(":")[0] for name in names for word in str(conf.get(name, "")).split(",")]
    return ["--protect=" + host for host in hosts if host]


def begin_options(event, config, node):
    """What is known of a job at its begin; what cannot be seen is left out."""
    job = event.job
    user = pwd.getpwnam(str(job.euser))
    try:
        gid = grp.getgrnam(str(job.egroup)).gr_gid
    except KeyError:
        gid = user.pw_gid
    hosts = hosts_of(job)
    known = [
        "--owner=%d:%d" % (user.pw_uid, gid),
        "--parent=%d" % os.getppid(),
        "--mark=PBS_JOBID=%s" % job.id,
    ]
    number = number_of(job, node)
    if number is not None:
        known.append("--mark=PBS_NODENUM=%d" % number)
    known += job_fields(job, hosts) + ["--job=user_id=%d" % user.pw_uid]
    if job.queue:
        known.append("--partition=%s" % job.queue)
    if job.run_count:
        known.append("--restart-count=%d" % max(0, int(job.run_count) - 1))
    known += ["--peer=%s" % host for host in hosts if host != node][:1]
    group = cgroup_of(job.id)
    if group:
        known.append("--cgroup=" + group)
    try:
        alone = exclusive(event, config["exclusive_by_ncpus"])
        known += ["--exclusive=" + alone] if alone else []
    except Exception as error:
        log("whether the job has the node for itself is not known: %r" % error, job.id)
    return known


def begin_words(event, config, request):
    """Arguments of `steelyard-node job begin`."""
    node = str(pbs.get_local_nodename())
    words = ["begin", "--job-id=%s" % event.job.id, "--node=" + node]
    words += begin_options(event, config, node) + servers() + node_options(config)
    return words + (["--request=" + request] if request else [])


def begin(event, config):
    """execjob_begin, on every node of the job before anything of it runs there."""
    job = event.job
    try:
        request = request_of(job)
    except Refused as error:
        raise Refused("%s: %s" % (pbs.get_local_nodename(), error)) from None
    try:
        code, _, said = run_node(
            config, begin_words(event, config, request), config["begin_limit_s"]
        )
    except BaseException as error:  # an alarm comes as KeyboardInterrupt
        code, said = None, "%r" % error
    if code == 4 or (code != 0 and has_condition(request)):
        if code != 4:
            undo(event, config)
        said = said or "steelyard-node job begin: exit code %s" % code
        raise Refused(said if said.startswith("steelyard: ") else "steelyard: " + said)
    if code != 0 or said:
        log("begin: exit code %s: %s" % (code, said), job.id)


def attach(event, config):
    """execjob_attach: pbs_attach waits for us before the process goes on."""
    job = event.job
    known = ["attach", "--job-id=%s" % job.id, "--node=%s" % pbs.get_local_nodename()]
    known += ["--pid=%d" % int(event.pid)] + node_options(config)
    code, _, said = run_node(config, known, config["begin_limit_s"])
    if code != 0 or said:
        log("attach: exit code %s: %s" % (code, said), job.id)


def undo(event, config):
    """After a begin that did not undo what it had begun; whatever comes of it, the job is refused."""
    try:
        end(event, config)
    except Exception as error:
        log("end: %r" % error, event.job.id)


def end(event, config):
    """Totals of the job on this node, or None."""
    job = event.job
    known = ["end", "--job-id=%s" % job.id, "--node=%s" % pbs.get_local_nodename()] + node_options(
        config
    )
    if job.Exit_status is not None:
        known.append("--exit-status=%d" % int(job.Exit_status))
    code, out, said = run_node(config, known, config["end_limit_s"])
    if code != 0 or said:
        log("end: exit code %s: %s" % (code, said), job.id)
    return json.loads(out) if code == 0 and out.strip() else None


def late(event, config):
    """A job ends of which nothing is known: it began while this hook was off, or was not there. A
    record that says so is more than none.
    """
    words = begin_words(event, config, request_of(event.job)) + ["--late"]
    code, _, said = run_node(config, words, config["begin_limit_s"])
    if code != 0 or said:
        log("begin: exit code %s: %s" % (code, said), event.job.id)
    end(event, config)


def report(event, totals):
    """Into the job's resources_used: qstat and the accounting's E record show it."""
    job = event.job
    energy_j = totals.get("energy_j")
    if energy_j is not None:
        job.resources_used["energy"] = float(energy_j)
    if len(hosts_of(job)) > FULL_RESULT_HOSTS:
        totals = dict(
            (key, value) for key, value in totals.items() if isinstance(value, (int, float))
        )
    text = json.dumps({str(pbs.get_local_nodename()): totals}, separators=(",", ":"))
    job.resources_used[RESULT] = text


def epilogue(event, config):
    """execjob_epilogue, on every node when the job's processes there have ended."""
    job = event.job
    used = str(job.resources_used)
    try:
        totals = end(event, config)
        if totals:
            report(event, totals)
        if totals and totals.get("elapsed_s") is None:
            late(event, config)
    except Exception as error:
        log("totals: %r" % error, job.id)
    if str(job.in_ms_mom()) == "True" and config["classic_epilogue"] == "run":
        classic_epilogue(event, config, used)


def sweep(event, config):
    """What jobs have left that are gone."""
    known = ["sweep", "--node=%s" % pbs.get_local_nodename()] + node_options(config)
    jobs = getattr(event, "job_list", None) if event.type == pbs.EXECHOST_PERIODIC else None
    if jobs is not None:
        known += ["--only-alive"] + ["--alive=%s" % job_id for job_id in list(jobs.keys())[:4096]]
    code, _, said = run_node(config, known, config["sweep_limit_s"])
    if code != 0 or said:
        log("sweep: exit code %s: %s" % (code, said))
