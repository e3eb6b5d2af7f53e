"""The backend of a broker: where records, state and settings are stored, and who leads each partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from sharecore.broker.cluster import Cluster
from sharecore.broker.coordinators import Coordinators
from sharecore.broker.served import Served
from sharecore.broker.share import ShareServices
from sharecore.broker.state_logs import StateLogs
from sharecore.broker.topic_configs import TopicConfigs
from sharecore.clock import Clock
from sharecore.config import BrokerConfig, Listener
from sharecore.protocol import ApiKey
from sharecore.storage import Catalogue, Configs, DamagedBatch, Topics
from sharecore.storage.identity import Identity

if TYPE_CHECKING:
    from sharecore.metrics.exposition import Sheet


class Host(Protocol):
    """The parts of a broker that its backend uses."""

    clock: Clock
    listeners: dict[str, Listener]
    config: BrokerConfig
    topic_configs: TopicConfigs
    groups: Coordinators
    share: ShareServices


class Backend(StateLogs, Protocol):
    """Everything that differs between a broker with a data directory and a tier node.

    Attributes:
        served: the APIs on offer; this and what follows exist once it is open.
        feature_limits: the highest levels of features that it has, where those are below what is set.
        identity: cluster and node.
        catalogue: small durable facts.
        configs: dynamic configurations.
        topics: the topics that clients see.
        cluster: who leads and coordinates what.
    """

    served: Mapping[ApiKey, Served]
    feature_limits: Mapping[str, int]
    identity: Identity
    catalogue: Catalogue
    configs: Configs
    topics: Topics
    cluster: Cluster

    async def open(self, broker: Host) -> None:
        """Get at what is kept; raise ConfigError, OSError or KafkaError where that cannot be."""

    async def join(self, broker: Host) -> None:
        """The services are there: finds out who leads what, before clients are let in and ask for it."""

    async def begin(self, broker: Host) -> None:
        """Clients are let in: leads what is to be led, and looks after what is kept."""

    async def drain(self) -> None:
        """The broker is about to stop, and still answers: hands over what can be."""

    def end(self) -> None:
        """Stop looking after what is kept."""

    async def settle(self) -> None:
        """Wait for the writes under way."""

    async def close(self) -> None:
        """Lets go of what is kept."""

    def trouble(self) -> str:
        """Return why nothing can be served now, and what to do; empty where it can. For an open backend."""

    def describe(self) -> str:
        """Where everything is kept, for a person."""

    def copy_trouble(self) -> str:
        """Return what is wrong with the copy in a bucket; empty if nothing is, or without one."""

    def damage(self) -> Sequence[DamagedBatch]:
        """Return the damaged record batches that are known."""

    async def report(self, sheet: Sheet) -> None:
        """Put figures of its own among the metrics."""
