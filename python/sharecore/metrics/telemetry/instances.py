"""Subscriptions of clients, and acceptance of their requests (KIP-714)."""

from __future__ import annotations

import base64
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID, uuid4

from sharecore._core import Expression, crc32c
from sharecore.config.client_metrics import INTERVAL_MS_DEFAULT, PATTERN_BYTES_MAX, ClientMetricsConfig
from sharecore.errors import ErrorCode, KafkaError

COMPRESSIONS = (4, 3, 1, 2)
"""Accepted types, best first: zstd, lz4, gzip, snappy."""
ALL = "*"
_COMPRESSION_MAX = 4
_RESERVED = (None, UUID(int=0), UUID(int=1))
_KEPT_MS = 60_000
_KEPT_INTERVALS = 3
_NEVER_MS = -1


def kept_ms(interval_ms: int) -> int:
    """Return how long a silent client is remembered."""
    return max(_KEPT_MS, _KEPT_INTERVALS * interval_ms)


class Client(NamedTuple):
    """Client attributes matched by subscriptions, named as in KIP-714."""

    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


class Asked(NamedTuple):
    """A client's subscription.

    Args:
        subscription_id: the id in its pushes; after a change the client must ask again.
        metrics: name prefixes.
    """

    instance_id: UUID
    subscription_id: int
    metrics: Sequence[str]
    interval_ms: int


class _Subscription(NamedTuple):
    config: ClientMetricsConfig
    patterns: Mapping[str, str]

    def wants(self, attributes: Mapping[str, str]) -> bool:
        return all(_matches(pattern, attributes[name]) for name, pattern in self.patterns.items())


@lru_cache(64)
def _compiled(pattern: str) -> Expression:
    return Expression(pattern, PATTERN_BYTES_MAX)


def _matches(pattern: str, value: str) -> bool:
    try:
        return bool(_compiled(pattern).matching([value]))
    except ValueError:  # computing it takes too long
        return False


class _Instance:
    """A client and its last requests."""

    __slots__ = (
        "asked",
        "asked_ms",
        "client",
        "connection",
        "ended",
        "error",
        "pushed_ms",
        "seen_ms",
        "version",
    )

    def __init__(self, client: Client, connection: Hashable, asked: Asked, version: int) -> None:
        self.client = client
        self.connection = connection
        self.asked = asked
        self.version = version
        self.asked_ms = self.pushed_ms = _NEVER_MS
        self.seen_ms = 0
        self.error = ErrorCode.NONE
        self.ended = False

    def may_ask(self, now_ms: int) -> bool:
        """Return whether it may ask: the interval has passed, or its subscription has changed."""
        due = self._passed(max(self.asked_ms, self.pushed_ms), now_ms)
        if due:
            self.asked_ms = now_ms
        return due or self.error in (
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )

    def may_push(self, now_ms: int) -> bool:
        """Return whether it may push: it has asked since its last push, or the interval has passed."""
        due = self.asked_ms > self.pushed_ms or self._passed(self.pushed_ms, now_ms)
        if due:
            self.pushed_ms = now_ms
        return due

    def _passed(self, since_ms: int, now_ms: int) -> bool:
        return since_ms == _NEVER_MS or now_ms - since_ms >= self.asked.interval_ms

    @property
    def until_ms(self) -> int:
        """Time at which it is forgotten, unless it sends a request."""
        return self.seen_ms + kept_ms(self.asked.interval_ms)


