"""Events in a mom: a job begins and ends on this node."""

import grp
import json
import os
import pwd

import pbs
from base import Refused, log, node_options, run_node
from request import has_condition, request_of
from site_epilogue import classic_epilogue

RESULT = "steelyard_used"  # {"HOST": {totals}}: the server merges the objects of a job's hosts
FULL_RESULT_HOSTS = 16  # for more hosts, only numbers: the first host forwards every host's object
CGROUPS = (
    "/sys/fs/cgroup/cpuacct",
    "/sys/fs/cgroup/cpu,cpuacct",
    "/sys/fs/cgroup/memory",
    "/sys/fs/cgroup",
)


def hosts_of(job):
    """Return the hosts of a job in order."""
    hosts = []
    for slot in str(job.exec_host2 or "").split("+"):
        host = slot.split("/")[0].split(":")[0]
        if host and host not in hosts:
            hosts.append(host)
    return hosts


def number_of(job, node):
    """Return PBS_NODENUM of the job's tasks on this node, or None if it is unknown.

    Several moms may share a machine.
    """
    moms = {slot.split("/")[0] for slot in str(job.exec_host2 or "").split("+")}
    hosts = [host.split(".")[0] for host in hosts_of(job)]
    if len(moms) != len(hosts) or hosts.count(node.split(".")[0]) != 1:
        return None
    return hosts.index(node.split(".")[0])


def exclusive(event, by_ncpus):
    """Return whether the job has the node for itself: yes, no, or None if it is unknown.

    It does if it was placed so, or if it has all processors that this mom found. A mom does not
    know ncpus that an administrator set in the server: if these are more, other jobs may be added.
    """
    job = event.job
    if {"excl", "exclhost"} & set(str(job.Resource_List["place"] or "").split(":")):
        return "yes"
    cpus_by_vnode = {}
    for name, vnode in event.vnode_list.items():
        if vnode.resources_available["ncpus"] is not None:  # a mom knows none of other hosts
            cpus_by_vnode[name] = int(vnode.resources_available["ncpus"])
    used = 0
    for chunk in str(job.exec_vnode).replace("(", "").replace(")", "").split("+"):
        fields = chunk.split(":")
        if fields[0] in cpus_by_vnode:
            used += sum(int(w[len("ncpus=") :]) for w in fields if w.startswith("ncpus="))
    if not cpus_by_vnode or used > sum(cpus_by_vnode.values()):
        return None
    if used < sum(cpus_by_vnode.values()):
        return "no"
    return "yes" if by_ncpus else None


def cgroup_prefix():
    """Return the cgroup prefix of pbs_cgroups, escaped for systemd as that hook does.

    A mom's hooks run in mom_priv/hooks/tmp; the configuration is in the folder above.
    """
    try:
        with open("../pbs_cgroups.CF", encoding="utf-8") as file:
            prefix = str(json.load(file)["cgroup_prefix"])
    except (OSError, ValueError, KeyError, TypeError):
        return "pbs_jobs"
    escaped = [c if c.isalnum() or c in "_." and (i or c != ".") else
            "-" if c == "/" else "".join("\\x%02x" % b for b in c.encode("utf-8"))
            for i, c in enumerate(prefix)]  # fmt: skip
    return "".join(escaped)


def cgroup_of(job_id):
    """Return the job's cgroup of the hook pbs_cgroups, in the form of /proc/PID/cgroup; or None."""
    for prefix in (cgroup_prefix(), "pbspro"):  # the latter before OpenPBS 20
        path = "/%s.service/jobid/%s" % (prefix, job_id)
        if any(os.path.isdir(base + path) for base in CGROUPS):
            return path
    return None


def job_fields(job, hosts):
    """Return the --job options, which identify the job in its record."""
    fields = {"scheduler": "pbs", "name": job.Job_Name, "nodes": ",".join(hosts)}
    head, _, rest = str(job.id).partition("[")
    index, _, server = rest.partition("]")
    if index:
        fields["array_job_id"] = "%s[]%s" % (head, server)
        fields["array_task_id"] = index
    return ["--job=%s=%s" % (key, value) for key, value in sorted(fields.items()) if value]


