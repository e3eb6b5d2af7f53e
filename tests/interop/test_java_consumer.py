"""Java's KafkaShareConsumer 4.4.0: RENEW and the record_limit acquire mode."""

from __future__ import annotations

import subprocess

from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, nothing_comes, produce, share_consumer

SOURCE = java.PROBES / "ShareProbe.java"


def test_renew_keeps_a_record_past_its_lock(broker: Broker, topic: str, group: str) -> None:
    configure_group(broker.bootstrap, group, share_record_lock_duration_ms=3000)
    produce(broker.bootstrap, topic, [b"slow work"])
    arguments = ("renew", broker.bootstrap, group, topic, "10000")
    probe = subprocess.Popen(
        java.program(SOURCE, *arguments, libs=java.CLIENT_LIBS),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert probe.stdout is not None
    assert probe.stdout.readline() == "held 0 lock 3000\n"
    with share_consumer(broker.bootstrap, group, [topic]) as other:
        assert nothing_comes(other, 7)
        rest, said = probe.communicate(timeout=30)
        assert probe.returncode == 0, said
        lines = rest.splitlines()
        assert lines[-1] == "accepted ok"
        assert len(lines) > 3
        assert set(lines[:-1]) == {"renewed ok"}
        assert nothing_comes(other, 2)


def test_record_limit_never_gives_more_than_asked(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 100)
    arguments = ("record-limit", broker.bootstrap, group, topic, "7", "100")
    shown = java.run_program(SOURCE, *arguments, libs=java.CLIENT_LIBS)
    batches = [int(line.split()[1]) for line in shown.splitlines() if line.startswith("batch")]
    assert sum(batches) == 100
    assert max(batches) <= 7
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        assert nothing_comes(consumer)
