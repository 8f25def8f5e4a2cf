"""Makes a CVMFS repository of a folder: files that any HTTP server can serve, for real clients.

python -m tests.system.cvmfs.repository NAME SOURCE TARGET [NESTED…]

SOURCE is the content. TARGET becomes what a server has at /cvmfs/NAME: `.cvmfspublished` (the
manifest), `.cvmfswhitelist`, and objects in `data/`. The keys are next to it in TARGET.keys;
clients need NAME.pub. A second call with the same TARGET publishes the next revision with the same
keys.

- An object is the zlib stream of a content, named by the SHA-1 of that stream and a letter: C
  catalog, H history, P chunk of a file, X certificate, none for a file.
- A catalog is an SQLite database of a tree of directories; each folder in NESTED has its own.
- The manifest is signed by the certificate, the whitelist by the master key. The whitelist lists
  the certificate's fingerprint and expires after 30 days.

The formats are those of CernVM-FS 2.12, cvmfs/{catalog_sql,history_sql,manifest,whitelist}.cc and
crypto/signature.cc. Not supported: hard links (each name has its own entry), extended attributes,
external files, devices, garbage collection.
"""

from __future__ import annotations

import datetime
import hashlib
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

CHUNK_BYTES = 8 << 20  # a larger file is divided into chunks, as cvmfs_server does around 8 MiB
VALID_DAYS = 30
TTL_S = 240  # how long a client uses the manifest
DIRECTORY, NESTED_MOUNT_POINT, FILE, LINK, NESTED_ROOT, CHUNKED = 1, 2, 4, 8, 32, 64
COUNTERS = (
    *("regular", "symlink", "special", "dir", "nested", "chunked", "chunks", "file_size"),
    *("chunked_size", "xattr", "external", "external_file_size"),
)
CATALOG_SCHEMA = """
CREATE TABLE catalog (md5path_1 INTEGER, md5path_2 INTEGER, parent_1 INTEGER, parent_2 INTEGER,
    hardlinks INTEGER, hash BLOB, size INTEGER, mode INTEGER, mtime INTEGER, mtimens INTEGER,
    flags INTEGER, name TEXT, symlink TEXT, uid INTEGER, gid INTEGER, xattr BLOB,
    CONSTRAINT pk_catalog PRIMARY KEY (md5path_1, md5path_2));
CREATE INDEX idx_catalog_parent ON catalog (parent_1, parent_2);
CREATE TABLE chunks (md5path_1 INTEGER, md5path_2 INTEGER, offset INTEGER, size INTEGER, hash BLOB,
    CONSTRAINT pk_chunks PRIMARY KEY (md5path_1, md5path_2, offset, size),
    FOREIGN KEY (md5path_1, md5path_2) REFERENCES catalog(md5path_1, md5path_2));
CREATE TABLE nested_catalogs (path TEXT, sha1 TEXT, size INTEGER,
    CONSTRAINT pk_nested_catalogs PRIMARY KEY (path));
CREATE TABLE bind_mountpoints (path TEXT, sha1 TEXT, size INTEGER,
    CONSTRAINT pk_bind_mountpoints PRIMARY KEY (path));
CREATE TABLE statistics (counter TEXT, value INTEGER,
    CONSTRAINT pk_statistics PRIMARY KEY (counter));
CREATE TABLE properties (key TEXT, value TEXT, CONSTRAINT pk_properties PRIMARY KEY (key));
"""
HISTORY_SCHEMA = """
CREATE TABLE branches (branch TEXT, parent TEXT, initial_revision INTEGER,
    CONSTRAINT pk_branch PRIMARY KEY (branch),
    FOREIGN KEY (parent) REFERENCES branches (branch),
    CHECK ((branch <> '') OR (parent IS NULL)), CHECK ((branch = '') OR (parent IS NOT NULL)));
INSERT INTO branches VALUES ('', NULL, 0);
CREATE TABLE tags (name TEXT, hash TEXT, revision INTEGER, timestamp INTEGER, channel INTEGER,
    description TEXT, size INTEGER, branch TEXT, CONSTRAINT pk_tags PRIMARY KEY (name),
    FOREIGN KEY (branch) REFERENCES branches (branch));
CREATE TABLE recycle_bin (hash TEXT, flags INTEGER, CONSTRAINT pk_hash PRIMARY KEY (hash));
CREATE TABLE properties (key TEXT, value TEXT, CONSTRAINT pk_properties PRIMARY KEY (key));
"""


@dataclass
class Repository:
    """A repository: a folder to serve, and its keys."""

    name: str
    target: Path
    revision: int = 1
    now_s: int = field(default_factory=lambda: int(time.time()))

    @property
    def keys(self) -> Path:
        """The folder of the master key, its public NAME.pub, and the certificate with its key."""
        return self.target.with_name(self.target.name + ".keys")

    @property
    def public_key(self) -> Path:
        """Return the key that verifies the whitelist."""
        return self.keys / f"{self.name}.pub"

    def store(self, content: bytes, suffix: str = "") -> str:
        """Write an object; return the SHA-1 of its zlib stream, in hexadecimal digits."""
        packed = zlib.compress(content)
        digest = hashlib.sha1(packed).hexdigest()
        path = self.target / "data" / digest[:2] / f"{digest[2:]}{suffix}"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(packed)
        return digest


