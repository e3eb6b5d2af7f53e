"""Names from the wire in the log: they are cut, and lines of a kind are limited."""

from __future__ import annotations

from tests.abuse.case import case
from tests.abuse.judge import at_once
from tests.abuse.peer import Closed
from tests.abuse.subject import Subject


@case(quick=True)
def refused_logins_of_long_names(subject: Subject) -> None:
    token = b"\0" + b"u" * 500_000 + b"\0x"

    def refused(_: int) -> None:
        for _ in range(5):
            with subject.connect_bare() as peer:
                peer.ask("sasl_handshake", 1, mechanism="PLAIN")
                try:
                    answer = peer.ask("sasl_authenticate", 2, auth_bytes=token)
                except Closed:
                    continue
                assert answer.error_code != 0

    at_once(10, refused)
