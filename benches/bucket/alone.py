"""What a bucket takes by itself: objects of 4 MiB, eight under way, without a broker."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import time
from concurrent.futures import ThreadPoolExecutor

from tests.bucket.versitygw import KEY, SECRET
from tests.harness.s3 import BUCKET

_OBJECT_BYTES = 4 << 20
_UNDER_WAY = 8
_REGION = "us-east-1"
_UNSIGNED = "UNSIGNED-PAYLOAD"
_SIGNED = "host;x-amz-content-sha256;x-amz-date"


def _signed(path: str, host: str) -> dict[str, str]:
    """Return the headers of a PUT (AWS Signature Version 4)."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    scope = f"{moment[:8]}/{_REGION}/s3/aws4_request"
    headers = {"host": host, "x-amz-content-sha256": _UNSIGNED, "x-amz-date": moment}
    named = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"PUT\n{path}\n\n{named}\n{_SIGNED}\n{_UNSIGNED}"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = f"Credential={KEY}/{scope}, SignedHeaders={_SIGNED}, Signature={key.hex()}"
    return headers | {"authorization": f"AWS4-HMAC-SHA256 {signature}", "if-none-match": "*"}


def megabytes_per_second(port: int, seconds: float) -> float:
    """Create objects for a while."""
    body, ends_s = bytes(_OBJECT_BYTES), time.monotonic() + seconds

    def create(thread: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        created = 0
        while time.monotonic() < ends_s:
            path = f"/{BUCKET}/alone/{began_s}-{thread}-{created}"
            connection.request("PUT", path, body, _signed(path, f"127.0.0.1:{port}"))
            answer = connection.getresponse()
            told = answer.read()
            if answer.status != http.client.OK:
                raise RuntimeError(f"the bucket answers {answer.status}: {told!r}")
            created += 1
        connection.close()
        return created

    began_s = time.monotonic()
    with ThreadPoolExecutor(_UNDER_WAY) as threads:
        created = sum(threads.map(create, range(_UNDER_WAY)))
    return created * _OBJECT_BYTES / 1e6 / (time.monotonic() - began_s)
