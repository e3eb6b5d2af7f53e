"""Serves a worker's health and metrics over HTTP, from separate threads: loops may be blocked."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer, TCPServer, ThreadingMixIn

from sharecore.client.workers.figures import register_worker_metrics
from sharecore.client.workers.health import Health
from sharecore.errors import ConfigError

_CONNECTIONS_MAX = 16
_POLL_SECONDS = 0.1
_REQUEST_SECONDS_MAX = 5.0
_PATHS = "/livez /healthz /readyz /metrics"

_Request = socket.socket | tuple[bytes, socket.socket]


class HealthServer(ThreadingMixIn, TCPServer):
    """Serves /livez and /healthz, /readyz, and /metrics, without authentication.

    Args:
        host: the address to listen on; empty for all.
        port: 0 for any free port.
        health: returns the worker's health.

    Raises:
        ConfigError: the address cannot be bound.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = _CONNECTIONS_MAX

    def __init__(self, host: str, port: int, health: Callable[[], Health]) -> None:
        self.health = health
        self.registry = register_worker_metrics()
        self._open: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        if not host and socket.has_dualstack_ipv6():
            self.address_family, host = socket.AF_INET6, "::"
        elif ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Answers)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"the worker's health cannot be served on port {port}: {_reason(error)}; "
                "choose another health_port (--health-port)"
            ) from None
        self.address: tuple[str, int] = self.socket.getsockname()[:2]
        serve = partial(self.serve_forever, _POLL_SECONDS)
        threading.Thread(target=serve, name="sharecore worker health", daemon=True).start()

    def server_bind(self) -> None:
        """Bind, to IPv4 and IPv6 for all addresses."""
        if self.server_address[0] == "::":
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()
        for request in list(self._open):
            super().shutdown_request(request)

    # connections are bounded, in number and in time

    def verify_request(self, request: _Request, client_address: object) -> bool:
        """Return whether another connection is allowed."""
        assert isinstance(request, socket.socket)
        with self._lock:
            if len(self._open) >= _CONNECTIONS_MAX:
                return False
            self._open[request] = time.monotonic()
        return True

    def shutdown_request(self, request: _Request) -> None:
        """Forget an ended connection."""
        assert isinstance(request, socket.socket)
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections with slow requests."""
        until = time.monotonic() - _REQUEST_SECONDS_MAX
        with self._lock:
            late = [request for request, began in self._open.items() if began < until]
        for request in late:
            with contextlib.suppress(OSError):
                # its thread notices, and closes it
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: _Request, client_address: object) -> None:
        """Ignore connections that break off."""


class _Answers(BaseHTTPRequestHandler):
    timeout = _REQUEST_SECONDS_MAX
    server_version, sys_version = "sharecore", ""

    def __init__(self, request: _Request, client_address: object, server: BaseServer) -> None:
        assert isinstance(server, HealthServer)
        self._serves = server
        super().__init__(request, client_address, server)

    def do_GET(self) -> None:
        self._answer(*self._page())

    def do_HEAD(self) -> None:
        self._answer(*self._page())

    def _page(self) -> tuple[int, str, bytes]:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            from prometheus_client.exposition import choose_encoder

            encode, content_type = choose_encoder(self.headers.get("Accept", ""))
            return 200, content_type, encode(self._serves.registry)
        if path not in ("/livez", "/healthz", "/readyz"):
            return 404, "text/plain; charset=utf-8", f"not found; available are {_PATHS}\n".encode()
        found = self._serves.health()
        good = found.ready if path == "/readyz" else found.live
        return 200 if good else 503, "application/json", f"{found.as_json()}\n".encode()

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: probes come every few seconds."""


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
