"""Pushed client metrics as Prometheus series."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from math import isnan
from typing import NamedTuple
from uuid import UUID

from prometheus_client.utils import floatToGoString

from sharecore.metrics import families as f
from sharecore.metrics.exposition import Exposition, Lines, labels_of
from sharecore.metrics.family import Family, Kind, counter, gauge
from sharecore.metrics.telemetry.instances import Client, text_of
from sharecore.metrics.telemetry.otlp import Meaning, Point, Pushed

PREFIX = "kafka_client_"
"""Name prefix that no broker metric has, so that clients cannot add to those."""
_OF_KAFKA = "org.apache.kafka."
_GROUP = "group_id"
_IDENTITY = ("client_rack", "group_instance_id", "group_member_id", "transactional_id")
"""Client attributes besides the group."""
_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9_]")
_NOT_A_WORD = re.compile(r"[^a-zA-Z0-9_.-]")
_SERIES_CHARACTERS_MAX = 1024

_Key = tuple[str, str]
_text_of_number: Callable[[float], str] = floatToGoString
"""The name of a sample, and its labels."""


class _Labels(NamedTuple):
    """Labels of a client: by name, and in the text format without the closing brace."""

    names: Mapping[str, str]
    text: str


class _Shown:
    """Pushed metrics of one client."""

    __slots__ = ("info", "left_out", "until_ms", "values")

    def __init__(self) -> None:
        self.info = ""
        self.left_out = self.until_ms = 0
        self.values: dict[_Key, float] = {}


class PushedSeries:
    """The latest values of every client, limited in number.

    Gauges are those of the client's last push; counters accumulate over pushes.

    Args:
        now_ms: the clock.
        clients_max: maximum number of clients; the one with the oldest push is evicted.
        series_max: maximum series of all clients.
        client_series_max: maximum series of one client.
    """

    def __init__(
        self, now_ms: Callable[[], int], *, clients_max: int, series_max: int, client_series_max: int
    ) -> None:
        self._now_ms = now_ms
        self._clients_max = clients_max
        self._series_max = series_max
        self._client_series_max = client_series_max
        self._clients: OrderedDict[UUID, _Shown] = OrderedDict()
        self._families: dict[str, Family] = {}
        self._names: dict[tuple[str, Meaning | None], str | None] = {}
        self._count = 0

    def take(self, instance_id: UUID, client: Client, pushes: Iterable[Pushed], kept_ms: int) -> None:
        """Store a client's push.

        Args:
            kept_ms: how long it is shown without another push.
        """
        shown = self._client(instance_id)
        self._count -= len(shown.values)
        values = {key: value for key, value in shown.values.items() if self._counts(key)}
        room = min(self._client_series_max, self._series_max - self._count)
        shown.left_out = 0
        for each in pushes:
            named = _labels(instance_id, client, each.about)
            labels = _Labels(named, labels_of(list(named), list(named.values())))
            shown.info = _info(named, client, each.about)
            for point in each.points:
                key = self._key(point, labels)
                if key is None or (key not in values and len(values) >= room):
                    shown.left_out += 1
                elif not isnan(point.value):
                    before = values.get(key, 0) if point.meaning is Meaning.CHANGE else 0
                    values[key] = before + point.value
        shown.values = values
        shown.until_ms = self._now_ms() + kept_ms
        self._count += len(values)
        if len(self._names) > 2 * self._series_max:
            used = {key[0] for each in self._clients.values() for key in each.values}
            self._families = {name: self._families[name] for name in used}
            self._names.clear()

    def report(self, sheet: Exposition, lines: Lines) -> None:
        """Add the series to the metrics."""
        self._forget_silent()
        sheet.add(f.CLIENT_SERIES, self._count)
        sheet.add(f.CLIENT_SERIES_LEFT_OUT, sum(shown.left_out for shown in self._clients.values()))
        for shown in self._clients.values():
            if shown.info:
                lines.of(f.CLIENT_INFO).append(shown.info)
            for (name, labels), value in shown.values.items():
                lines.of(self._families[name]).append(f"{labels}}} {_text_of_number(value)}")

    def _client(self, instance_id: UUID) -> _Shown:
        shown = self._clients.get(instance_id)
        if shown is None:
            while len(self._clients) >= self._clients_max:
                self._count -= len(self._clients.popitem(last=False)[1].values)
            shown = self._clients[instance_id] = _Shown()
        self._clients.move_to_end(instance_id)
        return shown

    def _forget_silent(self) -> None:
        now_ms = self._now_ms()
        for instance_id in [each for each, shown in self._clients.items() if shown.until_ms <= now_ms]:
            self._count -= len(self._clients.pop(instance_id).values)

    def _counts(self, key: _Key) -> bool:
        return self._families[key[0]].kind is Kind.COUNTER

    def _key(self, point: Point, of_client: _Labels) -> _Key | None:
        """Return the key of a value; None if it cannot be shown."""
        if len(point.name) > _SERIES_CHARACTERS_MAX:
            return None  # nothing is stored for it
        about = point.name, point.meaning
        if about not in self._names:
            self._names[about] = self._sample_name(*about)
        name = self._names[about]
        if name is None:
            return None
        text = of_client.text
        if point.labels:
            # attributes of a value do not override labels of the client
            own = {_label(key): value for key, value in point.labels.items()}
            kept = {key: value for key, value in own.items() if key not in of_client.names}
            text = f"{labels_of(list(kept), list(kept.values()))},{text[1:]}" if kept else text
        return (name, text) if len(name) + len(text) <= _SERIES_CHARACTERS_MAX else None

    def _sample_name(self, pushed: str, meaning: Meaning | None) -> str | None:
        if meaning is None:
            return None
        name = PREFIX + _NOT_A_NAME.sub("_", pushed.removeprefix(_OF_KAFKA))
        doc = f"{_NOT_A_WORD.sub('?', pushed)}, as clients push it."
        level = meaning is Meaning.LEVEL
        family = gauge(name, doc) if level else counter(name.removesuffix("_total"), doc)
        known = self._families.setdefault(family.sample_name, family)
        return family.sample_name if known.kind is family.kind else None


def _label(key: str) -> str:
    name = _NOT_A_NAME.sub("_", key)
    # names with two leading underscores are reserved by Prometheus, including the metric name
    return name if name[:1].isalpha() else f"tag_{name}"


def _labels(instance_id: UUID, client: Client, about: Mapping[str, str]) -> dict[str, str]:
    labels = {"client_instance_id": text_of(instance_id), "client_id": client.client_id}
    return labels | ({"group": about[_GROUP]} if about.get(_GROUP) else {})


def _info(labels: Mapping[str, str], client: Client, about: Mapping[str, str]) -> str:
    identity = {name: about[name] for name in _IDENTITY if about.get(name)}
    every = {**labels, **client._asdict(), **identity}
    text = labels_of(list(every), list(every.values()))
    return f"{text}}} 1" if len(text) <= _SERIES_CHARACTERS_MAX else ""
