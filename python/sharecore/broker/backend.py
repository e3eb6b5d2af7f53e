"""The backend of a broker: storage of records, state and settings, and partition leadership."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from sharecore._core import StoreEvents
from sharecore.broker.cluster import Cluster
from sharecore.broker.configs.topics import TopicConfigs
from sharecore.broker.coordinators.groups import Coordinators
from sharecore.broker.coordinators.share import ShareServices
from sharecore.broker.coordinators.state_logs import StateLogs
from sharecore.broker.served import Served
from sharecore.clock import Clock
from sharecore.config import BrokerConfig, Listener
from sharecore.protocol import ApiKey
from sharecore.storage import Catalog, Configs, DamagedBatch, Topics
from sharecore.storage.described import CacheUse
from sharecore.storage.identity import Identity

if TYPE_CHECKING:
    from sharecore.metrics.exposition import Exposition


class Host(Protocol):
    """The parts of a broker that its backend uses."""

    clock: Clock
    listeners: dict[str, Listener]
    config: BrokerConfig
    topic_configs: TopicConfigs
    groups: Coordinators
    share: ShareServices

    def send_clients_away(self) -> None:
        """Close the connections of all clients, and new ones, until `welcome_clients`."""

    def welcome_clients(self) -> None:
        """Serve new connections again."""


class Backend(StateLogs, Protocol):
    """Differences between a broker with a data directory and a tier node.

    Attributes:
        served: the APIs on offer; this and the following exist once the backend is open.
        feature_limits: upper limits on feature levels.
        identity: cluster id and node id.
        catalog: small durable values.
        configs: dynamic configurations.
        topics: the topics visible to clients.
        cluster: leaders and coordinators.
        commits: of the store whose writes requests may commit in their own turn; None without one.
        has_successor: after `drain`, whether one other broker leads everything once the storage is closed.
    """

    served: Mapping[ApiKey, Served]
    feature_limits: Mapping[str, int]
    identity: Identity
    catalog: Catalog
    configs: Configs
    topics: Topics
    cluster: Cluster
    has_successor: bool
    commits: StoreEvents | None

    async def open(self, broker: Host) -> None:
        """Open the storage; raise ConfigError, OSError or KafkaError on failure."""

    async def join(self, broker: Host) -> None:
        """Determine leadership once the services exist, before clients are admitted."""

    async def begin(self, broker: Host) -> None:
        """Start leading and maintenance, as clients are admitted now."""

    async def drain(self) -> None:
        """Hand over leadership before the broker stops; requests are still answered."""

    def end(self) -> None:
        """Stop maintenance."""

    async def settle(self) -> None:
        """Wait for pending writes."""

    async def close(self) -> None:
        """Close the storage."""

    async def succeeded(self) -> None:
        """Wait shortly until the successor, if there is one, leads."""

    def trouble(self) -> str:
        """Return why nothing can be served now, and the remedy; empty if the open backend is healthy."""

    def standby(self) -> str:
        """Return who leads if this broker stands by; empty if it serves."""

    def describe(self) -> str:
        """Return a human-readable description of the storage."""

    def copy_trouble(self) -> str:
        """Return the problem of the copy in a bucket; empty without a problem or a bucket."""

    def cache_use(self) -> CacheUse | None:
        """Return how a home uses its local disk; None without a bound."""

    def damage(self) -> Sequence[DamagedBatch]:
        """Return the known damaged record batches."""

    async def report(self, sheet: Exposition) -> None:
        """Add the backend's metrics."""
