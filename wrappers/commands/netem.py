r"""Emulate a slower or lossier network on this machine: delay, loss, rate limits and more.

  steelyard netem check delay=50ms,loss=0.1%      possible here? changes nothing
  sudo steelyard netem apply delay=50ms,to=10.0.0.0/8
  steelyard netem show                            the conditions in force
  sudo steelyard netem clear --all                remove all of them
  sudo steelyard netem sites wan.toml             emulate links to other sites
  sudo steelyard netem sites wan.toml --write     for --netem=sites=wan

`apply` stays in force until `clear`. To measure one command under a condition, root uses `steelyard
run --netem=SPEC -- COMMAND`. Where the administrator allows it, a user requests a condition for one
job: sbatch --netem=SPEC (Slurm) or qsub -v STEELYARD_NETEM=SPEC (Torque and OpenPBS; write each
comma as \,). It is removed when the job ends. docs/netem.md describes SPEC."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.wrappers.netem.program import Specification
    from steelyard.wrappers.netem.sites import Sites

BY_HAND = "hand"  # instead of a job id, for conditions that root applies by this command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their options."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    add_check(verbs.add_parser("check", help="explain a specification; is it possible here?"))
    add_apply(verbs.add_parser("apply", help="apply a condition until `clear` (root)"))
    add_show(verbs.add_parser("show", help="list the conditions in force and their jobs"))
    add_clear(verbs.add_parser("clear", help="remove one condition, or all (root)"))
    text = "apply the links between sites of a file (root)"
    add_sites(verbs.add_parser("sites", help=text))


def add_spec(parser: argparse.ArgumentParser) -> None:
    """Add SPEC."""
    text = "the condition, such as delay=50ms,loss=0.1%%,to=10.0.0.0/8, or none (docs/netem.md)"
    parser.add_argument("spec", metavar="SPEC", help=text)


def add_run_dir(parser: argparse.ArgumentParser) -> None:
    """Add --run-dir."""
    text = "folder of the state files (default: $STEELYARD_RUN_DIR, else /run/steelyard)"
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help=text)


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the options of check."""
    parser.description = (
        "Explain SPEC in words. Check whether this machine's policy allows it in your jobs and "
        "whether this kernel supports it. Nothing is changed. Exit code 2: SPEC is malformed; 4: "
        "it is not possible here."
    )
    add_spec(parser)
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="the policy to check against (default: /etc/steelyard/netem.conf)",
    )
    options.add_json(parser)


