"""Replaces sbatch, squeue, sacct, scancel and scontrol for the queries of Steelyard.

It is called by links of those names in STATE/bin. It logs every call to STATE/log.jsonl with its
variables. STATE/state.json contains the jobs, and `faults`: for each command the errors of its next
calls. Unknown options exit with 99.
"""

import json
import os
import re
import sys
from pathlib import Path

PROGRAM = Path(sys.argv[0]).name
STATE = Path(sys.argv[0]).absolute().parent.parent
ARGS = sys.argv[1:]


def say(text):
    sys.stdout.write(f"{text}\n")


def unknown(what):
    sys.stderr.write(f"{PROGRAM}: fake: unknown: {what}\n")
    raise SystemExit(99)


def refuse(message):
    sys.stderr.write(f"{PROGRAM}: error: {message}\n")
    raise SystemExit(1)


def options(allowed):
    found, rest = {}, []
    for arg in ARGS:
        name, _, value = arg.partition("=")
        if not name.startswith("--"):
            rest.append(arg)
        elif name in allowed:
            found[name] = value
        else:
            unknown(arg)
    return found, rest


def load():
    return json.loads((STATE / "state.json").read_text())


def save(state):
    (STATE / "state.json").write_text(json.dumps(state))


def fault():
    """Remove and return the next fault of this command."""
    state = load()
    faults = state["faults"].get(PROGRAM, [])
    if not faults:
        return None
    first = faults.pop(0)
    save(state)
    return first


def sbatch():
    if ARGS == ["--help"]:
        say((STATE / "sbatch.help").read_text())
        return
    found, rest = options({"--parsable", "--test-only"})
    text = Path(rest[0]).read_text()
    if "--test-only" in found:
        refused = load().get("refused")
        if refused:
            sys.stderr.write(f"allocation failure: {refused}\n")
            raise SystemExit(1)
        return
    wrong = fault()
    if wrong and not wrong.startswith("accepted: "):
        refuse(wrong)
    directives = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", text, re.MULTILINE))
    match = re.fullmatch(r"0-(\d+)(?:%\d+)?", directives["array"])
    if not match or int(match[1]) >= load()["max_array_size"]:
        refuse("Batch job submission failed: Invalid job array specification")
    state = load()
    job_id = str(state["next_job_id"])
    state["next_job_id"] += 1
    state["jobs"][job_id] = {
        "name": directives["job-name"],
        "tasks": ["PENDING"] * (int(match[1]) + 1),
        "script": text,
        "variables": dict(os.environ),
    }
    save(state)
    if wrong:
        refuse(wrong.removeprefix("accepted: "))
    say(f"{job_id};fakecluster" if state["cluster_in_answer"] else job_id)


def squeue():
    found, _ = options({"--noheader", "--array", "--format", "--jobs", "--name", "--user"})
    wrong = fault()
    if wrong:
        refuse(wrong)
    jobs = load()["jobs"]
    wanted = found["--jobs"].split(",") if "--jobs" in found else list(jobs)
    known = [key for key in wanted if key in jobs]
    if "--jobs" in found and not known:
        refuse("slurm_load_jobs error: Invalid job id specified")
    for key in known:
        job = jobs[key]
        if found.get("--name", job["name"]) != job["name"]:
            continue
        for index, state in enumerate(job["tasks"]):
            # As the real one: variables are defaults of its options.
            states = os.environ.get("SQUEUE_STATES", "PENDING,RUNNING").split(",")
            if state in ("PENDING", "RUNNING") and state in states:
                show_task(found["--format"], key, index, state, job.get("reason", "Priority"))


def show_task(layout, key, index, state, waits_for):
    raw = key if state == "PENDING" else f"{key}{index:03}"
    reason = waits_for if state == "PENDING" else "None"
    values = {"%F": key, "%K": str(index), "%A": raw, "%T": state, "%r": reason}
    say(re.sub(r"%[A-Za-z]", lambda match: values[match[0]], layout))


def sacct():
    allowed = {"--noheader", "--allocations", "--parsable2", "--noconvert", "--duplicates"}
    narrowing = {"--format", "--starttime", "--jobs", "--name", "--user", "--delimiter"}
    found, _ = options(allowed | narrowing)
    state = load()
    if not state["accounting"]:
        refuse("Slurm accounting storage is disabled")
    for key, job in state["jobs"].items():
        by_name = found.get("--name", job["name"]) == job["name"]
        by_id = "--jobs" not in found or key in found["--jobs"].split(",")
        for index, task in enumerate(job["tasks"]):
            if by_name and by_id:
                values = {
                    "JobID": f"{key}_{index}",
                    "JobIDRaw": f"{key}{index:03}",
                    "State": task,
                    "ExitCode": state["exit_codes"].get(key, "0:0"),
                    "Start": str(1_700_000_000) if key in state.get("begun", ()) else "Unknown",
                    "NodeList": "n1" if key in state.get("begun", ()) else "None assigned",
                }
                say(
                    found["--delimiter"].join(values[name] for name in found["--format"].split(","))
                )


def scancel():
    _, rest = options(set())
    state = load()
    for key in rest:
        tasks = state["jobs"][key]["tasks"]
        active = ("PENDING", "RUNNING")
        state["jobs"][key]["tasks"] = [
            "CANCELLED by 0" if task in active else task for task in tasks
        ]
    save(state)


def sinfo():
    if ARGS != ["--noheader", "--Node", "--format=%N|%f"]:
        unknown(ARGS)
    for name, features in load().get("features", {}).items():
        say(f"{name}|{features}")


def scontrol():
    if ARGS[:2] == ["-o", "show"] and ARGS[2:] in (["node"], ["partition"]):
        for line in load().get(ARGS[2], []):  # none: they are unknown
            say(line)
        return
    if ARGS != ["show", "config"]:
        unknown(ARGS)
    wrong = fault()
    if wrong:
        refuse(wrong)
    say("Configuration data as of 2026-11-21T08:00:00")
    say("ClusterName             = fake")
    say(f"MaxArraySize            = {load()['max_array_size']}")


def log():
    with (STATE / "log.jsonl").open("a") as file:
        file.write(json.dumps([PROGRAM, *ARGS]) + "\n")


COMMANDS = {
    "sbatch": sbatch,
    "squeue": squeue,
    "sacct": sacct,
    "scancel": scancel,
    "scontrol": scontrol,
    "sinfo": sinfo,
}
log()
COMMANDS[PROGRAM]() if PROGRAM in COMMANDS else unknown(PROGRAM)
