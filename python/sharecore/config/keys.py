"""What a configuration key is: its type, default and limits, and how its text is read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from sharecore.config.secret import Secret
from sharecore.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Settings = TypeVar("Settings", bound=DataclassInstance)

Value = bool | int | float | str | tuple[str, ...] | Secret | None
"""A setting's value; None where nothing is set."""
Declared = TypeVar("Declared")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Kind(IntEnum):
    """Type of a value; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class Dynamic(Enum):
    """How a broker's key may change while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Status(Enum):
    """What setting a key does."""

    WORKS = "works"
    IGNORED = "no effect"
    REFUSED = "refused"


_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?)")
"""As Java reads a number."""

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@|\?\S*")
"""Where a URL has a user name and a password, and options that may be secrets."""

_RANGES = {
    Kind.INT: (-(2**31), INT_MAX),
    Kind.SHORT: (-(2**15), 2**15 - 1),
    Kind.LONG: (-(2**63), LONG_MAX),
}


class Limits(TypedDict, total=False):
    """What a key declares besides type, default and description; see `ConfigKey`."""

    low: float
    high: float
    choices: tuple[str, ...]
    check: Callable[..., object]
    refusal: str
    dynamic: Dynamic
    synonym: str
    status: Status
    own: bool


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key of a configuration.

    Args:
        name: Kafka's name.
        kind: type of its value.
        default: value where nothing is set; None means that another key decides.
        doc: one sentence for a person.
        low, high: limits of a number, both inclusive; None means the type's own.
        choices: the words that a string, or each element of a list, may be.
        check: raises ValueError with what is allowed where the limits above don't say it all.
        refusal: Kafka's words for a value that `check` refuses, with {name} and {text} in it.
        dynamic: whether a broker's key may be altered while it runs.
        synonym: the broker's key that is the default of a topic's or group's.
        status: what setting it does; the sentence of one that has no effect says why, and one that is refused
            may be set to its default alone.
        own: whether it is no Kafka's: it shows where it was set.
    """

    name: str
    kind: Kind
    default: Value
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    check: Callable[..., object] | None = None
    refusal: str = ""
    dynamic: Dynamic = Dynamic.READ_ONLY
    synonym: str | None = None
    status: Status = Status.WORKS
    own: bool = False

    def parse(self, text: str) -> Value:
        """Return the value of a text.

        Raises:
            ConfigError: it is not of the key's type, or outside of its limits; the text names key, value and
            limits.
        """
        text = text.strip()
        try:
            value = self._convert(text)
            self._within_limits(value)
        except ValueError as error:
            shown = _without_credentials(text)
            reason = f"{self.name}={shown}: {error or 'not allowed'}; allowed: {self.allowed}"
            answer = f"Invalid value {shown} for configuration {self.name}: {self._kafka_reason(text)}"
            raise ConfigError(reason, answer) from None
        return value

    def _convert(self, text: str) -> Value:
        if self.kind is Kind.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ValueError("not a boolean")
            return text.lower() == "true"
        if self.kind is Kind.LIST:
            parts = [part.strip() for part in text.split(",")] if text else []
            if self.choices and "" in parts:
                raise ValueError("an empty word")
            return tuple(filter(None, parts))
        if self.kind is Kind.STRING:
            return text
        if self.kind is Kind.PASSWORD:
            return Secret(text)
        return self._number(text)

    def _number(self, text: str) -> float:
        if self.kind is Kind.DOUBLE:
            if not _DOUBLE.fullmatch(text):
                raise ValueError("not a number")
            return float(text.rstrip("dDfF"))
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError("not an integer")
        low, high = _RANGES[self.kind]
        if not low <= int(text) <= high:
            raise ValueError(f"not a {self.kind.name.lower()}")
        return int(text)

    def _is_no_number(self, value: Value) -> bool:
        """Whether a value is NaN: it would pass all limits, and none would hold against it."""
        return self.status is Status.WORKS and isinstance(value, float) and math.isnan(value)

    def _within_limits(self, value: Value) -> None:
        if self._is_no_number(value):
            raise ValueError("not a number")
        if isinstance(value, int | float):
            if self.low is not None and value < self.low:
                raise ValueError("too low")
            if self.high is not None and value > self.high:
                raise ValueError("too high")
        elif self.choices:
            for word in value if isinstance(value, tuple) else (value,):
                if word not in self.choices:
                    raise ValueError(
                        f"{word!r} is not one of the words" if isinstance(value, tuple) else "unknown"
                    )
        if self.check is not None:
            self.check(value)
        if self.status is Status.REFUSED and value != self.default:
            raise ValueError(self.doc.rstrip("."))

    def _kafka_reason(self, text: str) -> str:
        """Why Kafka would say that a text is refused."""
        if self.status is Status.REFUSED:
            return self.doc
        if self.kind is Kind.BOOLEAN:
            return "Expected value to be either true or false"
        if self.kind not in (Kind.STRING, Kind.LIST, Kind.PASSWORD):
            try:
                value = self._number(text)
            except ValueError:
                return f"Not a number of type {self.kind.name}"
            if self._is_no_number(value):
                return f"The value must be {self.allowed}"
            if self.low is not None and value < self.low:
                return f"Value must be at least {self.low}"
            if self.high is not None and value > self.high:
                return f"Value must be no more than {self.high}"
        if self.choices:
            return f"String must be one of: {', '.join(self.choices)}"
        return self.refusal.format(name=self.name, text=text) or f"The value must be {self.allowed}"

    @property
    def allowed(self) -> str:
        """What a value may be, for a person."""
        if self.status is Status.REFUSED:
            return f"{self.format(self.default) or 'to leave it out'}"
        if self.check is not None and self.check.__doc__:
            return self.check.__doc__.removeprefix("Allow ")
        if self.choices:
            joined = ", ".join(self.choices)
            return f"a list of {joined}" if self.kind is Kind.LIST else f"one of {joined}"
        if self.kind is Kind.BOOLEAN:
            return "true or false"
        if self.kind in (Kind.STRING, Kind.LIST, Kind.PASSWORD):
            return "a comma-separated list" if self.kind is Kind.LIST else "a text"
        what = "a number" if self.kind is Kind.DOUBLE else "an integer"
        if self.low is not None and self.high is not None:
            return f"{what} from {self.low} to {self.high}"
        if self.low is not None:
            return f"{what}, at least {self.low}"
        return f"{what}, at most {self.high}" if self.high is not None else what

    def format(self, value: Value) -> str | None:
        """Return a value as text, as Kafka's tools print it; None if it is secret or not set."""
        if value is None or self.kind is Kind.PASSWORD:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return str(value).replace("e+", "E")
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)


def _without_credentials(text: str) -> str:
    """Return a refused text for printing: URLs without credentials."""
    return _CREDENTIALS.sub("[hidden]", text) if "://" in text else text


def setting(kind: Kind, default: Declared, doc: str, *, name: str = "", **limits: Unpack[Limits]) -> Declared:
    """Return a dataclass field that declares a key, by default named as the field with dots."""
    metadata = {"kind": kind, "doc": doc, "name": name, **limits}
    return field(default=default, metadata={"setting": metadata})


def changed(settings: Settings, values: Mapping[str, Value]) -> Settings:
    """Return settings with other values, by attribute."""
    return replace(settings, **values)


def keys_of(settings: type[DataclassInstance]) -> dict[str, tuple[str, ConfigKey]]:
    """Return the keys of a dataclass of `setting` fields: Kafka's name to the field's name and the key."""
    found = {}
    for declared in fields(settings):
        arguments = dict(declared.metadata.get("setting", {}))
        if arguments:
            assert declared.default is not MISSING
            name = arguments.pop("name") or declared.name.replace("_", ".")
            found[name] = (declared.name, ConfigKey(name=name, default=declared.default, **arguments))
    return found
