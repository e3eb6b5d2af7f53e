"""Who this broker is: its cluster and node, written down in the data directory when it first starts."""

from __future__ import annotations

import base64
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from sharecore.config import parse_properties
from sharecore.errors import ConfigError

FILE_NAME = "meta.properties"
_NUMBER = re.compile(r"[+-]?\d+")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True)
class Identity:
    """What never changes for a data directory.

    Args:
        cluster_id: 22 characters, as Kafka makes them.
        node_id: number of the broker.
    """

    cluster_id: str
    node_id: int


def as_node_id(text: str) -> int | None:
    """The number of a broker that is named by a text, as Java reads it: `+1`, `01` and `١` are 1, too.

    Returns:
        None where the text is no number of 32 bits.
    """
    # Java looks at digits by halves of a surrogate pair, which are none
    if not _NUMBER.fullmatch(text) or max(text) > "\uffff":
        return None
    try:
        number = int(text)
    except ValueError:  # thousands of digits
        return None
    return number if _INT_MIN <= number <= _INT_MAX else None


def identify(data_dir: Path, node_id: int) -> Identity:
    """Reads who the data directory belongs to, or makes it this broker's.

    Raises:
        ConfigError: it belongs to another node, or its file is damaged.
        OSError: it cannot be read or written.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    path = data_dir / FILE_NAME
    if not path.exists():
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        _write_durably(path, f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n")
        return Identity(cluster_id, node_id)
    kept = parse_properties(path.read_text(encoding="utf-8"))
    kept_id = as_node_id(kept.get("node.id", ""))
    if not kept.get("cluster.id") or kept_id is None:
        raise ConfigError(f"{path}: damaged; allowed: lines for cluster.id and node.id")
    if kept_id != node_id:
        raise ConfigError(
            f"node.id={node_id}: {data_dir} belongs to another node; allowed: {kept['node.id']}"
        )
    return Identity(kept["cluster.id"], node_id)


def _write_durably(path: Path, text: str) -> None:
    scratch = path.with_suffix(".new")
    try:
        with scratch.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        # a write that finds no room does not say where
        scratch.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
    scratch.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
