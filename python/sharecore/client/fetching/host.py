"""The consumer as seen by a leader's link, and the data exchanged between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sharecore.client.fetching.acknowledgements import Results
from sharecore.client.fetching.buffer import Fetched
from sharecore.client.fetching.lease import Lease, Owner
from sharecore.client.fetching.outbox import PendingAcks
from sharecore.client.fetching.refusals import Refusals
from sharecore.client.metrics import Metrics
from sharecore.client.settings import Settings
from sharecore.client.wire.cluster import Cluster, TopicIdPartition

if TYPE_CHECKING:
    from sharecore.protocol.received import ShareFetchPartitionData

    TakeIn = Callable[[TopicIdPartition, ShareFetchPartitionData, "Source", "Host"], int]


class Demand(NamedTuple):
    """The parameters of a fetch: maximum wait and number of records."""

    wait_ms: int
    records: int


class Source(Owner, Protocol):
    """The link whose broker sent a response."""

    leases: set[Lease]
    fetch_began_ms: int


class Host(Protocol):
    """The consumer, as a link sees it."""

    take_in: TakeIn
    """Processes a share partition's response; arguments and result as `intake.take_in`."""

    cluster: Cluster[Settings]
    metrics: Metrics
    results: Results
    refusals: Refusals
    lock_ms: int

    @property
    def member_id(self) -> str: ...
    def now_ms(self) -> int: ...
    def demand(self, *, requested: int, drained: bool) -> Demand | None: ...
    def deliver(self, fetched: Fetched) -> None: ...
    def lose(self, lease: Lease) -> None: ...
    def fail(self, error: Exception, final: bool) -> None: ...
    def refresh(self) -> None: ...
    def spawn(self, work: Coroutine[object, None, None], name: str) -> object: ...


@dataclass(slots=True)
class Request:
    """A request in flight; `flushes` wait until everything up to it is answered."""

    acks: PendingAcks
    began: float
    opens: bool = False
    """Whether it opens the share session."""
    final: bool = False
    """Whether it closes the share session."""
    records: int = 0
    """How many records it requested."""
    flushes: list[asyncio.Future[None]] = field(default_factory=list)
