"""A standby on a server that people run: the leader is killed and stopped under load."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.bucket.home import TOPIC, numbers_in
from tests.bucket.takeovers import names_both, run, two, until
from tests.bucket.versitygw import credentials, versitygw
from tests.harness.clients import QUIET, create_topic
from tests.harness.s3 import BUCKET


@pytest.mark.timeout(3600)
def test_nothing_confirmed_is_lost_over_takeovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    seed = random.randrange(1 << 16)
    kills = int(os.environ.get("KILLS", "4"))
    counts = {
        how: int(os.environ.get(name, str(kills // 2)))
        for how, name in {"stopped": "STOPS", "suspended": "SUSPENDS", "cut off": "CUTS"}.items()
    }
    counts["killed"] = kills
    with versitygw(tmp_path / "server") as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        rate, pause_s = int(os.environ.get("RATE", "100")), float(os.environ.get("PAUSE", "2.5"))
        found = run(tmp_path, f"s3://{BUCKET}/queue", counts, seed, rate, pause_s)
    print(found)
    assert found["answered"]
    assert found["lost"] == 0, f"seed {seed}"
    assert found["acknowledged_and_delivered_again"] == 0, f"seed {seed}"


_OUTAGE_S = 30.0
_REQUEST_S = 2.0
_SERVED_S = 8.0
"""A leader that writes nothing to the bucket serves nobody after so long: the standby may have taken over."""


@pytest.mark.timeout(600)
def test_an_outage_for_both_does_not_store_each_attempt_of_a_producer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    confirmed: set[int] = set()
    with versitygw(tmp_path / "server") as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with two(tmp_path, f"s3://{BUCKET}/queue", are_cut_off=True) as members:
            try:
                for member in members:
                    member.broker.start()
                leader = members[0].broker
                create_topic(leader.bootstrap, TOPIC, 2)
                until(lambda: names_both(leader.bootstrap), "the leader names its standby")
                producer = Producer(
                    QUIET
                    | {
                        "bootstrap.servers": ",".join(each.broker.bootstrap for each in members),
                        "enable.idempotence": False,
                        "acks": "all",
                        "retries": 1000,
                        "request.timeout.ms": int(_REQUEST_S * 1000),
                        "message.timeout.ms": 120_000,
                    }
                )

                def produce(number: int) -> None:
                    def noted(error: object, _: object) -> None:
                        assert error is None
                        confirmed.add(number)

                    producer.produce(TOPIC, b"%d" % number, on_delivery=noted)

                produce(0)
                assert producer.flush(30) == 0
                for member in members:
                    member.end("cut off")
                began = time.monotonic()
                for number in range(1, 50):
                    produce(number)
                while time.monotonic() < began + _OUTAGE_S:
                    producer.poll(0.1)
                assert confirmed == {0}, "nothing is confirmed that the bucket has not"
                for member in members:
                    member.reconnect()
                assert producer.flush(60) == 0
            finally:
                for member in members:
                    if member.broker.running():
                        member.broker.terminate()
            there = max(
                (numbers_in(each.broker.home / "data", TOPIC) for each in members), key=lambda it: it.total()
            )
    assert confirmed == set(range(50)) == there.keys()
    # an attempt each two seconds for as long as the leader serves, and one after the outage
    print(f"at most {max(there.values())} copies of a record")
    assert max(there.values()) <= _SERVED_S / _REQUEST_S + 2
