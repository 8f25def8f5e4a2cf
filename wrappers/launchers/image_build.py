"""Images of Debian packages for runs in containers: `steelyard image make`.

mmdebstrap makes a root file system in a folder next to its destination, and the last step moves it
there: an interrupted command changes nothing. All processes run in their own process and mount
namespaces, which end with this process, however it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.base import leftovers, programs, signals
from steelyard.wrappers.base.errors import ConditionError, MissingError, UsageError
from steelyard.wrappers.launchers import launcher_grammar

KINDS = ("docker", "podman", "systemd-nspawn", "lxc", "apptainer")
ENGINES = ("docker", "podman")
ROOTS = ("lxc", "systemd-nspawn")  # kinds whose containers only root starts
PACKAGES = ("openmpi-bin",)  # Debian always has bash, coreutils and grep
SUITE = "bookworm"
OURS = "steelyard-image-"
PART = f".{OURS}"  # prefix of folders of unfinished images
MARK = "etc/steelyard-image"  # in each finished image: no other folder is ever replaced
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")  # a package or a suite
STEPS = ("running apt", "downloading", "extracting", "installing", "creating")  # that are reported
MOST_SAID = 2  # a full disk is reported for each file
LONGEST_S = 300  # an engine imports some hundred MB
# mmdebstrap, apt and the packages' scripts run in namespaces whose first process ends with us.
OWN_PROCESSES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
AS_ROOT_OF_ONES_OWN = ["unshare", "--user", "--map-root-user", "--map-auto"]
LXC_CONFIG = """\
# Made by `steelyard image make`. Another network, for network=bridge, macvlan or phys without
# ranks=across: lxc.net.0.type = veth, macvlan or phys, lxc.net.0.link, lxc.net.0.flags = up and an address.
lxc.rootfs.path = dir:{root}
lxc.mount.auto = proc:mixed sys:ro
lxc.net.0.type = none
"""
Say = Callable[[str], None]


@dataclass(frozen=True)
class ImageRequest:
    """An image to make, and its launcher."""

    kind: str
    name: str
    suite: str = SUITE
    packages: tuple[str, ...] = PACKAGES
    mirror: str | None = None
    replace: bool = False

    @property
    def launcher(self) -> str:
        """The launcher in a study's notation."""
        return f"{self.kind}:{self.name}"

    @property
    def path(self) -> Path:
        """The destination folder; docker and podman store their images themselves."""
        if self.kind == "lxc":
            return lxc_folder() / self.name
        return Path(self.name)

    @property
    def workshop(self) -> Path:
        """The folder in which it is made: for a folder, on the file system of the destination."""
        return Path(tempfile.gettempdir()) if self.kind in ENGINES else self.path.parent


@dataclass(frozen=True)
class Image:
    """A finished image."""

    launcher: str
    location: str
    size_bytes: int
    took_s: float


def format_command(launcher: str, *packages: str) -> str:
    """Return the command that makes an image, for messages."""
    more = f" --include={','.join(packages)}" if packages else ""
    return f"steelyard image make {launcher}{more}"


def read_request(
    text: str, kind: str | None, suite: str | None, include: tuple[str, ...], mirror: str | None,
    replace: bool,
) -> ImageRequest:  # fmt: skip
    """Check and return the request: KIND:NAME as in studies, or NAME and --for; a path alone is a
    root folder."""
    head, colon, rest = text.partition(":")
    if kind is None and colon and head in launcher_grammar.NAMED:
        kind, text = head, rest
    elif kind is None and text.startswith(("/", "./", "../")):
        kind = "systemd-nspawn"
    if kind is None:
        raise UsageError(
            f"{text}: for which launcher? expected --for KIND or KIND:NAME, KIND one of "
            f"{', '.join(KINDS)}; or a path, such as ./{text}",
            text,
        )
    if kind not in KINDS:
        raise UsageError(f"{kind} has no images: expected one of {', '.join(KINDS)}", kind)
    if kind not in (*ENGINES, "lxc"):
        text = str(Path(text).absolute())
    launcher_grammar.check_name(kind, True, text)
    names = (*((suite,) if suite else ()), *include)
    for word in names:
        if not NAME.fullmatch(word):
            raise UsageError(f"'{word}' is no name of a Debian suite or package", word)
    packages = tuple(dict.fromkeys((*PACKAGES, *include)))
    return ImageRequest(kind, text, suite or local_suite(), packages, mirror, replace)


def local_suite(os_release: Path = Path("/etc/os-release")) -> str:
    """Return this machine's suite if it runs Debian, because our programs need as new a C library;
    else SUITE."""
    try:
        lines = os_release.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return SUITE
    fields = dict(entry.partition("=")[::2] for entry in lines)
    return fields.get("VERSION_CODENAME", SUITE) if fields.get("ID") == "debian" else SUITE


def lxc_folder() -> Path:
    """Return the folder of LXC's containers."""
    return Path(run_program("lxc-config", "lxc.lxcpath").strip())


