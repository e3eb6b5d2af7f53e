"""What costs much before anybody has logged in."""

from __future__ import annotations

from tests.abuse.case import case
from tests.abuse.judge import at_once
from tests.abuse.peer import Closed
from tests.abuse.subject import Subject


@case(quick=True)
def scram_names_of_any_length(subject: Subject) -> None:
    def begin(number: int) -> None:
        name = "u\u00e9\u05d0"[number % 3] * (500_000 // 2)
        for _ in range(3):
            with subject.connect_bare() as peer:
                peer.ask("sasl_handshake", 1, mechanism="SCRAM-SHA-512")
                try:
                    answer = peer.ask("sasl_authenticate", 2, auth_bytes=f"n,,n={name},r=x".encode())
                except Closed:
                    continue
                assert answer.error_code != 0

    at_once(12, begin)
