"""Fetch, where records are kept by another cluster: a consumer that has come here is told at once.

The API is offered all the same, as librdkafka's share consumer fetches from no broker without it.
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
