"""The fields of requests and responses, as far as needed to split and merge them.

A request may have 100,000 entries, so most of this consists of generators, run in steps by
`sharecore.waiting.Turns`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, TypeVar, cast
from uuid import UUID

from sharecore.waiting import Steps

Message: TypeAlias = NamedTuple
"""A decoded request or response of any API, or a struct in it."""
Entry: TypeAlias = "Message | int"
"""A partition in a request: a struct, or its number."""
Fields = dict[str, object]
"""A response, or a part of it, to be encoded."""
Answer: TypeAlias = "Message | Fields"
"""The response for one partition or key: from another broker, or from this node."""
Key = str | UUID | None
"""A topic's key in a request: its name, or in later versions its ID."""
Place = tuple[Key, int]
"""Topic and partition."""
NEVER = 1 << 15
NOTHING: Mapping[str, str] = MappingProxyType({})


class Repeated(Enum):
    """How a response lists repeated topics and partitions."""

    AS_NAMED = auto()
    MERGED = auto()
    """Each topic once, its partitions as often as requested."""
    ONCE = auto()
    """Each topic and partition once."""


@dataclass(frozen=True, slots=True)
class Places:
    """The fields of a request about partitions, and of its response.

    Attributes:
        topics, name, partitions, index: fields of the request; no index if partitions are plain numbers.
        ids_since: the first version with `topic_id`.
        answered_topics, answered_partitions, answered_index, error: fields of the response.
        text: the field with an error message for a partition, if there is one.
        failed: further fields of a partition's response in case of an error.
        empty: whether topics without partitions are listed.
        repeated: how the response lists repeated entries.
        as_named: the error of partitions that are listed as requested all the same.
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
    failed: Mapping[str, object] = field(default_factory=dict)
    empty: bool = True
    repeated: Repeated = Repeated.AS_NAMED
    as_named: int = 0

    def key(self, version: int) -> str:
        """Return the field of a topic's key."""
        return "topic_id" if version >= self.ids_since else self.name

    def read(self, request: Message, version: int) -> Iterator[tuple[Key, list[tuple[int, Entry]]]]:
        """Yield topics in request order, each with its partitions: index, and data."""
        key = self.key(version)
        for topic in getattr(request, self.topics):
            parts = [
                (part if isinstance(part, int) else getattr(part, self.index), part)
                for part in getattr(topic, self.partitions)
            ]
            yield getattr(topic, key), parts

    def select(
        self,
        request: Message,
        version: int,
        chosen: Mapping[Key, Sequence[Entry]],
        names: Mapping[str, str] = NOTHING,
    ) -> Steps[Message]:
        """Return the request for some of its partitions.

        Args:
            chosen: partitions by topic.
            names: topics with another name in `chosen`, and in the returned request.
        """
        key, seen, topics = self.key(version), set(), []
        for topic in getattr(request, self.topics):
            name = getattr(topic, key)
            if isinstance(name, str):
                name = names.get(name, name)
            yield
            if name in chosen and name not in seen:
                seen.add(name)
                topics.append(topic._replace(**{key: name, self.partitions: chosen[name]}))
        return request._replace(**{self.topics: topics})

    def answers(self, response: Message, version: int) -> Iterator[tuple[Place, Message]]:
        """Yield a response's entry for each partition."""
        key = self.key(version)
        for topic in getattr(response, self.answered_topics):
            for part in getattr(topic, self.answered_partitions):
                yield (getattr(topic, key), getattr(part, self.answered_index)), part

    def refused(self, index: int, code: int, text: str = "") -> Fields:
        """Return the response for a partition that cannot be served."""
        said = {self.text: text} if self.text and text else {}
        return {self.answered_index: index, self.error: code, **self.failed, **said}

    def refuse(self, request: Message, version: int, code: int) -> Steps[Fields]:
        """Return the response to a wholly refused request, which lists everything as requested."""
        return replace(self, repeated=Repeated.AS_NAMED).join(request, version, {}, code)

    def join(
        self, request: Message, version: int, answers: Mapping[Place, Answer], missing: int
    ) -> Steps[Fields]:
        """Return the response to the whole request, in its order.

        Args:
            answers: by partition.
            missing: the error of partitions without a response.
        """
        key = self.key(version)
        answered: list[Fields] = []
        merged: dict[Key, list[Answer]] = {}
        seen: set[Place] = set()
        for topic, parts in self.read(request, version):
            if not parts and not self.empty:
                continue
            found = []
            for index, _ in parts:
                found.append(answers.get((topic, index)) or self.refused(index, missing))
                yield
            is_as_named = self.as_named and all(
                field_of(each, self.error, int) == self.as_named for each in found
            )
            if self.repeated is Repeated.AS_NAMED or is_as_named:
                answered.append({key: topic, self.answered_partitions: found})
                continue
            if topic not in merged:
                merged[topic] = []
                answered.append({key: topic, self.answered_partitions: merged[topic]})
            for (index, _), each in zip(parts, found, strict=True):
                if self.repeated is Repeated.ONCE and (topic, index) in seen:
                    continue
                seen.add((topic, index))
                merged[topic].append(each)
                yield
        return {self.answered_topics: answered}


