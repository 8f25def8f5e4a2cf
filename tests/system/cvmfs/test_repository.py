"""The forms of a repository that tests/system/cvmfs/repository.py made, by openssl, sha1sum and SQLite."""

from __future__ import annotations

import datetime
import hashlib
import sqlite3
import stat
import struct
import subprocess
import zlib
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.system.cvmfs.conftest import NAME, NESTED, Published

# cvmfs/catalog_sql.h: kFlag…
DIRECTORY, MOUNT_POINT, FILE, LINK, NESTED_ROOT, CHUNKED = 1, 2, 4, 8, 32, 64


def output_of(*argv: str | Path, data: bytes = b"") -> bytes:
    return subprocess.run(argv, input=data, capture_output=True, check=True).stdout


def letter(content: bytes) -> tuple[bytes, bytes, bytes]:
    """A signed file: its text, the hash of it that it states, and the signature of that hash."""
    text, _, rest = content.partition(b"--\n")
    digest, _, signature = rest.partition(b"\n")
    return text, digest, signature


def fields(text: bytes) -> dict[str, str]:
    return {line[0]: line[1:] for line in text.decode().splitlines()}


def object_path(repository: Path, digest: str, suffix: str) -> Path:
    return repository / "data" / digest[:2] / (digest[2:] + suffix)


def content_of(repository: Path, digest: str, suffix: str = "") -> bytes:
    return zlib.decompress(object_path(repository, digest, suffix).read_bytes())


@pytest.fixture
def manifest(published: Published) -> dict[str, str]:
    content = (published.repository.target / ".cvmfspublished").read_bytes()
    return fields(letter(content)[0])


