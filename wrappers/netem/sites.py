"""Distances between sites: reads a file of sites and links, and derives a node's conditions.

Each link has one direction, so that the two directions may differ: the sending node shapes it."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.wrappers.base.errors import ConditionError, UsageError
from steelyard.wrappers.netem import program

MOST_TARGETS = 8  # `to=` of one specification: docs/netem.md
MOST_CONDITIONS = 15  # bands of a device
WHERE = ("to=", "port=", "dev=", "direction=")
NOT_OF_JOBS = ("trace=", "sites=", "rto_min=")  # plugins/node/netem/sites_file.c, check_condition()
FOLDER = Path("/etc/steelyard/netem")  # for --netem=sites=NAME: plugins/node/netem/sites_file.h
WORD = re.compile(r"[A-Za-z0-9_-]{1,31}", re.ASCII)  # a site in a compiled file
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}", re.ASCII)  # spec.c, parse_file_word()

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Sites:
    """Networks by site; specifications by (from, to)."""

    networks: Mapping[str, tuple[Network, ...]]
    links: Mapping[tuple[str, str], str]


def read_sites(path: Path) -> Sites:
    """Read the file. Raises UsageError, which names the invalid part."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}", str(path)) from error
    check_keys(document, ("site", "link"), path, "the file")
    networks = {
        str(name): read_networks(table, path, str(name))
        for name, table in read_tables(document.get("site"), path)
    }
    check_disjoint(networks, path)
    links: dict[tuple[str, str], str] = {}
    for entry in document.get("link") or ():
        for pair, spec in read_link(entry, networks, path):
            if pair in links:
                raise UsageError(f"{path}: link from {pair[0]} to {pair[1]}: given twice")
            links[pair] = spec
    if not links:
        raise UsageError(f"{path}: expected at least one [[link]] with from, to and netem")
    return Sites(networks, links)


def check_keys(table: Mapping[str, Any], known: Sequence[str], path: Path, where: str) -> None:
    """Raise UsageError for an unknown key."""
    for key in table:
        if key not in known:
            raise UsageError(f"{path}: {where}: unknown key {key}; known are {', '.join(known)}")


