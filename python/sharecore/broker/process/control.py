"""Control endpoint of an ephemeral broker: HTTP on 127.0.0.1 for tests."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from sharecore.waiting import MovableTime

_SECONDS_MAX = 10 * 365 * 24 * 3600
_ANSWER_SECONDS_MAX = 30


class Control:
    """Serve `POST URL/advance?seconds=30`, which moves the time of acquisition locks forward.

    The URL contains a secret, so that only processes that know it can call it.

    Args:
        lock_time: the time moved by `advance`.
        loop: the event loop of the broker.

    Raises:
        OSError: no port is available.
    """

    def __init__(self, lock_time: MovableTime, loop: asyncio.AbstractEventLoop) -> None:
        self._secret = secrets.token_urlsafe(16)
        self._lock_time = lock_time
        self._loop = loop
        # the standard library's server in a thread suffices for a handful of requests
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = True
        serve = partial(self._server.serve_forever, poll_interval=0.02)
        self._thread = threading.Thread(target=serve, name="sharecore control", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The URL with the secret."""
        return f"http://127.0.0.1:{self._server.server_port}/{self._secret}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, target: str) -> tuple[HTTPStatus, dict[str, object]]:
        """Execute a request; return its status and JSON body."""
        parts = urlsplit(target)
        _, secret, *path = parts.path.split("/", 2)
        if not compare_digest(secret.encode(), self._secret.encode()):
            return HTTPStatus.FORBIDDEN, {"error": "the first part of the path must be the broker's secret"}
        if path != ["advance"]:
            return HTTPStatus.NOT_FOUND, {"error": "unknown resource; use /advance"}
        if method != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, {"error": "advance takes POST"}
        try:
            seconds = float(parse_qs(parts.query)["seconds"][0])
        except (KeyError, ValueError):
            seconds = -1.0
        if not 0 <= seconds <= _SECONDS_MAX:
            return HTTPStatus.BAD_REQUEST, {
                "error": f"seconds must be a number from 0 to {_SECONDS_MAX}, as in advance?seconds=30"
            }
        timers = asyncio.run_coroutine_threadsafe(self._advance(seconds), self._loop)
        return HTTPStatus.OK, {"timers": timers.result(_ANSWER_SECONDS_MAX)}

    async def _advance(self, seconds: float) -> int:
        timers = self._lock_time.advance(round(seconds * 1000))
        # due timers run in the next turn of the loop, so that the test then finds the locks expired
        await asyncio.sleep(0.001)
        return timers


class _Handler(BaseHTTPRequestHandler):
    timeout = _ANSWER_SECONDS_MAX

    def __init__(self, control: Control, *args: object) -> None:
        self._control = control
        super().__init__(*args)  # type: ignore[arg-type]

    def _respond(self) -> None:
        status, body = self._control.answer(self.command, self.path)
        content = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _respond

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the path contains the secret."""
