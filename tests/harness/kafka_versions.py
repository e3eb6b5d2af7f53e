"""What releases of Apache Kafka differ in, as far as it matters to what is compared with them."""

from __future__ import annotations

from sharecore.protocol import ApiKey

SINCE_4_4 = {ApiKey.API_VERSIONS: 5, ApiKey.TXN_OFFSET_COMMIT: 6, ApiKey.DELETE_GROUPS: 3}
"""Versions of APIs that came with Apache Kafka 4.4.0."""
HIGHEST = {
    # versions 4 and 5 are for brokers only
    ApiKey.ADD_PARTITIONS_TO_TXN: (5, 3),
    **{api: (version - 1, version) for api, version in SINCE_4_4.items()},
}
"""Highest versions of APIs on Apache Kafka and on sharecore, where those differ; for some, on 4.3.1 alone."""
