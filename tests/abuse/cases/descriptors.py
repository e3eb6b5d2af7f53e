"""Connections that do nothing: they leave descriptors for others."""

from __future__ import annotations

import contextlib
import resource
import socket

from tests.abuse.case import case
from tests.abuse.subject import Subject

_DESCRIPTORS = 1024


def _idle(subject: Subject, port: int, count: int = 1500) -> None:
    soft = resource.prlimit(subject.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(subject.pid, resource.RLIMIT_NOFILE, (_DESCRIPTORS, soft[1]))
    peers = []
    try:
        for _ in range(count):
            with contextlib.suppress(OSError):
                peers.append(socket.create_connection(("127.0.0.1", port), 2))
        with subject.connect(timeout_s=10) as peer:
            assert peer.ask("api_versions", 0).error_code == 0
        assert b"sharecore_" in subject.scrape().encode()
    finally:
        resource.prlimit(subject.pid, resource.RLIMIT_NOFILE, soft)
        for each in peers:
            each.close()


@case(quick=True)
def idle_connections_to_the_page(subject: Subject) -> None:
    _idle(subject, subject.page_port)


@case()
def idle_connections_to_the_metrics(subject: Subject) -> None:
    _idle(subject, subject.metrics_port)


@case()
def idle_connections_to_kafkas_port(subject: Subject) -> None:
    _idle(subject, subject.port)
