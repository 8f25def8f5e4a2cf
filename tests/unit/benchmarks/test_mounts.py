"""Counters of NFS and Lustre: what is read from before and after a run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steelyard.jobscripts import mounts
from steelyard.jobscripts.errors import OutputError

DATA = Path(__file__).parents[2] / "data/mounts"


def counted(folder: Path, before: Path, after: Path) -> dict[str, float]:
    shutil.copyfile(before, folder / "mount.0.before")
    shutil.copyfile(after, folder / "mount.0.after")
    return {result.metric: result.value for result in mounts.results(folder, 0)}


def nfs(folder: Path) -> dict[str, float]:
    return counted(folder, DATA / "nfs4/direct.before", DATA / "nfs4/direct.after")


def test_a_copy_by_o_direct_on_nfs(tmp_path: Path) -> None:
    found = nfs(tmp_path)
    mib = 1 << 20
    # The copy and its source go by O_DIRECT; verifying reads 64 pieces of 4096 bytes.
    assert found["nfs_direct_written_bytes"] == 2 * mib
    assert found["nfs_written_bytes"] == 0
    assert found["nfs_read_bytes"] == 64 * 4096
    assert found["nfs_server_written_bytes"] == 2 * mib
    assert found["nfs_write_operations"] == 2 * mib / 131072
    assert found["nfs_retransmissions"] == 0
    assert found["nfs_write_rtt_s"] == pytest.approx(0.00125)


def test_nfs_3_counts_what_dd_wrote_and_read(tmp_path: Path) -> None:
    """16 writes of 64 KiB, fsync, the same read by O_DIRECT, then 5 files of 2 bytes."""
    found = counted(tmp_path, DATA / "nfs3/before", DATA / "nfs3/after")
    mib = 1 << 20
    assert found["nfs_written_bytes"] == found["nfs_server_written_bytes"] == mib + 5 * 2
    assert found["nfs_server_read_bytes"] == mib
    assert found["nfs_direct_read_bytes"] == mib + (64 << 10), "dd's last read got nothing"
    assert mib < found["nfs_sent_bytes"] < 1.01 * mib
    assert mib < found["nfs_received_bytes"] < 1.01 * mib
    assert (found["nfs_read_operations"], found["nfs_write_operations"]) == (17, 13)
    # LOOKUP and CREATE of six files, 2 ACCESS, 1 GETATTR, 1 COMMIT.
    assert found["nfs_requests"] == 17 + 13 + 6 + 6 + 2 + 1 + 1


def test_glusterfs_sends_what_the_bricks_say_was_written(tmp_path: Path) -> None:
    """`gluster volume profile` there: 1048584 bytes written on one brick, 2 on the other."""
    found = counted(tmp_path, DATA / "glusterfs/before", DATA / "glusterfs/after")
    assert set(found) == {"glusterfs_sent_bytes", "glusterfs_received_bytes", "glusterfs_requests"}
    assert found["glusterfs_requests"] == 46 - 13 + 93 - 12
    # A message's head has some hundred bytes.
    heads = found["glusterfs_sent_bytes"] - (1048584 + 2)
    assert 100 < heads / found["glusterfs_requests"] < 1000


def test_where_nothing_is_counted_there_are_no_figures(tmp_path: Path) -> None:
    assert mounts.results(tmp_path, 0) == []


def test_without_requests_there_is_no_mean_time_of_one(tmp_path: Path) -> None:
    found = counted(tmp_path, DATA / "nfs4/direct.before", DATA / "nfs4/direct.before")
    assert found["nfs_read_operations"] == 0
    assert "nfs_read_rtt_s" not in found


def test_lustre_in_both_of_its_forms(tmp_path: Path) -> None:
    assert counted(tmp_path, DATA / "lustre/before", DATA / "lustre/after") == {
        "lustre_read_bytes": 3 << 20,
        "lustre_written_bytes": 2 << 20,
        "lustre_read_calls": 3,
        "lustre_write_calls": 2,
    }


def test_a_file_system_mounted_anew_or_another_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="has shrunk: the file system was mounted anew"):
        counted(tmp_path, DATA / "nfs4/direct.after", DATA / "nfs4/direct.before")
    with pytest.raises(OutputError, match="the mount was another one before the run"):
        counted(tmp_path, DATA / "lustre/before", DATA / "nfs4/direct.after")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bytes:", "octets:", "no 'bytes:' line"),
        ("       WRITE:", "      WRITES:", "no READ and WRITE"),
        ("statvers=1.1", "statvers=2.0", "neither an NFS mount of mountstats nor what"),
    ],
)
def test_a_form_that_is_not_known(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = (DATA / "nfs4/direct.after").read_text(encoding="utf-8")
    assert old in text
    changed = tmp_path / "changed"
    changed.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(OutputError, match=words):
        counted(tmp_path, DATA / "nfs4/direct.before", changed)


def test_a_brick_that_came_anew_does_not_hide_in_the_sum(tmp_path: Path) -> None:
    text = (DATA / "glusterfs/after").read_text(encoding="utf-8")
    for old, new, words in (
        ("total_bytes_read = ", "total_bytes_read = -", "has shrunk"),
        ("gv0-client-1", "gv0-client-2", "other operations or bricks than before the run"),
        ("\nmsgs_sent", "\nmessages", "gv0-client-0: expected a number of 'msgs_sent'"),
    ):
        assert old in text
        (tmp_path / "changed").write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(OutputError, match=words):
            counted(tmp_path, DATA / "glusterfs/before", tmp_path / "changed")
