"""Dispatch from a request frame to its handler, and from its answer to a response frame."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn, cast

from sharecore._core import Dispatch
from sharecore.broker.requests.context import RequestContext
from sharecore.broker.requests.metering import Meter
from sharecore.broker.served import Handler, Served
from sharecore.errors import ErrorCode, KafkaError
from sharecore.network import Disconnect
from sharecore.protocol import ApiKey, Codec, codec

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services

log = logging.getLogger("sharecore.broker")


class Dispatcher:
    """Decode requests, call handlers, encode answers.

    `_core.Dispatch` implements the request path; this class handles the first use of each API version, and
    errors.

    Args:
        broker: the services, for the handlers.
        check_names: refuse answers with unknown field names (for tests).
    """

    def __init__(self, broker: Services, *, check_names: bool = False) -> None:
        self._broker = broker
        self._made: dict[tuple[str, str], Handler] = {}
        """Handlers by module and function."""
        self._dispatch = Dispatch(
            broker,
            RequestContext,
            check_names,
            log.isEnabledFor(logging.DEBUG),
            broker.static_config.sharecore_request_entries_max,
            learn=self._learn,
            unsupported=self._unsupported_api_versions,
            note=self._note,
            meter=Meter,
            check=self._check,
            unwritable=self._unwritable,
            refusal=self._refusal,
            handle_apart=broker.large_requests.handle,
        )
        self.add = self._dispatch.add
        self.on_frame = self._dispatch.on_frame

    @property
    def _offered(self) -> Mapping[int, Served]:
        return cast("Mapping[int, Served]", self._broker.served)  # a client may send any number

    # callbacks of the dispatch

    def _learn(self, api_key: int, api_version: int) -> bool:
        """Load codec and handler of a version; return False for an ApiVersions version that is not served.

        Raises:
            Disconnect: another API or version that is not served.
        """
        served = self._offered.get(api_key)
        if served is None:
            raise Disconnect(f"API key {api_key} is not served")
        if not served.min_version <= api_version <= served.max_version:
            if api_key == ApiKey.API_VERSIONS:
                return False
            raise Disconnect(
                f"version {api_version} of {ApiKey(api_key).name} is not served, "
                f"{served.min_version} to {served.max_version} are"
            )
        self.add(api_key, api_version, codec(api_key, api_version), self._handler(served))
        return True

    def _handler(self, served: Served) -> Handler:
        if served.handler is not None:
            return served.handler
        place = served.module, served.function
        if place not in self._made:
            function = served.load()
            made = function(self._broker) if served.is_factory else function
            self._made[place] = cast("Handler", made)
        return self._made[place]

    def _unsupported_api_versions(self, correlation_id: int) -> list[bytes]:
        """Answer a newer client in version 0 with the served versions (KIP-511)."""
        served = self._offered[ApiKey.API_VERSIONS]
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

    def _note(self, context: RequestContext, frame_bytes: int) -> None:
        log.debug(
            "%s of %s, %d bytes, from %s", _name(context), context.client_id, frame_bytes, context.connection
        )

    def _check(self, messages: Codec, context: RequestContext, message: Mapping[str, object]) -> None:
        """Raise Disconnect for an answer with unknown field names."""
        if names := messages.misspelt(message):
            log.error("the answer to %s has unknown field names: %s", _name(context), ", ".join(names))
            raise Disconnect("answer cannot be encoded")

    def _unwritable(self, context: RequestContext, error: Exception) -> NoReturn:
        log.error("cannot encode the answer to %s", _name(context), exc_info=error)
        raise Disconnect("answer cannot be encoded") from error

    def _refusal(self, messages: Codec, context: RequestContext, error: BaseException) -> dict[str, object]:
        """Return the answer for a request that failed as a whole.

        Raises:
            Disconnect: answers of this API have no field for the error.
        """
        if isinstance(error, Disconnect):
            raise error
        if isinstance(error, KafkaError):
            code, text = error.code, error.message
        else:
            log.error("%s failed", _name(context), exc_info=error)
            code, text = ErrorCode.UNKNOWN_SERVER_ERROR, ""
        fields = messages.response.struct
        if fields.field("error_code") is None:
            raise Disconnect(f"{_name(context)} failed with {code.name}, for which its answer has no field")
        if not text or fields.field("error_message") is None:
            return {"error_code": code}
        return {"error_code": code, "error_message": text}


def _name(context: RequestContext) -> str:
    try:
        return f"{ApiKey(context.api_key).name} v{context.api_version}"
    except ValueError:
        return f"API {context.api_key} v{context.api_version}"
