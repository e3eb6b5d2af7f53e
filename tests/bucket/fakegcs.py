"""fake-gcs-server, an emulator of Google Cloud Storage, in a process of its own.

It has the JSON API, and of the XML API, which sharecore uses, only lists and reads. A relay translates
creates, deletes and errors. Which create wins is the emulator's decision.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlencode, urlsplit

from tests.bucket.versitygw import wait_for
from tests.harness.broker import free_port
from tests.harness.s3 import BUCKET

_CREATE_ONCE = "x-goog-if-generation-match"
_PASSED_ON = ("Content-Type", "Content-Range", "ETag", "Last-Modified", "x-goog-generation")


@contextmanager
def fake_gcs(directory: Path) -> Iterator[str]:
    """Run a server with an empty `BUCKET` and a relay; return the relay's endpoint."""
    port = free_port()
    directory.mkdir(parents=True, exist_ok=True)
    command = [os.environ.get("FAKE_GCS_SERVER", "fake-gcs-server"), "-backend", "memory", "-scheme", "http"]
    command += ["-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for(process, port, directory / "log")
            server = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            server.request("POST", "/storage/v1/b?project=tests", json.dumps({"name": BUCKET}))
            assert server.getresponse().status == 200
            server.close()
            with _relay(port) as endpoint:
                yield endpoint
        finally:
            process.terminate()
            process.wait(20)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_port: int

    def setup(self) -> None:
        """A connection to the emulator for each of the client's."""
        super().setup()
        self.emulator = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=60)

    def finish(self) -> None:
        """Close both."""
        self.emulator.close()
        super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""

    def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        self.emulator.request(method, path, body, headers or {})
        response = self.emulator.getresponse()
        about = {name: response.headers[name] for name in _PASSED_ON if name in response.headers}
        return response.status, about, response.read()

    def _place(self) -> tuple[str, str]:
        bucket, _, key = urlsplit(self.path).path.removeprefix("/").partition("/")
        return unquote(bucket), unquote(key)

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: int) -> None:
        """Answer with what Google's XML API says."""
        code = {404: "NoSuchKey", 412: "PreconditionFailed", 416: "InvalidRange"}.get(status, "InternalError")
        if status != 412 and self._ask("GET", f"/storage/v1/b/{self._place()[0]}")[0] == 404:
            status, code = 404, "NoSuchBucket"
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def do_PUT(self) -> None:
        """Create or write an object."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bucket, key = self._place()
        query = {"uploadType": "media", "name": key}
        if _CREATE_ONCE in self.headers:
            query["ifGenerationMatch"] = self.headers[_CREATE_ONCE]
        kind = {"Content-Type": "application/octet-stream"}
        path = f"/upload/storage/v1/b/{bucket}/o?{urlencode(query)}"
        status, _, answer = self._ask("POST", path, body, kind)
        if status != 200:
            return self._refuse(status)
        about = json.loads(answer)
        return self._answer(
            200, b"", {"ETag": f'"{about["etag"]}"', "x-goog-generation": about["generation"]}
        )

    def do_GET(self) -> None:
        """Read an object, a range of it, or a list."""
        headers = {"Range": self.headers["Range"]} if "Range" in self.headers else {}
        status, about, answer = self._ask("GET", self.path, headers=headers)
        if status >= 300:
            return self._refuse(status)
        return self._answer(status, answer, about)

    def do_DELETE(self) -> None:
        """Delete an object."""
        bucket, key = self._place()
        status, _, _ = self._ask("DELETE", f"/storage/v1/b/{bucket}/o/{quote(key, safe='')}")
        if status >= 300:
            return self._refuse(status)
        return self._answer(204)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no error."""


@contextmanager
def _relay(port: int) -> Iterator[str]:
    class Handler(_Handler):
        """Of this emulator alone."""

        server_port = port

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
