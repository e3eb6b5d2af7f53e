"""The auditor of a home: what a leader answers that another one has followed proves little."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.simulation.auditor import Auditor, _Asked
from tests.simulation.leases import SharePartition
from tests.simulation.network import End
from tests.simulation.story import Story
from tests.simulation.tier.processes import FASTEST, TierLoop

from sharecore.protocol import ApiKey

_READS = {ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS}


@dataclass
class HomeShare(SharePartition):
    """As in a world where nothing waits for a bucket, but for answers that come too late.

    Args:
        is_late: the answer that is looked at may have waited for the bucket.
    """

    is_late: bool = False

    def deliver(
        self, now: float, since: float, member: str, ranges: Iterable[tuple[int, int, int]]
    ) -> list[tuple[str, str]]:
        """A fetch is answered once its acknowledgements are in the bucket. What it acquired may have gone
        back by then, and to another member: as Apache's, the broker does not look at it again.
        """
        current = []
        for first, last, count in ranges:
            for offset in range(first, last + 1):
                entry = self.entries.get(offset)
                if not self.is_late or entry is None or count >= entry.counts[0] or entry.leased_from < since:
                    current.append((offset, offset, count))
        return super().deliver(now, since, member, current)


class HomeAuditor(Auditor):
    """A model of what share groups promise, whose machines' clocks may run fast.

    Args:
        is_proven: whether the machine at the end of a connection leads for sure.
        drifts: clocks run at their own pace: locks may end sooner.
    """

    _model = HomeShare
    _sick_answer_s = 120.0
    """Answers wait for the bucket."""

    def __init__(
        self,
        loop: TierLoop,
        story: Story,
        limit: int,
        extent: Callable[[UUID, int], tuple[int, int] | None],
        *,
        is_proven: Callable[[End], bool],
        drifts: bool,
    ) -> None:
        super().__init__(loop, story, limit, extent)
        self._is_proven = is_proven
        self._pace = FASTEST if drifts else 1.0
        self._shortest_s = 1.0 / self._pace
        self._waited: list[_Asked] = []

    def lock_altered(self, group: str, lock_s: float) -> None:
        super().lock_altered(group, lock_s / self._pace)

    def sent(self, link: End, data: bytes) -> None:
        talk = self._conversations.get(link.number)
        if talk is None or self._is_proven(link):
            super().sent(link, data)
            return
        asked = {number: each for number, each in talk.under_way.items() if each is not None}
        for each in asked.values():
            if each.api in _READS:
                # of a state that another leader may have changed
                each.known = {}
        super().sent(link, data)
        for number, each in asked.items():
            if each.api is ApiKey.SHARE_FETCH and number not in talk.under_way:
                # what was acquired is left out of the answer
                self._untold(each.request.group_id)

    def _fetched(self, asked: _Asked, answer: Any) -> None:
        group = asked.request.group_id
        late = self._loop.now - self.lock_s.get(group, self._shortest_s) / 2
        self._note_waiting(group, late)
        for share in self._of(group):
            if isinstance(share, HomeShare):
                share.is_late = asked.at < late
        super()._fetched(asked, answer)

    def _note_waiting(self, group: str, late: float) -> None:
        """What another fetch has acquired may be given back before it is answered: it waits until its
        acknowledgements are in the bucket, and those of its connection's requests before it.
        """
        under_way = [each for talk in self._conversations.values() for each in talk.under_way.values()]
        for each in under_way:
            if each is None or each.api is not ApiKey.SHARE_FETCH or each.request.group_id != group:
                continue
            if each.at < late and all(each is not it for it in self._waited):
                self._waited.append(each)
                self._untold(group)
