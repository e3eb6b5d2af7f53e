"""Fetch: records of partitions that a consumer was assigned or chose; waits until there are enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sharecore.broker.context import RequestContext, Result
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
from sharecore.waiting import DelayedFetch, Gather, reply

if TYPE_CHECKING:
    from sharecore.broker.services import Services

_IDS_SINCE = 13
_READ_COMMITTED = 1
_EPOCH = 0
"""Of the one leader that every partition has had."""


def begin(broker: Services) -> Handler:
    """The handler of one broker, with the fetch sessions."""
    slots = broker.config.max_incremental_fetch_session_cache_slots
    bytes_max = broker.config.sharecore_fetch_sessions_bytes_max
    sessions = FetchSessionCache(slots, broker.clock.now_ms, bytes_max)

    def handle(context: RequestContext, request: Any) -> Result:
        return _handle(context, request, sessions)

    return handle


def _handle(context: RequestContext, request: Any, sessions: FetchSessionCache) -> Result:
    by_id = context.api_version >= _IDS_SINCE
    wanted = _wanted(context, request, by_id=by_id)
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
    message = fetch.start(request.max_wait_ms)
    if message is not None:
        return message
    answer = reply(gather, lambda: gather.outcomes[None])
    answer.add_done_callback(lambda _: fetch.cancel())
    return answer


def _wanted(context: RequestContext, request: Any, *, by_id: bool) -> list[FetchPartition]:
    """The partitions that a request names, the last time that it does where it names one twice."""
    topics = context.broker.topics
    wanted: dict[PartitionId, FetchPartition] = {}
    for topic in request.topics:
        key = topic.topic_id if by_id else topic.topic
        found = topics.by_id(key) if by_id else None
        name = (found.name if found is not None else None) if by_id else key
        for asked in topic.partitions:
            place = Place(
                asked.fetch_offset,
                asked.partition_max_bytes,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
            )
            wanted[key, asked.partition] = FetchPartition((key, asked.partition), name, place)
    return list(wanted.values())


class _Fetch(DelayedFetch[dict[str, Any]]):
    """One request: reads what there is, and reads again when a log has grown or was read from the disk."""

    def __init__(
        self,
        context: RequestContext,
        request: Any,
        sessions: FetchSessionCache,
        session: FetchSession | None,
        wanted: Sequence[FetchPartition],
        ended: Callable[[dict[str, Any]], None],
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
        self._waits_for_readers = self._has_waited_for_readers = False

    def look(self, *, late: bool) -> dict[str, Any] | None:
        """Reads every partition, within the limits of bytes.

        None while there is not enough; and, even when its time is over, while a thread reads from the disk or
        there is no room in memory for another answer.
        """
        answer_room = self._context.connection.answer_room()
        if not answer_room:
            self._wait_for_readers()
            return None
        room = min(self._room, self._max_bytes, self._context.broker.config.fetch_max_bytes, answer_room)
        total = 0
        answers: list[tuple[FetchPartition, dict[str, Any]]] = []
        unknown: list[tuple[FetchPartition, dict[str, Any]]] = []
        missing: list[tuple[FetchPartition, dict[str, Any]]] = []
        self._logs = []
        self._is_cold = False
        is_ready = late
        for partition in self._partitions:
            try:
                log = self._find(partition)
            except KafkaError as error:
                failed = _failed(partition.key[1], error.code)
                if error.code is ErrorCode.INCONSISTENT_TOPIC_ID:
                    is_ready = True
                    answers.append((partition, failed))
                    continue
                # as Apache Kafka orders them: what is not there last, and ids of nothing before that
                (unknown if partition.topic is None else missing).append(
                    (partition, failed | {"aborted_transactions": ()})
                )
                continue
            self._logs.append(log)
            try:
                answer, size = self._read(log, partition, room - total, at_least_one=not total)
                total += size
                is_ready = is_ready or "diverging_epoch" in answer
            except KafkaError as error:
                answer = _failed(partition.key[1], error.code)
                is_ready = True
            answers.append((partition, answer))
        if self._is_cold or not (
            is_ready or total >= min(self._min_bytes, self._room, answer_room) or not self._logs
        ):
            return None
        self._readers.clear()  # they hold this fetch: a cycle a fetch is work for the collector
        return self._answer(answers + unknown + missing)

    def _answer(self, answers: Sequence[tuple[FetchPartition, dict[str, Any]]]) -> dict[str, Any]:
        """The whole answer; in a session that goes on only what is new."""
        session = self._session
        if session is not None and session.epoch != next_epoch(self._epoch):
            # another request of the session has come meanwhile
            code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return {"error_code": code, "session_id": session.session_id, "responses": []}
        told = []
        for partition, answer in answers:
            failed = "error_code" in answer
            is_new = partition.note(answer["high_watermark"], answer["log_start_offset"], failed=failed)
            if session is not None and answer["records"]:
                session.to_the_end(partition.key)
            if session is None or is_new or answer["records"] or "diverging_epoch" in answer:
                told.append((partition, answer))
        session_id = NO_SESSION if session is None else session.session_id
        if self._epoch == INITIAL_EPOCH:
            session_id = self._sessions.open((partition for partition, _ in answers), by_id=self._by_id)
        return {"session_id": session_id, "responses": self._by_topic(told)}

    def _by_topic(self, answers: Iterable[tuple[FetchPartition, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Answers of one topic together, where they come behind each other."""
        name = "topic_id" if self._by_id else "topic"
        topics: list[dict[str, Any]] = []
        for partition, answer in answers:
            topic = partition.key[0]
            if not topics or topics[-1][name] != topic:
                topics.append({name: topic, "partitions": []})
            topics[-1]["partitions"].append(answer)
        return topics

    def watch(self) -> None:
        self._watched = self._logs
        for log in self._watched:
            log.on_advance(self._advanced)

    def unwatch(self) -> None:
        for log in self._watched:
            log.off_advance(self._advanced)

    def _read(
        self, log: Log, partition: FetchPartition, room: int, *, at_least_one: bool
    ) -> tuple[dict[str, Any], int]:
        place = partition.place
        start, high_watermark = log.start_offset, log.high_watermark
        stable = log.last_stable_offset
        answer: dict[str, Any] = {
            "partition_index": partition.key[1],
            "high_watermark": high_watermark,
            "last_stable_offset": stable,
            "log_start_offset": start,
            "aborted_transactions": None,
            "records": b"",
        }
        if place.leader_epoch > _EPOCH:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if place.last_epoch > _EPOCH or place.offset < start:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if place.offset > log.end_offset:
            if place.last_epoch != _EPOCH:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            # the client has read on where this log never went
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
                # the answer is put together anew: until then this much of its room is taken
                self._is_cold = True
                return answer, size
            answer["records"] = found.records
            used = len(found.records)
            if found.batches and found.batches[-1][1] + 1 < limit:
                # the next batch does not fit, which fills the room as if a part of it came along
                used = max(used, size)
            if self._committed and found.records:
                answer["aborted_transactions"] = [
                    {"producer_id": producer_id, "first_offset": first}
                    for producer_id, first in log.aborted(place.offset, found.batches[-1][1] + 1)
                ]
            elif size > 0 and not found.records:
                answer["aborted_transactions"] = None  # as Apache Kafka tells of a batch that does not fit
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
            # it was deleted, and perhaps made anew
            anew = topics.log(partition.topic, index) is not None
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID if anew else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        if found is None or not 0 <= index < len(found.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        log: Log = found.partitions[index]
        return log

    def _may_read(self, topic: str) -> bool:
        """Whether the client may read a topic, decided once a fetch."""
        known = self._readable.get(topic)
        if known is None:
            known = self._readable[topic] = self._context.may(Operation.READ, ResourceType.TOPIC, topic)
        return known

    def _advanced(self, log: Log) -> None:
        """A log has grown."""
        if not self._is_cold:
            self._schedule()

    def _schedule(self) -> None:
        """Reads again; what happens in the same turn of the loop costs one more read."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._read_again)

    def _wait_for_readers(self) -> None:
        """Look again when clients have read other answers."""
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
            # the look that could not begin has found no logs to watch
            self._has_waited_for_readers = False
            self.unwatch()
            self.watch()


def _failed(partition: int, code: ErrorCode) -> dict[str, Any]:
    return {
        "partition_index": partition,
        "error_code": code,
        "high_watermark": -1,
        "log_start_offset": -1,
        "aborted_transactions": None,
        "records": b"",
    }
