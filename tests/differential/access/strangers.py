"""Clients that have not said who they are, or say it wrongly: what each broker answers, up to closing."""

from __future__ import annotations

from typing import Any

from tests.differential.access.brokers import CLOSED, Guarded
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey

Step = tuple[ApiKey, int, dict[str, Any]]
_VERSIONS: Step = (ApiKey.API_VERSIONS, 3, {"client_software_name": "a", "client_software_version": "1"})
_METADATA: Step = (ApiKey.METADATA, 9, {"topics": []})


def _mechanism(name: str, version: int = 1) -> Step:
    return ApiKey.SASL_HANDSHAKE, version, {"mechanism": name}


def _token(token: bytes, version: int = 2) -> Step:
    return ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": token}


_RIGHT = _token(b"\0super\0of-super")
SEQUENCES: dict[str, list[Step]] = {
    "nothing but a request": [_METADATA],
    "versions and a request": [_VERSIONS, _METADATA],
    "versions twice": [_VERSIONS, _VERSIONS],
    "a token without a mechanism": [_RIGHT],
    "a mechanism that is not offered": [_mechanism("GSSAPI"), _METADATA],
    "a mechanism of no name": [_mechanism(""), _METADATA],
    "a request between": [_mechanism("PLAIN"), _METADATA],
    "versions between": [_mechanism("PLAIN"), _VERSIONS],
    "the mechanism twice": [_mechanism("PLAIN"), _mechanism("PLAIN")],
    "right": [_VERSIONS, _mechanism("PLAIN"), _RIGHT, _METADATA],
    "right in old versions": [_mechanism("PLAIN"), _token(b"\0super\0of-super", 0), _METADATA],
    "a wrong password": [_mechanism("PLAIN"), _token(b"\0super\0wrong"), _METADATA],
    "an unknown user": [_mechanism("PLAIN"), _token(b"\0nemo\0wrong"), _METADATA],
    "no user": [_mechanism("PLAIN"), _token(b"\0\0wrong")],
    "no password": [_mechanism("PLAIN"), _token(b"\0super\0")],
    "another to act for": [_mechanism("PLAIN"), _token(b"all\0super\0of-super")],
    "itself to act for": [_mechanism("PLAIN"), _token(b"super\0super\0of-super"), _METADATA],
    "two parts": [_mechanism("PLAIN"), _token(b"super\0of-super")],
    "an unknown user of SCRAM": [_mechanism("SCRAM-SHA-256"), _token(b"n,,n=nemo,r=abc"), _METADATA],
    "no message of SCRAM": [_mechanism("SCRAM-SHA-256"), _token(b"what?")],
    "known already": [_mechanism("PLAIN"), _RIGHT, _mechanism("PLAIN")],
    "a token once more": [_mechanism("PLAIN"), _RIGHT, _RIGHT],
}


def answers(broker: Guarded, steps: list[Step]) -> list[Any]:
    """What a broker answers to a sequence on a connection of its own; CLOSED ends it."""
    found: list[Any] = []
    with Peer(broker.port, 20) as peer:
        for key, version, fields in steps:
            answer = broker.exchange(peer, key, version, fields)
            found.append(CLOSED if answer is None else _plain(key, answer))
            if answer is None:
                break
    return found


def _plain(key: ApiKey, answer: Any) -> Any:
    if key is ApiKey.SASL_AUTHENTICATE:
        return (answer.error_code, answer.error_message or "", answer.auth_bytes)
    if key is ApiKey.SASL_HANDSHAKE:
        return answer.error_code, sorted(answer.mechanisms)
    return getattr(answer, "error_code", "answered")
