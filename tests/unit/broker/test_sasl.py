"""Authentication of clients: right and wrong credentials, repeated, too late, and missing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from scramp import ScramClient
from tests.harness.running import Client, MovedClock, RunningBroker

from sharecore.errors import ConfigError, ErrorCode
from sharecore.protocol import ApiKey
from sharecore.security.scram import Credential

PLAIN_USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="s3cret-of-alice" user_bob="it\'s, \\"quoted\\"";'
)
KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture(scope="module")
def moved() -> MovedClock:
    return MovedClock()


@pytest.fixture
def clock(moved: MovedClock) -> Iterator[MovedClock]:
    yield moved
    moved.reset()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, moved: MovedClock) -> Iterator[RunningBroker]:
    home = tmp_path_factory.mktemp("sasl")
    keys = home / "keys.json"
    public = json.loads(ECAlgorithm.to_jwk(KEY.public_key())) | {"kid": "first", "alg": "ES256"}
    keys.write_text(json.dumps({"keys": [public]}))
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,AGAIN://127.0.0.1:0",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,AGAIN:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
        "listener.name.again.plain.sasl.jaas.config": PLAIN_USERS,
        "listener.name.again.connections.max.reauth.ms": "1500",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.issuer": "https://issuer.example",
        "sasl.oauthbearer.expected.audience": "sharecore",
        "sharecore.authentication.timeout.ms": "1500",
        "connection.failed.authentication.delay.ms": "50",
        "sasl.server.max.receive.size": "2000",
    }
    running = RunningBroker(home / "data", settings, moved).start()
    salt, password = b"a salt of bytes", "secret-of-carol"
    for number, mechanism in ((1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")):
        digest = mechanism[6:].replace("-", "").lower()
        change = {"name": "carol,=", "mechanism": number, "iterations": 4096, "salt": salt}
        change["salted_password"] = _salted(digest, password, salt)
        answer = running.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[change])
        assert [each.error_code for each in answer.results] == [0]
    yield running
    running.stop()


def _salted(digest: str, password: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt, 4096)


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[Client]:
    client = connect(broker)
    yield client
    client.close()


def connect(broker: RunningBroker, listener: str = "SASL_PLAINTEXT") -> Client:
    return Client(broker.broker.listeners[listener].port)


def authenticate(client: Client, mechanism: str, message: bytes, version: int = 2) -> Any:
    assert client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=mechanism).error_code == 0
    return client.ask(ApiKey.SASL_AUTHENTICATE, version, auth_bytes=message)


def plain(user: str, password: str, act_for: str = "") -> bytes:
    return f"{act_for}\0{user}\0{password}".encode()


def may_ask(client: Client) -> bool:
    try:
        return client.ask(ApiKey.METADATA, 12, topics=[]).cluster_id is not None
    except EOFError:
        return False


def test_plain(broker: RunningBroker) -> None:
    for user, password in (("alice", "s3cret-of-alice"), ("bob", 'it\'s, "quoted"')):
        client = connect(broker)
        answer = authenticate(client, "PLAIN", plain(user, password))
        assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
        assert may_ask(client)
        principals = {str(each.principal) for each in broker.broker.server.connections.values()}
        assert f"User:{user}" in principals
        client.close()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (plain("alice", "wrong"), "Authentication failed: Invalid username or password"),
        (plain("nobody", "wrong"), "Authentication failed: Invalid username or password"),
        (plain("", "wrong"), "Authentication failed: username not specified"),
        (plain("alice", ""), "Authentication failed: password not specified"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (plain("alice", "s3cret-of-alice", "bob"), "different from username"),
        (b"\xff\0\xff\0\xff", "invalid credentials with SASL mechanism PLAIN"),
    ],
)
def test_plain_that_is_refused(client: Client, message: bytes, said: str) -> None:
    began = time.monotonic()
    answer = authenticate(client, "PLAIN", message)
    assert time.monotonic() - began >= 0.05
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert said in answer.error_message
    assert not may_ask(client)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("password", "right"), [("secret-of-carol", True), ("guess", False)])
def test_scram(client: Client, mechanism: str, password: str, right: bool) -> None:
    peer = ScramClient([mechanism], "carol,=", password)
    challenge = authenticate(client, mechanism, peer.get_client_first().encode())
    assert challenge.error_code == 0
    peer.set_server_first(challenge.auth_bytes.decode())
    answer = client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=peer.get_client_final().encode())
    if right:
        peer.set_server_final(answer.auth_bytes.decode())
        assert may_ask(client)
    else:
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "invalid credentials with SASL mechanism SCRAM" in answer.error_message
        assert not may_ask(client)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,n=nobody,r=abc",
        b"n,,n=carol=2C=3D",
        b"p=tls-unique,,n=carol=2C=3D,r=abc",
        b"n,a=other,n=carol=2C=3D,r=abc",
        b"\xff\xfe",
        b"",
        b"n,,",
        b",,,,,,",
        b"n,,n=" + b"=" * 100 + b",r=abc",
    ],
)
def test_scram_that_makes_no_sense(client: Client, message: bytes) -> None:
    answer = authenticate(client, "SCRAM-SHA-256", message)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not may_ask(client)


@pytest.mark.parametrize(
    "final", ["c=biws,r={nonce}x,p=AAAA", "c=biws,r=other,p=AAAA", "c=biws,r={nonce},p=%"]
)
def test_proofs_and_nonces_that_are_wrong(client: Client, final: str) -> None:
    challenge = authenticate(client, "SCRAM-SHA-256", b"n,,n=carol=2C=3D,r=abc").auth_bytes.decode()
    nonce = challenge.split(",")[0].removeprefix("r=")
    answer = client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=final.format(nonce=nonce).encode())
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def bearer(key: Any = KEY, algorithm: str = "ES256", kid: str = "first", **claims: Any) -> bytes:
    now = int(time.time())
    content = {
        "sub": "dora",
        "iss": "https://issuer.example",
        "aud": "sharecore",
        "iat": now,
        "exp": now + 300,
    } | claims
    content = {name: value for name, value in content.items() if value is not None}
    token = jwt.encode(content, key, algorithm=algorithm, headers={"kid": kid})
    return b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01"


def test_a_token_proves_a_name_until_it_runs_out(client: Client) -> None:
    answer = authenticate(client, "OAUTHBEARER", bearer())
    assert answer.error_code == 0
    assert 290_000 < answer.session_lifetime_ms <= 300_000
    assert may_ask(client)


@pytest.mark.parametrize("exp", [10**30, 1e300, 2**63, float("1e18")])
def test_a_token_may_be_valid_for_longer_than_an_answer_can_say(client: Client, exp: float) -> None:
    answer = authenticate(client, "OAUTHBEARER", bearer(exp=exp))
    assert answer.error_code == 0
    assert 0 < answer.session_lifetime_ms < 2**63
    assert may_ask(client)


def unsigned() -> bytes:
    return bearer(key=None, algorithm="none")


def shared_secret() -> bytes:
    """Signed with the public key, as if it were a shared secret."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"first"}').rstrip(b"=")
    body = base64.urlsafe_b64encode(json.dumps({"sub": "dora"}).encode()).rstrip(b"=")
    return b"n,,\x01auth=Bearer " + head + b"." + body + b".AAAA\x01\x01"


