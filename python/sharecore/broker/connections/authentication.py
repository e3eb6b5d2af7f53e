"""SASL authentication of clients, before their first request and when a credential expires."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Mapping

from sharecore.clock import Clock
from sharecore.config import BrokerConfig
from sharecore.errors import ErrorCode
from sharecore.network import Answer, Connection, Disconnect, Pending
from sharecore.protocol import ApiKey, MalformedMessage, RequestHeader, codec, read_header
from sharecore.security.principal import USER, Principal
from sharecore.security.sasl import Exchange, Mechanism, Refused

log = logging.getLogger("sharecore.security")

FrameHandler = Callable[[Connection, bytes], Answer]

HANDSHAKE_VERSIONS = range(2)
AUTHENTICATE_VERSIONS = range(3)
_AGAIN_AFTER_MS = 1000
_SIZE = struct.Struct(">i")


class Authentication:
    """Unauthenticated clients, limited in number and time.

    Args:
        config: returns the configuration.
        mechanisms: returns a listener's mechanisms.
        serve: handles frames of authenticated clients.
        clock: the time.
    """

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        mechanisms: Callable[[str], Mapping[str, Mechanism]],
        serve: FrameHandler,
        clock: Clock,
    ) -> None:
        self.config = config
        self.mechanisms = mechanisms
        self.serve = serve
        self.clock = clock
        self._open: dict[Connection, asyncio.TimerHandle] = {}

    def become(self, other: Authentication) -> None:
        """Authenticate the clients of this one as another one does, by its users, from now on."""
        self.config, self.mechanisms, self.serve = other.config, other.mechanisms, other.serve

    def begin(self, connection: Connection) -> None:
        """Block a new connection until its client is authenticated."""
        config = self.config()
        while len(self._open) >= config.sharecore_authentications_max:
            oldest = next(iter(self._open))
            log.warning("closing %s: too many clients are authenticating", oldest)
            self.end(oldest)
            oldest.abort()
        timer = asyncio.get_running_loop().call_later(
            config.sharecore_authentication_timeout_ms / 1000, self._time_up, connection
        )
        self._open[connection] = timer
        connection.on_close(lambda: self.end(connection))
        connection.count_as_stranger()
        connection.limit_frames(config.for_listener(connection.listener).sasl_server_max_receive_size)
        connection.on_frame = Authenticator(self).on_frame

    def end(self, connection: Connection) -> None:
        """Forget a client that is authenticated or has disconnected."""
        timer = self._open.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _time_up(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        connection.close("authentication timed out (sharecore.authentication.timeout.ms)")


class Authenticator:
    """Authenticator of one connection.

    After authentication, frames bypass it, unless the credential expires: then it watches for
    reauthentication, and closes the connection of a client that sends anything else after expiry.
    """

    def __init__(self, service: Authentication) -> None:
        self._service = service
        self._mechanism = ""
        self._offered: Mapping[str, Mechanism] = {}
        self._exchange: Exchange | None = None
        self._with_headers = True
        self._versions_sent = False
        self._proven: tuple[str, str] | None = None
        """Mechanism and user of the previous authentication."""
        self._since_ms = 0
        self._expires_ms: int | None = None

    def on_frame(self, connection: Connection, frame: bytes) -> Answer:
        """Handle a frame of an unauthenticated client."""
        if not self._with_headers:
            return self._raw(connection, frame)
        try:
            header = read_header(frame)
            if header.api_key == ApiKey.API_VERSIONS and self._exchange is None and not self._versions_sent:
                answer = self._service.serve(connection, frame)
                self._versions_sent = header.api_version in range(5)
                return answer
            if header.api_key == ApiKey.SASL_HANDSHAKE and self._exchange is None:
                return self._handshake(connection, frame, header)
            if header.api_key == ApiKey.SASL_AUTHENTICATE and self._exchange is not None:
                return self._authenticate(connection, frame, header)
            if self._exchange is not None:
                return self._out_of_turn(connection, header)
        except MalformedMessage as error:
            raise Disconnect(f"malformed request: {error}") from error
        raise Disconnect(f"API {header.api_key} v{header.api_version} of an unauthenticated client")

    def watch(self, connection: Connection, frame: bytes) -> Answer:
        """Handle a frame of a client whose credential expires."""
        now_ms = self._service.clock.now_ms()
        if frame[:2] == b"\x00\x11" and now_ms - self._since_ms >= _AGAIN_AFTER_MS:
            try:
                return self._handshake(connection, frame, read_header(frame))
            except MalformedMessage as error:
                raise Disconnect(f"malformed request: {error}") from error
        if self._expires_ms is not None and now_ms > self._expires_ms:
            raise Disconnect(f"{connection.principal} has not reauthenticated in time")
        return self._service.serve(connection, frame)

    def _handshake(self, connection: Connection, frame: bytes, header: RequestHeader) -> Answer:
        if header.api_version not in HANDSHAKE_VERSIONS:
            raise Disconnect(f"version {header.api_version} of SASL_HANDSHAKE is not served")
        messages = codec(header.api_key, header.api_version)
        name = messages.read_request(frame, header).mechanism
        self._offered = self._service.mechanisms(connection.listener)
        mechanism = self._offered.get(name)
        answer: dict[str, object] = {"mechanisms": list(self._offered)}
        if mechanism is None:
            answer["error_code"] = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            self._log_refusal(connection, Refused(f"mechanism {name!r:.40} is not offered"))
            return self._close_with(connection, messages.write_response(header.correlation_id, answer), 0)
        self._mechanism, self._exchange = name, mechanism.start()
        self._with_headers = header.api_version > 0
        connection.on_frame = self.on_frame
        return messages.write_response(header.correlation_id, answer)

    def _authenticate(self, connection: Connection, frame: bytes, header: RequestHeader) -> Answer:
        if header.api_version not in AUTHENTICATE_VERSIONS:
            raise Disconnect(f"version {header.api_version} of SASL_AUTHENTICATE is not served")
        messages = codec(header.api_key, header.api_version)
        message = messages.read_request(frame, header).auth_bytes
        try:
            token = self._step(message)
        except Refused as refused:
            self._log_refusal(connection, refused)
            text = refused.answer or (
                f"Authentication failed during {'re-authentication' if self._proven else 'authentication'} "
                f"due to invalid credentials with SASL mechanism {self._mechanism}"
            )
            answer = {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": text}
            delay_ms = self._service.config().connection_failed_authentication_delay_ms
            return self._close_with(
                connection, messages.write_response(header.correlation_id, answer), delay_ms
            )
        lifetime_ms = self._proved(connection) if self._exchange and self._exchange.complete else 0
        return messages.write_response(
            header.correlation_id,
            {"auth_bytes": token, "error_message": None, "session_lifetime_ms": lifetime_ms},
        )

    def _out_of_turn(self, connection: Connection, header: RequestHeader) -> Answer:
        """Answer a request in place of a token with its own error, and close the connection."""
        try:
            messages = codec(header.api_key, header.api_version)
        except KeyError:
            raise Disconnect(f"unknown API {header.api_key} v{header.api_version}") from None
        refused = Refused(f"API {header.api_key} v{header.api_version} where a token belongs")
        self._log_refusal(connection, refused)
        answer = messages.write_response(header.correlation_id, {"error_code": ErrorCode.ILLEGAL_SASL_STATE})
        delay_ms = self._service.config().connection_failed_authentication_delay_ms
        return self._close_with(connection, answer, delay_ms)

    def _raw(self, connection: Connection, frame: bytes) -> Answer:
        """Handle a token without a header, as sent by clients from before SaslAuthenticate."""
        try:
            token = self._step(frame)
        except Refused as refused:
            self._log_refusal(connection, refused)
            return self._close_with(
                connection, None, self._service.config().connection_failed_authentication_delay_ms
            )
        if self._exchange and self._exchange.complete:
            self._with_headers = True
            self._proved(connection)
        return [_SIZE.pack(len(token)), token]

    def _step(self, message: bytes) -> bytes:
        exchange = self._exchange
        assert exchange is not None
        if self._proven is not None and self._mechanism != self._proven[0]:
            text = (
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism {self._proven[0]}"
            )
            raise Refused(text, answer=text)
        token = exchange.step(message)
        if exchange.complete and self._proven is not None and exchange.user != self._proven[1]:
            text = (
                "Cannot change principals during re-authentication from "
                f"{USER}.{self._proven[1]}: {USER}.{exchange.user}"
            )
            raise Refused(text, answer=text, user=exchange.user)
        return token

    def _proved(self, connection: Connection) -> int:
        """Accept the client; return the session lifetime in ms, 0 for unlimited."""
        exchange, self._exchange = self._exchange, None
        assert exchange is not None
        config = self._service.config()
        self._service.end(connection)
        connection.limit_frames(config.socket_request_max_bytes)
        self._proven = self._mechanism, exchange.user
        connection.principal = Principal(USER, exchange.user)
        connection.count_as(str(connection.principal))
        log.debug("%s is %s by %s", connection, connection.principal, self._mechanism)
        self._since_ms = self._service.clock.now_ms()
        limit_ms = config.for_listener(connection.listener, self._mechanism).connections_max_reauth_ms
        lifetimes = [limit_ms] if limit_ms > 0 else []
        if exchange.expires_ms is not None:
            # 0 would mean unlimited
            lifetimes.append(max(exchange.expires_ms - self._since_ms, 1))
        if not lifetimes:
            connection.on_frame = self._service.serve
            return 0
        self._expires_ms = self._since_ms + min(lifetimes)
        connection.on_frame = self.watch
        return min(lifetimes)

    def _close_with(self, connection: Connection, answer: list[bytes] | None, delay_ms: int) -> Answer:
        """Answer after a delay that slows down guessing, then close the connection."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def ripe() -> None:
            if not future.done():
                future.set_result(None)

        def finish(done: asyncio.Future[None]) -> list[bytes] | None:
            loop.call_soon(connection.close)
            return answer

        # the loop counts whole milliseconds from the start of its turn: round up, so that a guess costs at
        # least the delay
        loop.call_later((delay_ms + 1) / 1000 if delay_ms else 0, ripe)
        connection.on_frame = _deaf
        connection.stop_reading()
        return Pending(future, finish)

    def _log_refusal(self, connection: Connection, refused: Refused) -> None:
        log.warning(
            "authentication of %s failed: user %r, mechanism %s: %s",
            connection,
            refused.user,
            self._mechanism or "unknown",
            refused,
        )


def _deaf(connection: Connection, frame: bytes) -> Answer:
    return None
