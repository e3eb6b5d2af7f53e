"""Share state on the owner of its slot: this node or another one.

A share-partition leader has its state in the same slot and uses this node; a leader that has lost the slot is
refused. A group's coordinator may be on another node: it creates, deletes and summarizes state through
Kafka's RPCs (KIP-932).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar
from uuid import UUID

from sharecore._core import Write
from sharecore.broker.cluster import NOBODY, Leader
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import Done, LoadedState, Persister, SharePartitionKey, StateSummary
from sharecore.protocol import calls
from sharecore.protocol.calls import Call
from sharecore.waiting import Timer, Timers

if TYPE_CHECKING:
    from sharecore.protocol import received

    ShareStateAnswer: TypeAlias = (
        received.InitializeShareGroupStateResponse
        | received.DeleteShareGroupStateResponse
        | received.ReadShareGroupStateSummaryResponse
    )
    ShareStateResult: TypeAlias = (
        received.InitializeShareGroupStatePartitionResult
        | received.DeleteShareGroupStatePartitionResult
        | received.ReadShareGroupStateSummaryPartitionResult
    )

Response = TypeVar("Response")

logger = logging.getLogger("sharecore.tier")

_BACKOFF_MS, _BACKOFF_MAX_MS = 50, 1_000
_PASSING = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        # the owner does not know a new topic yet
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Asking(Protocol):
    """Requests to other nodes (`tier.peers.Peers`)."""

    async def ask(
        self, node: int, call: Call[Response], message: dict[str, object], check: Callable[[], None]
    ) -> Response:
        """Return the response of another node; `check` raises if the answer is not wanted any more."""


class View(Protocol):
    """Slot owners (`tier.view.TierView`)."""

    def keeper(self, topic_id: UUID, partition: int) -> Leader:
        """Return the node that keeps the state of a share partition, and its epoch."""

    def check_coordinator(self, group_id: str) -> None:
        """Raise KafkaError unless this node coordinates the group."""

    def term(self, group_id: str) -> int:
        """Return the epoch of the group's coordinator."""


def _nothing(result: ShareStateResult) -> None:
    return None


def _summary(result: ShareStateResult) -> StateSummary:
    return StateSummary(*(getattr(result, name, -1) for name in StateSummary._fields))


class _Kind(NamedTuple):
    """A remote operation: its API, its result, and errors to ignore.

    Changes carry the epoch of the group's coordinator: the owner refuses late requests of a former
    coordinator.
    """

    call: Call[ShareStateAnswer]
    read: Callable[[ShareStateResult], StateSummary | None]
    done_already: frozenset[ErrorCode] = frozenset()
    changes: bool = True


_INITIALIZE = _Kind(calls.INITIALIZE_SHARE_GROUP_STATE, _nothing)
_SUMMARY = _Kind(calls.READ_SHARE_GROUP_STATE_SUMMARY, _summary, changes=False)
# an owner that has seen the topic's deletion has dropped its state
_DELETE = _Kind(calls.DELETE_SHARE_GROUP_STATE, _nothing, frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}))


class _Call:
    """One pending operation on one share partition."""

    def __init__(
        self,
        kind: _Kind,
        key: SharePartitionKey,
        fields: Mapping[str, int],
        local: Callable[[Callable[..., None]], object],
        done: Callable[..., None],
        until_ms: int,
        term: int,
    ) -> None:
        self.kind, self.key, self.fields = kind, key, fields
        self.local, self.done = local, done
        self.until_ms, self.term = until_ms, term
        self.backoff_ms = _BACKOFF_MS
        self.timer: Timer | None = None


