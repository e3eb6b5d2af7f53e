"""Requests about partitions: taken apart by upstream's leaders, and put together again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

from sharecore.broker.requests.context import EVERY_NAME, RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import ResourceType
from sharecore.tier.forward.consumer_fields import as_consumer
from sharecore.tier.forward.forwarder import RequestForwarder, code_of, throttle_of
from sharecore.tier.forward.shapes import Key, Place, Places
from sharecore.waiting import Steps

_UNKNOWN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
Sent = list[tuple[dict[Key, list[Any]], asyncio.Future[Any]]]
"""What each broker was sent, and its answer to come."""


class Split:
    """The partitions of a request by the brokers that lead them.

    Attributes:
        chosen: by broker, and by topic as the cluster names it.
        answers: partitions that are answered here, because they cannot be served.
        unknown: whether some of those are because this node does not know them, or who leads them.
    """

    def __init__(self) -> None:
        self.chosen: dict[int, dict[Key, list[Any]]] = {}
        self.answers: dict[Place, Any] = {}
        self.unknown = False

    def refuse(self, place: Place, answer: Any, code: ErrorCode) -> None:
        """Answers a partition."""
        self.answers[place] = answer
        self.unknown = self.unknown or code in _UNKNOWN


@dataclass(frozen=True, slots=True)
class ByLeader:
    """An API whose partitions are served by their leaders.

    Args:
        places: how requests and answers name partitions.
        right: what the client must be allowed to do with a topic.
        writes: whether it changes the partitions.
        wait: the field that says for how many milliseconds a broker may wait; none where it is empty.
        repeated: the error of partitions that are named several times, where that is one.
        instead: an operation on the cluster that stands for the right to every topic.
        check: raises KafkaError for a name that no topic can have.
        after_loss: what a client is told where a broker may have done what it was asked, and did not answer.
        ask: makes of a partition in the request what the leader is asked.
        tell: makes of the leader's answer for a partition what the client is told.
    """

    places: Places
    right: int
    writes: bool = False
    wait: str = ""
    repeated: ErrorCode | None = None
    instead: int | None = None
    check: Callable[[Any], None] | None = None
    after_loss: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ask: Callable[[Any], Any] | None = None
    tell: Callable[[Any], Any] | None = None

    async def handle(
        self, forwarder: RequestForwarder, context: RequestContext, request: Any
    ) -> dict[str, Any]:
        """Forward a request; the answer is whole when the slowest broker has answered."""
        split = await context.finish(self.split(forwarder, context, request))
        sent = await context.finish(self.send(forwarder, context, request, split))
        return await self.end(forwarder, context, request, split, sent)

    def send(
        self, forwarder: RequestForwarder, context: RequestContext, request: Any, split: Split
    ) -> Steps[Sent]:
        """Send to each leader its part."""
        places, version = self.places, context.api_version
        wait_ms = getattr(request, self.wait) if self.wait else 0
        request = as_consumer(request)
        sent: Sent = []
        for node, chosen in split.chosen.items():
            part = yield from places.select(request, version, chosen, forwarder.own.shown)
            sent.append((chosen, forwarder.send(context, node, part, wait_ms=wait_ms)))
        return sent

    async def end(
        self, forwarder: RequestForwarder, context: RequestContext, request: Any, split: Split, sent: Sent
    ) -> dict[str, Any]:
        """Return the answer to what was sent; it is whole when the slowest broker has answered."""
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

    def split(self, forwarder: RequestForwarder, context: RequestContext, request: Any) -> Steps[Split]:
        """Find the leaders."""
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
                chosen.append(part if self.ask is None else self.ask(part))
        return split

    def _refusal(self, key: Key) -> KafkaError | None:
        """Return why no topic can have a name."""
        try:
            if self.check is not None:
                self.check(key)
        except KafkaError as error:
            return error
        return None

    def _right(self, context: RequestContext) -> int | None:
        """Return the operation that the client must be allowed on each topic; None where it needs none."""
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
        self, forwarder: RequestForwarder, context: RequestContext, split: Split, response: Any
    ) -> Steps[None]:
        """Take in what a broker has answered."""
        names = forwarder.own.named
        for (key, index), part in self.places.answers(response, context.api_version):
            yield
            code = getattr(part, self.places.error)
            if code:
                forwarder.noticed(code)
            found = part if self.tell is None else self.tell(part)
            split.answers[names.get(key, key) if isinstance(key, str) else key, index] = found

    def lose(
        self, forwarder: RequestForwarder, split: Split, chosen: dict[Key, list[Any]], error: KafkaError
    ) -> Steps[None]:
        """Handle a broker that did not respond."""
        forwarder.upstream.stale()
        code = code_of(error, unsent=ErrorCode.NOT_LEADER_OR_FOLLOWER, sent=self.after_loss)
        names = forwarder.own.named
        for key, parts in chosen.items():
            known = names.get(key, key) if isinstance(key, str) else key
            for part in parts:
                index = getattr(part, self.places.index) if self.places.index else part
                split.answers[known, index] = self.places.refused(index, code)
                yield

    def answer(self, context: RequestContext, request: Any, split: Split) -> Steps[dict[str, Any]]:
        """Return the answer to the whole request."""
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        return self.places.join(request, context.api_version, split.answers, missing)


def without_leader(part: Any) -> Any:
    """Return an answer that does not name a broker of the cluster as the leader, or as the one to fetch
    from.
    """
    if getattr(part, "preferred_read_replica", -1) >= 0:
        part = part._replace(preferred_read_replica=-1)
    if not part.error_code or "current_leader" not in part._fields:
        return part
    told = part._asdict()
    del told["current_leader"]
    return told


def without_offset_epoch(part: Any) -> Any:
    """Return an offset without its leader epoch: clients would hold the cluster's epochs against the
    tier's.
    """
    return part._replace(leader_epoch=-1) if "leader_epoch" in part._fields else part
