"""Azurite, Microsoft's emulator of Azure Blob Storage, in a process of its own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.bucket.versitygw import wait_for
from tests.harness.broker import free_port
from tests.harness.s3 import BUCKET

ACCOUNT = "sharecore1"
KEY = base64.b64encode(b"a-key-that-only-the-tests-know!!").decode()
_VERSION = "2021-08-06"


def credentials() -> dict[str, str]:
    return {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY}


def shared_access(letters: str) -> str:
    """Return a signature that gives these rights on the container, for an hour."""
    until = (datetime.now(timezone.utc) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = [letters, "", until, f"/blob/{ACCOUNT}/{BUCKET}", "", "", "", _VERSION, "c", *[""] * 7]
    query = {"sv": _VERSION, "sr": "c", "sp": letters, "se": until, "sig": _signed("\n".join(fields))}
    return urlencode(query)


@contextmanager
def azurite(directory: Path) -> Iterator[str]:
    """Run a server with an empty container `BUCKET` and return its endpoint."""
    port = free_port()
    directory.mkdir(parents=True, exist_ok=True)
    command = [os.environ.get("AZURITE", "azurite-blob"), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--location", str(directory), "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=os.environ | accounts)
        try:
            wait_for(process, port, directory / "log")
            endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
            _create_container(endpoint)
            yield endpoint
        finally:
            process.terminate()
            process.wait(20)


def _signed(text: str) -> str:
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def _create_container(endpoint: str) -> None:
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
    named = [f"{name}:{value}" for name, value in headers.items()]
    # an emulator has the account in its path, and so twice in what is signed
    where = [f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}", "restype:container"]
    signature = _signed("\n".join(["PUT", *[""] * 11, *named, *where]))
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
    request = Request(f"{endpoint}/{BUCKET}?restype=container", method="PUT", headers=headers)
    with urlopen(request, timeout=30) as response:
        assert response.status == 201
