"""Quix Streams, exactly once, copies TOPIC to TOPIC-out: BOOTSTRAP TOPIC GROUP."""

from __future__ import annotations

import sys

from quixstreams import Application, State

bootstrap, topic, group = sys.argv[1:]

app = Application(
    broker_address=bootstrap,
    consumer_group=group,
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_interval=0.2,
    state_dir=f"state-{group}",
)
source = app.topic(topic, key_deserializer="bytes", value_deserializer="bytes")
target = app.topic(f"{topic}-out", key_serializer="bytes", value_serializer="bytes")
frame = app.dataframe(source)


def count(value: bytes, state: State) -> bytes:
    # this uses a state store with its changelog topic
    state.set("seen", state.get("seen", 0) + 1)
    return value


frame.apply(count, stateful=True).to_topic(target)
app.run()
