"""Topics, their logs and dynamic configurations, durable in one directory.

Everything here belongs to one event loop's thread; the disk is written by a thread of the compiled store.
"""

from __future__ import annotations

from sharecore.storage.catalogue import Catalogue
from sharecore.storage.configs import Configs, ResourceType
from sharecore.storage.log import Appended, Log, ScannedBatch, Slice
from sharecore.storage.storage import Storage, StorageOptions
from sharecore.storage.ticket import Ticket
from sharecore.storage.topics import Topic, Topics

__all__ = [
    "Appended",
    "Catalogue",
    "Configs",
    "Log",
    "ResourceType",
    "ScannedBatch",
    "Slice",
    "Storage",
    "StorageOptions",
    "Ticket",
    "Topic",
    "Topics",
]
