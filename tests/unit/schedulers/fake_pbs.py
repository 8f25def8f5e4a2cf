"""Replaces qsub, qstat, qdel, qselect, pbsnodes and qmgr for the queries of Steelyard.

It is called by links of those names in STATE/bin, and answers as Torque 6.1.3 or OpenPBS 23.06 did
(tests/data). STATE/state.json contains jobs, dialect and `faults`; unknown options exit with 99.
"""

import json
import os
import re
import sys
from pathlib import Path

PROGRAM = Path(sys.argv[0]).name
STATE = Path(sys.argv[0]).absolute().parent.parent
ARGS = sys.argv[1:]
state = json.loads((STATE / "state.json").read_text())
TORQUE = state["dialect"] == "torque"


def say(text):
    sys.stdout.write(f"{text}\n")


def save():
    (STATE / "state.json").write_text(json.dumps(state))


def refuse(message, code=1):
    sys.stderr.write(f"{message}\n")
    raise SystemExit(code)


def fault():
    faults = state["faults"].get(PROGRAM, [])
    if faults:
        message = faults.pop(0)
        save()
        return message
    return None


def ids(job_id):
    job = state["jobs"][job_id]
    number, _, server = job_id.partition(".")
    if not number.endswith("[]"):
        return [(job_id, job["tasks"][0], job["name"])]
    found = [
        (f"{number[:-1]}{i}].{server}", s, f"{job['name']}-{i}" if TORQUE else job["name"])
        for i, s in enumerate(job["tasks"])
    ]
    return found if TORQUE else [(job_id, "B", job["name"]), *found]


def qsub():
    if ARGS == ["--about"]:
        say(f"HomeDir:   {STATE}  InstallDir: /opt/torque  Server: vm")
        return
    allowed = [] if TORQUE else ["-f"]
    if ARGS[:-1] != allowed:
        refuse(f"qsub: fake: {ARGS}", 99)
    text = Path(ARGS[-1]).read_text()
    wrong = fault()
    if wrong and not wrong.startswith("accepted: "):
        refuse(wrong)
    options = [o.replace("'", "") for o in re.findall(r"^#PBS (.*)$", text, re.MULTILINE)]
    array = next((re.match(r"-[tJ] 0-(\d+)", o) for o in options if o[:3] in ("-t ", "-J ")), None)
    number = 1 if array is None else int(array[1]) + 1
    job_id = f"{state['next']}{'[]' if array else ''}.vm"
    name = next(o[3:] for o in options if o.startswith("-N "))
    state["jobs"][job_id] = {"name": name, "tasks": ["Q"] * number, "options": options,
                             "variables": dict(os.environ), "cwd": str(Path.cwd())}  # fmt: skip
    state["next"] += 1
    save()
    if wrong:
        refuse(wrong.removeprefix("accepted: "))
    say(job_id)


def qstat():
    if ARGS == ["--version"]:
        say("Version: 6.1.3\nCommit: ccdab3b" if TORQUE else "pbs_version = 23.06.06")
        return
    if wrong := fault():
        refuse(wrong, 171)
    if ARGS == ["-B", "-f"]:
        say((STATE / "server.txt").read_text())
        return
    flags = ["-x", "-t"] if TORQUE else ["-x", "-f", "-t"]
    if ARGS[: len(flags)] != flags:
        refuse(f"qstat: fake: {ARGS}", 99)
    code = 0
    for asked in ARGS[len(flags) :]:
        if asked not in state["jobs"]:
            sys.stderr.write(f"qstat: Unknown Job Id Error {asked}\n")
            code = 153
            continue
        shown = [(i, {"Job_Name": n, "job_state": s, **state["attributes"].get(i, {})})
                 for i, s, n in ids(asked)]  # fmt: skip
        say(xml(shown) if TORQUE else text_of(shown))
    raise SystemExit(code)


def xml(jobs):
    parts = ["".join(f"<{k}>{v}</{k}>" for k, v in found.items()) for _, found in jobs]
    both = zip(jobs, parts, strict=True)
    body = "".join(f"<Job><Job_Id>{i}</Job_Id>{part}</Job>" for (i, _), part in both)
    return f'<?xml version="1.0"?>\n<Data>{body}</Data>'


def text_of(jobs):
    return "\n".join(
        f"Job Id: {i}\n" + "".join(f"    {k} = {v}\n" for k, v in found.items())
        for i, found in jobs
    )


def qselect():
    if wrong := fault():
        refuse(wrong)
    name = ARGS[ARGS.index("-N") + 1]
    for job_id in state["jobs"]:
        if TORQUE and "[]" in job_id:  # it lists tasks, but never arrays
            found = [i for i, _, called in ids(job_id) if called == name]
        else:
            found = [job_id] if state["jobs"][job_id]["name"] == name else []
        for one in found:
            say(one)


def qdel():
    for job_id in ARGS:
        job = state["jobs"][job_id]
        job["tasks"] = ["C" if TORQUE else "F" for _ in job["tasks"]]
    save()


def qmgr():
    if not state["node_part"]:
        refuse("qmgr obj=steelyard svr=default: Unknown resource")
    say("Resource steelyard\n    type = string\n    flag = m")


def pbsnodes():
    say((STATE / "nodes.txt").read_text())


{"qsub": qsub, "qstat": qstat, "qselect": qselect, "qdel": qdel, "qmgr": qmgr,
 "pbsnodes": pbsnodes}[PROGRAM]()  # fmt: skip
