"""How requests and answers name what they are about: enough to take them apart and to put them together.

A request may name 100,000 of them, so most of this is steps of generators, as `sharecore.waiting.Turns` runs
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import Any
from uuid import UUID

from sharecore.waiting import Steps

Key = str | UUID | None
"""A topic as a request names it: by its name, or from some version on by its id."""
Place = tuple[Key, int]
"""Topic and partition."""
NEVER = 1 << 15
NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Repeated(Enum):
    """How an answer tells of topics and partitions that a request names several times."""

    AS_NAMED = auto()
    MERGED = auto()
    """Each topic once, its partitions as often as they are named."""
    ONCE = auto()
    """Each topic and partition once."""


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
        repeated: how the answer tells of what is named several times.
        as_named: the error of partitions that are told of as they are named all the same.
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
    repeated: Repeated = Repeated.AS_NAMED
    as_named: int = 0

    def key(self, version: int) -> str:
        """Return the field that names a topic."""
        return "topic_id" if version >= self.ids_since else self.name

    def read(self, request: Any, version: int) -> Iterator[tuple[Key, list[tuple[int, Any]]]]:
        """Yield topics as they are named, each with its partitions: number, and what is said of it."""
        key = self.key(version)
        for topic in getattr(request, self.topics):
            parts = [
                (getattr(part, self.index) if self.index else part, part)
                for part in getattr(topic, self.partitions)
            ]
            yield getattr(topic, key), parts

    def select(
        self,
        request: Any,
        version: int,
        chosen: Mapping[Key, Sequence[Any]],
        names: Mapping[Any, Any] = NOTHING,
    ) -> Steps[Any]:
        """Return the request for some of its partitions.

        Args:
            chosen: partitions by topic.
            names: topics that are named otherwise in `chosen`, and then in what is returned.
        """
        key, seen, topics = self.key(version), set(), []
        for topic in getattr(request, self.topics):
            name = getattr(topic, key)
            name = names.get(name, name)
            yield
            if name in chosen and name not in seen:
                seen.add(name)
                topics.append(topic._replace(**{key: name, self.partitions: chosen[name]}))
        return request._replace(**{self.topics: topics})

    def answers(self, response: Any, version: int) -> Iterator[tuple[Place, Any]]:
        """Yield what an answer says of each partition."""
        key = self.key(version)
        for topic in getattr(response, self.answered_topics):
            for part in getattr(topic, self.answered_partitions):
                yield (getattr(topic, key), getattr(part, self.answered_index)), part

    def refused(self, index: int, code: int, text: str = "") -> dict[str, Any]:
        """Return the answer for a partition that cannot be served."""
        said = {self.text: text} if self.text and text else {}
        return {self.answered_index: index, self.error: code, **self.failed, **said}

    def refuse(self, request: Any, version: int, code: int) -> Steps[dict[str, Any]]:
        """Return the answer to a request of which nothing is done: it tells of all as the request names
        it.
        """
        return replace(self, repeated=Repeated.AS_NAMED).join(request, version, {}, code)

    def join(
        self, request: Any, version: int, answers: Mapping[Place, Any], missing: int
    ) -> Steps[dict[str, Any]]:
        """Return the answer to the whole request, in its order.

        Args:
            answers: by partition.
            missing: the error of partitions that none of them names.
        """
        key = self.key(version)
        told: list[dict[str, Any]] = []
        merged: dict[Key, list[Any]] = {}
        seen: set[Place] = set()
        for topic, parts in self.read(request, version):
            if not parts and not self.empty:
                continue
            found = []
            for index, _ in parts:
                found.append(answers.get((topic, index)) or self.refused(index, missing))
                yield
            is_as_named = self.as_named and all(field_of(each, self.error) == self.as_named for each in found)
            if self.repeated is Repeated.AS_NAMED or is_as_named:
                told.append({key: topic, self.answered_partitions: found})
                continue
            if topic not in merged:
                merged[topic] = []
                told.append({key: topic, self.answered_partitions: merged[topic]})
            for (index, _), each in zip(parts, found, strict=True):
                if self.repeated is Repeated.ONCE and (topic, index) in seen:
                    continue
                seen.add((topic, index))
                merged[topic].append(each)
                yield
        return {self.answered_topics: told}


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
        """Return the keys in the order of the request, as often as the answer tells of them."""
        keys = self._keys(request)
        return list(dict.fromkeys(keys)) if self.once else keys

    def _keys(self, request: Any) -> list[Any]:
        return [getattr(each, self.name) if self.name else each for each in getattr(request, self.asked)]

    def read(self, request: Any) -> list[Any]:
        """Return the keys, each once."""
        return list(dict.fromkeys(self.named(request)))

    def select(self, request: Any, chosen: Iterable[Any]) -> Steps[Any]:
        """Return the request for some of its keys."""
        known, some = frozenset(chosen), []
        for each in getattr(request, self.asked):
            if (getattr(each, self.name) if self.name else each) in known:
                some.append(each)
            yield
        return request._replace(**{self.asked: some})

    def entries(self, request: Any) -> Steps[dict[Any, list[Any]]]:
        """Each key with what is asked of it; several entries of a key that is named several times."""
        found: dict[Any, list[Any]] = {}
        for each in getattr(request, self.asked):
            found.setdefault(getattr(each, self.name) if self.name else each, []).append(each)
            yield
        return found

    def answers(self, response: Any) -> Steps[dict[Any, list[Any]]]:
        """Return what an answer, as read or as a dict, say of each key, once for each time that it was
        named.
        """
        some = response[self.answered] if isinstance(response, dict) else getattr(response, self.answered)
        found: dict[Any, list[Any]] = {}
        for each in some:
            found.setdefault(field_of(each, self.answered_name), []).append(each)
            yield
        return found

    def refused(self, key: Any, code: int) -> dict[str, Any]:
        """Return the answer for a key that cannot be served."""
        return {self.answered_name: key, self.error: code, **self.failed}

    def join(
        self, keys: Iterable[Any], answers: Mapping[Any, Sequence[Any]], missing: int
    ) -> Steps[dict[str, Any]]:
        """Return the answer to the whole request.

        Args:
            keys: as often as they are told of.
            answers: by key; the last one also stands for further times that the key is named.
            missing: the error of keys that no answer names.
        """
        times: Counter[Any] = Counter()
        told = []
        for key in keys:
            some = answers.get(key)
            told.append(some[min(times[key], len(some) - 1)] if some else self.refused(key, missing))
            times[key] += 1
            yield
        return {self.answered: told}


def field_of(each: Any, name: str) -> Any:
    """Return a field of an answer as it was read, or as a dict."""
    return each[name] if isinstance(each, dict) else getattr(each, name)


def renamed(message: Any, names: Mapping[str, str]) -> Any:
    """Return a request or an answer about a group's offsets, with its topics under their other names.

    Args:
        names: the other name of each topic that has one.
    """
    if "groups" in getattr(message, "_fields", ()):
        return message._replace(groups=[renamed(each, names) for each in message.groups])
    topics = getattr(message, "topics", None) or ()
    if not any(getattr(each, "name", None) in names for each in topics):
        return message
    return message._replace(topics=[each._replace(name=names.get(each.name, each.name)) for each in topics])
