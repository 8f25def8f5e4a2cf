"""Make container images for runs: a Debian root file system with Open MPI, for docker or podman, or
as a folder for systemd-nspawn, LXC and apptainer.

  steelyard image make podman:my-app:1         the launcher's name in a study
  steelyard image make /srv/my-app --for apptainer
  steelyard image make lxc:my-app --include=libgfortran5,iperf3
  steelyard image make docker:my-app:1 --benchmark hpl --force

It needs mmdebstrap, a Debian mirror, one to five minutes and 1 GiB of temporary disk space. Only lxc
and systemd-nspawn need root. An existing image is replaced only with --force, and an existing folder
only if this command made it.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from steelyard.wrappers.base import errors, options

if TYPE_CHECKING:
    from steelyard.wrappers.launchers.image_build import Image, ImageRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb and its options."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    add_make(verbs.add_parser("make", help="make an image"))


def add_make(parser: argparse.ArgumentParser) -> None:
    """Add the options of make."""
    from steelyard.wrappers.launchers.image_build import KINDS, PACKAGES

    parser.description = (
        "Make an image with mmdebstrap. NAME is KIND:NAME as in a study (podman:my-app:1, "
        "lxc:my-app), or a name or folder with --for. Exit code 2: the image exists; 3: a "
        "program, the mirror or disk space is missing; 4: this kind needs root."
    )
    parser.add_argument("name", metavar="NAME", help="the image's name, or the path of a folder")
    parser.add_argument("--for", dest="kind", choices=KINDS, help="the launcher that NAME is for")
    text = f"Debian packages in addition to {', '.join(PACKAGES)} (commas; repeatable)"
    parser.add_argument("--include", metavar="PACKAGES", action="append", default=[], help=text)
    text = "also install the packages that this benchmark needs (repeatable)"
    parser.add_argument("--benchmark", metavar="NAME", action="append", default=[], help=text)
    text = "Debian release, such as bookworm (default: this machine's, else bookworm)"
    parser.add_argument("--suite", metavar="SUITE", help=text)
    text = "Debian mirror (default: deb.debian.org)"
    parser.add_argument("--mirror", metavar="URL", help=text)
    text = "replace an image of that name, or a folder that this command made"
    parser.add_argument("--force", action="store_true", help=text)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Make the image and print how to use it."""
    from steelyard.wrappers.base import console
    from steelyard.wrappers.launchers import image_build

    names = (word for text in args.include for word in text.split(",") if word)
    include = tuple(dict.fromkeys((*names, *list_packages(args.benchmark))))
    request = image_build.read_request(
        args.name, args.kind, args.suite, include, args.mirror, args.force
    )
    packages = ", ".join(request.packages)
    print_progress(
        f"{request.launcher}: Debian {request.suite} with {packages}, made in {request.workshop}"
    )
    made = image_build.make_image(request, print_progress)
    if args.json:
        console.print_json(as_json(request, made))
    else:
        print_made(request, made)
    return errors.DONE


def list_packages(benchmarks: list[str]) -> list[str]:
    """Return the Debian packages of the programs that these benchmarks start."""
    from steelyard.jobscripts import registry

    try:
        found = [registry.load(name) for name in benchmarks]
    except registry.UnknownBenchmarkError as error:
        raise errors.UsageError(str(error)) from error
    return [one.debian for benchmark in found for one in benchmark.needs if one.debian]


def print_progress(text: str) -> None:
    """Print progress on stderr."""
    print(f"steelyard image: {text}", file=sys.stderr)


def as_json(request: ImageRequest, made: Image) -> dict[str, object]:
    """Return the document of --json."""
    return {
        "format": "steelyard-image",
        "version": 1,
        "launcher": made.launcher,
        "path": made.location,
        "suite": request.suite,
        "packages": list(request.packages),
        "size_bytes": made.size_bytes,
        "took_s": made.took_s,
    }


def print_made(request: ImageRequest, made: Image) -> None:
    """Print the image's name and size, and how to use it."""
    from steelyard.wrappers.base import console

    size = console.format_bytes(made.size_bytes)
    print(f"{made.launcher} is ready: {size}, {made.location}, made in {made.took_s:.0f} s")
    print(f'in a study: launcher = ["bare", "{made.launcher}"]')
    print(f"by hand: steelyard run --in {made.launcher} -- COMMAND")
    if request.kind in ("docker", "podman"):
        print("on a cluster every node needs the image; podman without root stores images per user")