@dataclass(frozen=True, slots=True)
class Keys:
    """The fields of a request about groups, transactional IDs or topics by name, and of its response.

    Attributes:
        asked, name: fields of the request; no name if the keys are plain strings.
        answered, answered_name, error: fields of the response.
        failed: further fields of a key's response in case of an error.
        once: whether a repeated key is listed once.
    """

    asked: str
    answered: str
    answered_name: str
    name: str = ""
    error: str = "error_code"
    failed: Mapping[str, object] = field(default_factory=dict)
    once: bool = False

    def named(self, request: Message) -> list[str]:
        """Return the keys in request order, as often as the response lists them."""
        keys = self._keys(request)
        return list(dict.fromkeys(keys)) if self.once else keys

    def _keys(self, request: Message) -> list[str]:
        return [getattr(each, self.name) if self.name else each for each in getattr(request, self.asked)]

    def read(self, request: Message) -> list[str]:
        """Return the keys, without duplicates."""
        return list(dict.fromkeys(self.named(request)))

    def select(self, request: Message, chosen: Iterable[str]) -> Steps[Message]:
        """Return the request for some of its keys."""
        known, some = frozenset(chosen), []
        for each in getattr(request, self.asked):
            if (getattr(each, self.name) if self.name else each) in known:
                some.append(each)
            yield
        return request._replace(**{self.asked: some})

    def entries(self, request: Message) -> Steps[dict[str, list[Message | str]]]:
        """Return each key with its entry; several entries for a repeated key."""
        found: dict[str, list[Message | str]] = {}
        for each in getattr(request, self.asked):
            found.setdefault(getattr(each, self.name) if self.name else each, []).append(each)
            yield
        return found

    def answers(self, response: Answer | Mapping[str, object]) -> Steps[dict[str, list[Answer]]]:
        """Return a response's entries by key, once per occurrence; the response is a message or a dict."""
        found: dict[str, list[Answer]] = {}
        for each in list_of(response, self.answered):
            found.setdefault(field_of(each, self.answered_name, str), []).append(each)
            yield
        return found

    def refused(self, key: str, code: int) -> Fields:
        """Return the response for a key that cannot be served."""
        return {self.answered_name: key, self.error: code, **self.failed}

    def join(
        self, keys: Iterable[str], answers: Mapping[str, Sequence[Answer]], missing: int
    ) -> Steps[Fields]:
        """Return the response to the whole request.

        Args:
            keys: as often as they are listed.
            answers: by key; the last one is repeated for further occurrences of the key.
            missing: the error of keys without a response.
        """
        times: Counter[str] = Counter()
        answered = []
        for key in keys:
            some = answers.get(key)
            answered.append(some[min(times[key], len(some) - 1)] if some else self.refused(key, missing))
            times[key] += 1
            yield
        return {self.answered: answered}


Value = TypeVar("Value")


def field_of(each: Answer | Mapping[str, object], name: str, kind: type[Value]) -> Value:
    """Return a field of a response, which is a message or a dict; its type is checked."""
    value = getattr(each, name) if isinstance(each, tuple) else each[name]
    assert isinstance(value, kind), f"{name} is no {kind.__name__}"
    return value


def list_of(each: Answer | Mapping[str, object], name: str) -> Iterable[Answer]:
    """Return a list of structs in a response, which is a message or a dict."""
    found = getattr(each, name) if isinstance(each, tuple) else each[name]
    return cast("Iterable[Answer]", found)


def as_fields(answer: Answer) -> Fields:
    """Return a response's fields by name."""
    return answer if isinstance(answer, dict) else answer._asdict()


def renamed(message: Message, names: Mapping[str, str]) -> Message:
    """Return a request or response about a group's offsets with renamed topics.

    Args:
        names: the new name of each renamed topic.
    """
    if "groups" in message._fields:
        groups: Sequence[Message | str] = getattr(message, "groups")  # noqa: B009
        return message._replace(
            groups=[each if isinstance(each, str) else renamed(each, names) for each in groups]
        )
    topics = getattr(message, "topics", None) or ()
    if not any(getattr(each, "name", None) in names for each in topics):
        return message
    return message._replace(topics=[each._replace(name=names.get(each.name, each.name)) for each in topics])