def add_apply(parser: argparse.ArgumentParser) -> None:
    """Add the options of apply."""
    parser.description = (
        "Apply a condition to this machine and verify it. It stays in force until "
        "`steelyard netem clear`. Exit code 4: it could not be applied, and nothing has changed."
    )
    add_spec(parser)
    parser.add_argument("--peer", metavar="HOST", help="measure round-trip times to this host")
    text = f"its name in `show` and `clear`, for one condition at a time (default: {BY_HAND})"
    parser.add_argument("--name", metavar="NAME", default=BY_HAND, help=text)
    add_run_dir(parser)
    options.add_json(parser)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the options of show."""
    parser.description = "List every condition in force on this machine, with its job and user."
    add_run_dir(parser)
    options.add_json(parser)


def add_clear(parser: argparse.ArgumentParser) -> None:
    """Add the options of clear."""
    parser.description = "Remove one condition, by the job id that `show` prints, or all of them."
    parser.add_argument(
        "job", metavar="JOB", nargs="?", help="a job id, or the --name given to apply"
    )
    parser.add_argument(
        "--all", action="store_true", help="remove every condition that Steelyard applied"
    )
    add_run_dir(parser)


def main(args: argparse.Namespace) -> int:
    """Run one verb."""
    verbs = {"check": check, "apply": apply, "show": show, "clear": clear}
    return {**verbs, "sites": apply_sites}[args.verb](args)


@dataclass(frozen=True)
class Check:
    """The result of one check; `ok` is None if it could not be determined."""

    name: str
    ok: bool | None
    message: str


def check(args: argparse.Namespace) -> int:
    """Check a specification and print the results; exit code 4 if a check fails."""
    from steelyard.wrappers.netem import condition_descriptions
    from steelyard.wrappers.netem import program as netem

    spec = netem.parse_specification(args.spec)
    checks = list(run_checks(spec, args.policy))
    if args.json:
        document = {"requested": spec.requested, "spec": spec.spec}
        console.print_json(document | {"checks": [asdict(one) for one in checks]})
    else:
        print(spec.requested)
        for phrase in condition_descriptions.describe_parts(spec.spec):
            print(f"  {phrase}")
        for one in checks:
            mark = {True: "yes", False: "NO", None: "?"}[one.ok]
            print(f"{one.name}: {mark}: {one.message}")
    refused = any(one.ok is False for one in checks)
    return errors.CONDITION if refused else errors.DONE


def run_checks(spec: Specification, policy: Path | None) -> Iterator[Check]:
    """Yield checks of the policy and of the kernel."""
    from steelyard.wrappers.netem import kernel_support

    yield check_policy(spec, policy)
    if "sites" in spec.spec:
        yield has_sites(spec)
    for module in kernel_support.list_required_modules(spec.spec):
        found = kernel_support.try_module(module)
        yield Check(f"kernel has {module}", found.there, found.message)


def has_sites(spec: Specification) -> Check:
    """Return a check for the sites file. A missing file is no failure: jobs may run on nodes that
    have it."""
    from steelyard.wrappers.netem import program as netem

    lacking = netem.find_missing_sites(spec.requested)
    found = "exists, and this machine is in one of its sites"
    return Check("its file on this machine", None if lacking else True, lacking or found)


def check_policy(spec: Specification, policy: Path | None) -> Check:
    """Check whether the policy permits the condition for this user."""
    from steelyard.wrappers.netem import program as netem

    name = "allowed in your jobs"
    if policy is None and not netem.POLICY.exists():
        consequence = "no job on this machine gets a condition; other nodes have their own policy"
        return Check(name, None, f"{netem.POLICY} does not exist: {consequence}")
    options = [] if policy is None else [f"--policy={policy}"]
    try:
        answer = json.loads(netem.run_node_program("netem", "check", *options, "--", spec.text))
    except errors.ConditionError as error:
        return Check(name, False, str(error))
    return Check(name, True, f"by {answer['policy']}")


def apply(args: argparse.Namespace) -> int:
    """Apply a condition by hand; no process is watched, so it stays until `clear`."""
    from steelyard.wrappers.netem import condition_descriptions
    from steelyard.wrappers.netem import program as netem

    spec = netem.parse_specification(args.spec)
    if spec.requested == netem.NONE:
        raise errors.UsageError(
            "none: nothing is touched; to remove conditions: steelyard netem clear --all"
        )
    netem.require_root(f"netem apply {args.spec}")
    peer = None if args.peer is None else netem.resolve_address(args.peer)
    wanted = netem.Conditions(network=spec.text, peer=peer)
    document = netem.apply_condition(
        wanted, netem.choose_run_dir(args.run_dir), args.name, watch=None
    )
    if args.json:
        console.print_json(document)
        return errors.DONE
    print("\n".join(condition_descriptions.format_document(document)))
    print(f"To remove it: sudo steelyard netem clear {shlex.quote(args.name)}")
    return errors.DONE


def show(args: argparse.Namespace) -> int:
    """Print every state on this machine."""
    from steelyard.wrappers.netem import condition_descriptions
    from steelyard.wrappers.netem import program as netem

    states = netem.list_states(netem.choose_run_dir(args.run_dir))
    if args.json:
        console.print_json(states)
        return errors.DONE
    if not states:
        print("no network condition of Steelyard is in force on this machine")
    for state in states:
        print(condition_descriptions.format_owner(state))
        print("\n".join(f"  {line}" for line in condition_descriptions.format_document(state)))
    return errors.DONE


def clear(args: argparse.Namespace) -> int:
    """Remove one job's condition, or all: also those without a state, which Steelyard's own handle
    identifies."""
    from steelyard.wrappers.netem import condition_descriptions
    from steelyard.wrappers.netem import program as netem

    if bool(args.job) == args.all:
        raise errors.UsageError("name one JOB (`steelyard netem show` lists them), or give --all")
    netem.require_root("netem clear")
    folder = netem.choose_run_dir(args.run_dir)
    states = [s for s in netem.list_states(folder) if args.all or s.get("job_id") == args.job]
    if not states and not args.all:
        raise errors.UsageError(
            f"job {args.job} has no condition on this machine; `steelyard netem show` lists those in force"
        )
    named = [["--all"]] if args.all else [format_owner_options(state) for state in states]
    for arguments in named:
        netem.run_node_program("netem", "clear", f"--run-dir={folder}", *arguments)
    for state in states:
        print(f"removed: {condition_descriptions.format_owner(state)}: {state.get('requested')}")
    if args.all:
        print("no network condition of Steelyard remains on this machine")
    return errors.DONE


def format_owner_options(state: dict[str, object]) -> list[str]:
    """Return the options of steelyard-node that name a state: a job may have one on several
    nodes."""
    return [f"--job-id={state.get('job_id')}", f"--node={state.get('node')}"]


NAME = "site"  # prefix of the conditions' names: site-1, site-2 …


def add_sites(parser: argparse.ArgumentParser) -> None:
    """Add the options of sites."""
    parser.description = (
        "Apply and verify the links of FILE.toml that begin at this node's site. Run it on every "
        "node, with the same file. The links stay in force until `steelyard netem clear --all`. "
        "Exit code 4: a link could not be applied, and all are removed again. With --write nothing "
        "is applied: the file is installed for jobs, which request it by name while they run: "
        "sbatch --netem=sites=NAME."
    )
    parser.add_argument(
        "file",
        metavar="FILE.toml",
        type=Path,
        help="the sites and the links between them (docs/netem.md)",
    )
    text = "this node's site (default: the site that lists an address of this node)"
    parser.add_argument("--site", metavar="NAME", help=text)
    parser.add_argument("--dry-run", action="store_true", help="print the links and change nothing")
    text = "install NAME.toml as NAME.sites, for jobs with --netem=sites=NAME (root, on each node)"
    parser.add_argument("--write", action="store_true", help=text)
    text = "with --write: the folder to write to (default: /etc/steelyard/netem)"
    parser.add_argument("--into", type=Path, metavar="DIR", help=text)
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="folder of the state files")
    options.add_json(parser)


def apply_sites(args: argparse.Namespace) -> int:
    """Apply all links, or none."""
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.netem import sites

    found = sites.read_sites(args.file)
    if args.into is not None and not args.write:
        raise errors.UsageError("--into goes with --write")
    if args.write:
        return write_and_report(found, args)
    site = args.site or sites.find_site(found, read_own_addresses())
    wanted = check_links(found, site)
    if args.dry_run:
        lines = [f"{site} -> {target}: {spec}" for target, spec in wanted]
        print("\n".join(lines) or f"no link begins at {site}")
        return errors.DONE
    netem.require_root(f"netem sites {args.file}")
    documents = apply_all(wanted, netem.choose_run_dir(args.run_dir))
    if args.json:
        console.print_json(documents)
    else:
        for (target, _), document in zip(wanted, documents, strict=True):
            print_sites(site, target, document)
        print("To remove them: sudo steelyard netem clear --all")
    return errors.DONE


def write_and_report(found: Sites, args: argparse.Namespace) -> int:
    """Install the file; print how jobs request it, and what it means for this node."""
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.netem import sites

    if args.dry_run:
        print(sites.compile_sites(found, args.file), end="")
        return errors.DONE
    folder = args.into or sites.FOLDER
    path = sites.write_sites(found, args.file, folder)
    try:
        node, why = netem.read_sites(path.stem, folder), None
    except errors.ConditionError as error:
        node, why = None, str(error)
    if args.json:
        console.print_json(
            {"file": str(path), "node": node, "missing": {} if node else {"node": why}}
        )
        return errors.DONE
    print(f"{path}: written; jobs on nodes that have it: sbatch --netem=sites={path.stem}")
    print("\n".join(netem.describe_sites(node)) if node else f"on this machine: {why}")
    return errors.DONE


def check_links(found: Sites, site: str) -> list[tuple[str, str]]:
    """Return the links that begin here, each checked and in canonical text."""
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.netem import sites

    return [
        (target, netem.parse_specification(spec).requested)
        for target, spec in sites.list_conditions(found, site)
    ]


def read_own_addresses() -> list[str]:
    """Return the addresses of all devices except the loopback."""
    from steelyard.wrappers.base import programs
    from steelyard.wrappers.netem import kernel_support

    ip = kernel_support.find_program("ip")
    if ip is None:
        raise errors.MissingError(
            "ip is missing, which lists this node's addresses: apt install iproute2"
        )
    devices = json.loads(
        programs.run_quietly([ip, "-j", "addr", "show"], kernel_support.TIMEOUT_S).stdout
    )
    return [
        str(address["local"])
        for device in devices if "LOOPBACK" not in device.get("flags", ())
        for address in device.get("addr_info", ()) if address.get("scope") == "global"
    ]  # fmt: skip


def apply_all(wanted: list[tuple[str, str]], folder: Path) -> list[dict[str, object]]:
    """Apply the conditions one after another; if one fails, those before it are undone."""
    from steelyard.wrappers.netem import program as netem

    documents: list[dict[str, object]] = []
    for number, (_, spec) in enumerate(wanted, start=1):
        try:
            conditions = netem.Conditions(network=spec, peer=find_peer(spec))
            documents.append(
                netem.apply_condition(conditions, folder, f"{NAME}-{number}", watch=None)
            )
        except errors.SteelyardError:
            for done in range(1, number):
                netem.finish_condition(folder, f"{NAME}-{done}", "hand")
            raise
    return documents


def find_peer(spec: str) -> str | None:
    """Return the destination for echo requests: the first one that is a single node, or None."""
    wanted = [option.removeprefix("to=") for option in spec.split(",") if option.startswith("to=")]
    return next((one for one in wanted if "/" not in one), None)


def print_sites(site: str, target: str, document: dict[str, object]) -> None:
    """Print the applied link."""
    from steelyard.wrappers.netem import condition_descriptions

    print(f"{site} -> {target}")
    print("\n".join(f"  {line}" for line in condition_descriptions.format_document(document)))
