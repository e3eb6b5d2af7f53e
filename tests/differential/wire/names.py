"""How a script's names become a broker's, and a broker's names a script's again."""

from __future__ import annotations

import base64
import re
import struct
from typing import Any
from uuid import UUID

from tests.differential.wire.batches import to_bytes
from tests.differential.wire.producers import Ids

NO_ID = "00000000-0000-0000-0000-000000000000"
NODE_ID = 4
"""Of both brokers; not 0, which stands in fields that are not filled."""
_CLOCK_BEGINS = 1_000_000_000_000
"""Times that scripts write into records without a producer are earlier."""
_WRITTEN_MS = 1000
_UUID_LENGTH = 36
_NO_SESSION = 2**31 - 9
"""Larger ids have no place in Apache Kafka's cache: UNKNOWN_SERVER_ERROR."""
_IN_TEXT = re.compile(r"\{#([^}]+)\}")


def base64_of(topic_id: UUID) -> str:
    """Kafka's text for an id."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def subscription(topics: list[str]) -> bytes:
    """What a consumer says of itself in a classic group, in version 0."""
    names = b"".join(struct.pack(">h", len(topic.encode())) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class Names:
    """Names on one broker.

    Args:
        prefix: stands where a script writes `~`.
        began_ms: time of what producers write.
    """

    def __init__(self, prefix: str, began_ms: int) -> None:
        self.prefix = prefix
        self._began_ms = began_ms
        self.producers = Ids()
        self._ids: dict[str, list[UUID]] = {}
        self._aliases: dict[UUID, str] = {}
        self._chosen: dict[str, str] = {}
        self._sessions: list[int] = []

    def topics(self) -> list[str]:
        """Return the script's topics, those that are gone among them."""
        return [name for name in self._ids if not name.startswith("__")]

    def learn(self, topic: str, topic_id: UUID | None) -> None:
        """A topic of this name has this id."""
        if topic_id is None or topic_id in self._aliases:
            return
        name = topic.replace(self.prefix, "")
        ids = self._ids.setdefault(name, [])
        ids.append(topic_id)
        self._aliases[topic_id] = f"#{name}/{len(ids)}"

    @property
    def count(self) -> int:
        """How many ids that the broker chose have an alias."""
        return len(self._chosen)

    def knows(self, text: str) -> bool:
        """Whether an id has an alias, `text` being the usual text of it, or Kafka's."""
        return text in self._chosen or (len(text) == _UUID_LENGTH and UUID(text) in self._aliases)

    def bind(self, text: str, number: int) -> None:
        """An id that the broker chose is `{id-number}` from now on, in both directions."""
        self._chosen[text] = f"{{id-{number}}}"

    def session(self, session_id: int) -> int | str:
        """What a script calls a fetch session: by the order in which the broker has told of them."""
        if session_id <= 0:
            return session_id
        if session_id not in self._sessions:
            self._sessions.append(session_id)
        return f"session-{self._sessions.index(session_id) + 1}"

    def _session_of(self, reference: str) -> int:
        at = int(reference.removeprefix("session-")) - 1
        return self._sessions[at] if at < len(self._sessions) else _NO_SESSION

    def alias(self, identifier: UUID) -> str | None:
        """What a script calls an id, None where the broker never told it."""
        return self._aliases.get(identifier) or self._chosen.get(str(identifier))

    def id_of(self, reference: str) -> UUID:
        """Return the id behind `name` or `name/1`; one that no topic has where there is no such topic."""
        name, _, number = reference.partition("/")
        ids = self._ids.get(name, [])
        at = int(number) - 1 if number else len(ids) - 1
        return ids[at] if 0 <= at < len(ids) else self._made_up(struct.pack(">QQ", 0xABCD, len(name)), name)

    def _made_up(self, value: bytes, name: str) -> UUID:
        """Return an id that no topic has; it is not the brokers' choice."""
        identifier = UUID(bytes=value)
        self._aliases.setdefault(identifier, f"#{name}")
        return identifier

    def to_broker(self, value: Any, *, is_id: bool = False) -> Any:
        """A value of a script as the codec wants it; `is_id` where the field holds a topic id."""
        if isinstance(value, str):
            if is_id:
                return (
                    self.id_of(value[1:])
                    if value.startswith("#")
                    else self._made_up(UUID(value).bytes, value)
                )
            text = value.replace("~", self.prefix)
            for chosen, alias in self._chosen.items():
                text = text.replace(alias, chosen)
            return _IN_TEXT.sub(lambda found: base64_of(self.id_of(found[1])), text)
        if isinstance(value, dict) and set(value) == {"hex"}:
            return bytes.fromhex(value["hex"])
        if isinstance(value, dict) and set(value) == {"subscription"}:
            return subscription([self.to_broker(topic) for topic in value["subscription"]])
        if isinstance(value, dict) and set(value) == {"session_of"}:
            return self._session_of(value["session_of"])
        if isinstance(value, dict) and set(value) == {"producer"}:
            return self.producers.id_of(value["producer"])
        if isinstance(value, dict) and "values" in value:
            return to_bytes(value, self.producers, self._began_ms)
        return value

    def time(self, value: int) -> int | str:
        """A time of an answer: counted from the first that producers write; a name where it is a broker's."""
        since = value - self._began_ms
        return since if 0 <= since < _WRITTEN_MS else "<time>" if value >= _CLOCK_BEGINS else value

    def from_broker(self, text: str) -> str:
        """Return a text of an answer as a script writes it."""
        text = text.replace(self.prefix, "~")
        for chosen, alias in self._chosen.items():
            text = text.replace(chosen, alias)
        for identifier, alias in self._aliases.items():
            encoded = base64_of(identifier)
            if encoded in text:
                text = text.replace(encoded, "{" + alias + "}")
        return text
