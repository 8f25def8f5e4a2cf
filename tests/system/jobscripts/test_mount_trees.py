"""Recorded trees of nodes that have Lustre, OrangeFS or Ceph mounted, through the code of a job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.jobscripts import mounts

from .test_bench import program, tags

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

DATA = Path(__file__).parents[2] / "data/mounts"
# findmnt itself reads the recorded mountinfo; its --target wants the folder to be there.
FINDMNT = """
args=(); while (($# > 2)); do args+=("$1"); shift; done
exec /usr/bin/findmnt --tab-file "$SY_MOUNT_ROOT/proc/self/mountinfo" "${args[@]}" --types %s
"""
# lfs-getstripe(1): without -d it tells of the files in the folder.
LFS = """
case "$*" in
"getname -- "*) echo "%s $3" ;;
"getstripe -d -c -- "*) echo 4 ;;
"getstripe -d -S -- "*) echo 1048576 ;;
"getstripe "*) echo "/scratch/a 1"; echo "/scratch/b 8" ;;
*) exit 2 ;;
esac
"""
BODY = """
SY_MOUNT_ROOT={tree}/before; export SY_MOUNT_ROOT
sy_tag_mount "$SY_SCRATCH"; sy_save_mount_counters "$SY_SCRATCH" before
SY_MOUNT_ROOT={tree}/after
sy_save_mount_counters "$SY_SCRATCH" after
"""
UNREAD = "not known: those of a %s client are not read, and Linux charges the run with no bytes read there"
INSTANCE = {"lustre-2.10": "scratch-ffff8807ffab3000", "lustre-2.15": "scratch-ffff9f3a41d2a800"}


def run(
    study: Study, tmp_path: Path, tree: Path, kind: str, instance: str = ""
) -> dict[str, float]:
    """What a benchmark on that tree's file system has: its figures."""
    program(tmp_path / "bin", "findmnt", FINDMNT % kind)
    program(tmp_path / "bin", "lfs", LFS % instance)
    program(tmp_path / "bin", "lctl", "exit 2")
    study.body(BODY.format(tree=tree))
    done = study.run(PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    return {result.metric: result.value for result in mounts.results(study.attempt(), 0)}


@pytest.mark.parametrize("version", INSTANCE)
def test_lustre_counts_what_dd_wrote_and_read(study: Study, tmp_path: Path, version: str) -> None:
    """1 MiB written by one call and read twice by calls of 1 KiB: dd's own numbers."""
    found = run(study, tmp_path, DATA / version, "lustre", INSTANCE[version])
    assert found == {
        "lustre_written_bytes": 1 << 20,
        "lustre_write_calls": 1,
        "lustre_read_bytes": 2 << 20,
        "lustre_read_calls": 2048,
        "lustre_readahead_hits": 255,
        "lustre_readahead_misses": 1,
    }
    told = tags(study)
    assert told["mount.version"] == {"lustre-2.10": "2.10.8", "lustre-2.15": "2.15.4"}[version]
    assert (told["mount.stripe_count"], told["mount.stripe_size_bytes"]) == ("4", "1048576")
    place = {"lustre-2.10": "/proc/fs", "lustre-2.15": "/sys/kernel/debug"}[version]
    assert told["mount.counters"] == f"{place}/lustre/llite/{INSTANCE[version]}/stats"
    servers = {"lustre-2.10": "192.168.1.10@tcp:192.168.1.11@tcp", "lustre-2.15": "10.0.0.10@o2ib"}
    assert told["mount.server"] == servers[version]
    assert told["mount.options"].startswith("rw,nosuid,nodev,")


def test_counters_that_only_root_reads_are_not_known_and_no_zeros(
    study: Study, tmp_path: Path
) -> None:
    """A user's node: nothing below /sys/kernel/debug, which has mode 0700, and lctl fails."""
    for when in ("before", "after"):
        (tmp_path / when / "proc/self").mkdir(parents=True)
        text = (DATA / "lustre-2.15" / when / "proc/self/mountinfo").read_text(encoding="utf-8")
        (tmp_path / when / "proc/self/mountinfo").write_text(text, encoding="utf-8")
    assert run(study, tmp_path, tmp_path, "lustre", "scratch-ffff9f3a41d2a800") == {}
    why = "llite.scratch-ffff9f3a41d2a800.stats cannot be read (since Lustre 2.12 by root only)"
    assert tags(study)["mount.counters"] == f"not known: {why}"
    assert "mount.version" not in tags(study)


def test_orangefs_counts_calls_and_no_bytes(study: Study, tmp_path: Path) -> None:
    """16 writes and 16 reads of 64 KiB, a read that got nothing, five small files: a guest's."""
    program(tmp_path / "bin", "pvfs2-viewdist", "exit 255")
    found = run(study, tmp_path, DATA / "orangefs", "pvfs2")
    assert found == {"orangefs_read_calls": 16 + 1, "orangefs_write_calls": 16 + 5}
    told = tags(study)
    assert (told["mount.name"], told["mount.server"]) == ("orangefs", "localhost:3334")
    assert told["mount.counters"] == "/sys/fs/orangefs/stats"


def fuse(study: Study, tmp_path: Path, tree: str, kind: str) -> dict[str, str]:
    """The tags of a run on a recorded FUSE mount; it leaves no file in the folder, no counters."""
    program(tmp_path / "bin", "findmnt", FINDMNT % kind)
    study.body(
        'ls "$SY_SCRATCH" >before; sy_tag_mount "$SY_SCRATCH"; sy_save_mount_counters "$SY_SCRATCH" before;'
        'ls "$SY_SCRATCH" | cmp before'
    )
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = study.run(PATH=path, SY_MOUNT_ROOT=str(DATA / tree))
    assert done.returncode == 0, done.stderr
    assert not (study.attempt() / "mount.0.before").exists()
    return tags(study)


def test_orangefs_by_fuse_is_recognized_by_its_source(study: Study, tmp_path: Path) -> None:
    """Its client mounts as plain `fuse`; the stripes are those that pvfs2-viewdist printed."""
    program(tmp_path / "bin", "pvfs2-viewdist", f"cat {DATA}/orangefs-fuse/viewdist")
    found = fuse(study, tmp_path, "orangefs-fuse", "fuse")
    assert (found["mount.type"], found["mount.name"]) == ("fuse", "orangefs")
    assert found["mount.source"] == "pvfs2fuse#tcp://localhost:3334/orangefs"
    assert found["mount.server"] == "localhost:3334"
    assert (found["mount.stripe_count"], found["mount.stripe_size_bytes"]) == ("2", "65536")
    assert found["mount.counters"] == UNREAD % "fuse"


def test_stripes_of_orangefs_that_cannot_be_read_have_a_reason(
    study: Study, tmp_path: Path
) -> None:
    """Without /etc/pvfs2tab, as recorded of pvfs2-viewdist: exit code 255 and no text."""
    program(tmp_path / "bin", "pvfs2-viewdist", "exit 255")
    found = fuse(study, tmp_path, "orangefs-fuse", "fuse")
    # Nothing in it is of one run: a tag that changes is a change of the machine.
    why = "pvfs2-viewdist is missing, or finds no entry in /etc/pvfs2tab"
    assert found["mount.stripe_count"] == f"not known: {why}"
    assert "mount.stripe_size_bytes" not in found


@pytest.mark.parametrize("readable", [True, False])
def test_the_layout_of_ceph_is_in_its_own_words(
    study: Study, tmp_path: Path, readable: bool
) -> None:
    layout = DATA / "ceph-fuse/layout"
    program(tmp_path / "bin", "getfattr", f"cat {layout}" if readable else "exit 1")
    found = fuse(study, tmp_path, "ceph-fuse", "fuse.ceph-fuse")
    words = "stripe_unit=1048576 stripe_count=4 object_size=4194304 pool=data"
    missing = "not known: getfattr (Debian: attr) is missing, or reads no ceph.file.layout"
    assert found["mount.layout"] == (words if readable else missing)
    assert found["mount.name"] == "ceph"
    assert found["mount.counters"] == UNREAD % "fuse.ceph-fuse"


LAYOUTS = [
    ("orangefs-fuse", "fuse", "mount.stripe_count", "pvfs2-viewdist"),
    ("ceph-fuse", "fuse.ceph-fuse", "mount.layout", "getfattr"),
]


@pytest.mark.parametrize(("tree", "kind", "tag", "reader"), LAYOUTS)
@pytest.mark.parametrize("hangs", ["mktemp", "the reader", "rm"])
def test_a_layout_from_servers_that_do_not_answer_has_a_reason(
    study: Study, tmp_path: Path, tree: str, kind: str, tag: str, reader: str, hangs: str
) -> None:
    """The run waited for them up to its time limit."""
    bin_folder, name = tmp_path / "bin", hangs.replace("the reader", reader)
    program(bin_folder, reader, "exit 1")
    program(
        bin_folder, name, f'[[ $* != */layout-* ]] || exec sleep 600; exec /usr/bin/{name} "$@"'
    )
    # The limit of the program that hangs, brought forward; others have time on a busy machine.
    limit = f'[[ $4 == {name} ]] && echo "$3" >"$0.limit" && set -- "$1" "$2" 0.2 "${{@:4}}" || set -- "$1" "$2" 90 "${{@:4}}"'
    program(bin_folder, "timeout", f'{limit}\nexec /usr/bin/timeout "$@"')
    program(bin_folder, "findmnt", FINDMNT % kind)
    study.body('sy_tag_mount "$SY_SCRATCH"')
    path = f"{bin_folder}:{os.environ['PATH']}"
    done = study.run(PATH=path, SY_MOUNT_ROOT=str(DATA / tree))
    assert done.returncode == 0, done.stderr
    assert (bin_folder / "timeout.limit").read_text(encoding="utf-8") == "5\n"
    found = tags(study)[tag]
    if hangs == "rm":
        assert found.startswith(f"not known: {reader} ")
    else:
        assert found == "not known: the file system did not answer within 5 s"


@pytest.mark.parametrize(("tree", "kind", "tag", "reader"), LAYOUTS)
def test_a_layout_in_a_folder_without_files_of_ours_has_a_reason(
    study: Study, tmp_path: Path, tree: str, kind: str, tag: str, reader: str
) -> None:
    """As in a read-only mount: there was no tag, and the run printed nothing of it."""
    program(tmp_path / "bin", "findmnt", FINDMNT % kind)
    program(tmp_path / "bin", reader, "echo 4")
    study.body("sy_tag_mount /sys")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assert study.run(PATH=path, SY_MOUNT_ROOT=str(DATA / tree)).returncode == 0
    with pytest.raises(OSError) as refused:
        Path("/sys/layout-a").touch()
    assert tags(study)[tag] == f"not known: no file can be made there: {refused.value.strerror}"
