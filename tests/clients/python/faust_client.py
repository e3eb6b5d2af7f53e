"""faust-streaming, exactly once, copies TOPIC to TOPIC-out: BOOTSTRAP TOPIC GROUP."""

from __future__ import annotations

import sys

import faust

bootstrap, topic, group = sys.argv[1:]

app = faust.App(
    group,
    broker=f"kafka://{bootstrap}",
    processing_guarantee="exactly_once",
    broker_commit_interval=0.2,
    value_serializer="raw",
    topic_disable_leader=True,
    web_enabled=False,
    datadir=f"state-{group}",
)
source = app.topic(topic, value_type=bytes)
target = app.topic(f"{topic}-out", value_type=bytes)


@app.agent(source, sink=[target])
async def copy(values: faust.Stream[bytes]) -> object:
    async for value in values:
        yield value


sys.argv = [sys.argv[0], "worker", "--without-web", "--loglevel", "info"]
app.main()
