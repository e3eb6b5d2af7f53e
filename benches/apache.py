"""Apache Kafka under measurement: with the JVM options that its own start script gives the broker."""

from __future__ import annotations

import os

JVM_OPTIONS = (
    "-Xms1g -Xmx1g -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35"
    " -XX:+ExplicitGCInvokesConcurrent"
)


def as_kafka_starts_it() -> None:
    """Set the options for every broker that is started from here on; what is set already stays."""
    os.environ.setdefault("BROKER_JAVA_OPTS", JVM_OPTIONS)
