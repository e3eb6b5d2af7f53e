"""FastStream, over aiokafka or confluent-kafka, copies TOPIC to TOPIC-out: BOOTSTRAP TOPIC GROUP LIBRARY."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from faststream import FastStream

bootstrap, topic, group, library = sys.argv[1:]
broker: Any
if library == "confluent":
    from faststream.confluent import KafkaBroker as ConfluentBroker

    broker = ConfluentBroker(bootstrap)
else:
    from faststream.kafka import KafkaBroker

    broker = KafkaBroker(bootstrap)


@broker.subscriber(topic, group_id=group, auto_offset_reset="earliest")
@broker.publisher(f"{topic}-out")
async def copy(body: int) -> str:
    return str(body)


asyncio.run(FastStream(broker).run())
