"""What a node in front of a cluster answers otherwise than Apache Kafka on purpose (docs/tier.md)."""

from __future__ import annotations

from collections.abc import Callable

from tests.differential.wire.compare import Difference
from tests.differential.wire.known import Exchange
from tests.differential.wire.masks import INTERNAL

_EPOCHS = (".leader_epoch", ".committed_leader_epoch")


def _epochs(exchange: Exchange, difference: Difference) -> bool:
    """A node has leader epochs of its own, and tells none of the cluster's."""
    return (
        exchange.ask.api in ("LIST_OFFSETS", "OFFSET_FETCH")
        and difference.path.endswith(_EPOCHS)
        and difference.ours == -1
    )


def _own_topics(exchange: Exchange, difference: Difference) -> bool:
    """The cluster makes the topics of its coordinators when they are needed first."""
    told = difference.apache if isinstance(difference.apache, dict) else {}
    return exchange.ask.api == "METADATA" and str(told.get("name", "")).startswith(INTERNAL)


KNOWN: dict[str, Callable[[Exchange, Difference], bool]] = {
    "epochs of the cluster behind": _epochs,
    "topics of the cluster behind": _own_topics,
}
