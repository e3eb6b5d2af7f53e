"""Clients with bearer tokens from a setting, a function and an issuer, against a running broker."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from tests.harness.running import RunningBroker

from sharecore.admin import Admin
from sharecore.client.errors import AuthenticationFailed
from sharecore.client.settings import read_connection_settings
from sharecore.errors import ConfigError

KEY = ec.generate_private_key(ec.SECP256R1())
SECRET = "planted-client-secret"


def token(key: Any = KEY) -> str:
    now = int(time.time())
    return jwt.encode({"sub": "robot", "iat": now, "exp": now + 3600}, key, algorithm="ES256")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("tokens")
    keys = home / "keys.json"
    keys.write_text(json.dumps({"keys": [json.loads(ECAlgorithm.to_jwk(KEY.public_key()))]}))
    running = RunningBroker(
        home / "data",
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "connection.failed.authentication.delay.ms": "0",
        },
    ).start()
    yield f"127.0.0.1:{running.port}"
    running.stop()


class Issuer(HTTPServer):
    """Issues tokens to clients that know the secret."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Asked)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/token"


class _Asked(BaseHTTPRequestHandler):
    server: Issuer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append(body)
        client = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        answers = {"/token": (200, {"access_token": token()}), "/odd": (200, {}), "/moved": (302, {})}
        status, answer = answers[self.path] if client == f"robot:{SECRET}" else (401, {})
        self.send_response(status)
        if status == 302:
            self.send_header("Location", self.server.url)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def groups(address: str, **settings: Any) -> object:
    return asyncio.run(_groups(address, settings))


async def _groups(address: str, settings: dict[str, Any]) -> object:
    config = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
    }
    async with Admin(config, default_api_timeout_ms=5000, **settings) as admin:
        return await admin.list_groups()


async def _later() -> str:
    return token()


def test_a_token_that_is_given(address: str) -> None:
    # created here: a token created when tests are collected may have expired by now
    for given in (token(), token, _later):
        assert groups(address, sasl_oauthbearer_token=given) == []


def test_an_issuer_is_asked(address: str, issuer: Issuer) -> None:
    found = groups(
        address,
        sasl_oauthbearer_token_endpoint_url=issuer.url,
        sasl_oauthbearer_client_id="robot",
        sasl_oauthbearer_client_secret=SECRET,
        sasl_oauthbearer_scope="queues",
    )
    assert found == []
    assert issuer.asked[-1] == "grant_type=client_credentials&scope=queues"


@pytest.mark.parametrize(
    ("path", "secret", "reason"),
    [
        ("/token", "planted-wrong", "status 401"),
        ("/odd", SECRET, "no access_token"),
        ("/moved", SECRET, "status 302"),
    ],
)
def test_an_issuer_that_gives_none(address: str, issuer: Issuer, path: str, secret: str, reason: str) -> None:
    with pytest.raises(AuthenticationFailed, match=reason) as refused:
        groups(
            address,
            sasl_oauthbearer_token_endpoint_url=issuer.url.replace("/token", path),
            sasl_oauthbearer_client_id="robot",
            sasl_oauthbearer_client_secret=secret,
        )
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    "given", [token(ec.generate_private_key(ec.SECP256R1())), "not.a.token", dict], ids=count()
)
def test_a_token_that_is_none(address: str, given: object) -> None:
    with pytest.raises(AuthenticationFailed):
        groups(address, sasl_oauthbearer_token=given)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sasl_oauthbearer_token_endpoint_url": "file:///etc/passwd"},
        {"sasl_oauthbearer_token_endpoint_url": "https://issuer", "sasl_oauthbearer_client_id": "a"},
        {"sasl_oauthbearer_token": 7},
    ],
)
def test_settings_that_cannot_stand(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        read_connection_settings(
            bootstrap_servers="a:1",
            security_protocol="SASL_SSL",
            sasl_mechanism="OAUTHBEARER",
            **settings,
        )


def test_javas_names_are_taken_too() -> None:
    settings = read_connection_settings(
        {
            "bootstrap.servers": "a:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://issuer",
            "sasl.oauthbearer.client.credentials.client.id": "robot",
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        }
    )
    assert settings.sasl_oauthbearer_client_id == "robot"
    assert SECRET not in repr(settings)
