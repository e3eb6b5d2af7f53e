"""Identity of the broker: cluster id and node id, stored in the data directory."""

from __future__ import annotations

import base64
import logging
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from sharecore.errors import ConfigError
from sharecore.storage import Catalog
from sharecore.storage.bucket import BucketPlace, prepare
from sharecore.storage.identity import (
    FILE_NAME,
    IDENTITY,
    DamagedIdentity,
    Identity,
    decode_identity,
    encode_identity,
    is_current,
    judge,
    look_up,
    read_identity,
    write_identity,
)

if TYPE_CHECKING:
    from sharecore._core import Standby

logger = logging.getLogger("sharecore.broker")

_NUMBER = re.compile(r"[+-]?\d+")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def as_node_id(text: str) -> int | None:
    """Return a node id as Java parses it: `+1`, `01` and `١` are 1, too.

    Returns:
        None if the text is not a 32-bit number.
    """
    # Java inspects digits by surrogate halves, which are not digits
    if not _NUMBER.fullmatch(text) or max(text) > "\uffff":
        return None
    try:
        number = int(text)
    except ValueError:  # too many digits for `int`
        return None
    return number if _INT_MIN <= number <= _INT_MAX else None


def identify(data_dir: Path, node_id: int) -> Identity:
    """Read the identity of the data directory, or store this broker's in an unused one.

    A lost or damaged file is restored from the store: clients that know the cluster id must not meet another
    one.

    Raises:
        ConfigError: it belongs to another or an unknown node. Nothing was changed.
        OSError: it cannot be read or written.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    try:
        found = read_identity(data_dir)
    except DamagedIdentity:
        found = None
    if found is None:
        found = _without_file(data_dir) or Identity(_new_cluster_id(), node_id)
    if found.node_id != node_id:
        raise ConfigError(f"node.id={node_id}: {data_dir} belongs to another node; allowed: {found.node_id}")
    if not is_current(data_dir, found):
        write_identity(data_dir, found)
    return found


def _without_file(data_dir: Path) -> Identity | None:
    """Return the identity in the store if the file is lost; None for an unused directory."""
    repeated = look_up(data_dir)
    trouble = judge(data_dir, repeated)
    if trouble is not None:
        if repeated.identity is None:
            raise ConfigError(f"{data_dir / FILE_NAME}: {trouble}")
        logger.warning("%s: %s: %s", data_dir / FILE_NAME, trouble, repeated.identity)
    return repeated.identity


def _new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def identify_home(
    data_dir: Path,
    node_id: int,
    bucket: BucketPlace,
    *,
    is_tried: bool = False,
    standby: Standby | None = None,
) -> Identity:
    """Bring a data directory in line with its home in a bucket; return who that makes this broker.

    The cluster is the bucket's, and the node the one that is configured: another one may serve the home next.

    Args:
        is_tried: the bucket is known to be one that can be relied on.
        standby: what it has read of the journal is not read again.

    Raises:
        ConfigError: the bucket cannot be reached with these settings, or nothing says whose the directory is.
        OSError: the bucket cannot be relied on, or is another cluster's. Nothing was changed.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    try:
        own = read_identity(data_dir)
    except DamagedIdentity:
        own = None
    proposed = _new_cluster_id()
    prepared = prepare(bucket, data_dir, own, proposed, is_tried=is_tried, standby=standby)
    if own is None:
        own = _without_file(data_dir) if prepared.cluster_id is None else None
    cluster_id = prepared.cluster_id or (proposed if own is None else own.cluster_id)
    if prepared.how == "bucket":
        logger.info("%s holds what %s had, %.1f MB of it read", data_dir, bucket.url, prepared.bytes / 1e6)
    found = Identity(cluster_id, node_id)
    if not is_current(data_dir, found):
        write_identity(data_dir, found)
    return found


async def repeat(data_dir: Path, identity: Identity, catalog: Catalog, *, of_cluster: bool) -> None:
    """Have the store repeat who the data directory belongs to.

    Args:
        of_cluster: only the cluster has to be the same: the data may have been another node's.

    Raises:
        ConfigError: the store has another identity.
        KafkaError: it cannot be written.
    """
    kept = decode_identity(catalog.get(IDENTITY))
    if kept is None:
        await catalog.put(IDENTITY, encode_identity(identity))
    elif kept.cluster_id != identity.cluster_id or (kept != identity and not of_cluster):
        raise ConfigError(
            f"{data_dir / FILE_NAME}: the file says {identity}, and the store {kept}: one of them is another "
            "directory's. Restore the file that belongs here, or remove it: a start writes it anew"
        )
