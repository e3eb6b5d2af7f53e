"""APIs on offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sharecore.protocol import ApiKey

Handler = Callable[[Any, Any], Any]
"""Maps a RequestContext and a request to a Result; see `broker.handlers`."""


@dataclass(frozen=True, slots=True)
class Served:
    """An API on offer: its versions, and its handler module in `broker.handlers`.

    Args:
        min_version: lowest version served.
        max_version: highest version served.
        module: name of the module under `sharecore.broker.handlers`, imported when a client first needs it.
        offered_min_version: lowest version in ApiVersions, if different.
        handler: replaces the module.
    """

    min_version: int
    max_version: int
    module: str
    offered_min_version: int | None = None
    handler: Handler | None = None


PIPELINED = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_COMMIT,
        ApiKey.FIND_COORDINATOR,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.API_VERSIONS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
"""APIs whose answers are short and quick.

Several of their requests may be pending per connection. Of other APIs, whose answers may be large or late,
one is pending at a time, as for every request in Apache Kafka.
"""


def as_bits(apis: Iterable[int]) -> int:
    """Return a number with the bit of each API set."""
    return sum(1 << api for api in set(apis))
