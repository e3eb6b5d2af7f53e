"""The effect of authentication settings on a broker."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.harness.running import Client, RunningBroker
from tests.unit.broker.test_sasl import authenticate, connect, may_ask
from tests.unit.broker.test_tls import alter

KEYS = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
AUTHENTICATIONS_MAX = 2


def write_keys(path: Path, count: int) -> None:
    keys: list[dict[str, Any]] = []
    for number, key in enumerate(KEYS[:count]):
        public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        keys.append(public | {"kid": str(number), "alg": "ES256", "use": "sig"})
    path.write_text(json.dumps({"keys": keys}))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("home")
    write_keys(path / "keys.json", 1)
    return path


@pytest.fixture(scope="module")
def broker(home: Path) -> Iterator[RunningBroker]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": (home / "keys.json").as_uri(),
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "20",
        "sasl.oauthbearer.clock.skew.seconds": "1000",
        "sasl.oauthbearer.sub.claim.name": "user",
        "sharecore.authentications.max": str(AUTHENTICATIONS_MAX),
    }
    running = RunningBroker(home / "data", settings).start()
    yield running
    running.stop()


def bearer(number: int = 0, **claims: Any) -> bytes:
    now = int(time.time())
    content = {"iat": now, "exp": now + 300} | claims
    token = jwt.encode(content, KEYS[number], algorithm="ES256", headers={"kid": str(number)})
    return b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01"


def tell(broker: RunningBroker, token: bytes) -> bool:
    client = connect(broker)
    try:
        authenticate(client, "OAUTHBEARER", token)
        return may_ask(client)
    except EOFError:
        return False
    finally:
        client.close()


def test_the_claim_that_names_the_user(broker: RunningBroker) -> None:
    """sasl.oauthbearer.sub.claim.name"""
    assert tell(broker, bearer(user="dora"))
    assert not tell(broker, bearer(sub="dora"))


def test_clocks_may_differ(broker: RunningBroker) -> None:
    """sasl.oauthbearer.clock.skew.seconds"""
    now = int(time.time())
    assert tell(broker, bearer(user="dora", nbf=now + 900))
    assert not tell(broker, bearer(user="dora", nbf=now + 1900))


def test_new_keys_are_fetched(broker: RunningBroker, home: Path) -> None:
    """sasl.oauthbearer.jwks.endpoint.refresh.ms"""
    assert not tell(broker, bearer(1, user="dora"))
    write_keys(home / "keys.json", 2)
    deadline = time.monotonic() + 20
    while not tell(broker, bearer(1, user="dora")):
        assert time.monotonic() < deadline


def test_keys_that_a_change_brings_are_fetched_again_as_well(tmp_path: Path) -> None:
    write_keys(tmp_path / "keys.json", 1)
    mechanisms = "listener.name.sasl_plaintext.sasl.enabled.mechanisms"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        mechanisms: "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} user_ann="planted";',
        "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "20",
    }
    broker = RunningBroker(tmp_path / "data", settings).start()
    try:
        assert alter(broker, mechanisms, "PLAIN,OAUTHBEARER") == 0
        assert tell(broker, bearer(sub="dora"))
        write_keys(tmp_path / "keys.json", 2)
        deadline = time.monotonic() + 20
        while not tell(broker, bearer(1, sub="dora")):
            assert time.monotonic() < deadline
        # keys that no listener uses are no longer fetched
        assert alter(broker, mechanisms, "PLAIN") == 0
        assert broker.look(lambda inside: inside.mechanisms._refreshing) == {}
    finally:
        broker.stop()


def test_so_many_clients_may_be_saying_who_they_are(broker: RunningBroker) -> None:
    """sharecore.authentications.max: the oldest is dropped"""
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(AUTHENTICATIONS_MAX + 1):
            clients.append(Client(broker.port))
            stack.callback(clients[-1].close)
        with pytest.raises(EOFError):
            clients[0].receive_frame()
        for client in clients[1:]:
            authenticate(client, "OAUTHBEARER", bearer(user="dora"))
            assert may_ask(client)