@dataclass
class Catalog:
    """A catalog that is being filled; `root`: "" or /PATH of its directory in the repository."""

    repository: Repository
    root: str
    database: sqlite3.Connection = field(init=False)
    own: Counter[str] = field(default_factory=Counter)
    below: Counter[str] = field(default_factory=Counter)  # of nested catalogs

    def __post_init__(self) -> None:
        self.database = sqlite3.connect(":memory:")
        self.database.executescript(CATALOG_SCHEMA)

    def add(self, path: str, source: Path, flags: int = 0) -> None:
        """Add an entry. `path`: "" or /PATH; the caller passes flags of nested catalogs."""
        found = source.lstat()
        content, link, size = None, "", found.st_size  # clients expect a text
        if stat.S_ISDIR(found.st_mode):
            flags, size = flags | DIRECTORY, 4096
            self.own["dir"] += 1
        elif stat.S_ISLNK(found.st_mode):
            flags, link = flags | FILE | LINK, str(source.readlink())
            self.own["symlink"] += 1
        elif stat.S_ISREG(found.st_mode):
            flags, content = self.add_content(path, source, size)
        else:
            raise ValueError(f"{source}: expected a file, a directory or a symbolic link")
        name, parent = PurePosixPath(path).name, path.rpartition("/")[0]
        keys = (*path_key(path), *(path_key(parent) if path else (0, 0)))
        row: tuple[object, ...] = (
            *keys,
            1,
            content,
            size,
            found.st_mode,
            int(found.st_mtime),
            None,
        )
        row = (*row, flags, name, link, found.st_uid, found.st_gid, None)
        self.database.execute(f"INSERT INTO catalog VALUES ({','.join('?' * len(row))})", row)

    def add_content(self, path: str, source: Path, size: int) -> tuple[int, bytes | None]:
        """Store a file; return its flags and its hash, None if it has chunks."""
        self.own["regular"] += 1
        self.own["file_size"] += size
        if size <= CHUNK_BYTES:
            return FILE, bytes.fromhex(self.repository.store(source.read_bytes()))
        self.own["chunked"] += 1
        self.own["chunked_size"] += size
        for offset, piece in pieces(source):
            digest = bytes.fromhex(self.repository.store(piece, "P"))
            row = (*path_key(path), offset, len(piece), digest)
            self.database.execute("INSERT INTO chunks VALUES (?,?,?,?,?)", row)
            self.own["chunks"] += 1
        return FILE | CHUNKED, None

    def add_nested(self, path: str, nested: Catalog) -> None:
        """Add a complete catalog at its directory."""
        digest, size = nested.store()
        self.database.execute("INSERT INTO nested_catalogs VALUES (?,?,?)", (path, digest, size))
        self.own["nested"] += 1
        self.below += nested.own + nested.below

    def store(self) -> tuple[str, int]:
        """Write the catalog; return its hash, and its size in bytes before compression."""
        known = {"self": self.own, "subtree": self.below}
        rows = [(f"{kind}_{key}", found[key]) for kind, found in known.items() for key in COUNTERS]
        self.database.executemany("INSERT INTO statistics VALUES (?,?)", rows)
        repository = self.repository
        properties: dict[str, object] = {"schema": 2.5, "schema_revision": 7}
        properties |= {"revision": repository.revision, "last_modified": repository.now_s}
        properties |= {"root_prefix": self.root} if self.root else {}
        content = finished(self.database, properties)
        return repository.store(content, "C"), len(content)


def path_key(path: str) -> tuple[int, int]:
    """Return the MD5 of a path as two signed numbers of 64 bits, the form of catalogs."""
    digest = hashlib.md5(path.encode(), usedforsecurity=False).digest()
    first, second = digest[:8], digest[8:]
    return int.from_bytes(first, "little", signed=True), int.from_bytes(
        second, "little", signed=True
    )


def pieces(source: Path) -> Iterator[tuple[int, bytes]]:
    """Yield offset and content of each chunk of a file."""
    with source.open("rb") as file:
        offset = 0
        while piece := file.read(CHUNK_BYTES):
            yield offset, piece
            offset += len(piece)


def finished(database: sqlite3.Connection, properties: dict[str, object]) -> bytes:
    """Return the database file, with its properties."""
    rows = [(key, str(value)) for key, value in properties.items()]
    database.executemany("INSERT INTO properties VALUES (?,?)", rows)
    database.commit()
    content = database.serialize()
    database.close()
    return content


def fill(catalog: Catalog, top: Path, path: str, nested: frozenset[str]) -> None:
    """Add the content of a directory, in the order of names."""
    for source in sorted((top / path.lstrip("/")).iterdir()):
        inner = f"{path}/{source.name}"
        if inner in nested:
            catalog.add(inner, source, NESTED_MOUNT_POINT)
            child = Catalog(catalog.repository, inner)
            child.add(inner, source, NESTED_ROOT)
            fill(child, top, inner, nested)
            catalog.add_nested(inner, child)
            continue
        catalog.add(inner, source)
        if source.is_dir() and not source.is_symlink():
            fill(catalog, top, inner, nested)


