"""The messages of KEDA's external scaler protocol, externalscaler.proto of KEDA 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "externalscaler.ExternalScaler"

_PACKAGE = "externalscaler"
_STRING, _BOOL, _INT64, _DOUBLE, _MESSAGE = 9, 8, 3, 1, 11
_OPTIONAL, _REPEATED = 1, 3
_FIELDS: dict[str, tuple[tuple[int, str, int, int, str], ...]] = {
    "ScaledObjectRef": (
        (1, "name", _STRING, _OPTIONAL, ""),
        (2, "namespace", _STRING, _OPTIONAL, ""),
        (3, "scalerMetadata", _MESSAGE, _REPEATED, "ScaledObjectRef.ScalerMetadataEntry"),
    ),
    "IsActiveResponse": ((1, "result", _BOOL, _OPTIONAL, ""),),
    "GetMetricSpecResponse": ((1, "metricSpecs", _MESSAGE, _REPEATED, "MetricSpec"),),
    "MetricSpec": (
        (1, "metricName", _STRING, _OPTIONAL, ""),
        (2, "targetSize", _INT64, _OPTIONAL, ""),
        (3, "targetSizeFloat", _DOUBLE, _OPTIONAL, ""),
    ),
    "GetMetricsRequest": (
        (1, "scaledObjectRef", _MESSAGE, _OPTIONAL, "ScaledObjectRef"),
        (2, "metricName", _STRING, _OPTIONAL, ""),
    ),
    "GetMetricsResponse": ((1, "metricValues", _MESSAGE, _REPEATED, "MetricValue"),),
    "MetricValue": (
        (1, "metricName", _STRING, _OPTIONAL, ""),
        (2, "metricValue", _INT64, _OPTIONAL, ""),
        (3, "metricValueFloat", _DOUBLE, _OPTIONAL, ""),
    ),
}
"""Per field: number, name, type, label, message type."""


def _declare() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="externalscaler.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for number, field, kind, label, of in fields:
            full = f".{_PACKAGE}.{of}" if of else None
            message.field.add(name=field, number=number, type=kind, label=label, type_name=full)
    # protobuf encodes a map as repeated key-value messages
    pair = file.message_type[0].nested_type.add(name="ScalerMetadataEntry")
    pair.field.add(name="key", number=1, type=_STRING, label=_OPTIONAL)
    pair.field.add(name="value", number=2, type=_STRING, label=_OPTIONAL)
    pair.options.map_entry = True
    # a separate pool avoids conflicts with another definition of the same file in this process
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _declare()


Message_co = TypeVar("Message_co", covariant=True)


class ScaledObject(Protocol):
    """A scaled object and its trigger, as in a `ScaledObjectRef`."""

    name: str
    namespace: str
    scalerMetadata: Mapping[str, str]


class MetricsRequest(Protocol):
    """A `GetMetricsRequest`."""

    scaledObjectRef: ScaledObject
    metricName: str


class Response(Protocol):
    """A response of the service."""

    def SerializeToString(self) -> bytes:
        """Encode it."""


class MessageClass(Protocol[Message_co]):
    """A class of messages."""

    def __call__(self, **fields: object) -> Message_co:
        """Make a message."""

    def FromString(self, data: bytes) -> Message_co:
        """Decode a message."""


_CLASSES = {
    name: message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
    for name in _FIELDS
}
ScaledObjectRef: MessageClass[ScaledObject] = _CLASSES["ScaledObjectRef"]
IsActiveResponse: MessageClass[Response] = _CLASSES["IsActiveResponse"]
GetMetricSpecResponse: MessageClass[Response] = _CLASSES["GetMetricSpecResponse"]
GetMetricsRequest: MessageClass[MetricsRequest] = _CLASSES["GetMetricsRequest"]
GetMetricsResponse: MessageClass[Response] = _CLASSES["GetMetricsResponse"]
