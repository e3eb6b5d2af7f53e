"""Parts of a broker that are loaded only if its settings need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sharecore.errors import ConfigError, missing

if TYPE_CHECKING:
    from sharecore.broker.client_telemetry import ClientTelemetry
    from sharecore.broker.metrics.listener import BrokerMetrics
    from sharecore.broker.page import BrokerPage
    from sharecore.broker.requests.services import Services
    from sharecore.metrics.requests import OnFrame


@contextmanager
def _installed(setting: str) -> Iterator[None]:
    """Name the setting that needs a missing package, and its installation."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(f"{setting}: {missing(error)}") from None


def watched(broker: Services, dispatch: OnFrame) -> tuple[BrokerMetrics, OnFrame]:
    """Return a broker's metrics, and a dispatcher that counts requests.

    Raises:
        ConfigError: a package for metrics is not installed.
    """
    with _installed("sharecore.metrics.listener"):
        from sharecore.broker.metrics.listener import BrokerMetrics
        from sharecore.metrics.requests import RequestTimes
    requests = RequestTimes(dispatch)
    return BrokerMetrics(broker, requests), requests.on_frame


def telemetry() -> type[ClientTelemetry]:
    """Return the class that receives client metrics.

    Raises:
        ConfigError: a package for them is not installed.
    """
    with _installed("sharecore.telemetry.enable"):
        from sharecore.broker.client_telemetry import ClientTelemetry
    return ClientTelemetry


def page_of(broker: Services) -> BrokerPage:
    """Return the page of a broker.

    Raises:
        ConfigError: a package for it is not installed, or its keys are invalid.
    """
    with _installed("sharecore.page.listener"):
        from sharecore.broker.page import BrokerPage
    return BrokerPage(broker)
