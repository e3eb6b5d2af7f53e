"""Topics, their logs and dynamic configurations, durable in one directory.

All objects belong to the thread of one event loop. A thread of the compiled store writes to the disk, and a
few threads perform reads that would block.
"""

from __future__ import annotations

from sharecore._core import Ticket
from sharecore.storage.catalog import PRODUCER_IDS, Catalog, Objects, Value
from sharecore.storage.configs import Configs, ResourceType
from sharecore.storage.log import (
    ActiveProducer,
    Appended,
    DamagedLog,
    FirstBatch,
    Found,
    Log,
    ScannedBatch,
    Slice,
)
from sharecore.storage.reader import Reader
from sharecore.storage.storage import DamagedBatch, Storage, StorageOptions
from sharecore.storage.store_log import StoreLog
from sharecore.storage.store_topics import store_logs
from sharecore.storage.topics import Topic, Topics

__all__ = [
    "PRODUCER_IDS",
    "ActiveProducer",
    "Appended",
    "Catalog",
    "Configs",
    "DamagedBatch",
    "DamagedLog",
    "FirstBatch",
    "Found",
    "Log",
    "Objects",
    "Reader",
    "ResourceType",
    "ScannedBatch",
    "Slice",
    "Storage",
    "StorageOptions",
    "StoreLog",
    "Ticket",
    "Topic",
    "Topics",
    "Value",
    "store_logs",
]
