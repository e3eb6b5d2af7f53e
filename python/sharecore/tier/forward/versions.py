"""The versions of forwarded APIs that a node offers: common to it and all brokers of the cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from sharecore.broker.served import Served
from sharecore.errors import KafkaError
from sharecore.protocol import ApiKey, calls
from sharecore.upstream import Upstream

logger = logging.getLogger(__name__)

_SOFTWARE = {"client_software_name": "sharecore", "client_software_version": "0.1"}
_WITH_FEATURES = 3


class Offer(NamedTuple):
    """The capabilities of a broker.

    Args:
        versions: lowest and highest, by API key.
        features: the finalized feature levels of its cluster.
    """

    versions: Mapping[int, tuple[int, int]]
    features: Mapping[str, int]


async def ask_offers(upstream: Upstream) -> list[Offer]:
    """Ask all brokers in the metadata; return the capabilities of those that respond.

    Raises:
        KafkaError: none of them responds.
    """
    nodes = list(upstream.metadata.nodes)
    found = await asyncio.gather(*(_ask(upstream, node) for node in nodes), return_exceptions=True)
    offers = [each for each in found if isinstance(each, Offer)]
    failed = [each for each in found if isinstance(each, BaseException)]
    for error in failed:
        if not isinstance(error, KafkaError):
            raise error
        logger.warning("a broker of the cluster does not report its versions: %s", error)
    if not offers and failed:
        raise failed[0]
    return offers


async def _ask(upstream: Upstream, node: int) -> Offer:
    connection = await upstream.connect(node, "ask")
    answer = await connection.request(calls.API_VERSIONS, _SOFTWARE, newest=_WITH_FEATURES)
    return Offer(
        {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys},
        {each.name: each.max_version_level for each in getattr(answer, "finalized_features", ())},
    )


def in_common(known: Mapping[ApiKey, Served], offers: Iterable[Offer]) -> dict[ApiKey, Served]:
    """Return the APIs of both sides, with their common versions."""
    found = dict(known)
    for offer in offers:
        for api, served in list(found.items()):
            low, high = offer.versions.get(api, (0, -1))
            low, high = max(low, served.min_version), min(high, served.max_version)
            if low > high:
                del found[api]
            else:
                found[api] = replace(served, min_version=low, max_version=high)
    return found


def levels_in_common(names: Iterable[str], offers: Iterable[Offer]) -> dict[str, int]:
    """Return the lowest level of each feature; 0 if a broker lacks it."""
    offers = list(offers)
    return {name: min((offer.features.get(name, 0) for offer in offers), default=0) for name in names}
