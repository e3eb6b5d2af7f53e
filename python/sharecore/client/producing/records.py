"""Records to send, their results, and serialization of keys and values."""

from __future__ import annotations

import dataclasses
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from confluent_kafka import Message

Serializer = Callable[[Any], bytes | None]
Headers = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]


@dataclasses.dataclass(frozen=True, slots=True)
class NewRecord:
    """A record for `send_many` that is more than a value.

    Args:
        value, key: as for `Producer.send`.
        headers: a mapping, or pairs for repeated names.
        partition: by default, chosen by the key.
        timestamp: in ms since the epoch; the time of sending by default.
    """

    value: object
    key: object = None
    headers: Headers | None = None
    partition: int | None = None
    timestamp: int | None = None


class Sent(NamedTuple):
    """The position of a confirmed record; `timestamp` is in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class SentRecords(Sequence[Sent]):
    """The positions of the records of a `send_many`, in order.

    Numbers in arrays: a million live objects would cost more than the records.

    Attributes:
        failures: errors of unconfirmed records, by index; empty in results for the application.
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
        """Return this; raise RecordsNotSent if a record was not confirmed."""
        if self.failures:
            raise RecordsNotSent([self.failures.get(index) or self._at(index) for index in range(len(self))])
        return self


class RecordsNotSent(KafkaError):
    """Some records of a `send_many` were not confirmed; the code is that of the first one.

    Args:
        results: for each record, its position or error.
    """

    def __init__(self, results: list[Sent | KafkaError]) -> None:
        self.results = results
        failed = [result for result in results if isinstance(result, KafkaError)]
        super().__init__(
            failed[0].code,
            f"{len(failed)} of {len(results)} records were not confirmed; the first: {failed[0].message}",
        )


def sent_of(message: Message[bytes, bytes]) -> Sent:
    """Return the position of a message confirmed by librdkafka."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return Sent(topic, partition, offset, message.timestamp()[1])


def serialize(value: object) -> bytes | None:
    """Serialize a key or value: bytes unchanged, a string as UTF-8, None as null, a pydantic model or any
    JSON value as JSON.

    Raises:
        TypeError: not a JSON value.
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if (dump := getattr(type(value), "model_dump_json", None)) is not None:
        text: str = dump(value)
        return text.encode()
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_as_json).encode()
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"a {type(value).__name__} cannot be sent: {error}; pass bytes, a string, a JSON value, or set "
            "key.serializer or value.serializer"
        ) from error


def _as_json(value: object) -> object:
    """Convert a nested value for JSON."""
    if (dump := getattr(type(value), "model_dump", None)) is not None:
        dumped: object = dump(value, mode="json")
        return dumped
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def header_pairs(headers: Headers | None) -> list[tuple[str, bytes | None]] | None:
    """Return headers as (name, value) pairs, string values as UTF-8.

    Raises:
        TypeError, ValueError: they are invalid.
    """
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise TypeError(f"headers={headers!r}: pass a mapping, or pairs of a name and a value")
    found: list[tuple[str, bytes | None]] = []
    for pair in pairs:
        try:
            name, value = pair
        except (TypeError, ValueError):
            raise TypeError(f"header {pair!r}: pass a pair of a name and a value") from None
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes | str)):
            raise TypeError(f"header {name!r}: pass a string as its name, and bytes, a string or None")
        if not is_sendable(name):
            raise ValueError(f"header {name!r}: a name cannot contain a null character or a lone surrogate")
        try:
            found.append((name, value.encode() if isinstance(value, str) else value))
        except UnicodeEncodeError:
            raise ValueError(f"header {name!r}: a string value cannot contain a lone surrogate") from None
    return found


def several(records: object) -> list[object]:
    """Return the records for a `send_many`.

    Raises:
        TypeError: a single value, whose parts would be sent.
    """
    if isinstance(records, str | bytes | bytearray | memoryview | Mapping) or not isinstance(
        records, Iterable
    ):
        shown = type(records).__name__
        raise TypeError(f"records is one {shown}: pass a list of values, or send one value with send")
    return list(records)


def is_sendable(name: str) -> bool:
    """Return whether librdkafka can take a name: a lone surrogate crashes it, a null character ends it."""
    if "\0" in name:
        return False
    return name.isascii() or not any("\ud800" <= each <= "\udfff" for each in name)


def not_confirmed(message: str) -> KafkaError:
    """Return the error for a record that was not confirmed in time."""
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