def read_tables(found: object, path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tables [site.NAME] with their names."""
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise UsageError(f"{path}: expected [site.NAME] with addresses")
    yield from found.items()


def read_networks(table: Mapping[str, Any], path: Path, name: str) -> tuple[Network, ...]:
    """Read `addresses` of a site."""
    check_keys(table, ("addresses",), path, f"site {name}")
    found = table.get("addresses")
    if not isinstance(found, list) or not found:
        raise UsageError(f'{path}: site {name}: expected addresses = ["10.1.0.0/24", …]')
    try:
        return tuple(ipaddress.ip_network(one) for one in found)
    except ValueError as error:
        raise UsageError(f"{path}: site {name}: {error}") from error


def check_disjoint(networks: Mapping[str, Sequence[Network]], path: Path) -> None:
    """Raise UsageError if an address belongs to two sites."""
    known = [(name, one) for name, several in networks.items() for one in several]
    for at, (name, one) in enumerate(known):
        for other, another in known[:at]:
            if one.version == another.version and one.overlaps(another):
                raise UsageError(f"{path}: {one} of {name} and {another} of {other} overlap")


def read_link(
    entry: object, networks: Mapping[str, object], path: Path
) -> Iterator[tuple[tuple[str, str], str]]:
    """Read a link in one direction, or `between` two sites in both directions."""
    if not isinstance(entry, dict):
        raise UsageError(f"{path}: expected [[link]]")
    check_keys(entry, ("from", "to", "between", "netem"), path, "link")
    between = entry.get("between")
    ends = between if between is not None else [entry.get("from"), entry.get("to")]
    spec = entry.get("netem")
    if not isinstance(ends, list) or len(ends) != 2 or not isinstance(spec, str) or not spec:
        raise UsageError(
            f'{path}: link: expected from = "a", to = "b" (or between = ["a", "b"]) and '
            'netem = "delay=30ms"'
        )
    for end in ends:
        if end not in networks:
            raise UsageError(f"{path}: link: site {end} is not known: {', '.join(networks)}")
    for option in spec.split(","):
        if option.startswith(WHERE):
            raise UsageError(f"{path}: link: {option}: the link says where; leave it out")
    yield (ends[0], ends[1]), spec
    if between is not None and ends[0] != ends[1]:
        yield (ends[1], ends[0]), spec


def find_site(sites: Sites, addresses: Sequence[str]) -> str:
    """Return the site of a node with these addresses. Raises UsageError unless it is exactly
    one."""
    own = [ipaddress.ip_address(address) for address in addresses]
    found = [name for name, several in sites.networks.items()
             if any(address in network for network in several for address in own)]  # fmt: skip
    if len(found) != 1:
        what = " and ".join(found) if found else "no site"
        raise UsageError(f"this node ({', '.join(addresses)}) is in {what}: say --site NAME")
    return found[0]


def list_conditions(sites: Sites, site: str) -> list[tuple[str, str]]:
    """Return (site, specification) for each link that begins here, with at most MOST_TARGETS
    networks each."""
    if site not in sites.networks:
        raise UsageError(f"--site {site}: not known: {', '.join(sites.networks)}")
    found = []
    for (source, target), spec in sites.links.items():
        if source != site:
            continue
        networks = sites.networks[target]
        for at in range(0, len(networks), MOST_TARGETS):
            where = ",".join(
                f"to={format_network(one)}" for one in networks[at : at + MOST_TARGETS]
            )
            found.append((target, f"{spec},{where}"))
    if len(found) > MOST_CONDITIONS:
        raise UsageError(
            f"{len(found)} conditions begin at {site}: a device has at most {MOST_CONDITIONS}; put "
            "addresses together to networks"
        )
    return found


def format_network(network: Network) -> str:
    """Format a network for the grammar: a single address has no prefix."""
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def compile_sites(sites: Sites, source: Path) -> str:
    """Return the file that --netem=sites=NAME reads on each node. Raises UsageError for what jobs
    cannot have."""
    links = {pair: canonical_link(spec, source, *pair) for pair, spec in sites.links.items()}
    lines = [f"# steelyard netem sites {source.name} --write"]
    for name, networks in sites.networks.items():
        if not WORD.fullmatch(name):
            raise UsageError(
                f"{source}: site {name}: expected at most 31 letters, digits, _ and -: jobs know it by "
                "that name"
            )
        lines.append(" ".join(["site", name, *map(format_network, networks)]))
        found = list_conditions(Sites(sites.networks, links), name)
        lines += [f"to {end} {spec}" for end, spec in found]
    return "\n".join(lines) + "\n"


def canonical_link(spec: str, source: Path, begin: str, end: str) -> str:
    """Return a link's specification in canonical form. Raises UsageError for what jobs cannot
    have."""
    found = program.parse_specification(spec).requested
    for option in found.split(","):
        if option.startswith(NOT_OF_JOBS) or option == program.NONE:
            raise UsageError(
                f"{source}: link from {begin} to {end}: {option}: jobs cannot have that"
            )
    return found


def write_sites(sites: Sites, source: Path, folder: Path) -> Path:
    """Write FOLDER/NAME.sites atomically, readable by all; NAME is that of the source. Return its
    path."""
    if not NAME.fullmatch(source.stem):
        raise UsageError(
            f"{source}: jobs ask for sites={source.stem}: expected a file named by at most 31 letters, "
            "digits, _ and -, not first - or _"
        )
    made, target = compile_sites(sites, source), folder / f"{source.stem}.sites"
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished.write_text(made, encoding="utf-8")
        unfinished.chmod(0o644)
        unfinished.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise ConditionError(
            f"{target}: cannot be written: {error.strerror}; root writes there, anybody elsewhere by "
            "--into DIR"
        ) from error
    return target
