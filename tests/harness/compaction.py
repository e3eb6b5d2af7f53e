"""How far the log cleaner of a broker has come, Apache's and ours."""

from __future__ import annotations

import re

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from tests.harness.broker import Broker
from tests.harness.clients import QUIET


def configure_topic(bootstrap: str, topic: str, **configs: str) -> None:
    """Sets configurations of a topic; `_` in a name stands for a dot."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.incremental_alter_configs([resource])[resource].result(30)


def compacted_to(broker: Broker, topic: str) -> int:
    """First offset of partition 0 that no pass of the cleaner has seen."""
    if broker.kind == "apache":
        checkpoint = next(broker.home.glob("data/**/cleaner-offset-checkpoint"), None)
        text = checkpoint.read_text() if checkpoint else ""
        ends = re.findall(rf"^{re.escape(topic)} 0 (\d+)$", text, re.MULTILINE)
    else:
        ends = re.findall(rf"{re.escape(topic)}-0: compacted to offset (\d+)", broker.read_log())
    return max(map(int, ends), default=0)
