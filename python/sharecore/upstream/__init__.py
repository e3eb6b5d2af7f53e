"""An existing Kafka cluster, as used by a tier node.

Fresh metadata, fetches of raw batches, partitions with one writer, and classic-group membership, on any Kafka
from 2.4. This package knows nothing of share groups.
"""

from __future__ import annotations

from sharecore.upstream.administration import EARLIEST, LATEST, Administration, ListedOffset
from sharecore.upstream.appender import Appender
from sharecore.upstream.cluster import Upstream
from sharecore.upstream.errors import NOT_ALLOWED, Fenced, NotWritten, Truncated, Unresolved
from sharecore.upstream.fetched import Fetched
from sharecore.upstream.fetcher import Fetcher
from sharecore.upstream.membership import GroupMember, Listener, Membership
from sharecore.upstream.metadata import Metadata, Node, Partition, Topic, TopicChange, made_id
from sharecore.upstream.outlet import Outlet
from sharecore.upstream.producer import Producer
from sharecore.upstream.subscription import Sink, Subscription
from sharecore.upstream.trouble import Trouble
from sharecore.upstream.writer import ExclusiveWriter

__all__ = [
    "EARLIEST",
    "LATEST",
    "NOT_ALLOWED",
    "Administration",
    "Appender",
    "ExclusiveWriter",
    "Fenced",
    "Fetched",
    "Fetcher",
    "GroupMember",
    "ListedOffset",
    "Listener",
    "Membership",
    "Metadata",
    "Node",
    "NotWritten",
    "Outlet",
    "Partition",
    "Producer",
    "Sink",
    "Subscription",
    "Topic",
    "TopicChange",
    "Trouble",
    "Truncated",
    "Unresolved",
    "Upstream",
    "made_id",
]
