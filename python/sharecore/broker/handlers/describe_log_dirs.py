"""DescribeLogDirs: the one data directory and what partitions take of it."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    broker = context.broker
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "results": []}
    wanted: dict[str, Collection[int]] = {}
    if request.topics is None:
        wanted = {topic.name: range(len(topic.partitions)) for topic in broker.topics}
    else:
        for topic in request.topics:
            wanted[topic.topic] = {*wanted.get(topic.topic, ()), *topic.partitions}
    topics = []
    for name, indexes in wanted.items():
        logs = [(index, broker.topics.log(name, index)) for index in sorted(indexes)]
        partitions = [
            {"partition_index": index, "partition_size": log.size_bytes}
            for index, log in logs
            if log is not None
        ]
        if partitions:
            topics.append({"name": name, "partitions": partitions})
    disk = shutil.disk_usage(broker.config.data_dir)
    return {
        "results": [
            {
                "log_dir": str(Path(broker.config.data_dir).absolute()),
                "topics": topics,
                "total_bytes": disk.total,
                "usable_bytes": disk.free,
            }
        ]
    }
