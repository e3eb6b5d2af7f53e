"""The offsets acquired by one fetch from one share partition, and the state of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from sharecore.client.wire.cluster import TopicIdPartition
from sharecore.errors import ErrorCode, KafkaError


class AcknowledgeType(IntEnum):
    """An acknowledge type, numbered as in ShareFetch and ShareAcknowledge."""

    ACCEPT = 1
    """Processed; not redelivered."""
    RELEASE = 2
    """Not processed; redelivered to any member, unless the delivery limit is reached."""
    REJECT = 3
    """Cannot be processed; not redelivered."""
    RENEW = 4
    """Still being processed; the acquisition lock restarts."""


GAP = 0
HELD = 0x10
_EXPIRED, _SENT, _DONE = 0x11, 0x20, 0x30
_HELD_BYTE, _EXPIRED_BYTE = bytes([HELD]), bytes([_EXPIRED])
_LEFT = (HELD, _EXPIRED)
_PENDING = re.compile(rb"[\x00-\x04]+")
_UNDECIDED = re.compile(rb"[\x10\x11]")
_UNSETTLED = re.compile(rb"[\x01-\x04\x21-\x24]")
_MARKABLE = re.compile(rb"[\x01-\x04\x10\x11\x24]")
_TO_SENT = bytes(code | _SENT if code <= AcknowledgeType.RENEW else code for code in range(256))
_TO_PENDING = bytes(code & 0x0F if _SENT <= code < _DONE else code for code in range(256))
_SENT_RENEW = _SENT | AcknowledgeType.RENEW
_WITH_APPLICATION = (HELD, _SENT_RENEW, int(AcknowledgeType.RENEW))
_RENEW_BYTE = bytes([AcknowledgeType.RENEW])
_MARK = {
    kind: bytes(kind if code in _LEFT else code for code in range(256)) for kind in (GAP, *AcknowledgeType)
}


class Span(NamedTuple):
    """Neighboring offsets acknowledged in one batch; `at` is the position of the first."""

    first: int
    last: int
    types: bytes
    at: int


class Owner(Protocol):
    """The link to the broker that the offsets were acquired from, for their acknowledgements."""

    @property
    def host(self) -> object: ...
    @property
    def renews(self) -> bool: ...
    def need_renewal(self) -> None: ...
    def mark(self, lease: Lease, low: int, high: int, kind: int) -> None: ...
    def commit(self) -> None: ...
    async def flush(self) -> None: ...


class Lease:
    """The acquired offsets of one fetch, each held, marked with an acknowledge type, sent, or done.

    One byte per offset; marking, collecting and completing use slices, so that a batch of records costs only
    a few calls.

    Args:
        topic: the topic's name.
        key: the share partition.
        acquired: (first offset, last offset, delivery count), ascending.
        deadline_ms: when the acquisition lock expires.
        owner: the link to the broker that the offsets were acquired from.

    Attributes:
        queued: whether the owner knows that there is something to send, so that further acknowledgements only
            need a mark.
        working: positions that the application leased, renewed or put back: it may poll before it
            acknowledges them.
    """

    __slots__ = (
        "_later",
        "_ranges",
        "_renewed",
        "deadline_ms",
        "key",
        "lost",
        "open",
        "owner",
        "queued",
        "states",
        "topic",
        "working",
    )

    def __init__(
        self,
        topic: str,
        key: TopicIdPartition,
        acquired: Iterable[Sequence[int]],
        deadline_ms: int,
        owner: Owner,
    ) -> None:
        self.topic, self.key, self.deadline_ms, self.owner = topic, key, deadline_ms, owner
        self.lost: KafkaError | None = None
        self.queued = False
        self.working: set[int] = set()
        self._ranges: list[tuple[int, int, int]] = []
        self._later: dict[int, int] = {}
        self._renewed: dict[int, int] = {}
        size = 0
        for first, last, _ in acquired:
            if self._ranges and self._ranges[-1][1] == first - 1:
                before = self._ranges[-1]
                self._ranges[-1] = (before[0], last, before[2])
            else:
                self._ranges.append((first, last, size))
            size += last - first + 1
        self.states = bytearray(_HELD_BYTE) * size
        self.open = size

    @property
    def partition(self) -> int:
        return self.key.partition

    def positions(self, first: int, last: int) -> tuple[int, int]:
        """Return the position range in `states` of neighboring acquired offsets, as (from, to)."""
        for range_first, range_last, at in self._ranges:
            if range_first <= first and last <= range_last:
                return at + first - range_first, at + last - range_first + 1
        raise ValueError(f"offsets {first}-{last} were not acquired together")

    def mark(self, low: int, high: int, kind: int) -> None:
        """Mark the held positions from `low` to `high`.

        A single position may be marked again until it is sent. A lock that has expired by the local clock is
        still marked: the leader decides.

        Raises:
            KafkaError: INVALID_RECORD_STATE: a single position was already acknowledged.
        """
        states = self.states
        if high - low == 1:
            state = states[low]
            if state == HELD or state <= AcknowledgeType.RENEW:
                states[low] = kind
            elif state == _EXPIRED:
                states[low] = kind
                self.open += 1
            elif state != _SENT_RENEW:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE,
                    f"{self.topic}-{self.partition}: the record was acknowledged before",
                )
            elif kind != AcknowledgeType.RENEW:
                self._later[low] = kind
            return
        section = states[low:high]
        if kind != AcknowledgeType.RENEW:
            if section.find(_SENT_RENEW) >= 0:
                self._later.update(
                    (low + at, kind) for at, state in enumerate(section) if state == _SENT_RENEW
                )
            section = section.replace(_RENEW_BYTE, _HELD_BYTE)
        self.open += section.count(_EXPIRED)
        states[low:high] = section.translate(_MARK[kind])

    def holds(self, low: int, high: int) -> bool:
        """Return whether the application still holds anything there; pending renewals count as held."""
        section = self.states[low:high]
        return any(section.find(state) >= 0 for state in _WITH_APPLICATION)

    def accepts_marks(self, low: int, high: int) -> bool:
        """Return whether something there is held, or acknowledged and not sent."""
        return _MARKABLE.search(self.states, low, high) is not None

    def expired(self, low: int, high: int) -> bool:
        """Return whether a lock there expired before an acknowledgement."""
        return self.states.find(_EXPIRED, low, high) >= 0

    def renews_at(self, position: int) -> bool:
        """Return whether a renewal of that position is unanswered."""
        return self.states[position] in (AcknowledgeType.RENEW, _SENT_RENEW)

    def undecided(self, low: int, high: int) -> bool:
        """Return whether a position there is neither acknowledged nor in progress."""
        at = _UNDECIDED.search(self.states, low, high)
        while at is not None:
            if at.start() not in self.working:
                return True
            at = _UNDECIDED.search(self.states, at.end(), high)
        return False

    def spans(self, low: int, high: int) -> list[Span]:
        """Return positions `low` to `high` as runs of neighboring offsets, with their marks."""
        found = []
        for range_first, range_last, at in self._ranges:
            from_, to = max(low, at), min(high, at + range_last - range_first + 1)
            if from_ < to:
                first = range_first + from_ - at
                found.append(Span(first, first + to - from_ - 1, bytes(self.states[from_:to]), from_))
        return found

    def collect(self) -> list[Span]:
        """Take the marked spans, to be sent."""
        spans = [span for found in _PENDING.finditer(self.states) for span in self.spans(*found.span())]
        for span in spans:
            end = span.at + len(span.types)
            self.states[span.at : end] = span.types.translate(_TO_SENT)
        return spans

    @property
    def unsettled(self) -> bool:
        """Whether a marked position is unanswered."""
        return _UNSETTLED.search(self.states) is not None

    @property
    def renews(self) -> bool:
        """Whether a renewal is marked."""
        return self.states.find(_RENEW_BYTE) >= 0

    def put_back(self, span: Span) -> None:
        """Restore collected spans that were not sent, or must be sent again."""
        end = span.at + len(span.types)
        self.states[span.at : end] = self.states[span.at : end].translate(_TO_PENDING)

    def settle(self, span: Span, error: KafkaError | None, deadline_ms: int) -> bool:
        """Apply the response to a span; return whether something that waited for it must be sent now.

        Args:
            span: a result of `collect`.
            error: None if it was accepted.
            deadline_ms: the new expiry of renewed locks.
        """
        states = self.states
        renews = span.types.count(AcknowledgeType.RENEW)
        size = len(span.types)
        if not renews or error is not None:
            states[span.at : span.at + size] = bytes([_DONE]) * size
            self.open -= size
            for position in [at for at in self._later if span.at <= at < span.at + size]:
                del self._later[position]
            return False
        again = False
        for position, kind in enumerate(span.types, span.at):
            if kind != AcknowledgeType.RENEW:
                states[position] = _DONE
                self.open -= 1
                continue
            self._renewed[position] = deadline_ms
            then = self._later.pop(position, None)
            states[position] = HELD if then is None else then
            again = again or then is not None
        return again

    def lose(self, error: KafkaError) -> list[Span]:
        """Lose all locks; return the marked or sent spans, whose acknowledgement has failed."""
        self.lost = error
        self.states = self.states.translate(_TO_PENDING)
        spans = [span for span in self.collect() if span.types.strip(bytes([GAP, AcknowledgeType.RENEW]))]
        self.states = bytearray([_DONE]) * len(self.states)
        self.open = 0
        self._later.clear()
        return spans

    def expire(self, now_ms: int) -> int:
        """Mark held positions past their deadline as expired; return their number."""
        if now_ms < self.deadline_ms:
            return 0
        held = self.states.count(HELD)
        if held == 0:
            return 0
        kept = [at for at, until in self._renewed.items() if until > now_ms and self.states[at] == HELD]
        self.states = self.states.replace(_HELD_BYTE, _EXPIRED_BYTE)
        for position in kept:
            self.states[position] = HELD
        self.open -= held - len(kept)
        return held - len(kept)

    def lock_until(self, low: int, high: int) -> int | None:
        """Return when the first lock of held positions there expires; None if none is held."""
        if not self.holds(low, high):
            return None
        if not self._renewed:
            return self.deadline_ms
        renewed, deadline = self._renewed, self.deadline_ms
        return min(
            renewed.get(at, deadline) for at in range(low, high) if self.states[at] in _WITH_APPLICATION
        )
