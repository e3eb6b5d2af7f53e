"""The identity of a data directory: a file, with a copy in the store."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from sharecore._core import Store, crc32c

FILE_NAME = "meta.properties"
IDENTITY = b"identity"
"""The catalog key of the copy."""
_CHECKSUM = "checksum="
_INTERNAL_TOPICS = b"topic/__"
_SEGMENTS = ("*.journal", "*.compact", "*.checkpoint")


@dataclass(frozen=True, slots=True)
class Identity:
    """The permanent identity of a data directory.

    Args:
        cluster_id: 22 characters, in Kafka's format.
        node_id: ID of the broker.
    """

    cluster_id: str
    node_id: int

    def __str__(self) -> str:
        return f"node {self.node_id} of cluster {self.cluster_id}"


class DamagedIdentity(ValueError):
    """The identity file is damaged."""


def read_identity(directory: Path) -> Identity | None:
    """Return the identity in the file; None without a file.

    Raises:
        DamagedIdentity: the file is damaged. A file from the first builds has no checksum, and is damaged
            only if values are missing.
        OSError: it cannot be read.
    """
    try:
        content = (directory / FILE_NAME).read_bytes()
    except FileNotFoundError:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise DamagedIdentity("it is no text") from None
    lines, found, checksum = text.rpartition(_CHECKSUM)
    if found and checksum != _checksum(lines):
        raise DamagedIdentity("it does not match its checksum")
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] not in "#!")
    cluster_id, node_id = values.get("cluster.id", "").strip(), values.get("node.id", "").strip()
    if not cluster_id or not node_id.isascii() or not node_id.isdigit():
        raise DamagedIdentity("it should have lines for cluster.id and node.id")
    return Identity(cluster_id, int(node_id))


def write_identity(directory: Path, identity: Identity) -> None:
    """Write the file atomically.

    Raises:
        OSError: it cannot be written.
    """
    path = directory / FILE_NAME
    scratch = path.with_suffix(".new")
    try:
        with scratch.open("wb") as file:
            file.write(_content(identity))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        # an error for lack of space does not name the file
        scratch.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
    scratch.rename(path)
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def is_current(directory: Path, identity: Identity) -> bool:
    """Return whether the file is in the current format."""
    try:
        return (directory / FILE_NAME).read_bytes() == _content(identity)
    except FileNotFoundError:
        return False


def _content(identity: Identity) -> bytes:
    lines = f"version=1\ncluster.id={identity.cluster_id}\nnode.id={identity.node_id}\n"
    return f"{lines}{_CHECKSUM}{_checksum(lines)}".encode()


def _checksum(lines: str) -> str:
    return f"{crc32c(lines.encode()):08x}\n"


def encode_identity(identity: Identity) -> bytes:
    """Return the catalog entry with the copy of the identity."""
    return json.dumps(asdict(identity), sort_keys=True).encode()


def decode_identity(entry: bytes | None) -> Identity | None:
    """Decode the catalog entry; return None without one."""
    return None if entry is None else Identity(**json.loads(entry))


@dataclass(frozen=True, slots=True)
class Repeated:
    """The store's knowledge of its identity.

    Args:
        identity: the copy; None if a release without copies wrote it.
        is_used: whether a broker has ever served the directory.
    """

    identity: Identity | None
    is_used: bool


def repeated_by(entries: Iterable[tuple[bytes, bytes]]) -> Repeated:
    """Return the identity in catalog entries."""
    known = dict(entries)
    is_used = any(key.startswith(_INTERNAL_TOPICS) for key in known)
    return Repeated(decode_identity(known.get(IDENTITY)), is_used)


def look_up(directory: Path) -> Repeated:
    """Return the identity known to a directory's store, without changing it.

    Raises:
        OSError: the store cannot be read.
    """
    if not any(next(directory.glob(pattern), None) for pattern in _SEGMENTS):
        return Repeated(None, is_used=False)
    store = Store.look(directory)
    try:
        return repeated_by(store.entries(b""))
    finally:
        store.close()


def judge(directory: Path, repeated: Repeated) -> str | None:
    """Return the problem with a directory's identity file and how a start handles it; None if it is fine.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        found = read_identity(directory)
    except DamagedIdentity as error:
        return _without_file(f"the file is damaged: {error}", repeated)
    if found is None:
        return _without_file("the file is missing", repeated) if repeated.is_used else None
    kept = repeated.identity
    if kept is None or kept == found:
        return None
    return f"the file says {found}, and the store {kept}: one of them is another directory's"


def _without_file(what: str, repeated: Repeated) -> str:
    if repeated.identity is not None:
        return f"{what}; a start writes it anew, as the store repeats it"
    return (
        f"{what}, and the store does not repeat it: restore it from a backup, or write the lines version=1, "
        "cluster.id=... and node.id=... with the id that clients know"
    )
