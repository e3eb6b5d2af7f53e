"""Attacks on every field of every API, from the schemas: too large, too many, too fast, and senseless."""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

from tests.abuse.peer import Closed, Peer
from tests.abuse.subject import NOBODY, Subject
from tests.harness.plausible import Names, fields, lists, message, variants
from tests.harness.spoil import spoiled

from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.protocol import ApiKey
from sharecore.protocol.schema import FieldSpec

APIS = {**SERVED, **TELEMETRY}
STRANGER = "stranger"
"""A client of the listener with SASL that does not log in."""
USERS: dict[str, str | None] = {"no-login": STRANGER, "no-rights": NOBODY, "super-user": None}
_LONGEST = 32_767
_LARGE_BYTES = 8 << 20
_MANY = 100_000
_PIPELINED = 2_000
_SPOILED = 300
_ANSWER_S = 60.0
_ANSWERS_S = 20.0
"""An attacker leaves after so long: a node of a tier answers about an unknown topic after a second."""
_INTEGERS = {
    "int8": 8,
    "uint8": 8,
    "int16": 16,
    "uint16": 16,
    "int32": 32,
    "uint32": 32,
    "int64": 64,
    "uint64": 64,
}
_ONLY_CHECKED = {"validate_only": True}
"""What a super user makes is checked and not made, where the request can say so."""
_words = count()

Part = tuple[str, Callable[[Subject], None]]


def parts(api: ApiKey, user: str | None, seed: int) -> Iterator[Part]:
    """Return the attacks of a user on an API, with their names."""
    version = APIS[api].max_version
    for path, spec in fields(api, version):
        for name, value in _extremes(spec):
            yield f"{path} {name}", partial(_send, api, user, {spec.name: value}, {})
    for path in lists(api, version):
        for fixed in variants(api):
            if any(value is None and name in path.split(".") for name, value in fixed.items()):
                continue
            about = "".join(f" {name}={value}" for name, value in fixed.items())
            yield f"{_MANY} {path}{about}", partial(_send, api, user, fixed, {path: _MANY})
            yield f"{_MANY} same {path}{about}", partial(_send_same, api, user, fixed, path)
    yield f"{_PIPELINED} pipelined", partial(_pipeline, api, user)
    yield f"{_SPOILED} spoiled", partial(_spoil, api, user, seed)


def _extremes(spec: FieldSpec) -> Iterator[tuple[str, Any]]:
    """Values at the edges of what the field can hold."""
    if spec.array or spec.struct is not None:
        return
    if spec.kind == "string":
        yield "longest", "x" * _LONGEST
        yield "longest, of no letters", "\u0000\u202e\n" * (_LONGEST // 5)
    elif spec.kind in ("bytes", "records"):
        yield "large", bytes(_LARGE_BYTES)
    elif spec.kind in _INTEGERS or spec.kind.startswith("timedelta"):
        bits = _INTEGERS.get(spec.kind, 64 if spec.kind.endswith("64") else 32)
        yield "lowest", 0 if spec.kind.startswith("u") else -(2 ** (bits - 1))
        yield "highest", 2**bits - 1 if spec.kind.startswith("u") else 2 ** (bits - 1) - 1
    elif spec.kind == "float64":
        yield "not a number", float("nan")
        yield "infinite", float("inf")


def _names() -> Names:
    word = f"s{next(_words)}"
    return Names(f"{word}-t", uuid.UUID(int=1 << 64), f"{word}-g", f"{word}-x", f"{word}-u", "10.0.0.1")


def _connect(subject: Subject, user: str | None) -> Peer:
    if user == STRANGER:
        return subject.connect_bare(timeout_s=_ANSWER_S)
    return subject.connect(user, timeout_s=_ANSWER_S)


def _version(subject: Subject, api: ApiKey) -> int:
    """Return the newest version that is offered; ours if the API is not, which has to be refused."""
    ours = APIS[api].max_version
    offered = subject.newest(api, ours)
    return ours if offered < 0 else offered


def _frame(peer: Peer, api: ApiKey, version: int, fixed: dict[str, Any], counts: dict[str, int]) -> bytes:
    request = message(api, version, _names(), _ONLY_CHECKED | _soon(fixed), counts)
    return peer.frame(api.name.lower(), version, **request)


def _soon(fixed: dict[str, Any]) -> dict[str, Any]:
    """A request that may wait does so for a moment: how long an attacker waits is not measured."""
    return {name: min(value, 100) if name == "max_wait_ms" else value for name, value in fixed.items()}


def _send(
    api: ApiKey,
    user: str | None,
    fixed: dict[str, Any],
    counts: dict[str, int],
    subject: Subject,
) -> None:
    version = _version(subject, api)
    with _connect(subject, user) as peer:
        _ask(peer, [_frame(peer, api, version, fixed, counts)])


def _send_same(api: ApiKey, user: str | None, fixed: dict[str, Any], path: str, subject: Subject) -> None:
    version = _version(subject, api)
    with _connect(subject, user) as peer:
        request = message(api, version, _names(), _ONLY_CHECKED | fixed)
        if path not in lists(api, version):
            return
        _repeat(request, path.split("."))
        _ask(peer, [peer.frame(api.name.lower(), version, **request)])


def _repeat(request: dict[str, Any], path: list[str]) -> None:
    """Repeat the element of a list; one that the request does not have stays so."""
    name, *rest = path
    value = request[name]
    if not value:
        return
    if rest:
        _repeat(value[0] if isinstance(value, list) else value, rest)
    else:
        request[name] = value[:1] * _MANY


def _pipeline(api: ApiKey, user: str | None, subject: Subject) -> None:
    version = _version(subject, api)
    with _connect(subject, user) as peer:
        _ask(peer, [_frame(peer, api, version, {}, {}) for _ in range(_PIPELINED)])


def _spoil(api: ApiKey, user: str | None, seed: int, subject: Subject) -> None:
    """Frames whose bytes lie, each on a connection of its own where the last one was closed."""
    version = _version(subject, api)
    rnd = random.Random(f"{seed} {api.name}")
    peer = _connect(subject, user)
    try:
        for _ in range(_SPOILED):
            peer.socket.settimeout(2)
            with contextlib.suppress(TimeoutError):
                if _ask(peer, [spoiled(_frame(peer, api, version, {}, {}), rnd)]):
                    continue
            peer.close()
            peer = _connect(subject, user)
    finally:
        peer.close()


def _ask(peer: Peer, frames: list[bytes]) -> bool:
    """Send frames and read as many answers; return whether the broker has kept the connection."""
    try:
        peer.send(b"".join(frames))
        enough = time.monotonic() + _ANSWERS_S
        for _ in frames:
            peer.receive()
            if time.monotonic() > enough:
                break
    except (Closed, OSError) as error:
        if isinstance(error, TimeoutError):
            raise
        return False
    return True