# --- keys and signatures ---------------------------------------------------------------------


def openssl(*words: str | Path, data: bytes = b"") -> bytes:
    """Return the output of openssl."""
    return subprocess.run(["openssl", *words], input=data, capture_output=True, check=True).stdout


def make_keys(repository: Repository) -> None:
    """Make a master key for the whitelist, and a certificate for manifests, unless they exist."""
    keys = repository.keys
    if repository.public_key.exists():
        return
    keys.mkdir(mode=0o700, parents=True, exist_ok=True)
    master = keys / "master.key"
    openssl("genrsa", "-out", master, "2048")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={repository.name} lab",
            "-days", "3650", "-keyout", keys / "certificate.key", "-out", keys / "certificate.crt")  # fmt: skip
    openssl("rsa", "-in", master, "-pubout", "-out", repository.public_key)


def sealed(text: str) -> tuple[bytes, bytes]:
    """Return the text with its hash below two dashes, and the hash, which the key signs."""
    digest = hashlib.sha1(text.encode()).hexdigest().encode()
    return text.encode() + b"--\n" + digest + b"\n", digest


def write_manifest(repository: Repository, catalog: tuple[str, int], history: str) -> None:
    """Write `.cvmfspublished`, which names the root catalog. The key signs SHA-1 of the hash."""
    certificate = (repository.keys / "certificate.crt").read_bytes()
    fields: dict[str, object] = {
        "C": catalog[0],
        "B": catalog[1],
        "R": hashlib.md5(b"").hexdigest(),
        "D": TTL_S,
    }
    fields |= {"S": repository.revision, "G": "no", "A": "no", "N": repository.name}
    fields |= {"X": repository.store(certificate, "X"), "H": history, "T": repository.now_s}
    content, digest = sealed("".join(f"{key}{value}\n" for key, value in fields.items()))
    key = repository.keys / "certificate.key"
    put(repository, "published", content + openssl("dgst", "-sha1", "-sign", key, data=digest))


def write_whitelist(repository: Repository) -> None:
    """Write `.cvmfswhitelist`: the valid certificate. The hash itself is signed, not a digest."""
    certificate = repository.keys / "certificate.crt"
    words = openssl("x509", "-in", certificate, "-noout", "-fingerprint", "-sha1").decode()
    made = datetime.datetime.fromtimestamp(repository.now_s, datetime.UTC)
    ends = made + datetime.timedelta(days=VALID_DAYS)
    lines = [f"{made:%Y%m%d%H%M%S}", f"E{ends:%Y%m%d%H%M%S}", f"N{repository.name}"]
    lines.append(words.strip().partition("=")[2])
    content, digest = sealed("".join(f"{line}\n" for line in lines))
    key = repository.keys / "master.key"
    put(repository, "whitelist", content + openssl("pkeyutl", "-sign", "-inkey", key, data=digest))


def put(repository: Repository, name: str, content: bytes) -> None:
    """Replace a signed file atomically: a client may be reading it."""
    with tempfile.NamedTemporaryFile(dir=repository.target, delete=False) as file:
        file.write(content)
    Path(file.name).chmod(0o644)
    Path(file.name).rename(repository.target / f".cvmfs{name}")


def history_of(repository: Repository, catalog: tuple[str, int]) -> str:
    """Store the list of named revisions with the newest one; return its hash."""
    database = sqlite3.connect(":memory:")
    database.executescript(HISTORY_SCHEMA)
    row = ("trunk", catalog[0], repository.revision, repository.now_s, 0, "", catalog[1], "")
    database.execute("INSERT INTO tags VALUES (?,?,?,?,?,?,?,?)", row)
    properties: dict[str, object] = {"schema": "1.0", "schema_revision": 3}
    properties["fqrn"] = repository.name
    return repository.store(finished(database, properties), "H")


def published_revision(target: Path) -> int:
    """Return the revision of the folder's manifest; 0 without one."""
    path = target / ".cvmfspublished"
    if not path.exists():
        return 0
    lines = path.read_bytes().partition(b"--\n")[0].decode().splitlines()
    return next(int(line[1:]) for line in lines if line.startswith("S"))


def publish(name: str, source: Path, target: Path, nested: tuple[str, ...] = ()) -> Repository:
    """Make the repository, or its next revision. `nested`: /PATH of directories in `source`."""
    repository = Repository(name, target, published_revision(target) + 1)
    target.mkdir(parents=True, exist_ok=True)
    make_keys(repository)
    root = Catalog(repository, "")
    root.add("", source)
    fill(root, source, "", frozenset(nested))
    catalog = root.store()
    write_whitelist(repository)
    write_manifest(repository, catalog, history_of(repository, catalog))
    return repository


if __name__ == "__main__":
    made = publish(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), tuple(sys.argv[4:]))
    sys.stdout.write(f"{made.name}: revision {made.revision}; public key {made.public_key}\n")
