"""Fetch: records of a consumer's partitions; waits for min_bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from sharecore.broker.cluster import wrong_epoch
from sharecore.broker.requests.context import RequestContext, Result
from sharecore.broker.served import Handler
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchPartition,
    FetchSession,
    FetchSessionCache,
    PartitionId,
    Place,
    next_epoch,
)
from sharecore.storage import Log, Reader
from sharecore.waiting import Begun, DelayedFetch, Gather, Later, Steps, exhaust, reply

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services
    from sharecore.protocol import messages

    _Answers: TypeAlias = list[tuple[FetchPartition, messages.FetchPartitionData]]

_IDS_SINCE = 13
_READ_COMMITTED = 1
_AT_ONCE = 256
"""Maximum partitions of a fetch that reads them in one event-loop turn."""
_PAUSE_SECONDS = 20e-6
"""Delay per partition before such a fetch reads again."""
_FAILURES_KEPT = 1000
"""Fetches with more unknown or unauthorized partitions neither wait nor open a session."""
_EPOCH = 0
"""Leader epoch in record batches: a change of the leader moves no log back, so they need no other."""


def make_fetch(broker: Services) -> Handler:
    """Return the handler of one broker, with its fetch sessions."""
    slots = broker.config.max_incremental_fetch_session_cache_slots
    bytes_max = broker.config.sharecore_fetch_sessions_bytes_max
    sessions = FetchSessionCache(slots, broker.clock.now_ms, bytes_max)

    def handle(context: RequestContext, request: messages.FetchRequest) -> Result[messages.FetchResponse]:
        steps = _handle(context, request, sessions)
        named = sum(len(topic.partitions) for topic in request.topics)
        if named + sessions.partitions_of(request.session_id) <= _AT_ONCE:
            return exhaust(steps)
        return context.run(steps)

    return handle


def _handle(
    context: RequestContext, request: messages.FetchRequest, sessions: FetchSessionCache
) -> Steps[Begun[messages.FetchResponse]]:
    by_id = context.api_version >= _IDS_SINCE
    wanted = yield from _wanted(context, request, by_id=by_id)
    session = None
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        sessions.close(request.session_id)
    else:
        forgotten = (
            (topic.topic_id if by_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        )
        try:
            session = sessions.resume(
                request.session_id, request.session_epoch, wanted, forgotten, by_id=by_id
            )
        except KafkaError as error:
            return {"error_code": error.code, "responses": []}
    gather: Gather[None] = Gather()
    fetch = _Fetch(context, request, sessions, session, wanted, gather.part(None))
    message = yield from fetch.begin(request.max_wait_ms)
    if message is not None:
        return message
    answer: Begun[messages.FetchResponse] = reply(gather, lambda: gather.outcomes[None])
    if isinstance(answer, Later):
        answer.add_done_callback(lambda _: fetch.cancel())
    return answer


def _wanted(
    context: RequestContext, request: messages.FetchRequest, *, by_id: bool
) -> Steps[list[FetchPartition]]:
    """Return the requested partitions; if a partition repeats, the last entry wins."""
    topics = context.broker.topics
    wanted: dict[PartitionId, FetchPartition] = {}
    for topic in request.topics:
        found = topics.by_id(topic.topic_id) if by_id else None
        name = (found.name if found is not None else None) if by_id else topic.topic
        key = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            place = Place(
                asked.fetch_offset,
                asked.partition_max_bytes,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
            )
            wanted[key, asked.partition] = FetchPartition((key, asked.partition), name, place)
            yield
    return list(wanted.values())


class _Look:
    """Result of reading the partitions of a fetch once.

    Args:
        late: whether the fetch has expired, so that any result is enough.
        room: maximum record bytes of the answer.
    """

    __slots__ = ("answers", "is_ready", "logs", "missing", "room", "total", "unknown")

    def __init__(self, *, late: bool, room: int) -> None:
        self.is_ready = late
        self.room = room
        self.total = 0
        self.logs: list[Log] = []
        self.answers: _Answers = []
        # in Apache Kafka's order: unknown partitions last, preceded by unknown ids
        self.unknown: _Answers = []
        self.missing: _Answers = []

    def failures(self) -> int:
        """Return the number of unknown or unauthorized partitions."""
        return len(self.unknown) + len(self.missing)


class _Fetch(DelayedFetch["messages.FetchResponse"]):
    """A fetch: reads available records, and reads again after appends and disk reads."""

    def __init__(
        self,
        context: RequestContext,
        request: messages.FetchRequest,
        sessions: FetchSessionCache,
        session: FetchSession | None,
        wanted: Sequence[FetchPartition],
        ended: Callable[[messages.FetchResponse], None],
    ) -> None:
        super().__init__(asyncio.get_running_loop().call_later, ended)
        self._context = context
        # the rest of the request is not kept while the fetch waits
        self._min_bytes, self._max_bytes = request.min_bytes, request.max_bytes
        self._epoch = request.session_epoch
        self._sessions = sessions
        self._session = session
        self._partitions = wanted if session is None else list(session.partitions.values())
        self._by_id = context.api_version >= _IDS_SINCE
        self._room = context.records_room()
        self._committed = request.isolation_level == _READ_COMMITTED
        self._logs: list[Log] = []
        self._watched: Sequence[Log] = ()
        self._readers: dict[Log, Reader] = {}
        self._scheduled = False
        self._is_cold = False
        self._readable: dict[str, bool] = {}
        """Authorization decisions by topic."""
        self._waits_for_readers = self._has_waited_for_readers = False
        self._is_looking = self._looks_again = False
        self._enough = 0

    def begin(self, max_wait_ms: int) -> Steps[messages.FetchResponse | None]:
        """Start the fetch, in several event-loop turns if it has many partitions."""
        if not self._is_large():
            return self.start(max_wait_ms)
        names = dict.fromkeys(each.topic for each in self._partitions if each.topic is not None)
        readable = yield from self._context.may_each(Operation.READ, ResourceType.TOPIC, names)
        self._readable = {name: name in readable for name in names}
        answer = yield from self._look_in_steps(late=max_wait_ms <= 0)
        if answer is None:
            self.wait(max_wait_ms)
        return answer

    def again(self) -> bool:
        """Read again; return whether the fetch has stopped waiting, or False while it reads in turns."""
        if not self.waiting or not self._is_large():
            return super().again()
        if self._is_looking:
            self._looks_again = True
        else:
            self._is_looking = True
            self._context.broker.turns.run(self._look_in_turns())
        return False

    def _look_in_turns(self) -> Steps[None]:
        answer = yield from self._look_in_steps(late=self.is_late)
        self._is_looking = False
        if answer is not None:
            self.end(answer)
        elif self._looks_again:
            self._looks_again = False
            self._schedule()

    def _is_large(self) -> bool:
        return len(self._partitions) > _AT_ONCE

    def look(self, *, late: bool) -> messages.FetchResponse | None:
        """Read every partition within the byte limits.

        Return None while there is not enough. An expired fetch waits only for disk reads, and for memory for
        another answer.
        """
        look = self._begin_look(late=late)
        if look is None:
            return None
        for partition in self._partitions:
            self._look_at(partition, look)
        if not self._is_enough(look):
            return None
        return exhaust(self._answer(look))

    def _look_in_steps(self, *, late: bool) -> Steps[messages.FetchResponse | None]:
        """Read as `look` does, in steps."""
        look = self._begin_look(late=late)
        if look is None:
            return None
        for partition in self._partitions:
            self._look_at(partition, look)
            yield
        # a fetch beyond honest limits is not kept waiting
        look.is_ready = look.is_ready or look.failures() > _FAILURES_KEPT
        if not self._is_enough(look):
            return None
        return (yield from self._answer(look))

    def _begin_look(self, *, late: bool) -> _Look | None:
        answer_room = self._context.connection.answer_room()
        if not answer_room:
            self._wait_for_readers()
            return None
        room = min(self._room, self._max_bytes, self._context.broker.config.fetch_max_bytes, answer_room)
        self._enough = min(self._min_bytes, self._room, answer_room)
        self._is_cold = False
        look = _Look(late=late, room=room)
        self._logs = look.logs
        return look

    def _look_at(self, partition: FetchPartition, look: _Look) -> None:
        try:
            log = self._find(partition)
        except KafkaError as error:
            failed = _failed(partition.key[1], error.code)
            if error.code is ErrorCode.INCONSISTENT_TOPIC_ID:
                look.is_ready = True
                look.answers.append((partition, failed))
                return
            failed["aborted_transactions"] = ()
            (look.unknown if partition.topic is None else look.missing).append((partition, failed))
            return
        look.logs.append(log)
        try:
            room = look.room - look.total
            answer, size = self._read(log, partition, room, at_least_one=not look.total)
            look.total += size
            look.is_ready = look.is_ready or "diverging_epoch" in answer
        except KafkaError as error:
            answer = _failed(partition.key[1], error.code)
            look.is_ready = True
        look.answers.append((partition, answer))

    def _is_enough(self, look: _Look) -> bool:
        if self._is_cold or not (look.is_ready or look.total >= self._enough or not look.logs):
            return False
        self._readers.clear()  # they refer to this fetch: avoid a cycle
        return True

    def _answer(self, look: _Look) -> Steps[messages.FetchResponse]:
        """Return the full response, or the changes for an incremental fetch session."""
        session = self._session
        if session is not None and session.epoch != next_epoch(self._epoch):
            # another request of the session arrived in the meantime
            code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return {"error_code": code, "session_id": session.session_id, "responses": []}
        topics: list[messages.FetchableTopicResponse] = []
        partitions: list[messages.FetchPartitionData] = []
        last: UUID | str | None = None
        for partition, answer in chain(look.answers, look.unknown, look.missing):
            failed = "error_code" in answer
            is_new = partition.note(answer["high_watermark"], answer["log_start_offset"], failed=failed)
            if session is not None and answer["records"]:
                session.to_the_end(partition.key)
            if session is None or is_new or answer["records"] or "diverging_epoch" in answer:
                topic = partition.key[0]
                # group consecutive answers of a topic
                if not topics or last != topic:
                    last, partitions = topic, []
                    topics.append(
                        {"topic": topic, "partitions": partitions}
                        if isinstance(topic, str)
                        else {"topic_id": topic, "partitions": partitions}
                    )
                partitions.append(answer)
            yield
        session_id = NO_SESSION if session is None else session.session_id
        if self._epoch == INITIAL_EPOCH and look.failures() <= _FAILURES_KEPT:
            kept = [partition for partition, _ in chain(look.answers, look.unknown, look.missing)]
            session_id = self._sessions.open(kept, by_id=self._by_id)
        return {"session_id": session_id, "responses": topics}

    def watch(self) -> None:
        self._watched = self._logs
        for log in self._watched:
            log.on_advance(self._advanced)

    def unwatch(self) -> None:
        for log in self._watched:
            log.off_advance(self._advanced)

    def _read(
        self, log: Log, partition: FetchPartition, room: int, *, at_least_one: bool
    ) -> tuple[messages.FetchPartitionData, int]:
        place = partition.place
        start, high_watermark = log.start_offset, log.high_watermark
        stable = log.last_stable_offset
        answer: messages.FetchPartitionData = {
            "partition_index": partition.key[1],
            "high_watermark": high_watermark,
            "last_stable_offset": stable,
            "log_start_offset": start,
            "aborted_transactions": None,
            "records": b"",
        }
        # as on Apache Kafka, any negative epoch means that the client knows none
        if place.leader_epoch >= 0:
            epoch = self._context.broker.cluster.leader(log.topic_id, log.index).epoch
            refusal = wrong_epoch(place.leader_epoch, epoch)
            if refusal is not None:
                raise KafkaError(refusal)
        if place.last_epoch > _EPOCH or place.offset < start:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if place.offset > log.end_offset:
            if place.last_epoch != _EPOCH:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            # the client has read past the end of this log
            answer["diverging_epoch"] = {"epoch": _EPOCH, "end_offset": log.end_offset}
            return answer, 0
        limit = stable if self._committed else high_watermark
        used = 0
        if self._committed:
            answer["aborted_transactions"] = []
        if place.offset < limit and (room > 0 or at_least_one):
            size = min(place.max_bytes, max(room, 0))
            found = self._reader(log).read(place.offset, size, limit=limit, at_least_one=at_least_one)
            if found is None:
                # the answer is assembled again; until then its record bytes stay reserved
                self._is_cold = True
                return answer, size
            answer["records"] = found.records
            used = len(found.records)
            if found.batches and found.batches[-1][1] + 1 < limit:
                # the next batch does not fit: treat the remaining bytes as used
                used = max(used, size)
            if self._committed and found.records:
                answer["aborted_transactions"] = [
                    {"producer_id": producer_id, "first_offset": first}
                    for producer_id, first in log.aborted(place.offset, found.batches[-1][1] + 1)
                ]
            elif size > 0 and not found.records:
                answer["aborted_transactions"] = None  # as Apache Kafka answers for a batch that does not fit
        return answer, used

    def _reader(self, log: Log) -> Reader:
        reader = self._readers.get(log)
        if reader is None:
            self._readers[log] = reader = Reader(log, self._schedule)
        return reader

    def _find(self, partition: FetchPartition) -> Log:
        key, index = partition.key
        topics = self._context.broker.topics
        found = topics.by_id(key) if self._by_id else topics.get(key)
        if found is not None:
            partition.topic = found.name
        if partition.topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._may_read(partition.topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if found is None and self._by_id:
            # the topic was deleted, and perhaps recreated
            anew = topics.log(partition.topic, index) is not None
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID if anew else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        if found is None or not 0 <= index < len(found.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        log: Log = found.partitions[index]
        return log

    def _may_read(self, topic: str) -> bool:
        """Return whether the client may read a topic; decided once per fetch."""
        known = self._readable.get(topic)
        if known is None:
            known = self._readable[topic] = self._context.may(Operation.READ, ResourceType.TOPIC, topic)
        return known

    def _advanced(self, log: Log) -> None:
        """Schedule another read after an append."""
        if not self._is_cold:
            self._schedule()

    def _schedule(self) -> None:
        """Schedule another read; events of the same event-loop turn share it."""
        if self._scheduled:
            return
        self._scheduled = True
        loop = asyncio.get_running_loop()
        if self._is_large():
            # delay the next read, so that constant appends do not keep a large fetch reading
            loop.call_later(len(self._partitions) * _PAUSE_SECONDS, self._read_again)
        else:
            loop.call_soon(self._read_again)

    def _wait_for_readers(self) -> None:
        """Read again when clients have read other answers."""
        if not self._waits_for_readers:
            self._waits_for_readers = True
            self._context.connection.when_answer_room(self._readers_have_read)

    def _readers_have_read(self) -> None:
        self._waits_for_readers = False
        self._has_waited_for_readers = True
        self._schedule()

    def _read_again(self) -> None:
        self._scheduled = False
        if not self.again() and self._has_waited_for_readers:
            # the failed read has no logs to watch
            self._has_waited_for_readers = False
            self.unwatch()
            self.watch()


def _failed(partition: int, code: ErrorCode) -> messages.FetchPartitionData:
    return {
        "partition_index": partition,
        "error_code": code,
        "high_watermark": -1,
        "log_start_offset": -1,
        "aborted_transactions": None,
        "records": b"",
    }
