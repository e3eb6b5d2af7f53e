"""Delivery of a batch until its fate is known or the timeout expires."""

from __future__ import annotations

import asyncio
import logging

from sharecore.errors import ErrorCode, KafkaError
from sharecore.upstream.asking import drop
from sharecore.upstream.cluster import PATIENCE_S
from sharecore.upstream.errors import Fenced, NotWritten, Unresolved
from sharecore.upstream.outlet import Answer, Outlet

logger = logging.getLogger(__name__)

TIMEOUT_MS = 30_000
_FENCING = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
_STATE_LOST = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
}
"""Errors of a leader whose state of this producer differs from ours."""
_FINAL = {
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.POLICY_VIOLATION,
}
"""Permanent errors, each raised before anything is appended."""
_BEFORE_APPEND = _FINAL | {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CORRUPT_MESSAGE}
"""Errors that prove that the batch was not appended.

NOT_LEADER_OR_FOLLOWER is not one of them: a leader that appended the batch and was then deposed returns it,
too.
"""


async def deliver(outlet: Outlet, topic: str, partition: int, records: bytes, timeout_ms: int) -> int:
    """Send one batch, and send it again while its fate is unknown or may change.

    Args:
        records: the batch; with a producer's sequence number, it is appended once in spite of retries.
        timeout_ms: timeout of all attempts.

    Returns:
        The offset of its first record, once all in-sync replicas have it.

    Raises:
        NotWritten: it is definitely not in the log.
        Fenced: a newer epoch of its producer has written.
        Unresolved: it may be in the log.
    """
    upstream = outlet.upstream
    name = f"{topic}-{partition}"
    until_ms = upstream.clock.monotonic_ms() + timeout_ms
    backoff = upstream.backoff()
    in_doubt = False
    while True:
        answer = await _send(outlet, topic, partition, records, until_ms - upstream.clock.monotonic_ms())
        error = answer.error
        if error is None:
            return answer.base_offset
        if error.code in _FENCING:
            raise Fenced(error.code, f"{name} was taken over by another writer: {error.message}")
        if error.code in _STATE_LOST:
            text = f"{name}: the upstream cluster has lost this producer's state: {error.message}"
            raise Unresolved(error.code, text)
        in_doubt = in_doubt or (answer.sent and error.code not in _BEFORE_APPEND)
        pause = backoff.seconds()
        if error.code in _FINAL or upstream.clock.monotonic_ms() + pause * 1000 >= until_ms:
            raise _given_up(name, error, in_doubt)
        logger.info("%s: resending: %s", name, error)
        if error.code is not ErrorCode.NOT_ENOUGH_REPLICAS:
            upstream.stale()
        await asyncio.sleep(pause)


async def _send(outlet: Outlet, topic: str, partition: int, records: bytes, left_ms: float) -> Answer:
    """Send it once.

    A deposed leader without that knowledge waits for replicas that do not follow it, so other brokers are
    asked for the leader meanwhile.
    """
    upstream = outlet.upstream
    until_ms = upstream.clock.monotonic_ms() + left_ms
    asked = upstream.metadata.leader(topic, partition)
    sending = asyncio.ensure_future(outlet.send(topic, partition, records))
    try:
        while (left_s := (until_ms - upstream.clock.monotonic_ms()) / 1000) > 0:
            await asyncio.wait([sending], timeout=min(left_s, PATIENCE_S))
            if sending.done():
                return sending.result()
            if upstream.metadata.leader(topic, partition) != asked:
                text = "no answer from a deposed leader"
                return Answer(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text), -1, True)
            upstream.stale()
        return Answer(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer in time"), -1, True)
    finally:
        drop(sending)


def _given_up(name: str, error: KafkaError, in_doubt: bool) -> KafkaError:
    why = error.message or error.code.name
    if in_doubt:
        return Unresolved(error.code, f"{name}: it is unknown whether a batch was appended: {why}")
    return NotWritten(error.code, f"{name}: {why}")
