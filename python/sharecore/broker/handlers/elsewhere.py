"""Produce and Fetch on a tier node: refused at once, as another cluster stores the records.

The APIs are on offer because librdkafka's share consumer does not fetch from a broker without them.
"""

from __future__ import annotations

from typing import Any

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.network import Disconnect

_IDS_SINCE = 13
WHY = "Records are kept by the Kafka cluster behind this one: connect to that."


def refuse_produce(context: RequestContext, request: Any) -> dict[str, Any]:
    if request.acks == 0:
        raise Disconnect(WHY)
    by_id = context.api_version >= _IDS_SINCE
    refused = {"error_code": ErrorCode.INVALID_REQUEST, "error_message": WHY, "base_offset": -1}
    return {
        "responses": [
            {
                "topic_id" if by_id else "name": topic.topic_id if by_id else topic.name,
                "partition_responses": [{"index": part.index, **refused} for part in topic.partition_data],
            }
            for topic in request.topic_data
        ]
    }


def refuse_fetch(context: RequestContext, request: Any) -> dict[str, Any]:
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
