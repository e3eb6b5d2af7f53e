"""DescribeLogDirs: the single data directory and the sizes of partitions."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    broker = context.broker
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "results": []}
    wanted: dict[str, set[int]] = {}
    if request.topics is None:
        wanted = {topic.name: set(range(len(topic.partitions))) for topic in broker.topics}
    else:
        for topic in request.topics:
            wanted.setdefault(topic.topic, set()).update(topic.partitions)
    topics, pace = [], broker.turns.pace()
    for name, indexes in wanted.items():
        partitions = []
        for index in sorted(indexes):
            log = broker.topics.log(name, index)
            if log is not None:
                partitions.append({"partition_index": index, "partition_size": log.size_bytes})
            await pace.step()
        if partitions:
            topics.append({"name": name, "partitions": partitions})
    loop = asyncio.get_running_loop()
    disk = await loop.run_in_executor(None, shutil.disk_usage, broker.config.data_dir)
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
