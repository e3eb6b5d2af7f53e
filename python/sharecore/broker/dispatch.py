"""From a request frame to its handler, and from the handler's answer to a response frame."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.metering import Meter
from sharecore.broker.served import Served
from sharecore.errors import ErrorCode, KafkaError
from sharecore.network import Answer, Connection, Disconnect, Pending
from sharecore.protocol import ApiKey, Codec, RequestReader, codec
from sharecore.waiting import Later

if TYPE_CHECKING:
    from sharecore.broker.services import Services

log = logging.getLogger("sharecore.broker")

Handler = Callable[[RequestContext, Any], Result]


class Dispatcher:
    """Decodes requests, calls their handlers, encodes the answers.

    Args:
        broker: the services, for the handlers.
        check_names: refuse to send an answer with a field name that no schema has (for tests).
    """

    def __init__(self, broker: Services, *, check_names: bool = False) -> None:
        self._broker = broker
        self._served: dict[int, Served] = dict(broker.served.items())
        self._check_names = check_names
        self._log_requests = log.isEnabledFor(logging.DEBUG)
        self._reader = RequestReader()

    def on_frame(self, connection: Connection, frame: bytes) -> Answer:
        """Answers one request frame.

        Raises:
            Disconnect: the frame is not a request that this broker understands.
        """
        try:
            found = self._reader.read(frame)
            if found[0] is None:
                _, api_key, api_version, correlation_id, _, _ = found
                if not self._learn(api_key, api_version):
                    return self._unsupported_api_versions(correlation_id)
                found = self._reader.read(frame)
        except ValueError as error:
            raise Disconnect(f"malformed request: {error}") from error
        (messages, handle), api_key, api_version, correlation_id, client_id, request = found
        context = RequestContext(self._broker, connection, api_key, api_version, correlation_id, client_id)
        if self._log_requests:
            log.debug("%s of %s, %d bytes, from %s", _name(context), client_id, len(frame), connection)
        meter = Meter(context, len(frame)) if self._broker.throttles.on else None
        try:
            result = handle(context, request)
        except Exception as error:
            return self._encode(messages, context, self._refusal(messages, context, error), meter)
        if type(result) is dict:
            return self._encode(messages, context, result, meter)
        if result is None:
            if meter is not None:
                meter.settle(messages, None, [])
            return None
        future = result if type(result) is Later else asyncio.ensure_future(result)
        if meter is not None:
            meter.rest()
        return Pending(future, lambda done: self._finish(messages, context, done, meter))

    def _finish(
        self, messages: Codec, context: RequestContext, done: Any, meter: Meter | None
    ) -> list[bytes] | None:
        if meter is not None:
            meter.resume()
        error = done.exception()
        if error is None:
            message = done.result()
            return None if message is None else self._encode(messages, context, message, meter)
        return self._encode(messages, context, self._refusal(messages, context, error), meter)

    def _encode(
        self, messages: Codec, context: RequestContext, message: Mapping[str, Any], meter: Meter | None
    ) -> list[bytes]:
        if self._check_names and (names := messages.misspelt(message)):
            log.error("%s answers with names that no schema has: %s", _name(context), ", ".join(names))
            raise Disconnect("answer could not be written")
        try:
            parts = messages.write_response(context.correlation_id, message)
            return parts if meter is None else meter.settle(messages, message, parts)
        except Exception as error:
            log.exception("the answer to %s could not be written", _name(context))
            raise Disconnect("answer could not be written") from error

    def _learn(self, api_key: int, api_version: int) -> bool:
        """Has requests of a version read and handled; no for a version of ApiVersions that is not served.

        Raises:
            Disconnect: another API or version that is not served.
        """
        served = self._served.get(api_key)
        if served is None:
            raise Disconnect(f"API key {api_key} is not served")
        if not served.min_version <= api_version <= served.max_version:
            if api_key == ApiKey.API_VERSIONS:
                return False
            raise Disconnect(
                f"version {api_version} of {ApiKey(api_key).name} is not served, "
                f"{served.min_version} to {served.max_version} are"
            )
        handler: Handler = import_module(f"sharecore.broker.handlers.{served.module}").handle
        messages = codec(api_key, api_version)
        route = messages, handler
        self._reader.add(api_key, api_version, messages.request_layout, messages.flexible, route)
        return True

    def _unsupported_api_versions(self, correlation_id: int) -> list[bytes]:
        """A client newer than the broker learns from version 0 which versions there are (KIP-511)."""
        served = self._served[ApiKey.API_VERSIONS]
        message = {
            "error_code": ErrorCode.UNSUPPORTED_VERSION,
            "api_keys": [
                {
                    "api_key": ApiKey.API_VERSIONS,
                    "min_version": served.min_version,
                    "max_version": served.max_version,
                }
            ],
        }
        return codec(ApiKey.API_VERSIONS, 0).write_response(correlation_id, message)

    def _refusal(self, messages: Codec, context: RequestContext, error: BaseException) -> dict[str, Any]:
        """The answer that says that the request as a whole failed.

        Raises:
            Disconnect: the answer of this API has no place for it.
        """
        if isinstance(error, Disconnect):
            raise error
        if isinstance(error, KafkaError):
            code, text = error.code, error.message
        else:
            log.error("%s failed", _name(context), exc_info=error)
            code, text = ErrorCode.UNKNOWN_SERVER_ERROR, ""
        if messages.response.struct.field("error_code") is None:
            raise Disconnect(f"{_name(context)} failed with {code.name}, which its answer has no field for")
        return {"error_code": code, "error_message": text} if text else {"error_code": code}


def _name(context: RequestContext) -> str:
    try:
        return f"{ApiKey(context.api_key).name} v{context.api_version}"
    except ValueError:
        return f"API {context.api_key} v{context.api_version}"