def run_program(*argv: str) -> str:
    """Return a program's stdout. Raises MissingError with its last line if it fails."""
    try:
        done = programs.run_quietly(argv, LONGEST_S)
    except OSError as error:
        raise MissingError(f"{argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise MissingError(f"{argv[0]}: no answer in {LONGEST_S} s") from error
    if done.returncode != 0:
        lines = [text for text in done.stderr.splitlines() if text.strip()]
        raise MissingError(f"{' '.join(argv[:2])}: {lines[-1] if lines else done.returncode}")
    return done.stdout


# --- checks ----------------------------------------------------------------------------------


def check_request(request: ImageRequest) -> None:
    """Raise an error for what would fail after minutes, or destroy something."""
    if os.geteuid() != 0 and request.kind in ROOTS:
        raise ConditionError(
            f"{request.launcher}: only root starts containers of {request.kind}: say it as root, or make "
            "one for podman or apptainer"
        )
    check_programs(request)
    if request.kind in ENGINES:
        run_program(request.kind, "version")
        if find_engine_image(request) and not request.replace:
            raise UsageError(
                f"{request.kind} has an image {request.name} already: name another, or add --force to "
                "replace it",
                request.name,
            )
    else:
        check_destination(request)


def check_programs(request: ImageRequest) -> None:
    """Raise MissingError for programs that are not installed."""
    wanted = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "setpriv": "util-linux"}
    if request.kind in ENGINES:
        wanted[request.kind] = {"docker": "docker.io"}.get(request.kind, request.kind)
    if request.kind == "lxc":
        wanted["lxc-config"] = "lxc"
    if os.geteuid() != 0:
        wanted["newuidmap"] = "uidmap"
    lacking = [name for name in wanted if shutil.which(name) is None]
    if lacking:
        packages = " ".join(dict.fromkeys(wanted[name] for name in lacking))
        raise MissingError(
            f"to make an image this machine needs {', '.join(lacking)}: apt install {packages}"
        )
    if (
        os.geteuid() != 0
        and programs.run_quietly([*AS_ROOT_OF_ONES_OWN, "true"], 60).returncode != 0
    ):
        raise MissingError(
            "an ordinary user makes images in a user namespace, and has no numbers for it: ask the "
            "administrator for usermod --add-subuids 100000-165535 --add-subgids 100000-165535 and "
            "your name, or make the image as root"
        )


def check_destination(request: ImageRequest) -> None:
    """Raise UsageError if the destination exists and may not be replaced, or its parent does not
    exist."""
    path = request.path
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent}: no such folder: make it first", str(path))
    if not os.path.lexists(path):
        return
    if not is_our_folder(path):
        raise UsageError(
            f"{path} is there already, and `steelyard image make` has not made it: name another "
            "place, or remove it yourself",
            str(path),
        )
    if not request.replace:
        raise UsageError(
            f"{path} is there already: name another place, or add --force to replace it",
            str(path),
        )


def is_our_folder(path: Path) -> bool:
    """Return whether this command made the folder; a symbolic link never counts."""
    roots = (path, path / "rootfs")
    return not path.is_symlink() and any((root / MARK).is_file() for root in roots)


def find_engine_image(request: ImageRequest) -> str | None:
    """Return the id of the engine's image with that name, or None."""
    done = programs.run_quietly(
        [request.kind, "image", "inspect", "--format={{.Id}}", request.name], LONGEST_S
    )
    return done.stdout.strip() if done.returncode == 0 else None


# --- making the image ------------------------------------------------------------------------


def make_image(request: ImageRequest, report: Say) -> Image:
    """Make the requested image; no destination changes before the image is complete."""
    check_request(request)
    begin = time.monotonic()
    with (
        signals.ending_on_sigterm(),
        leftovers.make_folder(PART, request.workshop, remove_folder) as work_folder,
    ):
        if request.kind in ENGINES:
            location, size_bytes = make_engine_image(request, work_folder, report)
        else:
            location, size_bytes = make_root_folder(request, work_folder, report)
    return Image(request.launcher, location, size_bytes, time.monotonic() - begin)


def make_engine_image(request: ImageRequest, work_folder: Path, report: Say) -> tuple[str, int]:
    """Import the image into docker or podman; return its id and size in bytes."""
    tar = work_folder / "image.tar"
    debootstrap(request, work_folder, tar, report)
    mark = work_folder / "mark"
    mark.write_text(image_label(request), encoding="utf-8")
    with tarfile.open(tar, "a") as archive:
        archive.add(mark, f"./{MARK}", filter=set_root_owner)
    before = find_engine_image(request)
    report(f"{request.kind} import")
    run_program(request.kind, "import", str(tar), request.name)
    found = run_program(
        request.kind, "image", "inspect", "--format={{.Id}} {{.Size}}", request.name
    )
    name, size = found.split()
    if before not in (None, name):
        programs.run_quietly(
            [request.kind, "rmi", str(before)], LONGEST_S
        )  # an image with another name stays
    return name, int(size)


