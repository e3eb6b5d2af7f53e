"""A server that speaks as much of S3's protocol as a bucket takes, in memory; and what is wrong with some.

Google's XML API is the same but for the condition of a create and what a missing right is called.

It checks no signatures. What is proved against real servers stands in tests/bucket.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "backups"
_CREATE_ONCE = {False: ("If-None-Match", "*"), True: ("x-goog-if-generation-match", "0")}


class S3Server:
    """One bucket, `BUCKET`. Set an attribute for a fault."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        """Method and path of each."""
        self.headers: list[dict[str, str]] = []
        self.denied: set[str] = set()
        """Rights that are missing: Get, Put, Delete, List."""
        self.is_google = False
        self.is_racy = False
        """Whether a create looks, waits and writes, as s3s-fs does."""
        self.status: int | None = None
        """What every request is answered with."""
        self.rules = ""
        """Lifecycle rules; none if empty."""
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    s3: S3Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""

    def _begin(self, right: str) -> bool:
        self.s3.requests.append(f"{self.command} {self.path}")
        self.s3.headers.append(dict(self.headers))
        if self.s3.status is not None:
            self._refuse(self.s3.status, "SlowDown", "Please reduce your request rate.")
        elif not self._key() and right not in ("List", "GetLifecycle"):
            self._refuse(400, "InvalidRequest", "no key")
        elif right in self.s3.denied and self.s3.is_google:
            details = f"sa@project does not have storage.objects.{right.lower()} access to the object."
            self._refuse(
                403, "AccessDenied", f"Access denied.</Message><Details>{details}</Details><Message>"
            )
        elif right in self.s3.denied:
            self._refuse(403, "AccessDenied", f"not authorized to perform: s3:{right}")
        elif urlsplit(self.path).path.split("/")[1] != BUCKET:
            self._refuse(404, "NoSuchBucket", "The specified bucket does not exist")
        else:
            return True
        return False

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/")

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        about = {"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        for name, value in (about | (headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: int, code: str, message: str) -> None:
        # a client must not repeat this: some servers include the access key
        secret = "<AWSAccessKeyId>AKIDEXAMPLE</AWSAccessKeyId>"
        text = f"<Error><Code>{code}</Code><Message>{message}</Message>{secret}</Error>"
        self._answer(status, text.encode())

    def do_PUT(self) -> None:
        """Create or write an object."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._begin("Put"):
            return None
        key = self._key()
        name, value = _CREATE_ONCE[self.s3.is_google]
        if self.headers.get(name) != value:
            self.s3.objects[key] = body
        elif self.s3.is_racy:
            exists = key in self.s3.objects
            time.sleep(0.02)
            if not exists:
                self.s3.objects[key] = body
            else:
                return self._refuse(412, "PreconditionFailed", "")
        elif body is not self._created(key, body):
            return self._refuse(412, "PreconditionFailed", "At least one condition did not hold")
        return self._answer(200)

    def _created(self, key: str, body: bytes) -> bytes:
        with self.s3.lock:
            return self.s3.objects.setdefault(key, body)

    def do_GET(self) -> None:
        """Read an object, a range of it, or a list."""
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "list-type" in query:
            return self._list(query)
        if "lifecycle" in query:
            return self._lifecycle()
        if not self._begin("Get"):
            return None
        body = self.s3.objects.get(self._key())
        if body is None:
            return self._refuse(404, "NoSuchKey", "The specified key does not exist.")
        wanted = self.headers.get("Range")
        if wanted is None:
            return self._answer(200, body)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        if int(first) >= len(body):
            return self._refuse(416, "InvalidRange", "The requested range is not satisfiable")
        end = min(int(last), len(body) - 1)
        headers = {"Content-Range": f"bytes {first}-{end}/{len(body)}"}
        return self._answer(206, body[int(first) : end + 1], headers)

    def _lifecycle(self) -> None:
        if not self._begin("GetLifecycle"):
            return
        if not self.s3.rules:
            self._refuse(404, "NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist")
        else:
            rules = f"<LifecycleConfiguration>{self.s3.rules}</LifecycleConfiguration>"
            self._answer(200, rules.encode())

    def _list(self, query: dict[str, list[str]]) -> None:
        if not self._begin("List"):
            return
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        names = sorted(key for key in list(self.s3.objects) if key.startswith(prefix) and key > after)
        page, more = names[:1000], names[1000:]
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.s3.objects[key])}</Size>"
            "<LastModified>2026-01-01T00:00:00Z</LastModified><ETag>1</ETag></Contents>"
            for key in page
        )
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        truncated = str(bool(more)).lower()
        self._answer(
            200,
            f"<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>{truncated}</IsTruncated>"
            f"{token}{contents}</ListBucketResult>".encode(),
        )

    def do_DELETE(self) -> None:
        """Delete an object."""
        if self._begin("Delete"):
            self.s3.objects.pop(self._key(), None)
            self._answer(204)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Serve a bucket on a free port of this machine."""

    class Handler(_Handler):
        """Of this server alone."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Handler.s3 = s3 = S3Server(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield s3
        finally:
            server.shutdown()
            thread.join()
