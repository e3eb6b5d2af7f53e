"""A connection to a broker: framing, versions, authentication, timeouts."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from sharecore.client.errors import AuthenticationFailed, Disconnected
from sharecore.client.settings import ConnectionSettings
from sharecore.client.wire.apis import VERSIONS
from sharecore.client.wire.security import PROTOCOLS, TLS_ALERT, authenticate, distrust, remedy
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, Codec, MalformedMessage, calls, codec
from sharecore.protocol.calls import Call

if TYPE_CHECKING:
    from sharecore.protocol.received import ApiVersionsResponse

logger = logging.getLogger(__name__)
_API_VERSIONS_TRIED = 3
_LIFETIME_USED = 0.8
SOFTWARE = {"client_software_name": "sharecore", "client_software_version": "0.1"}

CLOSED = "the broker closed the connection"

Response = TypeVar("Response")
Dial = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]
"""Connects the protocol returned by a factory; raises OSError."""


class _Sent(NamedTuple):
    correlation_id: int
    read: Callable[[bytes], object]
    answered: Callable[[object], None]
    timer: asyncio.TimerHandle
    at: float


def _resolve(answer: asyncio.Future[Response], response: Response | Disconnected) -> None:
    if answer.done():
        return
    if isinstance(response, Disconnected):
        answer.set_exception(response)
    else:
        answer.set_result(response)


class Connection(asyncio.Protocol):
    """Sends requests and matches responses to them; several may be in flight.

    Created by `open`. A request timeout ends the connection, since no later request would be answered either.
    """

    def __init__(
        self,
        address: str,
        settings: ConnectionSettings,
        spoken: Mapping[ApiKey, tuple[int, int]] = VERSIONS,
    ) -> None:
        self.address = address
        self._spoken = spoken
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._head = b""
        """The start of a response, without its whole size."""
        self._pieces: list[bytes] = []
        """Pieces of an incomplete response; `_due` bytes are missing."""
        self._due = 0
        self._sent: deque[_Sent] = deque()
        self._correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self._throttled_until = 0.0
        self._reauthenticate_at = float("inf")
        self._authenticating = asyncio.Lock()
        self._reason = "the connection was closed"
        self._has_answered = False
        self.on_answer: Callable[[float], None] | None = None
        """Called with the seconds that each response took."""
        self.on_announced: Callable[[int], bool] | None = None
        """Called with the size of each incomplete response.

        If it returns False, nothing more is read until `resume`.
        """
        self._announced = 0
        """Size of the response whose rest is not read yet."""

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        settings: ConnectionSettings,
        context: ssl.SSLContext | None,
        spoken: Mapping[ApiKey, tuple[int, int]] = VERSIONS,
        dial: Dial | None = None,
    ) -> Connection:
        """Connect, get the broker's versions, and authenticate.

        Args:
            context: None for a connection without TLS.
            spoken: the client's lowest and highest version of each API.
            dial: opens the connection instead; `host` and `port` are then only its name.

        Raises:
            Disconnected: the broker cannot be reached.
            AuthenticationFailed: the certificate or the credentials were refused.
        """
        address = f"{host}:{port}"
        connection = cls(address, settings, spoken)
        # the first use of the schemas imports them: not the broker's time
        newest, oldest = (codec(ApiKey.API_VERSIONS, version) for version in (_API_VERSIONS_TRIED, 0))
        try:
            async with asyncio.timeout(settings.socket_connection_setup_timeout_ms / 1000):
                if dial is None:
                    await connection._loop.create_connection(
                        lambda: connection,
                        host,
                        port,
                        ssl=context,
                        server_hostname=host if context is not None else None,
                    )
                else:
                    await dial(lambda: connection)
                await connection._learn_versions(newest, oldest)
                if settings.sasl:
                    await connection._authenticate()
        except ssl.SSLCertVerificationError as error:
            raise AuthenticationFailed(f"{address}: {distrust(error)}") from error
        except TimeoutError as error:
            connection.close()
            raise Disconnected(
                f"{address} did not respond within {settings.socket_connection_setup_timeout_ms} ms"
            ) from error
        except OSError as error:
            connection.close()
            # a plaintext listener ends a handshake like this; a refused connection is not one
            other = context is not None and isinstance(
                error, ssl.SSLError | ConnectionResetError | ConnectionAbortedError
            )
            reason = str(error) or CLOSED
            raise Disconnected(f"{address}: {reason}{connection._doubt if other else ''}") from error
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def _doubt(self) -> str:
        protocol = self._settings.security_protocol
        return f"; security.protocol={protocol} may be wrong for this listener: {PROTOCOLS}"

    @property
    def closed(self) -> bool:
        return self._transport is None or self._transport.is_closing() or self.lost.done()

    def offers(self, api_key: ApiKey) -> bool:
        """Return whether the broker has this API, in a version known here."""
        (low, high), (broker_low, broker_high) = self._spoken[api_key], self._versions.get(api_key, (0, -1))
        return max(low, broker_low) <= min(high, broker_high)

    def version(self, api_key: ApiKey, newest: int | None = None) -> int:
        """Return the newest common version, at most `newest`.

        Raises:
            KafkaError: UNSUPPORTED_VERSION.
        """
        low, high = self._spoken[api_key]
        if newest is not None:
            high = min(high, newest)
        broker_low, broker_high = self._versions.get(api_key, (0, -1))
        if min(high, broker_high) < max(low, broker_low):
            offered = (
                f"offers versions {broker_low} to {broker_high}" if broker_high >= 0 else "has no such API"
            )
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{api_key.name}: versions {low} to {high} are needed, but {self.address} {offered}",
            )
        return min(high, broker_high)

    @property
    def ready(self) -> bool:
        """Whether a request may be sent at once: no throttling, and the credentials are still valid."""
        now = self._loop.time()
        return self._throttled_until <= now < self._reauthenticate_at

    async def prepare(self) -> None:
        """Wait until the connection is `ready`.

        Raises:
            Disconnected, AuthenticationFailed: as `open`.
        """
        pause = self._throttled_until - self._loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        if self._reauthenticate_at <= self._loop.time():
            async with self._authenticating:
                if self._reauthenticate_at <= self._loop.time():
                    await self._authenticate()

    async def request(
        self,
        call: Call[Response],
        message: Mapping[str, object],
        *,
        wait_ms: int = 0,
        newest: int | None = None,
    ) -> Response:
        """Send a request and wait for its response; the arguments are those of `send`.

        Raises:
            Disconnected: the connection ended first, or the request timed out.
            KafkaError: UNSUPPORTED_VERSION.
        """
        if not self.ready:
            await self.prepare()
        return await self._request(call, message, wait_ms, newest)

    async def _request(
        self,
        call: Call[Response],
        message: Mapping[str, object],
        wait_ms: int = 0,
        newest: int | None = None,
    ) -> Response:
        answer: asyncio.Future[Response] = self._loop.create_future()
        self.send(call, message, partial(_resolve, answer), wait_ms=wait_ms, newest=newest)
        return await answer

    def send(
        self,
        call: Call[Response],
        message: Mapping[str, object] | NamedTuple,
        answered: Callable[[Response | Disconnected], None],
        *,
        wait_ms: int = 0,
        newest: int | None = None,
    ) -> None:
        """Send a request; `answered` is called with the response or, if the connection ends, with
        Disconnected.

        Args:
            wait_ms: how long the broker may delay the response, beyond the request timeout.
            newest: the highest version for this message, if not the highest known one.

        Raises:
            Disconnected: the connection has ended.
            KafkaError: UNSUPPORTED_VERSION.
        """
        messages = codec(call.key, self.version(call.key, newest))
        self._send(messages, message, lambda frame: messages.read_response(frame)[1], answered, wait_ms)

    def _send(
        self,
        messages: Codec,
        message: Mapping[str, object] | NamedTuple,
        read: Callable[[bytes], Response],
        answered: Callable[[Response | Disconnected], None],
        wait_ms: int = 0,
    ) -> None:
        if self._transport is None or self.closed:
            raise Disconnected(f"{self.address}: {self._reason}")
        self._correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        timeout_ms = self._settings.request_timeout_ms + wait_ms
        timer = self._loop.call_later(timeout_ms / 1000, self.close, f"no response within {timeout_ms} ms")
        # `answered` is called with what `read` returns
        taken = cast(Callable[[object], None], answered)
        self._sent.append(_Sent(self._correlation_id, read, taken, timer, self._loop.time()))
        self._transport.write(messages.write_request(self._correlation_id, self._settings.client_id, message))

    def close(self, reason: str = "the connection was closed") -> None:
        """End the connection; requests in flight fail with `reason`."""
        self._end(reason)
        if self._transport is not None:
            self._transport.abort()

    def _end(self, reason: str) -> None:
        if not self.lost.done():
            self._reason = reason
            self.lost.set_result(None)
        sent, self._sent = self._sent, deque()
        for request in sent:
            request.timer.cancel()
            request.answered(Disconnected(f"{self.address}: {self._reason}"))

    def resume(self) -> None:
        """Ask `on_announced` again, and continue reading if it agrees."""
        if self._announced and not self.closed:
            self._consider(self._announced)

    def _consider(self, size: int) -> None:
        """Read the rest of a response, or pause."""
        assert self._transport is not None
        assert self.on_announced is not None
        paused = self._announced > 0
        self._announced = 0 if self.on_announced(size) else size
        if self._announced and not paused:
            self._transport.pause_reading()
        elif paused and not self._announced:
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        reason = str(error) if error is not None else CLOSED
        self._end(reason if self._has_answered else reason + self._doubt)

    def data_received(self, data: bytes) -> None:
        """Extract responses; a large one arrives in many pieces, which are copied once."""
        at = 0
        if self._due:
            at = min(self._due, len(data))
            self._pieces.append(data[:at])
            self._due -= at
            if self._due:
                return
            frame = b"".join(self._pieces)
            self._pieces.clear()
            self._answer(frame)
        elif self._head:
            data = self._head + data
        while len(data) - at >= 4:
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if data[at : at + 2] == TLS_ALERT and not self._settings.tls:
                self.close("the broker speaks TLS there: set security.protocol to SSL or SASL_SSL")
                return
            if not 4 <= size <= self._settings.receive_message_max_bytes:
                self.close(f"the broker announced a response of {size} bytes")
                return
            at += 4
            frame = data[at : at + size]
            at += len(frame)
            self._due = size - len(frame)
            if self._due:
                self._pieces.append(frame)
                if self.on_announced is not None:
                    self._consider(size)
            else:
                self._answer(frame)
        self._head = data[at:]

    def _answer(self, frame: bytes) -> None:
        if not self._sent:
            self.close("the broker sent an unexpected response")
            return
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if correlation_id != self._sent[0].correlation_id:
            self.close(f"got response {correlation_id} instead of {self._sent[0].correlation_id}")
            return
        sent = self._sent[0]
        try:
            response = sent.read(frame)
        except MalformedMessage as error:
            self.close(f"invalid response from the broker: {error}")
            return
        # before authentication every listener answers ApiVersions, and only that
        self._has_answered = bool(self._versions)
        self._sent.popleft()
        sent.timer.cancel()
        if self.on_answer is not None:
            self.on_answer(self._loop.time() - sent.at)
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._throttled_until = self._loop.time() + throttle_ms / 1000
        sent.answered(response)

    async def _learn_versions(self, newest: Codec, oldest: Codec) -> None:
        def read(frame: bytes) -> ApiVersionsResponse:
            # a broker that does not know the version responds in version 0, which starts with the error code
            known = frame[4:6] != int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
            response: ApiVersionsResponse = (newest if known else oldest).read_response(frame)[1]
            return response

        response = None
        for messages in (newest, oldest):
            answer: asyncio.Future[ApiVersionsResponse] = self._loop.create_future()
            self._send(messages, SOFTWARE, read, partial(_resolve, answer))
            response = await answer
            if response.error_code != ErrorCode.UNSUPPORTED_VERSION:
                break
        assert response is not None
        if response.error_code:
            raise KafkaError(response.error_code, f"{self.address} refused ApiVersions")
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys
        }

    async def _authenticate(self) -> None:
        settings = self._settings
        mechanism = settings.sasl_mechanism or ""
        handshake = await self._request(calls.SASL_HANDSHAKE, {"mechanism": mechanism})
        if handshake.error_code:
            offered = ", ".join(handshake.mechanisms)
            raise AuthenticationFailed(
                f"{self.address} does not offer sasl.mechanism={mechanism}, only {offered}"
                if offered
                else f"{self.address} does not use SASL: set security.protocol to "
                f"{settings.security_protocol.removeprefix('SASL_')}, without sasl.mechanism"
            )
        lifetime_ms = 0

        async def exchange(message: bytes) -> bytes:
            nonlocal lifetime_ms
            answer = await self._request(calls.SASL_AUTHENTICATE, {"auth_bytes": message})
            if answer.error_code:
                raise AuthenticationFailed(
                    f"{self.address}: {answer.error_message or ErrorCode(answer.error_code).name}; "
                    f"{remedy(mechanism)}"
                )
            lifetime_ms = answer.session_lifetime_ms
            return answer.auth_bytes

        await authenticate(settings, exchange)
        if lifetime_ms > 0:
            self._reauthenticate_at = self._loop.time() + lifetime_ms / 1000 * _LIFETIME_USED