@pytest.mark.heavy
@pytest.mark.parametrize(
    "message",
    [
        unsigned(),
        shared_secret(),
        bearer(OTHER_KEY),
        bearer(kid="second"),
        bearer(exp=int(time.time()) - 100),
        bearer(exp=None),
        bearer(exp=-(10**30)),
        bearer(exp=float("inf")),
        bearer(exp=float("nan")),
        bearer(exp=True),
        bearer(exp="soon"),
        bearer(exp=[10**30]),
        bearer(nbf=float("inf")),
        bearer(iat=float("inf")),
        bearer(sub="d" * 1025),
        bearer(iss="https://other.example"),
        bearer(aud="other"),
        bearer(aud=None),
        bearer(sub=None),
        bearer(sub=["dora"]),
        b"n,a=eve," + bearer()[3:],
        b"n,,\x01auth=Bearer no-token\x01\x01",
    ],
    ids=count(),
)
def test_tokens_that_prove_nothing(client: Client, message: bytes) -> None:
    first = authenticate(client, "OAUTHBEARER", message)
    assert json.loads(first.auth_bytes)["status"] == "invalid_token"
    answer = client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\x01")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not may_ask(client)


def test_a_mechanism_that_is_not_offered(client: Client) -> None:
    answer = client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert list(answer.mechanisms) == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
    assert not may_ask(client)


def test_nothing_else_is_answered_before(broker: RunningBroker) -> None:
    client = connect(broker)
    assert not may_ask(client)
    client = connect(broker)
    assert client.ask(ApiKey.API_VERSIONS, 3, client_software_name="a", client_software_version="1").api_keys
    with pytest.raises(EOFError):
        client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=plain("alice", "s3cret-of-alice"))
    client = connect(broker)
    with pytest.raises(EOFError):
        client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="x" * 3000)


def test_a_client_of_old_sends_bare_tokens(client: Client) -> None:
    assert client.ask(ApiKey.SASL_HANDSHAKE, 0, mechanism="PLAIN").error_code == 0
    client.send_frame(plain("alice", "s3cret-of-alice"))
    assert client.receive_frame() == b""
    assert may_ask(client)


@pytest.mark.heavy
def test_a_client_that_says_nothing_is_closed(broker: RunningBroker) -> None:
    client = connect(broker)
    began = time.monotonic()
    with pytest.raises(EOFError):
        client.receive_frame()
    assert 1 < time.monotonic() - began < 10


def test_who_must_say_it_again(broker: RunningBroker, clock: MovedClock) -> None:
    clock.stop()
    client = connect(broker, "AGAIN")
    answer = authenticate(client, "PLAIN", plain("alice", "s3cret-of-alice"))
    assert 0 < answer.session_lifetime_ms <= 1500
    assert may_ask(client)
    clock.ahead_ms += 1100
    assert authenticate(client, "PLAIN", plain("alice", "s3cret-of-alice")).error_code == 0
    clock.ahead_ms += 1100
    assert may_ask(client)
    clock.ahead_ms += 600
    assert not may_ask(client)


