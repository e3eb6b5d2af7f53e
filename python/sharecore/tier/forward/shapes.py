"""How requests and answers name what they are about: enough to take them apart and to put them together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from uuid import UUID

Key = str | UUID | None
"""A topic as a request names it: by its name, or from some version on by its id."""
Place = tuple[Key, int]
"""Topic and partition."""
NEVER = 1 << 15
NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Places:
    """A request about partitions, and its answer.

    Attributes:
        topics, name, partitions, index: fields of the request; no index where partitions are numbers alone.
        ids_since: the version from which on topics are named by `topic_id`.
        answered_topics, answered_partitions, answered_index, error: fields of the answer.
        text: the field of the answer that says why a partition is refused, where there is one.
        failed: what the answer for a partition has besides where it is an error.
        empty: whether topics of which nothing is asked are told of.
    """

    topics: str = "topics"
    name: str = "name"
    partitions: str = "partitions"
    index: str = "partition_index"
    ids_since: int = NEVER
    answered_topics: str = "topics"
    answered_partitions: str = "partitions"
    answered_index: str = "partition_index"
    error: str = "error_code"
    text: str = ""
    failed: Mapping[str, Any] = field(default_factory=dict)
    empty: bool = True

    def key(self, version: int) -> str:
        """The field that names a topic."""
        return "topic_id" if version >= self.ids_since else self.name

    def read(self, request: Any, version: int) -> list[tuple[Key, list[tuple[int, Any]]]]:
        """Topics in the order of the request, each with its partitions: number, and what is said of it."""
        key = self.key(version)
        return [
            (
                getattr(topic, key),
                [
                    (getattr(part, self.index) if self.index else part, part)
                    for part in getattr(topic, self.partitions)
                ],
            )
            for topic in getattr(request, self.topics)
        ]

    def select(
        self,
        request: Any,
        version: int,
        chosen: Mapping[Key, Sequence[Any]],
        names: Mapping[Any, Any] = NOTHING,
    ) -> Any:
        """The request for some of its partitions.

        Args:
            chosen: partitions by topic.
            names: topics that are named otherwise in `chosen`, and then in what is returned.
        """
        key, seen, topics = self.key(version), set(), []
        for topic in getattr(request, self.topics):
            name = getattr(topic, key)
            name = names.get(name, name)
            if name in chosen and name not in seen:
                seen.add(name)
                topics.append(topic._replace(**{key: name, self.partitions: chosen[name]}))
        return request._replace(**{self.topics: topics})

    def answers(self, response: Any, version: int) -> dict[Place, Any]:
        """What an answer says of each partition."""
        key = self.key(version)
        return {
            (getattr(topic, key), getattr(part, self.answered_index)): part
            for topic in getattr(response, self.answered_topics)
            for part in getattr(topic, self.answered_partitions)
        }

    def refused(self, index: int, code: int, text: str = "") -> dict[str, Any]:
        """The answer for a partition that cannot be served."""
        said = {self.text: text} if self.text and text else {}
        return {self.answered_index: index, self.error: code, **self.failed, **said}

    def join(self, request: Any, version: int, answers: Mapping[Place, Any], missing: int) -> dict[str, Any]:
        """The answer to the whole request, in its order.

        Args:
            answers: by partition.
            missing: the error of partitions that none of them names.
        """
        key = self.key(version)
        return {
            self.answered_topics: [
                {
                    key: topic,
                    self.answered_partitions: [
                        answers.get((topic, index)) or self.refused(index, missing) for index, _ in parts
                    ],
                }
                for topic, parts in self.read(request, version)
                if parts or self.empty
            ]
        }


@dataclass(frozen=True, slots=True)
class Keys:
    """A request about groups, transactional ids or topics by name, and its answer.

    Attributes:
        asked, name: fields of the request; no name where the keys stand by themselves.
        answered, answered_name, error: fields of the answer.
        failed: what the answer for a key has besides where it is an error.
        once: whether a key that is named several times is told of once.
    """

    asked: str
    answered: str
    answered_name: str
    name: str = ""
    error: str = "error_code"
    failed: Mapping[str, Any] = field(default_factory=dict)
    once: bool = False

    def named(self, request: Any) -> list[Any]:
        """The keys in the order of the request, as often as the answer tells of them."""
        asked = getattr(request, self.asked)
        keys = [getattr(each, self.name) if self.name else each for each in asked]
        return list(dict.fromkeys(keys)) if self.once else keys

    def read(self, request: Any) -> list[Any]:
        """The keys, each once."""
        return list(dict.fromkeys(self.named(request)))

    def select(self, request: Any, chosen: Collection[Any]) -> Any:
        """The request for some of its keys."""
        some = [
            each
            for each in getattr(request, self.asked)
            if (getattr(each, self.name) if self.name else each) in chosen
        ]
        return request._replace(**{self.asked: some})

    def answers(self, response: Any) -> dict[Any, Any]:
        """What an answer, as read or as a dict, says of each key."""
        some = response[self.answered] if isinstance(response, dict) else getattr(response, self.answered)
        return {_of(each, self.answered_name): each for each in some}

    def refused(self, key: Any, code: int) -> dict[str, Any]:
        """The answer for a key that cannot be served."""
        return {self.answered_name: key, self.error: code, **self.failed}

    def join(self, keys: Iterable[Any], answers: Mapping[Any, Any], missing: int) -> dict[str, Any]:
        """The answer to the whole request; `missing` is the error of keys that no answer names."""
        return {self.answered: [answers.get(key) or self.refused(key, missing) for key in keys]}


def _of(each: Any, name: str) -> Any:
    return each[name] if isinstance(each, dict) else getattr(each, name)


def renamed(message: Any, names: Mapping[str, str]) -> Any:
    """A request or an answer about a group's offsets, with its topics under their other names.

    Args:
        names: the other name of each topic that has one.
    """
    if "groups" in getattr(message, "_fields", ()):
        return message._replace(groups=[renamed(each, names) for each in message.groups])
    topics = getattr(message, "topics", None) or ()
    if not any(getattr(each, "name", None) in names for each in topics):
        return message
    return message._replace(topics=[each._replace(name=names.get(each.name, each.name)) for each in topics])
