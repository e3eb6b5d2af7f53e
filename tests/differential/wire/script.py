"""What a script is made of: steps that both brokers are put through, one a line of JSON.

Names of topics, groups and members are written `~name`: each time a script is played, `~` becomes a
prefix of its own. In a field that holds a topic id, `#name` is the id of topic `~name` (`#name/1` that of
the first topic of the name, where it was made anew); in a text, `{#name}` is the same id in Kafka's
base64. A number may be `{"epoch": "~group ~member", "plus": 1}`, the member's epoch as it was last
answered, or `{"session": "a ~group ~member", "plus": 0}`, the next epoch of its share session on
connection `a`. Bytes are `{"hex": "00ff"}`, or `{"values": ["x"]}` for a batch of records (`batches`). What
stands for producers is in `producers`. `{"subscription": ["~orders"]}` is what a consumer says of itself to
a classic group, `{"session_of": "session-1"}` the id of the first fetch session that the broker told of.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.harness.kafka_versions import SINCE_4_4

from sharecore.protocol import ApiKey

Fields = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """One request; `on` names the connection, made when it is first used.

    Attributes:
        later: `Answer` takes the answer, which may wait for requests on other connections.
        spoilt: what is done to the request's bytes behind the frame's length, in turn (`spoil`);
            `{"size": 5}` is a length that lies.
    """

    api: str
    version: int
    fields: Fields = field(default_factory=dict)
    on: str = "a"
    later: bool = False
    spoilt: list[Fields] = field(default_factory=list)

    @property
    def key(self) -> ApiKey:
        return ApiKey[self.api]


@dataclass(frozen=True)
class Answer:
    """What was asked last on a connection is answered, if a broker answers it by now."""

    answer: str


@dataclass(frozen=True)
class Sleep:
    """Nothing happens for so long."""

    sleep_ms: int


@dataclass(frozen=True)
class Close:
    """A connection ends."""

    close: str


@dataclass(frozen=True)
class Restart:
    """Both brokers end at once and start again."""

    restart: bool = True


@dataclass(frozen=True)
class Stage:
    """What scenarios are made for.

    Attributes:
        kafka: the version of Apache Kafka beside ours.
        restarts: whether they may have the brokers start anew.
        patient: whether they may wait for ten seconds.
    """

    kafka: str = "4.3.1"
    restarts: bool = False
    patient: bool = False

    @property
    def newest(self) -> bool:
        """Whether it is the version that ours follows where two versions differ."""
        return self.kafka == "4.4.0"

    def offers(self, api: str, version: int) -> bool:
        """Whether Apache Kafka has this version of an API that ours has."""
        return self.newest or version < SINCE_4_4.get(ApiKey[api], version + 1)


Step = Ask | Answer | Sleep | Close | Restart
Scenario = Generator[Step, Any, None]
"""Yields steps, and is sent what Apache Kafka answered to each: masked, None where there is no answer."""


def to_line(step: Step) -> str:
    return json.dumps(asdict(step))


def from_lines(lines: Iterable[str]) -> list[Step]:
    """Return the steps of a script; empty lines and those that begin with `//` are passed over."""
    return [_step(json.loads(line)) for line in lines if line.strip() and not line.startswith("//")]


def _step(fields: Fields) -> Step:
    for kind in (Answer, Sleep, Close, Restart):
        if set(fields) == set(kind.__dataclass_fields__):
            return kind(**fields)
    return Ask(**fields)
