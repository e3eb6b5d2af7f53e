"""What it means that an API is on offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sharecore.protocol import ApiKey

Handler = Callable[[Any, Any], Any]
"""As `broker.handlers` describes it: of a RequestContext and a request makes a Result."""


@dataclass(frozen=True, slots=True)
class Served:
    """An API that is offered: its versions, and the module of `broker.handlers` that handles it.

    Args:
        min_version: lowest version served.
        max_version: highest version served.
        module: name of the module under `sharecore.broker.handlers`, imported when a client first needs it.
        offered_min_version: lowest version that ApiVersions tells, where that is another.
        handler: handles it in the place of the module.
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
"""APIs whose answers are about as long as their requests, and come soon.

Requests of these are handled while others of the connection wait for their answers. Of all others, whose
answers may be large or late, one is under way at a time, as Apache Kafka has it for every request.
"""


def as_bits(apis: Iterable[int]) -> int:
    """Return a number in which the bit of each API is set."""
    return sum(1 << api for api in set(apis))
