"""Sees every byte at the broker's end, and holds what was answered against what is answered later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from tests.harness.frames import Framer
from tests.simulation.lags import Lags
from tests.simulation.leases import Claim, SharePartition
from tests.simulation.ledger import Ledger
from tests.simulation.loop import SimulatedLoop
from tests.simulation.network import End
from tests.simulation.queues.audit import Delivery, QueueAudit
from tests.simulation.story import Story

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey, MalformedMessage, codec, read_header

_WATCHED = {
    ApiKey.PRODUCE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_GROUPS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
}
_RESETS = {ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS, ApiKey.DELETE_GROUPS}
_CERTAIN = {
    ErrorCode.INVALID_RECORD_STATE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
}
_ANSWER_S, _SICK_ANSWER_S = 15.0, 30.0
Key = tuple[str, UUID, int]


def _starts(request: Any) -> dict[tuple[str, int], int]:
    """Where an alteration would have share partitions begin; nothing for a deletion."""
    return {
        (topic.topic_name, part.partition_index): part.start_offset
        for topic in getattr(request, "topics", ())
        for part in getattr(topic, "partitions", ())
    }


@dataclass
class _Asked:
    api: ApiKey
    version: int
    request: Any
    at: float
    alone: bool
    claims: dict[Key, list[Claim]] = field(default_factory=dict)
    known: Any = None
    stale: bool = False

    @property
    def wait_s(self) -> float:
        """How long the client lets the broker wait."""
        return float(getattr(self.request, "max_wait_ms", 0)) / 1000


@dataclass
class _Conversation:
    """One connection, as the broker's end of it sees it."""

    requests: Framer = field(default_factory=Framer)
    answers: Framer = field(default_factory=Framer)
    under_way: dict[int, _Asked | None] = field(default_factory=dict)
    sessions: set[tuple[str, str]] = field(default_factory=set)
    makes_sense: bool = True


