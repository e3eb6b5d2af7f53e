"""What a client must know about a group before it uses or changes it."""

from __future__ import annotations

from sharecore.client.wire.transport import Transport
from sharecore.protocol import calls


async def group_type(transport: Transport, group_id: str) -> str | None:
    """Return classic, consumer, share or streams; None if the group does not exist or is not visible.

    Raises:
        KafkaError: the group's coordinator returned an error or did not respond.
    """
    everything: dict[str, list[str]] = {"states_filter": [], "types_filter": []}
    answer = await transport.coordinator(group_id, calls.LIST_GROUPS, everything, lambda answer: answer)
    for group in answer.groups:
        if group.group_id == group_id:
            return str(group.group_type).lower()
    return None
