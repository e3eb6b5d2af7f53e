"""Services shared by request handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sharecore._core import Checks
from sharecore.broker.backend import Backend
from sharecore.broker.cluster import Cluster
from sharecore.broker.configs.groups import GroupConfigs
from sharecore.broker.configs.topics import TopicConfigs
from sharecore.broker.connections.mechanisms import Mechanisms
from sharecore.broker.connections.transport import Transport
from sharecore.broker.coordinators.groups import Coordinators
from sharecore.broker.coordinators.producer_ids import ProducerIds
from sharecore.broker.coordinators.share import ShareServices
from sharecore.broker.features import Features
from sharecore.broker.requests.large import LargeRequests
from sharecore.broker.served import Served
from sharecore.clock import Clock
from sharecore.config import BrokerConfig, Listener
from sharecore.network import Server
from sharecore.protocol import ApiKey
from sharecore.quotas import ClientQuotas, Throttles
from sharecore.security.acls import Acls
from sharecore.security.authorizer import Authorizer
from sharecore.security.scram import Credentials
from sharecore.storage import Catalog, Configs, Topics
from sharecore.storage.identity import Identity
from sharecore.waiting import FairThread, HostAddresses, Turns

if TYPE_CHECKING:
    from sharecore.broker.client_telemetry import ClientTelemetry


class Services:
    """Services of one broker; those that need the data directory exist once it has started.

    Attributes:
        static_config: the initial configuration.
        config: the current configuration, which clients can alter.
        authorizer: the authorizer; None without authorization.
        checks: the checks that requests currently need.
        listeners: listeners by name, with their bound ports.
        backend: the data directory, or the cluster behind a tier node.
        cluster: leaders and coordinators.
        served: the APIs on offer.
        hosts: addresses of the hosts in connection limits.
        turns: runs the long work of handlers.
        large_requests: handles requests with many entries.
        long_work: runs work that cannot be split, such as a long regular expression.
        telemetry: client metrics; None if disabled.
    """

    static_config: BrokerConfig
    config: BrokerConfig
    clock: Clock
    authorizer: Authorizer | None
    checks: Checks
    listeners: dict[str, Listener]
    transport: Transport
    server: Server
    identity: Identity
    backend: Backend
    catalog: Catalog
    topics: Topics
    configs: Configs
    topic_configs: TopicConfigs
    group_configs: GroupConfigs
    credentials: Credentials
    mechanisms: Mechanisms
    acls: Acls
    quotas: ClientQuotas
    throttles: Throttles
    producer_ids: ProducerIds
    features: Features
    groups: Coordinators
    share: ShareServices
    cluster: Cluster
    hosts: HostAddresses
    turns: Turns
    long_work: FairThread
    large_requests: LargeRequests
    served: Mapping[ApiKey, Served]
    telemetry: ClientTelemetry | None