@pytest.mark.parametrize(
    ("mechanism", "message", "said"),
    [
        ("PLAIN", plain("bob", 'it\'s, "quoted"'), "Cannot change principals during re-authentication"),
        ("OAUTHBEARER", bearer(), "is not supported for re-authentication of mechanism PLAIN"),
        ("PLAIN", plain("alice", "wrong"), "Invalid username or password"),
    ],
    ids=count(),
)
def test_saying_something_else_the_second_time(
    broker: RunningBroker, clock: MovedClock, mechanism: str, message: bytes, said: str
) -> None:
    clock.stop()
    client = connect(broker, "AGAIN")
    authenticate(client, "PLAIN", plain("alice", "s3cret-of-alice"))
    clock.ahead_ms += 1100
    answer = authenticate(client, mechanism, message)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert said in answer.error_message
    assert not may_ask(client)


def test_who_is_known_already_is_told_so(broker: RunningBroker) -> None:
    assert broker.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    answer = broker.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"")
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_credentials_that_are_refused(broker: RunningBroker) -> None:
    good = {"name": "x", "mechanism": 1, "iterations": 4096, "salt": b"twelve bytes", "salted_password": b"p"}
    for change, code in (
        ({"iterations": 4095}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": 16385}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"name": ""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"mechanism": 0}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"salt": bytes(1_000_000)}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salted_password": bytes(1_000_000)}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ):
        answer = broker.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[good | change])
        assert [each.error_code for each in answer.results] == [code]
    answer = broker.ask(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        deletions=[{"name": "nobody", "mechanism": 1}],
        upsertions=[good, good],
    )
    codes = {each.user: each.error_code for each in answer.results}
    assert codes == {"nobody": ErrorCode.RESOURCE_NOT_FOUND, "x": ErrorCode.DUPLICATE_RESOURCE}


@pytest.mark.parametrize("salt", [b"", b"s", b"eight by", b"fifteen bytes..", b"s" * 1024])
def test_a_salt_may_have_any_length(broker: RunningBroker, client: Client, salt: bytes) -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    change = {"name": "erin", "mechanism": 1, "iterations": 4096, "salt": salt, "salted_password": salted}
    answer = broker.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[change])
    assert answer.results[0].error_code == 0
    first = authenticate(client, "SCRAM-SHA-256", b"n,,n=erin,r=abc").auth_bytes.decode()
    told = dict(part.split("=", 1) for part in first.split(","))
    assert base64.b64decode(told["s"]) == salt
    without = f"c=biws,r={told['r']}"
    key = hmac.digest(salted, b"Client Key", "sha256")
    signed = f"n=erin,r=abc,{first},{without}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    final = client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=f"{without},p={proof}".encode())
    assert final.error_code == 0
    removed = [{"name": "erin", "mechanism": 1}]
    broker.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=removed, upsertions=[])


def test_users_are_listed_without_their_secrets(broker: RunningBroker) -> None:
    answer = broker.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=None)
    assert [(each.user, len(each.credential_infos)) for each in answer.results] == [("carol,=", 2)]
    answer = broker.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[{"name": "x"}])
    assert [each.error_code for each in answer.results] == [ErrorCode.RESOURCE_NOT_FOUND]


def test_users_outlive_the_broker(tmp_path: Path) -> None:
    first = RunningBroker(tmp_path).start()
    change = {
        "name": "u",
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"twelve bytes",
        "salted_password": b"p",
    }
    first.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[change])
    first.stop()
    second = RunningBroker(tmp_path).start()
    kept = second.broker.credentials.get("u", "SCRAM-SHA-256")
    second.stop()
    assert kept == Credential.of_salted("SCRAM-SHA-256", b"twelve bytes", b"p", 4096)


def test_no_secret_shows_in_the_log(broker: RunningBroker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for mechanism, message in (
            ("PLAIN", plain("alice", "planted-guess")),
            ("PLAIN", plain("alice", "s3cret-of-alice")),
            ("OAUTHBEARER", bearer(OTHER_KEY)),
        ):
            client = connect(broker)
            authenticate(client, mechanism, message)
            client.close()
        assert "user 'alice'" in caplog.text
        for secret in ("planted-guess", "s3cret-of-alice", bearer()[20:60].decode()):
            assert secret not in caplog.text


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "sasl.enabled.mechanisms=GSSAPI"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "plain.sasl.jaas.config: not set"),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": 'X required user_a="planted',
            },
            "quotation mark",
        ),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "sasl.oauthbearer.jwks.endpoint.url"),
    ],
)
def test_a_broker_that_lacks_a_setting_says_so(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        RunningBroker(tmp_path, {"listeners": "SASL_PLAINTEXT://127.0.0.1:0"} | settings).start()
    assert "planted" not in str(caught.value)
