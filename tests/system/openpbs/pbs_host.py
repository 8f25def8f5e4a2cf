"""A host that provides the module `pbs` to a hook, with the objects of one recorded event.

Executed as `python pbs_host.py HOOK EVENT.json ANSWER.json`, also by Python 3.6: no annotations.
ANSWER.json contains the hook's actions (accepted, refused with a message, deleted, set, logged).
"""
# ruff: noqa: UP031, PTH123, S102, SIM105, RET501, PLR1711

import json
import os
import pwd
import sys
import types

EVENTS = (
    "QUEUEJOB",
    "MODIFYJOB",
    "EXECJOB_BEGIN",
    "EXECJOB_EPILOGUE",
    "EXECJOB_END",
    "EXECJOB_ABORT",
    "EXECHOST_STARTUP",
    "EXECHOST_PERIODIC",
    "EXECJOB_ATTACH",
)


class Resources:
    """pbs_resource: an unset value is None; str() is the server's format."""

    def __init__(self, values, broken=False):
        self.values = dict(values)
        self.broken = broken

    def __getitem__(self, name):
        return self.values.get(name)

    def __setitem__(self, name, value):
        if self.broken:
            raise ValueError("the resource is not known")
        self.values[name] = value

    def __str__(self):
        return ",".join("%s=%s" % item for item in self.values.items())


class Job:
    """pbs.job: an unset attribute is None."""

    def __init__(self, said, answer):
        self.__dict__.update(said["job"])
        self.Resource_List = Resources(said["job"].get("Resource_List", {}))
        self.resources_used = Resources(
            said["job"].get("resources_used", {}), "resources_used" in said["broken"]
        )
        self.answer = answer
        self.in_ms = said["in_ms"]
        self.broken = said["broken"]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def in_ms_mom(self):
        if "in_ms_mom" in self.broken:
            raise RuntimeError("no such thing")
        return "True" if self.in_ms else False

    def delete(self):
        self.answer["deleted"] = True


class Vnode:
    def __init__(self, ncpus):
        self.resources_available = {"ncpus": ncpus}


class Queue:
    def __init__(self, name, defaults):
        self.name = name
        self.resources_default = Resources(defaults)

    def __str__(self):
        return self.name


class Server(Queue):
    default_queue = "workq"

    def __init__(self, said):
        super().__init__(said["server"], said.get("server_default", {}))
        self.said = said

    def queue(self, name):
        return Queue(name, self.said.get("queue_default", {}).get(name, {}))

    def vnodes(self):
        """Return an iterator, like the server's objects in a hook."""
        if "vnodes" in self.said["broken"]:
            raise SystemError("PY_SSIZE_T_CLEAN macro must be defined")
        return iter([Vnode(ncpus) for ncpus in self.said["vnodes"].values()])


class Event:
    def __init__(self, said, answer):
        self.type = EVENTS.index(said["event"])
        self.hook_name = "steelyard"
        self.requestor = said["requestor"]
        if "job" not in said["broken"]:
            self.job = Job(said, answer)
            if self.job.queue:
                self.job.queue = Server(said).queue(self.job.queue)
        if "job_o" in said:
            self.job_o = Job({**said, "job": said["job_o"]}, answer)
        self.job_list = dict.fromkeys(said["job_list"])
        self.vnode_list = {name: Vnode(ncpus) for name, ncpus in said["vnodes"].items()}
        self.pid = said.get("pid")
        self.answer = answer

    def accept(self):
        self.answer["accepted"] = True
        raise SystemExit

    def reject(self, words):
        self.answer["refused"] = words
        raise SystemExit


def module(said, answer, event):
    pbs = types.ModuleType("pbs")
    for number, name in enumerate(EVENTS):
        setattr(pbs, name, number)
    pbs.EVENT_DEBUG = 0
    pbs.hook_config_filename = said["config"]
    pbs.pbs_conf = {"PBS_SERVER": said["server"]}
    pbs.event = lambda: event
    pbs.server = lambda: Server(said)
    pbs.get_local_nodename = lambda: said["node"]

    def log(*words):
        if "log" in said["broken"]:
            raise UnicodeEncodeError("ascii", "x", 0, 1, "cannot")
        answer["log"].append([str(word).encode("ascii").decode() for word in words][-1])

    pbs.logmsg = pbs.logjobmsg = log
    return pbs


def main():
    hook, told, to = sys.argv[1:]
    with open(told, encoding="utf-8") as file:
        said = json.load(file)
    answer = {"accepted": False, "refused": None, "deleted": False, "log": []}
    event = Event(said, answer)
    sys.modules["pbs"] = module(said, answer, event)
    ours = pwd.getpwuid(os.getuid())

    def getpwnam(name):
        if name not in said["users"]:
            raise KeyError(name)
        return pwd.struct_passwd(
            (name, "x", said["users"][name], said["users"][name], "", said["home"], ours.pw_shell)
        )

    pwd.getpwnam = getpwnam
    with open(hook, encoding="utf-8") as file:
        code = compile(file.read(), hook, "exec")
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit:
        pass
    if "job" not in said["broken"]:
        answer["used"] = event.job.resources_used.values
        answer["asked"] = event.job.Resource_List.values
    with open(to, "w", encoding="utf-8") as file:
        json.dump(answer, file)


main()
