"""APIs on offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Never

from sharecore.protocol import ApiKey

Handler = Callable[[Never, Never], object]
"""Maps a RequestContext and a request to a Result; see `broker.handlers`.

Each takes the type of its API's requests. Only the dispatch, which has read such a request, may call it.
"""


@dataclass(frozen=True, slots=True)
class Served:
    """An API on offer: its versions, and its handler in `broker.handlers`.

    Args:
        min_version: lowest version served.
        max_version: highest version served.
        module: name of the module under `sharecore.broker.handlers`, imported when a client first needs it.
        function: name of the handler in the module.
        offered_min_version: lowest version in ApiVersions, if different.
        is_factory: the function takes the broker's services and returns the handler, once per broker.
        handler: replaces the module and its function.
    """

    min_version: int
    max_version: int
    module: str
    function: str
    offered_min_version: int | None = None
    is_factory: bool = False
    handler: Handler | None = None

    def load(self) -> Callable[..., object]:
        """Return the function, whose module is imported at the first call."""
        function: Callable[..., object] = getattr(
            import_module(f"sharecore.broker.handlers.{self.module}"), self.function
        )
        return function


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
