"""Client requests that the cluster answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Never

from sharecore.broker.features import GROUP, TRANSACTION
from sharecore.broker.handlers import SERVED
from sharecore.broker.requests.context import RequestContext, Result
from sharecore.broker.served import Handler
from sharecore.tier.forward.beside import Handle
from sharecore.tier.forward.forwarder import Own, RequestForwarder
from sharecore.tier.forward.routes import routes
from sharecore.tier.forward.versions import Offer, in_common, levels_in_common
from sharecore.upstream import Upstream


class Forwarding:
    """Forwards requests of a node's clients.

    Args:
        upstream: the cluster.
        own: what belongs to the tier there.
        offers: the versions of its brokers.

    Attributes:
        served: the forwarded APIs, in the versions common to both sides.
        feature_limits: the feature levels of the cluster.
    """

    def __init__(self, upstream: Upstream, own: Own, offers: list[Offer]) -> None:
        found = routes()
        known = {api: replace(SERVED[api], handler=self._handler(handle)) for api, handle in found.items()}
        self.served = in_common(known, offers)
        self.feature_limits: Mapping[str, int] = levels_in_common((GROUP, TRANSACTION), offers)
        spoken = {api: (each.min_version, each.max_version) for api, each in self.served.items()}
        self._forwarder = RequestForwarder(upstream, own, spoken)

    def _handler(self, handle: Handle[Never]) -> Handler:
        def forward(context: RequestContext, request: Never) -> Result[Mapping[str, object]]:
            return handle(self._forwarder, context, request)

        return forward

    def close(self) -> None:
        """Close the clients' connections."""
        self._forwarder.close()
