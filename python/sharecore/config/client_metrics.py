"""A subscription to metrics of clients (KIP-714): which metrics, how often, of which clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sharecore._core import Expression
from sharecore.config.keys import ConfigKey, Kind, changed, keys_of, setting
from sharecore.errors import ErrorCode, KafkaError

INTERVAL_MS_DEFAULT = 300_000
PATTERN_BYTES_MAX = 1 << 18
"""About how much memory the pattern of an attribute may take."""
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What is known of a client, and a subscription may look at."""


@dataclass(frozen=True, kw_only=True)
class ClientMetricsConfig:
    """The settings of a resource of type CLIENT_METRICS."""

    interval_ms: int = setting(Kind.INT, INTERVAL_MS_DEFAULT, "Time between two pushes of a client.")
    match: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        f"Clients that are asked, as name=expression with any of {', '.join(ATTRIBUTES)}; all have to match.",
    )
    metrics: tuple[str, ...] = setting(
        Kind.LIST, (), "Beginnings of the names of metrics that are asked for; * asks for every one."
    )

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> ClientMetricsConfig:
        """Read settings; raise ConfigError for a value that is not of its key's type."""
        keys = client_metrics_keys()
        return changed(cls(), {keys[name][0]: keys[name][1].parse(text) for name, text in settings.items()})

    def patterns(self) -> dict[str, str]:
        """Expressions by the attribute that the whole of which they have to match.

        Raises:
            KafkaError: INVALID_CONFIG: one is invalid.
        """
        found = {}
        for pattern in self.match:
            # as Java splits: what is empty at the end does not count
            parts = [part.strip() for part in pattern.rstrip("=").split("=")]
            if len(parts) != 2 or parts[0] not in ATTRIBUTES:
                raise _illegal(pattern)
            name, expression = parts
            try:
                Expression(expression, PATTERN_BYTES_MAX)
            except ValueError:
                raise _illegal(pattern) from None
            found[name] = expression
        return found


@cache
def client_metrics_keys() -> dict[str, tuple[str, ConfigKey]]:
    """Every key: Kafka's name to the attribute of `ClientMetricsConfig` and the key."""
    return keys_of(ClientMetricsConfig)


def check_client_metrics(name: str, settings: Mapping[str, str]) -> None:
    """Raise KafkaError or ConfigError where settings of a subscription are not allowed, in Kafka's order."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in settings:
        if key not in client_metrics_keys():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
    for key, text in settings.items():
        if text.strip() and client_metrics_keys()[key][1].kind is Kind.LIST and not all(_parts(text)):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Configuration '{key}' values must not be empty.")
    config = ClientMetricsConfig.parse(settings)
    if not INTERVAL_MS_MIN <= config.interval_ms <= INTERVAL_MS_MAX:
        text = (
            f"Invalid value {config.interval_ms} for interval.ms, interval must be between "
            f"{INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)"
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    config.patterns()


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _illegal(pattern: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