def set_root_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Make root the owner of an archive's entry."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def make_root_folder(request: ImageRequest, work_folder: Path, report: Say) -> tuple[str, int]:
    """Make a root folder, or for LXC a container with its configuration; return its path and size
    in bytes."""
    complete_folder = work_folder / "whole"
    root = complete_folder / "rootfs" if request.kind == "lxc" else complete_folder
    root.parent.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        debootstrap(request, work_folder, root, report)
    else:
        # In a user namespace some files would have other owners than the user: unpacked by tar, all
        # are theirs.
        debootstrap(request, work_folder, work_folder / "image.tar", report)
        root.mkdir()
        unpack = ["tar", "-C", str(root), "--no-same-owner", "--exclude=./dev/*"]
        run_program(*unpack, "-xf", str(work_folder / "image.tar"))
    root.chmod(0o755)
    (root / MARK).write_text(image_label(request), encoding="utf-8")
    if request.kind == "lxc":
        text = LXC_CONFIG.format(root=request.path / "rootfs")
        (complete_folder / "config").write_text(text, encoding="utf-8")
        complete_folder.chmod(0o755)
    size_bytes = disk_usage(complete_folder)
    install_folder(request, complete_folder, work_folder)
    return str(request.path), size_bytes


def install_folder(request: ImageRequest, complete_folder: Path, work_folder: Path) -> None:
    """Move the image to its destination in one step; a replaced folder is removed with `part`."""
    check_destination(request)  # minutes have passed since the first check
    with signals.uninterrupted():
        if request.path.exists():
            request.path.rename(work_folder / "before")
        complete_folder.rename(request.path)


def image_label(request: ImageRequest) -> str:
    """Return the JSON text that identifies the image and is stored in it."""
    made = {"suite": request.suite, "packages": request.packages, "made_unix_s": int(time.time())}
    return json.dumps({"format": "steelyard-image", "version": 1, **made}) + "\n"


def debootstrap(request: ImageRequest, work_folder: Path, target: Path, report: Say) -> None:
    """Run mmdebstrap and forward its progress. Raises MissingError with its or apt's errors."""
    complaints: list[str] = []
    with subprocess.Popen(
        command(request, target), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        env={**os.environ, "TMPDIR": str(work_folder), "LC_ALL": "C"},
    ) as child:  # fmt: skip
        try:
            assert child.stderr is not None
            for text in child.stderr:
                mark, _, message = text.strip().partition(": ")
                if mark == "I" and message.startswith(STEPS):
                    report(message)
                elif mark == "E" or "No space left" in text:
                    complaints.append(text.strip().removeprefix("E: "))
        except BaseException:
            child.send_signal(signal.SIGKILL)  # ends all its processes as well
            raise
    if child.returncode != 0:
        raise MissingError(format_failure(request, complaints, target))


def command(request: ImageRequest, target: Path) -> list[str]:
    """Return the command for root, or for a user who is root in a namespace; it ends with this
    process."""
    argv = [] if os.geteuid() == 0 else [*AS_ROOT_OF_ONES_OWN]
    argv += ["setpriv", "--pdeathsig", "KILL", *OWN_PROCESSES, "mmdebstrap", "--mode=root"]
    argv += [
        "--variant=minbase",
        f"--include={','.join(request.packages)}",
        request.suite,
        str(target),
    ]
    return [*argv, request.mirror] if request.mirror else argv


def format_failure(request: ImageRequest, complaints: list[str], target: Path) -> str:
    """Return text that says what failed and what to do."""
    own = [text for text in complaints if not re.search("failed( to run)?$", text)]
    text = "; ".join([*dict.fromkeys(own or complaints)][:MOST_SAID])
    text = text or "mmdebstrap ended without a word"
    if "No space left" in text or "enough free space" in text:
        todo = f"make room on the file system of {target.parent.parent}, about 1 GiB"
        todo += ", or set TMPDIR to another" if request.kind in ENGINES else ""
    elif "Unable to locate package" in text or "no installation candidate" in text:
        todo = f"expected packages of Debian {request.suite}, as apt-cache search lists them"
    else:
        todo = "a mirror that answers is needed, and one that has the suite (--mirror, --suite)"
    return f"no image was made for {request.launcher}: {text}: {todo}"


def remove_folder(path: str) -> None:
    """Remove a tree, including files of a user namespace's other owners; mounts in it are not
    touched."""
    argv = [] if os.geteuid() == 0 else [*AS_ROOT_OF_ONES_OWN]
    with signals.uninterrupted():
        programs.run_quietly([*argv, "rm", "-rf", "--one-file-system", "--", path], LONGEST_S)


def disk_usage(root: Path) -> int:
    """Return the bytes on disk of everything below a folder."""
    return sum(
        (Path(folder) / name).lstat().st_blocks * 512
        for folder, folders, files in os.walk(root)
        for name in (*folders, *files)
    )