class Auditor:
    """A tap of the network with a model of what share groups promise (KIP-932).

    Attributes:
        shares: what is known of each share partition.
        ledger: what is known of each log.
        lock_s: the shortest lock that each group ever had.
        committed: groups that read committed records only.
        sick: the disk fails: requests may take longer.
        salvaged: the disk was salvaged at some time: transactions may hang.
        lags: looks at the lags that are told.
        queues: looks at what queue settings promise.
        losses: how often was lost what had been said to be held; nothing from before counts then.
    """

    _sick_answer_s = _SICK_ANSWER_S
    _shortest_s = 1.0
    _model = SharePartition

    def __init__(
        self,
        loop: SimulatedLoop,
        story: Story,
        limit: int,
        extent: Callable[[UUID, int], tuple[int, int] | None],
    ) -> None:
        self.shares: dict[Key, SharePartition] = {}
        self.ledger = Ledger(story)
        self.lock_s: dict[str, float] = {}
        self.committed: set[str] = set()
        self.sick = False
        self.losses = 0
        self.salvaged = False
        self.limits: dict[str, tuple[int, int]] = {}
        self._limit = limit
        self._extent = extent
        self.lags = Lags(self.shares, self.ledger, story, extent)
        self.queues = QueueAudit(self.shares, self.ledger, story.broken)
        self._epochs: dict[tuple[str, str], int] = {}
        self._hidden: dict[str, int] = {}
        self._loop = loop
        self._story = story
        self._conversations: dict[int, _Conversation] = {}
        self._handlers: dict[ApiKey, Callable[[_Asked, Any], None]] = {
            ApiKey.PRODUCE: self._produced,
            ApiKey.SHARE_FETCH: self._fetched,
            ApiKey.SHARE_ACKNOWLEDGE: self._acknowledged,
            ApiKey.CREATE_TOPICS: self._created,
            ApiKey.DELETE_RECORDS: self._deleted,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS: self._reset,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS: self._reset,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: self._described,
            ApiKey.DELETE_GROUPS: self._groups_deleted,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._configured,
        }

    # events of the machine

    def restarted(self) -> None:
        """The broker is gone with its memory."""
        for share in self.shares.values():
            share.loosen(restarted=True)
            share.suspended = 0
        self.queues.restarted()

    def loaded(self, key: Key, start: int) -> None:
        """A share partition is led anew, from what was written, with this start offset."""
        if key in self.shares:
            self.shares[key].led(self._loop.now, start)

    def failed(self, key: Key) -> None:
        """The leader of a share partition has failed: the leases are gone."""
        if key in self.shares:
            self.shares[key].loosen(restarted=False)

    def harmed(self) -> None:
        """The disk does not hold what it had said it held: until it is repaired, batches may be damaged."""
        if not self.ledger.harmed:
            self._story.tell("disk", "has lost what it had said it held")
        self.ledger.harmed = True
        self.queues.lost(self._loop.now)
        self._forgive()

    def repaired(self, *, salvaged: bool) -> None:
        """The broker has a whole disk again, without what was lost: the newest, or if `salvaged` anything."""
        # a transaction may have lost its end and kept its records: it hangs, or the end of another one ends
        # it
        self.ledger.lose_ends()
        if salvaged:
            self.salvaged = True
            self._find_starts()
        self.ledger.harmed = False
        self._forgive()

    def _find_starts(self) -> None:
        """A log may have lost its oldest records."""
        for place, log in self.ledger.logs.items():
            extent = self._extent(*place)
            log.gone_below = max(log.gone_below, 0 if extent is None else extent[0])

    def _forgive(self) -> None:
        self.losses += 1
        for (_, topic_id, index), share in self.shares.items():
            share.forget(perhaps=True)
            share.over_below = max(share.over_below, self.ledger.log(topic_id, index).end)
        self.ledger.forgive()

    # tap

    def opened(self, link: End) -> None:
        self._conversations[link.number] = _Conversation()

    def closed(self, link: End) -> None:
        talk = self._conversations.pop(link.number, None)
        if talk is None:
            return
        for group, member in talk.sessions:
            self._session_ended(group, member)
        for asked in talk.under_way.values():
            if asked is not None and asked.api is ApiKey.SHARE_FETCH:
                self._untold(asked.request.group_id)
            elif asked is not None and asked.api in _RESETS:
                # its effect is unknown
                for _, share in self._reset_by(asked.request):
                    share.suspended = max(0, share.suspended - 1)
                    share.forget(perhaps=True)

    def received(self, link: End, data: bytes) -> None:
        talk = self._conversations[link.number]
        try:
            frames = talk.requests.feed(data) if talk.makes_sense else []
        except ValueError:
            talk.makes_sense, frames = False, []
        for frame in frames:
            try:
                header = read_header(frame)
                api = ApiKey(header.api_key)
                asked = None
                if api in _WATCHED:
                    request = codec(api, header.api_version).read_request(frame, header)
                    asked = _Asked(api, header.api_version, request, self._loop.now, not talk.under_way)
            except (MalformedMessage, ValueError):
                continue
            if asked is not None:
                self._asked(talk, asked)
                if api is ApiKey.PRODUCE and asked.request.acks == 0:
                    continue
            talk.under_way[header.correlation_id] = asked
            self._story.tell(f"connection {link.number}", f"asks {api.name}, {len(frame)} bytes")

    def sent(self, link: End, data: bytes) -> None:
        talk = self._conversations.get(link.number)
        if talk is None:
            return
        for frame in talk.answers.feed(data):
            number = int.from_bytes(frame[:4], "big")
            asked = talk.under_way.pop(number, None)
            if asked is not None:
                self._story.tell(
                    f"connection {link.number}", f"is answered {asked.api.name}, {len(frame)} bytes"
                )
                answer = codec(asked.api, asked.version).read_response(frame)[1]
                handler = self._handlers.get(asked.api)
                if handler is not None:
                    handler(asked, answer)

    def overdue(self, now: float) -> list[str]:
        """Requests that should have been answered long ago."""
        within = self._sick_answer_s if self.sick else _ANSWER_S
        return [
            f"{asked.api.name} of connection {number}, asked at {asked.at - 1000:.3f} s"
            for number, talk in self._conversations.items()
            for asked in talk.under_way.values()
            if asked is not None and now - asked.at > within + getattr(asked.request, "max_wait_ms", 0) / 1000
        ]

    # requests

    def share(self, key: Key) -> SharePartition:
        """What is known of a share partition."""
        found = self.shares.get(key)
        if found is None:
            group, topic_id, partition = key
            where = f"{group} {self.ledger.names.get(topic_id, str(topic_id)[:8])}-{partition}"
            lock_s = self.lock_s.get(group, self._shortest_s)
            limits = self.limits.get(group, (self._limit, self._limit))
            hidden = self._hidden.get(group, 0)
            expired = partial(self.queues.may_have_expired, key)
            found = self.shares[key] = self._model(
                where, lock_s, limits, hidden=hidden, may_have_expired=expired
            )
        return found

    def _untold(self, group: str) -> None:
        """A fetch of a group may have leased anything, and nobody was told, or will be."""
        self._hidden[group] = self._hidden.get(group, 0) + 1
        for share in self._of(group):
            share.hidden += 1

    def limit_altered(self, group: str, limit: int) -> None:
        """A group's records are delivered as often from now on, or some of them."""
        low, high = self.limits.get(group, (self._limit, self._limit))
        self.limits[group] = min(low, limit), max(high, limit)
        for share in self._of(group):
            share.limits = self.limits[group]

    def lock_altered(self, group: str, lock_s: float) -> None:
        """A group's locks last as long from now on, or some of them."""
        self.lock_s[group] = min(lock_s, self.lock_s.get(group, lock_s))
        for share in self._of(group):
            share.lock_s = self.lock_s[group]

    def _asked(self, talk: _Conversation, asked: _Asked) -> None:
        request, now = asked.request, self._loop.now
        if asked.api is ApiKey.PRODUCE:
            asked.known = self.ledger.asked(request, now)
        elif asked.api in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
            self._acknowledges(asked, now)
            session, epoch = (request.group_id, request.member_id), request.share_session_epoch
            asked.stale = epoch > 0 and self._epochs.get(session, epoch) != epoch
            if epoch >= 0 and not asked.stale:
                self._epochs[session] = epoch + 1
            else:
                # a refused request leaves the session unchanged, the final one ends it
                self._epochs = {
                    key: value for key, value in self._epochs.items() if epoch > 0 or key != session
                }
            if request.share_session_epoch == 0:
                talk.sessions.add((request.group_id, request.member_id))
            elif request.share_session_epoch == -1:
                self._session_ended(request.group_id, request.member_id)
        elif asked.api is ApiKey.SHARE_GROUP_HEARTBEAT and request.member_epoch <= 0:
            self._session_ended(request.group_id, request.member_id)
        elif asked.api in _RESETS:
            starts = _starts(request)
            for (_, topic_id, index), share in self._reset_by(request):
                share.suspend(starts.get((self.ledger.names.get(topic_id, ""), index)))
        elif asked.api is ApiKey.DELETE_RECORDS:
            self.ledger.deletes(request)
        elif asked.api is ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
            asked.known = self.lags.asked(request)
        elif asked.api is ApiKey.INCREMENTAL_ALTER_CONFIGS:
            asked.known = self.queues.asked(now, request)

    def _acknowledges(self, asked: _Asked, now: float) -> None:
        request = asked.request
        for topic in request.topics:
            for part in topic.partitions:
                if part.acknowledgement_batches and topic.topic_id is not None:
                    key = request.group_id, topic.topic_id, part.partition_index
                    share = self.share(key)
                    claims = share.claims(now, request.member_id, part.acknowledgement_batches)
                    self.queues.claimed(now, share, claims)
                    asked.claims[key] = claims

    def _session_ended(self, group: str, member: str) -> None:
        for share in self._of(group):
            share.let_go(self._loop.now, member)

    def _reset_by(self, request: Any) -> list[tuple[Key, SharePartition]]:
        groups = getattr(request, "groups_names", None) or [request.group_id]
        return [(key, share) for group in groups for key, share in self.shares.items() if key[0] == group]

    def _of(self, group: str) -> list[SharePartition]:
        return [share for (name, _, _), share in self.shares.items() if name == group]

    # answers

    def _report(self, wrong: list[tuple[str, str]]) -> None:
        for kind, text in wrong:
            self._story.broken(kind, text)

    def _produced(self, asked: _Asked, answer: Any) -> None:
        for topic in answer.responses:
            for part in topic.partition_responses:
                if not part.error_code:
                    rows = asked.known.get((topic.name, part.index), ())
                    self.ledger.produced(topic.name, part.index, rows, part.base_offset, asked.at)

    def _fetched(self, asked: _Asked, answer: Any) -> None:
        request, now = asked.request, self._loop.now
        self._acknowledged(asked, answer, "acknowledge_error_code")
        if answer.error_code:
            return
        for topic in answer.responses:
            for part in topic.partitions:
                if not part.acquired_records or topic.topic_id is None:
                    continue
                key = request.group_id, topic.topic_id, part.partition_index
                share = self.share(key)
                share.floor = self.ledger.log(*key[1:]).gone_below
                ranges = [tuple(each) for each in part.acquired_records]
                since = now if asked.alone and not asked.claims else asked.at
                self._story.tell(request.member_id, f"gets {share.where} {ranges}")
                committed = request.group_id in self.committed
                records = bytes(part.records or b"")
                self.ledger.delivered(*key[1:], records, ranges, committed=committed)
                offsets = [offset for first, last, _ in ranges for offset in range(first, last + 1)]
                surely = share.loaded_at < asked.at
                delivery = Delivery(
                    key, share, request.member_id, offsets, since, now, committed=committed, surely=surely
                )
                self.queues.delivered(delivery)
                self._report(share.deliver(now, since, request.member_id, ranges))
                self.queues.holds(delivery)
                if not surely:
                    # the previous leader may have acquired it
                    share.loosen(restarted=False)

    def _acknowledged(self, asked: _Asked, answer: Any, field: str = "error_code") -> None:
        request, now = asked.request, self._loop.now
        if asked.stale and answer.error_code == 0:
            self._story.broken("stale session epoch", f"{request.member_id}: {request.share_session_epoch}")
        if answer.error_code:
            self._epochs.pop((request.group_id, request.member_id), None)
        errors = {
            (topic.topic_id, part.partition_index): getattr(part, field)
            for topic in answer.responses
            for part in topic.partitions
        }
        for key, claims in asked.claims.items():
            code = answer.error_code or errors.get(key[1:], -1)
            share = self.share(key)
            self._story.tell(
                request.member_id,
                f"acknowledged {len(claims)} of {share.where} "
                f"from {claims[0].offset if claims else None}: {code}",
            )
            if code == 0:
                if not share.unsure:
                    # retention may have moved the start beyond what another member holds
                    extent = self._extent(*key[1:])
                    share.floor = max(share.floor, 0 if extent is None else extent[0])
                    self.queues.settled(asked.at, share, claims)
                    self._report(share.answered(asked.at, now, request.member_id, claims))
            else:
                share.refused(asked.at, claims, certain=code in _CERTAIN)
                self.queues.not_settled(asked.at, key, share, claims)

    def _created(self, asked: _Asked, answer: Any) -> None:
        for topic in answer.topics:
            if topic.error_code == 0:
                self.ledger.created(topic.name, topic.topic_id)

    def _deleted(self, asked: _Asked, answer: Any) -> None:
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code == 0:
                    self.ledger.deleted(topic.name, part.partition_index, part.low_watermark)

    def _reset(self, asked: _Asked, answer: Any) -> None:
        group = asked.request.group_id
        for share in self._of(group):
            share.suspended = max(0, share.suspended - 1)
        if answer.error_code:
            self._left_open(asked, group, answer.error_code)
            return
        wanted = _starts(asked.request)
        for topic in answer.responses:
            # offsets are altered by partition and deleted by topic
            altered = {part.partition_index: part.error_code for part in getattr(topic, "partitions", ())}
            for (name, topic_id, index), share in self.shares.items():
                if name == group and topic_id == topic.topic_id and (not altered or index in altered):
                    # a write that failed may exist even so, or never
                    code = altered[index] if altered else topic.error_code
                    share.forget(perhaps=bool(code))
                    if altered and not code and not share.unsure:
                        share.begin_at(wanted[topic.topic_name, index])

    def _groups_deleted(self, asked: _Asked, answer: Any) -> None:
        for result in answer.results:
            for share in self._of(result.group_id):
                share.suspended = max(0, share.suspended - 1)
                if result.error_code == 0:
                    share.forget()
            self._left_open(asked, result.group_id, result.error_code)

    def _left_open(self, asked: _Asked, group: str, code: int) -> None:
        """Expect that a deletion whose answer says it was not written in time may still take effect."""
        is_open = code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT)
        if is_open and asked.api is not ApiKey.ALTER_SHARE_GROUP_OFFSETS:
            for share in self._of(group):
                share.going = True

    def _configured(self, asked: _Asked, answer: Any) -> None:
        self.queues.answered(self._loop.now, asked.known, answer)

    def _described(self, asked: _Asked, answer: Any) -> None:
        for group in answer.groups:
            for topic in group.topics if not group.error_code else ():
                for part in topic.partitions:
                    key = group.group_id, topic.topic_id, part.partition_index
                    if not part.error_code and key in self.shares:
                        self.lags.described(key, asked.known, part.start_offset, part.lag)