def is_signed(content: bytes, certificate: bytes, folder: Path) -> bool:
    """Whether the certificate's key signed the hash, and the hash is the text's."""
    text, digest, signature = letter(content)
    key, signed = folder / "key.pem", folder / "signature"
    key.write_bytes(output_of("openssl", "x509", "-noout", "-pubkey", data=certificate))
    signed.write_bytes(signature)
    done = subprocess.run(
        ["openssl", "dgst", "-sha1", "-verify", key, "-signature", signed],
        input=digest, capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode == 0 and output_of("sha1sum", data=text).split()[0] == digest


def test_the_manifest_is_signed_by_its_certificate(
    published: Published, manifest: dict[str, str], tmp_path: Path
) -> None:
    target = published.repository.target
    content = (target / ".cvmfspublished").read_bytes()
    certificate = content_of(target, manifest["X"], "X")
    assert is_signed(content, certificate, tmp_path)
    changed = content.replace(b"\nS2\n", b"\nS3\n")
    assert changed != content and not is_signed(changed, certificate, tmp_path)
    assert (manifest["N"], manifest["S"], manifest["G"], manifest["A"]) == (NAME, "2", "no", "no")
    assert manifest["R"] == output_of("md5sum").split()[0].decode()  # the path of the root is empty
    assert int(manifest["B"]) == len(content_of(target, manifest["C"], "C"))


def test_the_whitelist_names_the_certificate_and_is_signed_by_the_master_key(
    published: Published, manifest: dict[str, str], tmp_path: Path
) -> None:
    target = published.repository.target
    text, digest, signature = letter((target / ".cvmfswhitelist").read_bytes())
    assert output_of("sha1sum", data=text).split()[0] == digest
    signed = tmp_path / "signature"
    signed.write_bytes(signature)
    # The client decrypts the hash itself: there is no ASN.1 around it (SignatureManager::VerifyRsa).
    key = published.repository.public_key
    words = ("openssl", "pkeyutl", "-verifyrecover", "-pubin", "-inkey", key, "-in", signed)
    assert output_of(*words) == digest
    made, ends, name, fingerprint = text.decode().splitlines()
    certificate = content_of(target, manifest["X"], "X")
    der = output_of("openssl", "x509", "-outform", "DER", data=certificate)
    assert fingerprint.replace(":", "").lower() == hashlib.sha1(der).hexdigest()
    assert (name, ends[0]) == (f"N{NAME}", "E")
    now = datetime.datetime.now(datetime.UTC)
    assert made <= f"{now:%Y%m%d%H%M%S}" < ends[1:]


def test_every_object_has_the_hash_in_its_name(published: Published) -> None:
    objects = [p for p in (published.repository.target / "data").rglob("*") if p.is_file()]
    suffixes = Counter(path.name[38:] for path in objects)
    # Of two revisions: 3 catalogs each; one file is in chunks, two have the same content.
    assert suffixes == {"": 4, "P": 3, "C": 6, "H": 2, "X": 1}
    for line in output_of("sha1sum", *objects).decode().splitlines():
        digest, _, name = line.partition("  ")
        assert Path(name).parent.name + Path(name).name[:38] == digest


def opened(folder: Path, content: bytes) -> sqlite3.Connection:
    path = folder / hashlib.sha1(content).hexdigest()
    path.write_bytes(content)
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return database


def test_the_history_names_the_root_catalog(
    published: Published, manifest: dict[str, str], tmp_path: Path
) -> None:
    content = content_of(published.repository.target, manifest["H"], "H")
    with closing(opened(tmp_path, content)) as database:
        tags = database.execute("SELECT name, hash, revision, size, branch FROM tags").fetchall()
        assert tags == [("trunk", manifest["C"], 2, int(manifest["B"]), "")]
        properties = dict(database.execute("SELECT * FROM properties"))
        assert (properties["schema"], properties["fqrn"]) == ("1.0", NAME)


class Reader:
    """Finds what the catalogs have of a path, as a client does: by the MD5 of the path."""

    def __init__(self, target: Path, folder: Path, root: str) -> None:
        self.target, self.folder = target, folder
        self.catalogs = {"": opened(folder, content_of(target, root, "C"))}

    def open_nested(self, path: str, parent: str) -> None:
        query = "SELECT sha1, size FROM nested_catalogs WHERE path = ?"
        digest, size = self.catalogs[parent].execute(query, (path,)).fetchone()
        content = content_of(self.target, digest, "C")
        assert len(content) == size
        self.catalogs[path] = opened(self.folder, content)

    def row(self, catalog: str, path: str) -> sqlite3.Row:
        database = self.catalogs[catalog]
        database.row_factory = sqlite3.Row
        key = struct.unpack("<qq", hashlib.md5(path.encode()).digest())
        query = "SELECT * FROM catalog WHERE md5path_1 = ? AND md5path_2 = ?"
        found: list[sqlite3.Row] = database.execute(query, key).fetchall()
        assert len(found) == 1, f"{path} in the catalog of {catalog or '/'}"
        parent = struct.unpack("<qq", hashlib.md5(path.rpartition("/")[0].encode()).digest())
        assert (found[0]["parent_1"], found[0]["parent_2"]) == (parent if path else (0, 0))
        return found[0]

    def content(self, catalog: str, row: sqlite3.Row) -> bytes:
        if not row["flags"] & CHUNKED:
            return content_of(self.target, row["hash"].hex())
        query = (
            "SELECT offset, size, hash FROM chunks WHERE md5path_1 = ? AND md5path_2 = ? ORDER BY 1"
        )
        whole = b""
        for chunk in self.catalogs[catalog].execute(query, (row["md5path_1"], row["md5path_2"])):
            piece = content_of(self.target, chunk["hash"].hex(), "P")
            assert (chunk["offset"], chunk["size"]) == (len(whole), len(piece))
            whole += piece
        assert row["hash"] is None
        return whole

    def close(self) -> None:
        for database in self.catalogs.values():
            database.close()


def catalog_of(path: str) -> str:
    """The innermost nested catalog that has what is below its directory."""
    return max((one for one in NESTED if path.startswith(f"{one}/")), key=len, default="")


def test_catalogs_have_every_file_of_the_source(
    published: Published, manifest: dict[str, str], tmp_path: Path
) -> None:
    source = published.source
    with closing(Reader(published.repository.target, tmp_path, manifest["C"])) as reader:
        reader.open_nested("/release", "")
        reader.open_nested("/release/v2/lib", "/release")
        assert reader.row("", "")["flags"] == DIRECTORY
        for file in sorted(source.rglob("*")):
            path = f"/{file.relative_to(source)}"
            row, found = reader.row(catalog_of(path), path), file.lstat()
            # cvmfs2 2.12 dies of a name or a link that is NULL.
            assert isinstance(row["symlink"], str)
            assert (row["name"], row["mode"], row["mtime"]) == (
                file.name, found.st_mode, int(found.st_mtime)
            )  # fmt: skip
            if path in NESTED:
                assert row["flags"] == DIRECTORY | MOUNT_POINT
                assert reader.row(path, path)["flags"] == DIRECTORY | NESTED_ROOT
            elif stat.S_ISDIR(found.st_mode):
                assert row["flags"] == DIRECTORY
            elif stat.S_ISLNK(found.st_mode):
                assert (row["flags"], row["symlink"]) == (FILE | LINK, str(file.readlink()))
            else:
                assert row["flags"] & ~CHUNKED == FILE
                assert reader.content(catalog_of(path), row) == file.read_bytes()
                assert row["size"] == found.st_size


def test_statistics_add_up(published: Published, manifest: dict[str, str], tmp_path: Path) -> None:
    """Of the root catalog itself, and of all that are nested in it."""
    with closing(Reader(published.repository.target, tmp_path, manifest["C"])) as reader:
        known = dict(reader.catalogs[""].execute("SELECT counter, value FROM statistics"))
    total = {
        key: known[f"self_{key}"] + known[f"subtree_{key}"]
        for key in ("regular", "symlink", "dir", "nested", "chunked", "chunks", "file_size")
    }
    files = [p for p in published.source.rglob("*") if p.is_file() and not p.is_symlink()]
    assert total["regular"] == len(files)
    assert total["file_size"] == sum(path.stat().st_size for path in files)
    # /, /release, v2, lib, deep; the two with nested catalogs are in both.
    assert (total["dir"], total["nested"], total["symlink"]) == (5 + 2, 2, 1)
    assert (total["chunked"], total["chunks"]) == (1, 3)
