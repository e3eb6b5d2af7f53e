"""The auditor of a tier: what every node answers, held against each other and against what lies upstream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from tests.simulation.auditor import Auditor, Key, _Asked
from tests.simulation.lags import Lags
from tests.simulation.leases import Claim, Entry
from tests.simulation.ledger import Ledger
from tests.simulation.network import End
from tests.simulation.queues.audit import QueueAudit
from tests.simulation.story import Story
from tests.simulation.tier.network import site_of
from tests.simulation.tier.processes import FASTEST, TierLoop

from sharecore.protocol import ApiKey

_ANSWER_S = 75.0
"""What a node that is not disturbed takes at most: an append upstream is tried for 30 s, a claim longer."""


_SETTINGS_S = 120.0
"""Within so long all nodes know of changed settings."""
_KNOWN_S = 20.0
"""Within so long a node knows that a log upstream has lost its end, unless something keeps it from asking."""


class TierLedger(Ledger):
    """What the logs upstream hold.

    Attributes:
        doubtful_until: logs that have lost their end, and until when nodes may not know.
    """

    def __init__(self, loop: TierLoop, story: Story) -> None:
        super().__init__(story)
        self.doubtful_until: dict[tuple[UUID, int], float] = {}
        self.calm_since = 0.0
        self._loop = loop

    def delivered(
        self, topic_id: UUID, index: int, records: bytes, ranges: Sequence[Any], *, committed: bool
    ) -> None:
        until = self.doubtful_until.get((topic_id, index), 0.0)
        if until and (not self.calm_since or self._loop.now < max(until, self.calm_since + _KNOWN_S)):
            return
        super().delivered(topic_id, index, records, ranges, committed=committed)


class TierAuditor(Auditor):
    """A tap at the nodes' ends of their clients' connections.

    Attributes:
        led: the node that has begun to lead a share partition last, in which of its lives.
        settled: called when an acknowledgement was answered without an error.
        calm_since: when the faults were over; 0 before.
    """

    def __init__(self, loop: TierLoop, story: Story, limit: int) -> None:
        super().__init__(loop, story, limit, lambda topic_id, index: None)
        self.ledger: TierLedger = TierLedger(loop, story)
        self.lags = Lags(self.shares, self.ledger, story, lambda topic_id, index: None)
        self.led: dict[Key, str] = {}
        self.queues = QueueAudit(
            self.shares,
            self.ledger,
            story.broken,
            lag_s=_SETTINGS_S,
            pace=FASTEST,
            leader=lambda key: self.led.get(key, ""),
        )
        self.settled: Callable[[Key, list[int]], object] = lambda key, offsets: None
        self.calm_since = 0.0
        self._epochs_of: dict[str, dict[tuple[str, str], int]] = {}
        self._speaker = ""

    def lock_altered(self, group: str, lock_s: float) -> None:
        super().lock_altered(group, lock_s / FASTEST)

    def calm(self) -> None:
        """The faults are over."""
        self.calm_since = self.ledger.calm_since = self._loop.now

    # nodes

    def node_ended(self, number: int) -> None:
        """A node is gone with its memory."""
        self._epochs_of.pop(f"node {number}", None)
        self.queues.led_anew(f"node {number}")
        for key, led in self.led.items():
            if led == f"node {number}" and key in self.shares:
                share = self.shares[key]
                share.loosen(restarted=False)
                share.suspended, share.given_meanwhile = 0, None

    def led_by(self, key: Key, site: str, start: int) -> None:
        """A node begins to lead a share partition, with what was written and this start offset."""
        before = self.led.get(key)
        self.led[key] = site
        self.queues.led_anew(site)
        if before != site:
            self._story.tell(site, f"leads {key[0]} {self.ledger.names.get(key[1])}-{key[2]}")
        share = self.shares.get(key)
        if share is not None:
            share.led(self._loop.now, start)
            if share.start_may_fall:
                # earlier values came from the memory of a node that did not know
                share.start_may_fall, share.start_offset = False, -1
                share.lives += 1
            for entry in share.entries.values():
                # a write answered with an error may exist
                entry.perhaps |= entry.doubtful

    def lost_state(self, of: Callable[[Key], bool]) -> None:
        """State upstream was lost: what was settled may come again, under any count."""
        self.losses += 1
        for key, share in self.shares.items():
            if of(key):
                share.forget(perhaps=True)
                share.start_may_fall = True
                # the remaining state may show any record as finished
                share.over_below = max(share.over_below, self.ledger.log(key[1], key[2]).end)

    def lost_records(self, topic_id: Any, index: int, end: int, before: int) -> None:
        """Records upstream were lost, those from `end` to `before`, and others will take their offsets.

        Nodes go on with what they have read of them until they know.
        """
        self.losses += 1
        log = self.ledger.log(topic_id, index)
        self.ledger.doubtful_until[topic_id, index] = self._loop.now + _KNOWN_S
        for known in (log.values, log.answered, log.keys):
            for offset in [each for each in known if each >= end]:
                del known[offset]
        log.notes.cut(end)
        for (_, of, partition), share in self.shares.items():
            if (of, partition) == (topic_id, index):
                share.forget(perhaps=True)
                share.over_below = max(share.over_below, before)

    # tap

    def opened(self, link: End) -> None:
        super().opened(link)

    def _speaks(self, link: End) -> None:
        self._speaker = site_of(link.context)
        self._epochs = self._epochs_of.setdefault(self._speaker, {})

    def received(self, link: End, data: bytes) -> None:
        self._speaks(link)
        super().received(link, data)
        self._epochs_of[self._speaker] = self._epochs

    def sent(self, link: End, data: bytes) -> None:
        self._speaks(link)
        super().sent(link, data)
        self._epochs_of[self._speaker] = self._epochs

    def closed(self, link: End) -> None:
        self._speaks(link)
        super().closed(link)

    def overdue(self, now: float) -> list[str]:
        return [
            f"{asked.api.name} of connection {number}, asked at {asked.at - 1000:.3f} s"
            for number, talk in self._conversations.items()
            for asked in talk.under_way.values()
            if asked is not None and now - max(asked.at, self.calm_since) > _ANSWER_S + asked.wait_s
        ]

    # answers

    def _fetched(self, asked: _Asked, answer: Any) -> None:
        group = asked.request.group_id
        self._find_late(group)
        late = self._is_late(asked)
        for topic in answer.responses if not answer.error_code else ():
            for part in topic.partitions:
                key = group, topic.topic_id, part.partition_index
                if topic.topic_id is None or not (part.error_code or part.acquired_records):
                    continue
                share = self.share(key)
                led = self.led.get(key, self._speaker)
                if part.acquired_records and led != self._speaker:
                    text = f"{share.where}: {self._speaker} leases what {led} leads"
                    self._story.broken("two leaders", text)
                if part.error_code or late:
                    # acquired, but not reported, or reported so late that the lock may have expired
                    share.hidden += 1
                for first, last, _ in part.acquired_records or () if late else ():
                    for offset in range(first, last + 1):
                        # their owner may acknowledge them, if they are still acquired by it
                        entry = share.entries.setdefault(offset, Entry(counts=(1, share.limits[1])))
                        entry.perhaps = True
        if late:
            self._acknowledged(asked, answer, "acknowledge_error_code")
        else:
            super()._fetched(asked, answer)

    def _is_late(self, asked: _Asked) -> bool:
        """Whether leases of a fetch may have run out before its answer: it had acknowledgements to wait for,
        or requests in front of it.
        """
        lock_s = self.lock_s.get(asked.request.group_id, 1.0)
        waited = bool(asked.claims) or not asked.alone
        return waited and self._loop.now - asked.at >= lock_s

    def _find_late(self, group: str) -> None:
        """What fetches have leased whose answers are late may be leased again already."""
        for talk in self._conversations.values():
            for asked in talk.under_way.values():
                fetch = (
                    asked is not None and asked.api is ApiKey.SHARE_FETCH and asked.request.group_id == group
                )
                if asked is not None and fetch and asked.known is None and self._is_late(asked):
                    asked.known = True
                    self._untold(group)

    def _acknowledged(self, asked: _Asked, answer: Any, field: str = "error_code") -> None:
        super()._acknowledged(asked, answer, field)
        errors = {
            (topic.topic_id, part.partition_index): getattr(part, field)
            for topic in answer.responses
            for part in topic.partitions
        }
        for key, claims in asked.claims.items():
            share = self.share(key)
            if not (answer.error_code or errors.get(key[1:], -1) or share.suspended):
                offsets = [each.offset for each in claims if self._is_settled(key, each)]
                if offsets:
                    self.settled(key, offsets)

    def _is_settled(self, key: Key, claim: Claim) -> bool:
        entry = self.share(key).entries.get(claim.offset)
        return entry is not None and entry.lease == claim.lease and bool(entry.settled)

    def _reset(self, asked: _Asked, answer: Any) -> None:
        super()._reset(asked, answer)
        failed = answer.error_code or any(
            getattr(topic, "error_code", 0)
            or any(part.error_code for part in getattr(topic, "partitions", ()))
            for topic in answer.responses
        )
        if failed:
            self._perhaps_reset(asked.request.group_id)

    def _groups_deleted(self, asked: _Asked, answer: Any) -> None:
        super()._groups_deleted(asked, answer)
        for result in answer.results:
            if result.error_code:
                self._perhaps_reset(result.group_id)

    def _perhaps_reset(self, group: str) -> None:
        """Nobody knows whether what was answered with an error has taken effect."""
        for share in self._of(group):
            share.forget(perhaps=True)