class Instances:
    """Clients by instance id.

    Args:
        now_ms: the clock.
        instances_max: maximum number of clients; the longest silent one is evicted.
    """

    def __init__(self, now_ms: Callable[[], int], instances_max: int) -> None:
        self._now_ms = now_ms
        self._max = instances_max
        self._subscriptions: dict[str, _Subscription] = {}
        self._version = 0
        self._instances: OrderedDict[UUID, _Instance] = OrderedDict()
        self._of_connection: dict[Hashable, set[UUID]] = {}
        self.errors: Counter[ErrorCode] = Counter()
        """Results of pushes."""

    def __len__(self) -> int:
        return len(self._instances)

    def subscribe(self, name: str, config: ClientMetricsConfig | None) -> None:
        """Set a subscription, or delete it with None; matching clients must ask again."""
        self._version += 1
        if config is None:
            self._subscriptions.pop(name, None)
        else:
            self._subscriptions[name] = _Subscription(config, config.patterns())

    def ask(self, instance_id: UUID | None, client: Client, connection: Hashable) -> Asked:
        """Return a client's subscription; a client without an id gets one.

        Args:
            connection: forgotten with `disconnected`.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED: it asks too soon.
        """
        if not instance_id:
            instance_id = self._new_id()
        instance = self._instance(instance_id, client, connection)
        if not instance.may_ask(self._now_ms()):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.error = ErrorCode.NONE
        return instance.asked

    def push(
        self,
        instance_id: UUID | None,
        client: Client,
        connection: Hashable,
        *,
        subscription_id: int,
        compression: int,
        terminating: bool,
        receive: Callable[[Asked], None],
        too_large: bool,
    ) -> None:
        """Accept or refuse a push.

        Args:
            receive: receives the pushed data; raises ValueError if it is invalid.
            too_large: whether it exceeds the size limit.

        Raises:
            KafkaError: the push is refused.
        """
        if instance_id in _RESERVED:
            self.errors[ErrorCode.INVALID_REQUEST] += 1
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        assert instance_id is not None
        instance = self._instance(instance_id, client, connection)
        instance.error = self._refusal(instance, subscription_id, compression, terminating, too_large)
        instance.ended = terminating
        if not instance.error:
            try:
                receive(instance.asked)
            except ValueError:
                instance.error = ErrorCode.INVALID_RECORD
        self.errors[instance.error] += 1
        if instance.error:
            raise KafkaError(instance.error)

    def disconnected(self, connection: Hashable) -> None:
        """Forget the clients of a connection."""
        for instance_id in self._of_connection.pop(connection, ()):
            self._instances.pop(instance_id, None)

    def forget_silent(self) -> None:
        """Forget clients that were silent for too long."""
        now_ms = self._now_ms()
        for instance_id in [each for each, known in self._instances.items() if known.until_ms <= now_ms]:
            self._forget(instance_id)

    def _refusal(
        self, instance: _Instance, subscription_id: int, compression: int, terminating: bool, too_large: bool
    ) -> ErrorCode:
        if instance.ended:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(self._now_ms()) and not terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if subscription_id != instance.asked.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if not 0 <= compression <= _COMPRESSION_MAX:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.TELEMETRY_TOO_LARGE if too_large else ErrorCode.NONE

    def _new_id(self) -> UUID:
        while True:
            chosen = uuid4()
            if chosen not in self._instances:
                return chosen

    def _instance(self, instance_id: UUID, client: Client, connection: Hashable) -> _Instance:
        now_ms = self._now_ms()
        instance = self._instances.get(instance_id)
        if instance is not None and instance.until_ms <= now_ms:
            self._forget(instance_id)
            instance = None
        if instance is None:
            instance = self._add(instance_id, client, connection)
        elif instance.version < self._version:
            # its subscription is outdated, and it may ask at once
            fresh = _Instance(
                instance.client, instance.connection, self._asked(instance_id, client), self._version
            )
            instance = self._instances[instance_id] = fresh
        instance.seen_ms = now_ms
        self._instances.move_to_end(instance_id)
        return instance

    def _add(self, instance_id: UUID, client: Client, connection: Hashable) -> _Instance:
        while len(self._instances) >= self._max:
            self._forget(next(iter(self._instances)))
        instance = _Instance(client, connection, self._asked(instance_id, client), self._version)
        self._instances[instance_id] = instance
        self._of_connection.setdefault(connection, set()).add(instance_id)
        return instance

    def _forget(self, instance_id: UUID) -> None:
        instance = self._instances.pop(instance_id)
        of_connection = self._of_connection.get(instance.connection)
        if of_connection is not None:
            of_connection.discard(instance_id)

    def _asked(self, instance_id: UUID, client: Client) -> Asked:
        attributes = {"client_instance_id": text_of(instance_id), **client._asdict()}
        interval_ms = INTERVAL_MS_DEFAULT
        metrics: set[str] = set()
        for each in self._subscriptions.values():
            if each.wants(attributes):
                interval_ms = min(interval_ms, each.config.interval_ms)
                metrics.update(each.config.metrics)
        names = [ALL] if ALL in metrics else sorted(metrics)
        return Asked(instance_id, _subscription_id(names, interval_ms, instance_id), names, interval_ms)


def text_of(instance_id: UUID) -> str:
    """Return an id in Kafka's text format."""
    return base64.urlsafe_b64encode(instance_id.bytes).decode().rstrip("=")


def _subscription_id(metrics: Sequence[str], interval_ms: int, instance_id: UUID) -> int:
    """Return Kafka's subscription id: a checksum of the subscription and the client's id."""
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    high, low = divmod(instance_id.int, 1 << 64)
    folded = high ^ low
    mixed = checksum ^ (folded >> 32) ^ (folded & 0xFFFFFFFF)
    return mixed - (1 << 32) if mixed >> 31 else mixed
