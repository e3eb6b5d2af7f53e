"""Converts librdkafka's errors to Kafka's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.client.errors import AuthenticationFailed
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as RdkafkaError

_CODES = {
    "_ALL_BROKERS_DOWN": ErrorCode.NETWORK_EXCEPTION,
    "_FENCED": ErrorCode.PRODUCER_FENCED,
    "_INVALID_ARG": ErrorCode.INVALID_REQUEST,
    "_MSG_TIMED_OUT": ErrorCode.REQUEST_TIMED_OUT,
    "_RESOLVE": ErrorCode.NETWORK_EXCEPTION,
    "_STATE": ErrorCode.INVALID_TXN_STATE,
    "_TIMED_OUT": ErrorCode.REQUEST_TIMED_OUT,
    "_TIMED_OUT_QUEUE": ErrorCode.REQUEST_TIMED_OUT,
    "_TRANSPORT": ErrorCode.NETWORK_EXCEPTION,
    "_UNKNOWN_PARTITION": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    "_UNKNOWN_TOPIC": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""librdkafka's own errors, by name without the prefix; its others have Kafka's codes."""


_ADVICE = {
    "MSG_SIZE_TOO_LARGE": "raise max.request.size of the producer and max.message.bytes of the topic, or "
    "store the data elsewhere and send its address",
}
"""What to do about errors whose text does not say it."""


def is_refusal(error: RdkafkaError) -> bool:
    """Return whether the broker refused the credentials, or its certificate is not trusted."""
    # librdkafka also reports a broker that disconnects during the handshake as an SSL error
    return error.name() == "_AUTHENTICATION" or (
        error.name() == "_SSL" and "certificate" in error.str().lower()
    )


def kafka_error(error: RdkafkaError, more: str = "") -> KafkaError:
    """Convert an error of confluent-kafka.

    Args:
        more: details for an error that has none.
    """
    more = more or _ADVICE.get(error.name(), "")
    message = f"{error.str()}{f'; {more}' if more else ''}"
    if is_refusal(error):
        return AuthenticationFailed(message)
    code = error.code()
    if code > 0:
        try:
            return KafkaError(ErrorCode(code), message)
        except ValueError:
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{error.name()}: {message}")
    return KafkaError(_CODES.get(error.name(), ErrorCode.UNKNOWN_SERVER_ERROR), message)