class TierPersister:
    """Store share state on the owner of its slot (`persister.Persister`).

    Failed operations are retried, such as while a slot moves. Operations on one share partition run in order.

    Args:
        local: stores state in this node's slots.
        view: leaders of share partitions and coordinators of groups.
        node_id: this node's id.
        peers: sends requests to other nodes.
        timers: schedules retries.
        now_ms: a monotonic clock.
        timeout_ms: timeout of an operation with its retries.
    """

    def __init__(
        self,
        local: Persister,
        view: View,
        node_id: int,
        peers: Asking,
        timers: Timers,
        now_ms: Callable[[], int],
        timeout_ms: int,
    ) -> None:
        self._local = local
        self._view = view
        self._node_id = node_id
        self._peers = peers
        self._timers = timers
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._calls: dict[SharePartitionKey, deque[_Call]] = {}
        self._outgoing: dict[tuple[int, _Kind, str, int], list[_Call]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # for leaders: their state is on this node

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[LoadedState | KafkaError], None]
    ) -> None:
        self._local.read(key, leader_epoch, done)

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        self._local.write(key, state_epoch, leader_epoch, write, done)

    def write_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int, done: Done
    ) -> None:
        self._local.write_start(key, state_epoch, leader_epoch, start_offset, done)

    # for coordinators of groups

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        fields = {"state_epoch": state_epoch, "start_offset": start_offset}
        local = partial(self._local.initialize, key, state_epoch, start_offset)
        self._begin(_INITIALIZE, key, fields, local, done)

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        self._begin(_DELETE, key, {}, partial(self._local.delete, key), done)

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        self._begin(_SUMMARY, key, {"leader_epoch": 0}, partial(self._local.summary, key), done)

    def close(self) -> None:
        """End pending operations, as the node stops."""
        for task in self._tasks:
            task.cancel()
        calls, self._calls = self._calls, {}
        for call in (each for queue in calls.values() for each in queue):
            if call.timer is not None:
                call.timer.cancel()
            call.done(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The node stops."))
        self._local.close()

    def _begin(
        self,
        kind: _Kind,
        key: SharePartitionKey,
        fields: Mapping[str, int],
        local: Callable[[Callable[..., None]], object],
        done: Callable[..., None],
    ) -> None:
        until_ms, term = self._now_ms() + self._timeout_ms, self._view.term(key.group_id)
        call = _Call(kind, key, fields, local, done, until_ms, term)
        before = self._calls.setdefault(key, deque())
        before.append(call)
        if len(before) == 1:
            self._try(call)

    def _try(self, call: _Call) -> None:
        call.timer = None
        owner = self._view.keeper(call.key.topic_id, call.key.partition).node_id
        try:
            self._check(call)
            if owner == NOBODY:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The slot has no owner now.")
            if owner == self._node_id:
                call.local(partial(self._ended, call))
                return
        except KafkaError as error:
            self._ended(call, error)
            return
        if not self._outgoing:
            self._timers.call_soon(self._send)
        asked = self._outgoing.setdefault((owner, call.kind, call.key.group_id, call.term), [])
        asked.append(call)

    def _is_former(self, call: _Call) -> bool:
        """Return whether another node has coordinated the group since the call was made."""
        return self._view.term(call.key.group_id) != call.term

    def _check(self, call: _Call) -> None:
        """Raise KafkaError if this node may not send the call now."""
        self._view.check_coordinator(call.key.group_id)
        if self._is_former(call):
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "Another node has coordinated the group since.")

    def _ended(self, call: _Call, outcome: StateSummary | KafkaError | None) -> None:
        queue = self._calls.get(call.key)
        if queue is None or queue[0] is not call:
            return
        if isinstance(outcome, KafkaError):
            if outcome.code in call.kind.done_already:
                outcome = None
            elif self._may_pass(call, outcome):
                call.timer = self._timers.call_later(call.backoff_ms / 1000, partial(self._try, call))
                call.backoff_ms = min(2 * call.backoff_ms, _BACKOFF_MAX_MS)
                return
        queue.popleft()
        if not queue:
            del self._calls[call.key]
        call.done(outcome)
        if queue:
            self._try(queue[0])

    def _may_pass(self, call: _Call, error: KafkaError) -> bool:
        in_time = self._now_ms() + call.backoff_ms < call.until_ms
        return error.code in _PASSING and in_time and not self._is_former(call)

    # remote calls

    def _send(self) -> None:
        outgoing, self._outgoing = self._outgoing, {}
        for (node, kind, group_id, term), batch in outgoing.items():
            message: dict[str, object] = {"group_id": group_id}
            if kind.changes:
                message["coordinator_epoch"] = term
            task = asyncio.get_running_loop().create_task(self._ask(node, kind.call, message, batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(
        self, node: int, remote: Call[ShareStateAnswer], message: dict[str, object], batch: list[_Call]
    ) -> None:
        topics: dict[UUID, list[dict[str, int]]] = {}
        for call in batch:
            partitions = topics.setdefault(call.key.topic_id, [])
            partitions.append({"partition": call.key.partition} | dict(call.fields))
        message["topics"] = [
            {"topic_id": topic_id, "partitions": asked} for topic_id, asked in topics.items()
        ]
        results: dict[tuple[UUID | None, int], ShareStateResult] = {}
        failed = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"node {node} returned no result for it")
        try:
            answer = await self._peers.ask(node, remote, message, partial(self._check_all, batch))
            for topic in answer.results:
                results |= {(topic.topic_id, each.partition): each for each in topic.partitions}
        except KafkaError as error:
            if error.code not in _PASSING:
                logger.error("cannot reach node %d for share state: %s", node, error)
            failed = error
        for call in batch:
            result = results.get((call.key.topic_id, call.key.partition))
            if result is None:
                self._ended(call, failed)
            elif result.error_code:
                self._ended(call, _error(node, result))
            else:
                self._ended(call, call.kind.read(result))

    def _check_all(self, batch: list[_Call]) -> None:
        for call in batch:
            self._check(call)


def _error(node: int, result: ShareStateResult) -> KafkaError:
    code, text = ErrorCode(result.error_code), result.error_message or ""
    if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        text = f"node {node} refuses share state to this one: give its user CLUSTER_ACTION on the cluster"
        logger.error("%s", text)
    return KafkaError(code, text)
