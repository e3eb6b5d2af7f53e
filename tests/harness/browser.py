"""What a browser does of HTTP, as far as the page needs it."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from ssl import SSLContext
from typing import Any, NamedTuple
from urllib.parse import urlencode

JSON = "application/json"


class Answer(NamedTuple):
    """An answer that has come whole."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Browser:
    """Keeps the cookie and the token of one user's page."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = ""
        self.csrf = ""
        self.trusted: SSLContext | None = None
        """Of a page with TLS."""

    def get(self, path: str, /, **values: object) -> Answer:
        return self.ask("GET", f"{path}?{urlencode(values)}" if values else path)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        """Post as the page does; headers with `_` for `-` stand over its own, an empty one leaves it out."""
        sent = {"content-type": JSON, "x-csrf-token": self.csrf}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, json.dumps(body).encode(), {k: v for k, v in sent.items() if v})

    def login(self, user: str, password: str, mechanism: str = "PLAIN") -> Answer:
        """Log in, and learn the token."""
        answer = self.post("/api/login", {"user": user, "password": password, "mechanism": mechanism})
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0] or self.cookie
        self.csrf = self.get("/api/session").body.get("csrf", "")
        return answer

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        with self.open(method, path, body, headers) as answer:
            data = answer.read()
            kind = answer.headers.get("content-type", "")
            told = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status, told, json.loads(data) if kind == JSON else data)

    @contextmanager
    def open(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[HTTPResponse]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        if self.trusted is not None:
            connection = HTTPSConnection("127.0.0.1", self.port, timeout=20, context=self.trusted)
        sent = dict(headers or {})
        if self.cookie:
            sent["cookie"] = self.cookie
        try:
            connection.request(method, path, body, sent)
            yield connection.getresponse()
        finally:
            connection.close()

    def looks(self, path: str, **values: object) -> Generator[Any, None, None]:
        """The events `look` of a stream; the last is followed by what is said of its end."""
        with self.open("GET", f"{path}?{urlencode(values)}") as answer:
            assert answer.status == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            name = ""
            for line in answer:
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                if line.startswith(b"data: "):
                    if name == "ended":
                        return
                    yield json.loads(line[6:])

    def look(self, path: str, **values: object) -> Any:
        """Return the first look."""
        return next(self.looks(path, **values))
