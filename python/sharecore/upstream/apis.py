"""Upstream APIs and their version ranges.

The lowest versions are those of Kafka 2.4 (Redpanda of early 2025 has few more: Metadata 7, Fetch 11,
FindCoordinator 3). The highest are those with kio schemas that this code supports.
"""

from __future__ import annotations

from sharecore.protocol import ApiKey

VERSIONS: dict[ApiKey, tuple[int, int]] = {
    # by name: the offsets of an exclusively written partition reveal a recreated topic
    ApiKey.PRODUCE: (3, 12),
    ApiKey.FETCH: (11, 17),
    ApiKey.LIST_OFFSETS: (4, 10),
    ApiKey.METADATA: (7, 13),
    ApiKey.FIND_COORDINATOR: (2, 6),
    ApiKey.JOIN_GROUP: (5, 9),
    ApiKey.HEARTBEAT: (3, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (3, 5),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.SYNC_GROUP: (3, 5),
    ApiKey.SASL_HANDSHAKE: (1, 1),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (3, 4),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.SASL_AUTHENTICATE: (1, 2),
}
FETCH_BY_NAME = 12
"""Last version of Fetch with topic names."""
SPOKEN: dict[ApiKey, tuple[int, int]] = {
    **VERSIONS,
    # from the first version with static members to the last with topic names
    ApiKey.OFFSET_COMMIT: (7, 9),
}
"""Includes APIs that are used only if the cluster offers them."""
