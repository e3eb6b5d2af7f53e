"""Produce on a tier node: refuses producers at once, as another cluster stores the records.

The API is on offer because librdkafka's share consumer does not fetch from a broker without it.
"""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.network import Disconnect

_IDS_SINCE = 13
WHY = "Records are kept by the Kafka cluster behind this one: connect to that."


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
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
