"""Runs the site's own epilogue.

A mom does not run mom_priv/epilogue if any hook has the event execjob_epilogue. So this hook runs
it as the mom would.
"""

import os
import pwd
import signal
import stat
import subprocess

from base import as_bytes, log


def others_run_too(hooks, own):
    """Whether another hook here has the event: then mom ignored the epilogue before this hook."""
    for name in os.listdir(hooks):
        if name.endswith(".HK") and name != own + ".HK":
            with open(os.path.join(hooks, name), encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file]
            events = [line for line in lines if line.startswith("event=")]
            if any("execjob_epilogue" in e for e in events) and "enabled=false" not in lines:
                return True
    return False


def output_of(job, home, ending, uid):
    """Open the job's own output file, which is in a world-writable folder.

    Returns a descriptor; of /dev/null if the file is not the user's regular file.
    """
    path = os.path.join(home, "spool", "%s%s" % (job.hashname or job.id, ending))
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_uid == uid and found.st_nlink == 1:
        return fd
    os.close(fd)
    return os.open(os.devnull, os.O_WRONLY)


def may_run(path):
    """Whether the file meets mom's conditions: regular, of root, r-x for root, no w for others."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    if (
        stat.S_ISREG(found.st_mode)
        and found.st_uid == 0
        and found.st_mode & 0o500 == 0o500
        and not found.st_mode & 0o022
    ):
        return True
    log(
        "%s is not run: expected a regular file of root, u+rx, not writable by group or others"
        % path
    )
    return False


def classic_epilogue(event, config, used):
    """Run mom_priv/epilogue with the ten arguments of mom."""
    hooks = os.path.dirname(os.getcwd())  # a mom's hooks run in mom_priv/hooks/tmp
    private = os.path.dirname(hooks)
    path = os.path.join(private, "epilogue")
    if (
        os.path.basename(private) != "mom_priv"
        or not may_run(path)
        or others_run_too(hooks, str(event.hook_name))
    ):
        return
    job = event.job
    user = pwd.getpwnam(str(job.euser))
    home = os.path.dirname(private)
    arguments = [
        job.id,
        job.euser,
        job.egroup,
        job.Job_Name,
        job.session_id or 0,
        job.Resource_List,
        used,
        job.queue,
    ]
    arguments += [job.Account_Name or "null", job.Exit_status if job.Exit_status is not None else 0]
    join = str(job.Join_Path)
    out = output_of(job, home, ".ER" if join == "eo" else ".OU", user.pw_uid)
    err = output_of(job, home, ".OU" if join == "oe" else ".ER", user.pw_uid)
    try:
        process = subprocess.Popen(
            [as_bytes(word) for word in [path] + arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=user.pw_dir if os.path.isdir(user.pw_dir) else "/",
            env={"PATH": "/bin:/usr/bin", "PBS_JOBDIR": str(job.jobdir or user.pw_dir)},
            start_new_session=True,
        )
        code = process.wait(timeout=config["classic_epilogue_limit_s"])
        if code != 0:
            log("%s: exit code %d" % (path, code), job.id)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log("%s: killed after %g s" % (path, config["classic_epilogue_limit_s"]), job.id)
    finally:
        os.close(out)
        os.close(err)
