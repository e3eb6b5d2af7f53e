"""Requests about partitions: split by upstream leader, with merged responses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass

from sharecore.broker.requests.context import EVERY_NAME, RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import ResourceType
from sharecore.tier.forward.consumer_fields import as_consumer
from sharecore.tier.forward.forwarder import RequestForwarder, code_of, throttle_of
from sharecore.tier.forward.shapes import Answer, Entry, Fields, Key, Message, Place, Places
from sharecore.waiting import Steps

_UNKNOWN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
Sent = list[tuple[dict[Key, list[Entry]], asyncio.Future[Message]]]
"""The parts sent to each broker, and the pending responses."""


class Split:
    """The partitions of a request by leader.

    Attributes:
        chosen: by broker, and by the topic's name in the cluster.
        answers: responses for partitions that cannot be served.
        unknown: whether some of those are unknown to this node, or have no known leader.
    """

    def __init__(self) -> None:
        self.chosen: dict[int, dict[Key, list[Entry]]] = {}
        self.answers: dict[Place, Answer] = {}
        self.unknown = False

    def refuse(self, place: Place, answer: Answer, code: ErrorCode) -> None:
        """Answer a partition with an error."""
        self.answers[place] = answer
        self.unknown = self.unknown or code in _UNKNOWN


@dataclass(frozen=True, slots=True)
class ByLeader:
    """An API whose partitions are served by their leaders.

    Args:
        places: the fields of partitions in requests and responses.
        right: the operation on a topic that the client must be allowed.
        writes: whether it changes the partitions.
        wait: the field with the broker's maximum wait in milliseconds; empty for none.
        repeated: the error of repeated partitions, if they are an error.
        instead: an operation on the cluster that implies the one on every topic.
        check: raises KafkaError for an invalid topic name.
        after_loss: the error if a broker may have executed the request but did not respond.
        ask: converts a partition of the request for the leader.
        adapt: converts the leader's response for a partition for the client.
    """

    places: Places
    right: int
    writes: bool = False
    wait: str = ""
    repeated: ErrorCode | None = None
    instead: int | None = None
    check: Callable[[str], None] | None = None
    after_loss: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ask: Callable[[Message], Message] | None = None
    adapt: Callable[[Message], Answer] | None = None

    async def handle(self, forwarder: RequestForwarder, context: RequestContext, request: Message) -> Fields:
        """Forward a request; the response is complete when the slowest broker has responded."""
        split = await context.finish(self.split(forwarder, context, request))
        sent = await context.finish(self.send(forwarder, context, request, split))
        return await self.end(forwarder, context, request, split, sent)

    def send(
        self, forwarder: RequestForwarder, context: RequestContext, request: Message, split: Split
    ) -> Steps[Sent]:
        """Send each leader its part."""
        places, version = self.places, context.api_version
        wait_ms = getattr(request, self.wait) if self.wait else 0
        request = as_consumer(request)
        sent: Sent = []
        for node, chosen in split.chosen.items():
            part = yield from places.select(request, version, chosen, forwarder.own.shown)
            sent.append((chosen, forwarder.send(context, node, part, wait_ms=wait_ms)))
        return sent

    async def end(
        self, forwarder: RequestForwarder, context: RequestContext, request: Message, split: Split, sent: Sent
    ) -> Fields:
        """Return the merged response, once the slowest broker has responded."""
        throttle_ms = 0
        for chosen, answer in sent:
            try:
                response = await answer
            except KafkaError as error:
                await context.finish(self.lose(forwarder, split, chosen, error))
                continue
            throttle_ms = max(throttle_ms, throttle_of(response))
            await context.finish(self.take(forwarder, context, split, response))
        whole = await context.finish(self.answer(context, request, split))
        return whole | {"throttle_time_ms": throttle_ms}

    def split(self, forwarder: RequestForwarder, context: RequestContext, request: Message) -> Steps[Split]:
        """Determine the leaders."""
        split, shown, right, version = Split(), forwarder.own.shown, self._right(context), context.api_version
        allowed: Container[str] = EVERY_NAME
        if right is not None:
            keys = (key for key, _ in self.places.read(request, version) if self._refusal(key) is None)
            allowed = yield from forwarder.allowed_topics(context, keys, right)
        times: Counter[Place] = Counter()
        if self.repeated is not None:
            for key, parts in self.places.read(request, version):
                times.update((key, index) for index, _ in parts)
                yield
        for key, parts in self.places.read(request, version):
            yield
            try:
                if (wrong := self._refusal(key)) is not None:
                    raise wrong
                said = bool(self.places.text)
                name = forwarder.topic(context, key, allowed, writes=self.writes, said=said)
            except KafkaError as error:
                denied = error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                for index, _ in parts:
                    refused = self.places.refused(index, error.code, error.message)
                    if self.repeated is not None and not denied and times[key, index] > 1:
                        refused = self.places.refused(index, self.repeated)
                    split.refuse((key, index), refused, error.code)
                    yield
                continue
            asked = name if key in shown else key
            for index, part in parts:
                yield
                if self.repeated is not None and times[key, index] > 1:
                    split.answers[key, index] = self.places.refused(index, self.repeated)
                    continue
                try:
                    node = self._leader(forwarder, name, index)
                except KafkaError as error:
                    split.refuse((key, index), self.places.refused(index, error.code), error.code)
                    continue
                chosen = split.chosen.setdefault(node, {}).setdefault(asked, [])
                chosen.append(part if self.ask is None or isinstance(part, int) else self.ask(part))
        return split

    def _refusal(self, key: Key) -> KafkaError | None:
        """Return why a topic name is invalid."""
        try:
            if self.check is not None and isinstance(key, str):
                self.check(key)
        except KafkaError as error:
            return error
        return None

    def _right(self, context: RequestContext) -> int | None:
        """Return the operation that the client must be allowed on each topic; None if it needs none."""
        if self.instead is not None and context.may(self.instead, ResourceType.CLUSTER, quiet=True):
            return None
        return self.right

    def _leader(self, forwarder: RequestForwarder, name: str, index: int) -> int:
        topic = forwarder.upstream.metadata.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            forwarder.upstream.stale()
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return forwarder.leader(name, index)

    def take(
        self, forwarder: RequestForwarder, context: RequestContext, split: Split, response: Message
    ) -> Steps[None]:
        """Merge a broker's response."""
        names = forwarder.own.named
        for (key, index), part in self.places.answers(response, context.api_version):
            yield
            code = getattr(part, self.places.error)
            if code:
                forwarder.noticed(code)
            found = part if self.adapt is None else self.adapt(part)
            split.answers[names.get(key, key) if isinstance(key, str) else key, index] = found

    def lose(
        self, forwarder: RequestForwarder, split: Split, chosen: dict[Key, list[Entry]], error: KafkaError
    ) -> Steps[None]:
        """Handle a broker that did not respond."""
        forwarder.upstream.stale()
        code = code_of(error, unsent=ErrorCode.NOT_LEADER_OR_FOLLOWER, sent=self.after_loss)
        names = forwarder.own.named
        for key, parts in chosen.items():
            known = names.get(key, key) if isinstance(key, str) else key
            for part in parts:
                index: int = part if isinstance(part, int) else getattr(part, self.places.index)
                split.answers[known, index] = self.places.refused(index, code)
                yield

    def answer(self, context: RequestContext, request: Message, split: Split) -> Steps[Fields]:
        """Return the response to the whole request."""
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        return self.places.join(request, context.api_version, split.answers, missing)


def without_leader(part: Message) -> Answer:
    """Return a response without upstream brokers as leader or preferred read replica."""
    if getattr(part, "preferred_read_replica", -1) >= 0:
        part = part._replace(preferred_read_replica=-1)
    if not getattr(part, "error_code", 0) or "current_leader" not in part._fields:
        return part
    answered = part._asdict()
    del answered["current_leader"]
    return answered


def without_offset_epoch(part: Message) -> Message:
    """Return an offset without its leader epoch, which clients would compare with the tier's epochs."""
    return part._replace(leader_epoch=-1) if "leader_epoch" in part._fields else part
