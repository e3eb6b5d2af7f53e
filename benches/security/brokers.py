"""A broker of either kind with a listener in the clear and one with TLS."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.differential.access.brokers import Guarded
from tests.harness.broker import free_port
from tests.harness.clients import QUIET

from sharecore.protocol import ApiKey
from sharecore.security.certificates import Authority


class Secured:
    """One broker process, from its start to its end.

    Args:
        home: an empty directory.
        kind: `apache` or `sharecore`.
    """

    def __init__(self, home: Path, kind: str) -> None:
        pem = Authority(home, days=1).issue("localhost", file="broker", hosts=["localhost", "127.0.0.1"])
        self.ca = home / "ca.pem"
        self.tls_port = free_port()
        self._guarded = Guarded(home / "broker", kind, [])
        properties = home / "broker/server.properties"
        settings = dict(line.split("=", 1) for line in properties.read_text().splitlines() if "=" in line)
        more = {
            "listeners": f"{settings['listeners']},SSL://127.0.0.1:{self.tls_port}",
            "advertised.listeners": f"{settings['advertised.listeners']},SSL://127.0.0.1:{self.tls_port}",
            "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},SSL:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(pem),
        }
        with properties.open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in more.items())

    def __enter__(self) -> Self:
        self._guarded.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guarded.stop()

    def limit(self, client_id: str, key: str, value: float) -> None:
        """Give a client id a quota."""
        entity = [{"entity_type": "client-id", "entity_name": client_id}]
        operation = {"key": key, "value": value, "remove": False}
        entries = [{"entity": entity, "ops": [operation]}]
        self._guarded.super(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)

    def client(self, listener: str) -> dict[str, Any]:
        """Settings of a client of PLAINTEXT or SSL."""
        if listener == "PLAINTEXT":
            return {"bootstrap.servers": f"127.0.0.1:{self._guarded.inside}", **QUIET}
        return {
            "bootstrap.servers": f"127.0.0.1:{self.tls_port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.ca),
            **QUIET,
        }
