"""Fetch on a tier node: refuses consumers at once, as another cluster stores the records.

The API is on offer because librdkafka's share consumer does not fetch from a broker without it.
"""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode

_IDS_SINCE = 13


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    by_id = context.api_version >= _IDS_SINCE
    return {
        "responses": [
            {
                "topic_id" if by_id else "topic": topic.topic_id if by_id else topic.topic,
                "partitions": [
                    {
                        "partition_index": part.partition,
                        "error_code": ErrorCode.INVALID_REQUEST,
                        "high_watermark": -1,
                    }
                    for part in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }
