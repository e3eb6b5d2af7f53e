"""Produce and Fetch on a tier node: refused at once, as another cluster stores the records.

The APIs are on offer because librdkafka's share consumer does not fetch from a broker without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.network import Disconnect

if TYPE_CHECKING:
    from sharecore.protocol import messages

_IDS_SINCE = 13
WHY = "Records are kept by the Kafka cluster behind this one: connect to that."


def refuse_produce(context: RequestContext, request: messages.ProduceRequest) -> messages.ProduceResponse:
    """Refuse to write: every partition gets INVALID_REQUEST.

    Without acknowledgements, raise Disconnect.
    """
    if request.acks == 0:
        raise Disconnect(WHY)
    by_id = context.api_version >= _IDS_SINCE
    responses: list[messages.TopicProduceResponse] = []
    for topic in request.topic_data:
        partitions: list[messages.PartitionProduceResponse] = [
            {
                "index": part.index,
                "error_code": ErrorCode.INVALID_REQUEST,
                "error_message": WHY,
                "base_offset": -1,
            }
            for part in topic.partition_data
        ]
        if by_id:
            responses.append({"topic_id": topic.topic_id, "partition_responses": partitions})
        else:
            responses.append({"name": topic.name, "partition_responses": partitions})
    return {"responses": responses}


def refuse_fetch(context: RequestContext, request: messages.FetchRequest) -> messages.FetchResponse:
    """Refuse to read: every partition gets INVALID_REQUEST."""
    by_id = context.api_version >= _IDS_SINCE
    responses: list[messages.FetchableTopicResponse] = []
    for topic in request.topics:
        partitions: list[messages.FetchPartitionData] = [
            {
                "partition_index": part.partition,
                "error_code": ErrorCode.INVALID_REQUEST,
                "high_watermark": -1,
            }
            for part in topic.partitions
        ]
        if by_id:
            responses.append({"topic_id": topic.topic_id, "partitions": partitions})
        else:
            responses.append({"topic": topic.topic, "partitions": partitions})
    return {"responses": responses}
