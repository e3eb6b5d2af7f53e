"""What a client may have to know of a group before it uses or changes it."""

from __future__ import annotations

from sharecore.client.wire.transport import Transport
from sharecore.protocol import ApiKey


async def group_type(transport: Transport, group_id: str) -> str | None:
    """Return classic, consumer, share or streams; None where there is no such group, or none that shows.

    Raises:
        KafkaError: the group's coordinator refused, or did not answer.
    """
    everything: dict[str, list[str]] = {"states_filter": [], "types_filter": []}
    answer = await transport.coordinator(group_id, ApiKey.LIST_GROUPS, everything, lambda answer: answer)
    for group in answer.groups:
        if group.group_id == group_id:
            return str(group.group_type).lower()
    return None
