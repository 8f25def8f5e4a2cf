"""steelyard netem sites: applies the links that begin at this node's site."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.wrappers.base import errors, options

if TYPE_CHECKING:
    from steelyard.wrappers.netem.sites import Sites

NAME = "site"  # prefix of the conditions' names: site-1, site-2 …


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def main(args: argparse.Namespace) -> int:
    """Apply all links, or none."""
    from steelyard.wrappers.base import console
    from steelyard.wrappers.netem import program, sites

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
    program.require_root(f"netem sites {args.file}")
    documents = apply_all(wanted, program.choose_run_dir(args.run_dir))
    if args.json:
        console.print_json(documents)
    else:
        for (target, _), document in zip(wanted, documents, strict=True):
            print_sites(site, target, document)
        print("To remove them: sudo steelyard netem clear --all")
    return errors.DONE


def write_and_report(found: Sites, args: argparse.Namespace) -> int:
    """Install the file; print how jobs request it, and what it means for this node."""
    from steelyard.wrappers.base import console
    from steelyard.wrappers.netem import program, sites

    if args.dry_run:
        print(sites.compile_sites(found, args.file), end="")
        return errors.DONE
    folder = args.into or sites.FOLDER
    path = sites.write_sites(found, args.file, folder)
    try:
        node, why = program.read_sites(path.stem, folder), None
    except errors.ConditionError as error:
        node, why = None, str(error)
    if args.json:
        console.print_json(
            {"file": str(path), "node": node, "missing": {} if node else {"node": why}}
        )
        return errors.DONE
    print(f"{path}: written; jobs on nodes that have it: sbatch --netem=sites={path.stem}")
    print("\n".join(program.describe_sites(node)) if node else f"on this machine: {why}")
    return errors.DONE


def check_links(found: Sites, site: str) -> list[tuple[str, str]]:
    """Return the links that begin here, each checked and in canonical text."""
    from steelyard.wrappers.netem import program, sites

    return [
        (target, program.parse_specification(spec).requested)
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
    from steelyard.wrappers.netem import program

    documents: list[dict[str, object]] = []
    for number, (_, spec) in enumerate(wanted, start=1):
        try:
            conditions = program.Conditions(network=spec, peer=find_peer(spec))
            documents.append(
                program.apply_condition(conditions, folder, f"{NAME}-{number}", watch=None)
            )
        except errors.SteelyardError:
            for done in range(1, number):
                program.finish_condition(folder, f"{NAME}-{done}", "hand")
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
