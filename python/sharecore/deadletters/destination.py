"""The dead-letter topic of a group, looked up for each write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sharecore.config import BrokerConfig, GroupConfig, TopicConfig
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Topic, Topics

_RESERVED_PREFIX = "__"
SETTINGS = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
"""Settings of a dead-letter topic that is created automatically."""


class Unavailable(Exception):
    """The settings leave no usable dead-letter topic; the message has the reason."""


class Destinations:
    """Find and create dead-letter topics.

    Args:
        create: creates a topic with settings; raises KafkaError.
    """

    def __init__(
        self,
        topics: Topics,
        group_config: Callable[[str], GroupConfig],
        topic_config: Callable[[str], TopicConfig],
        broker_config: Callable[[], BrokerConfig],
        create: Callable[[str, dict[str, str]], Awaitable[object]],
    ) -> None:
        self._topics = topics
        self._topic_config = topic_config
        self._broker_config = broker_config
        self._create = create
        self._creating: dict[str, asyncio.Future[KafkaError | None]] = {}
        self.group_config = group_config

    def find(self, group_id: str) -> Topic | None:
        """Return a group's dead-letter topic; None if it must be created first.

        Raises:
            Unavailable: no topic is set, or it is not usable.
        """
        name = self.group_config(group_id).errors_deadletterqueue_topic_name
        config = self._broker_config()
        topic = self._topics.get(name)
        if not name:
            raise Unavailable("errors.deadletterqueue.topic.name is not set")
        if name.startswith(_RESERVED_PREFIX):
            raise Unavailable(f"topic {name} is the broker's own")
        if topic is not None and not self._topic_config(name).errors_deadletterqueue_group_enable:
            raise Unavailable(f"topic {name} does not have errors.deadletterqueue.group.enable=true")
        if topic is None and not config.errors_deadletterqueue_auto_create_topics_enable:
            raise Unavailable(
                f"there is no topic {name}, and errors.deadletterqueue.auto.create.topics.enable is false"
            )
        prefix = config.errors_deadletterqueue_topic_name_prefix
        if not name.startswith(prefix):
            raise Unavailable(
                f"topic {name} does not begin with errors.deadletterqueue.topic.name.prefix={prefix}"
            )
        return topic

    def max_bytes(self, topic: Topic) -> int:
        """Return the maximum record-batch size of a topic."""
        return self._topic_config(topic.name).max_message_bytes

    def create(self, group_id: str) -> asyncio.Future[KafkaError | None]:
        """Create the group's topic; concurrent callers share the result, which is an error or None."""
        name = self.group_config(group_id).errors_deadletterqueue_topic_name
        creating = self._creating.get(name)
        if creating is None:
            creating = self._creating[name] = asyncio.ensure_future(self._made(name))
            creating.add_done_callback(lambda _: self._creating.pop(name, None))
        return creating

    async def _made(self, name: str) -> KafkaError | None:
        try:
            await self._create(name, SETTINGS)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS or self._topics.get(name) is None:
                return error
        return None