def servers():
    """Return --protect options for the hosts of PBS: no condition may disconnect the node from
    them.
    """
    conf = getattr(pbs, "pbs_conf", None) or {}
    names = ("PBS_SERVER", "PBS_PRIMARY", "PBS_SECONDARY", "PBS_LEAF_ROUTERS")
    hosts = [word.split(":")[0] for name in names for word in str(conf.get(name, "")).split(",")]
    return ["--protect=" + host for host in hosts if host]


def begin_options(event, config, node):
    """Return the options of a job at its begin; unknown ones are omitted."""
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


def begin_arguments(event, config, request):
    """Return the arguments of `steelyard-node job begin`."""
    node = str(pbs.get_local_nodename())
    arguments = ["begin", "--job-id=%s" % event.job.id, "--node=" + node]
    arguments += begin_options(event, config, node) + servers() + node_options(config)
    return arguments + (["--request=" + request] if request else [])


def begin(event, config):
    """Handle execjob_begin, on every node of the job before any of its processes runs there.

    Raises Refused if a requested condition cannot be applied.
    """
    job = event.job
    try:
        request = request_of(job)
    except Refused as error:
        raise Refused("%s: %s" % (pbs.get_local_nodename(), error)) from None
    try:
        code, _, message = run_node(
            config, begin_arguments(event, config, request), config["begin_limit_s"]
        )
    except BaseException as error:  # an alarm is raised as KeyboardInterrupt
        code, message = None, "%r" % error
    if code == 4 or (code != 0 and has_condition(request)):
        if code != 4:
            undo(event, config)
        message = message or "steelyard-node job begin: exit code %s" % code
        raise Refused(message if message.startswith("steelyard: ") else "steelyard: " + message)
    if code != 0 or message:
        log("begin: exit code %s: %s" % (code, message), job.id)


def attach(event, config):
    """Handle execjob_attach: pbs_attach waits for it before the process continues."""
    job = event.job
    known = ["attach", "--job-id=%s" % job.id, "--node=%s" % pbs.get_local_nodename()]
    known += ["--pid=%d" % int(event.pid)] + node_options(config)
    code, _, message = run_node(config, known, config["begin_limit_s"])
    if code != 0 or message:
        log("attach: exit code %s: %s" % (code, message), job.id)


def undo(event, config):
    """Undo an incomplete begin; the job is refused whether this succeeds or not."""
    try:
        end(event, config)
    except BaseException as error:  # an alarm, too
        log("end: %r" % error, event.job.id)


def end(event, config):
    """End the measurement; return the totals of the job on this node, or None."""
    job = event.job
    known = ["end", "--job-id=%s" % job.id, "--node=%s" % pbs.get_local_nodename()] + node_options(
        config
    )
    if job.Exit_status is not None:
        known.append("--exit-status=%d" % int(job.Exit_status))
    code, out, message = run_node(config, known, config["end_limit_s"])
    if code != 0 or message:
        log("end: exit code %s: %s" % (code, message), job.id)
    return json.loads(out) if code == 0 and out.strip() else None


def late(event, config):
    """Record a job that began while this hook was disabled or not installed.

    A record that states this is better than none.
    """
    arguments = begin_arguments(event, config, request_of(event.job)) + ["--late"]
    code, _, message = run_node(config, arguments, config["begin_limit_s"])
    if code != 0 or message:
        log("begin: exit code %s: %s" % (code, message), event.job.id)
    end(event, config)


def report(event, totals):
    """Add the totals to the job's resources_used, for qstat and the accounting's E record."""
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
    """Handle execjob_epilogue, on every node when the job's processes there have ended."""
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
    """Remove the leftovers of ended jobs."""
    known = ["sweep", "--node=%s" % pbs.get_local_nodename()] + node_options(config)
    jobs = getattr(event, "job_list", None) if event.type == pbs.EXECHOST_PERIODIC else None
    if jobs is not None:
        known += ["--only-alive"] + ["--alive=%s" % job_id for job_id in list(jobs.keys())[:4096]]
    code, _, message = run_node(config, known, config["sweep_limit_s"])
    if code != 0 or message:
        log("sweep: exit code %s: %s" % (code, message))
