"""Random groups that live: members come, go and change their minds, topics appear, grow and go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

Held = dict[int, list[int]]
"""Partitions by number of the topic, both ascending."""


class Member(NamedTuple):
    """A member, the topics that it wants and the partitions that it has."""

    member_id: str
    instance_id: str | None
    topics: list[int]
    current: Held


class Group(NamedTuple):
    """What an assignor sees: numbers of partitions by number of the topic, and members in their order."""

    topics: dict[int, int]
    members: list[Member]

    def as_json(self, assignor: str) -> str:
        return json.dumps({"assignor": assignor, "topics": self.topics, "members": self.members})


class Life:
    """One group from step to step.

    Args:
        random: where everything comes from.
        alike: whether all members want the same topics.
    """

    def __init__(self, random: Random, *, alike: bool) -> None:
        self._random = random
        self._alike = alike
        self._names = 0
        self._common: list[int] = []
        # with few partitions and many members, members compete for partitions
        largest, most = random.choice(((3, 12), (3, 12), (12, 12), (60, 40)))
        self.group = Group(
            {number: random.randint(1, largest) for number in range(1, random.randint(2, 5))}, []
        )
        self._common = self._choice()
        self._join(random.randint(1, most))

    def steps(self, count: int) -> Iterator[Group]:
        """Groups one after another; `told` goes between them."""
        yield self.group
        for _ in range(count):
            self._change()
            yield self.group

    def told(self, assignment: dict[str, Held]) -> None:
        """The members now have what was assigned to them."""
        members = [member._replace(current=assignment[member.member_id]) for member in self.group.members]
        self.group = self.group._replace(members=members)

    def _choice(self) -> list[int]:
        numbers = sorted(self.group.topics)
        return sorted(self._random.sample(numbers, self._random.randint(1, len(numbers))))

    def _join(self, count: int) -> None:
        for _ in range(count):
            self._names += 1
            name = f"{self._random.choice('abcxyz')}{self._names}"
            instance = (
                f"i{self._random.randrange(100)}-{self._names}" if self._random.random() < 0.2 else None
            )
            topics = self._common if self._alike else self._choice()
            self.group.members.insert(
                self._random.randint(0, len(self.group.members)), Member(name, instance, topics, {})
            )

    def _change(self) -> None:
        random, topics, members = self._random, dict(self.group.topics), list(self.group.members)
        self.group = Group(topics, members)
        step = random.choice(("join", "join", "leave", "leave", "grow", "appear", "drop", "mind"))
        if step == "join":
            self._join(random.randint(1, 4))
        elif step == "leave":
            for _ in range(min(random.randint(1, 3), len(members) - 1)):
                members.pop(random.randrange(len(members)))
        elif step == "grow":
            topics[random.choice(sorted(topics))] += random.randint(1, 5)
        elif step == "appear":
            topics[max(topics) + 1] = random.randint(1, 8)
        elif step == "drop" and len(topics) > 1:
            # members keep its partitions until they are told otherwise
            del topics[random.choice(sorted(topics))]
            members[:] = [
                member._replace(
                    topics=[each for each in member.topics if each in topics] or sorted(topics)[:1]
                )
                for member in members
            ]
            self._common = [each for each in self._common if each in topics] or sorted(topics)[:1]
        elif step == "mind":
            self._common = self._choice()
        if self._alike:
            members[:] = [member._replace(topics=self._common) for member in members]
        elif step == "mind":
            number = random.randrange(len(members))
            members[number] = members[number]._replace(topics=self._choice())
