"""Records to send, what became of them, and how keys and values become bytes."""

from __future__ import annotations

import dataclasses
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, overload

from sharecore.errors import ErrorCode, KafkaError

Serializer = Callable[[Any], bytes | None]
Headers = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]


@dataclasses.dataclass(frozen=True, slots=True)
class NewRecord:
    """One record for `send_many`, where a value alone does not say it.

    Args:
        value, key: as for `Producer.send`.
        headers: a mapping, or pairs where a name comes more than once.
        partition: where the key does not decide.
        timestamp: in ms since the epoch; when it is sent without it.
    """

    value: Any
    key: Any = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp: int | None = None


class Sent(NamedTuple):
    """Where a confirmed record is; `timestamp` is in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class SentRecords(Sequence[Sent]):
    """Where each record of a `send_many` is, in the order in which they were given.

    Numbers in arrays, since a million objects that live for a while cost more than the records.

    Attributes:
        failures: why records were not confirmed, by their place; empty in what the application gets.
    """

    __slots__ = ("_topic", "failures", "offsets", "partitions", "timestamps")

    def __init__(self, topic: str, count: int) -> None:
        self._topic = topic
        self.partitions = array("i", bytes(4 * count))
        self.offsets = array("q", bytes(8 * count))
        self.timestamps = array("q", bytes(8 * count))
        self.failures: dict[int, KafkaError] = {}

    def _at(self, index: int) -> Sent:
        return Sent(self._topic, self.partitions[index], self.offsets[index], self.timestamps[index])

    @overload
    def __getitem__(self, index: int) -> Sent: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sent]: ...
    def __getitem__(self, index: int | slice) -> Sent | list[Sent]:
        if isinstance(index, slice):
            return [self._at(each) for each in range(*index.indices(len(self)))]
        return self._at(index)

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[Sent]:
        return map(self._at, range(len(self)))

    def __repr__(self) -> str:
        return f"SentRecords({len(self)} records)"

    def checked(self) -> Self:
        """Return this; raises RecordsNotSent when a record was not confirmed."""
        if self.failures:
            raise RecordsNotSent([self.failures.get(index) or self._at(index) for index in range(len(self))])
        return self


class RecordsNotSent(KafkaError):
    """Some records of a `send_many` were not confirmed; the code is that of the first.

    Args:
        results: for each record where it is, or why it was not confirmed.
    """

    def __init__(self, results: list[Sent | KafkaError]) -> None:
        self.results = results
        failed = [result for result in results if isinstance(result, KafkaError)]
        super().__init__(
            failed[0].code,
            f"{len(failed)} of {len(results)} records were not confirmed; the first: {failed[0].message}",
        )


def sent_of(message: Any) -> Sent:
    """Return where a message that librdkafka confirmed is."""
    return Sent(message.topic(), message.partition(), message.offset(), message.timestamp()[1])


def serialize(value: Any) -> bytes | None:
    """Return what a key or value is on the wire: bytes as they are, a string as UTF-8, None as no value, a
    model of pydantic as its JSON, and anything else that JSON has as JSON.

    Raises:
        TypeError: JSON has no such value.
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if hasattr(type(value), "model_dump_json"):
        text: str = value.model_dump_json()
        return text.encode()
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_as_json).encode()
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"a {type(value).__name__} cannot be sent: {error}; pass bytes, a string, what JSON has, or set "
            "key.serializer or value.serializer"
        ) from error


def _as_json(value: Any) -> Any:
    """Return what JSON has of a value inside another one."""
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def header_pairs(headers: Headers | None) -> list[tuple[str, str | bytes | None]] | None:
    """Return headers as pairs of a name and a value; raises TypeError for what they cannot be."""
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found: list[tuple[str, str | bytes | None]] = []
    for name, value in pairs:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes | str)):
            raise TypeError(f"header {name!r}: pass a string as its name, and bytes, a string or None")
        found.append((name, value))
    return found


def not_confirmed(message: str) -> KafkaError:
    """Return the error for a record whose confirmation did not come in time."""
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
