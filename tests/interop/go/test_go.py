"""A client in Go, franz-go, over TLS and SASL: the same on sharecore and on Apache Kafka.

`make interop-go` builds the client and runs these.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.clients import configure_group, create_topic, produce
from tests.harness.listeners import Listeners
from tests.interop.test_languages import EXAMPLES, get_jobs

CLIENT = Path("build/go/client").absolute()
COUNT = 20
SCRAM_REFUSED = "invalid credentials with SASL mechanism SCRAM-SHA-512"
SAID = ((1, "accept"),), ((1, "release"), (2, "accept")), ((1, "reject"),), ((1, "renew"),), ((1, "accept"),)
"""What the client says of a record at each delivery, by its number modulo five."""
CASES = [
    ("SASL_SSL", "SCRAM-SHA-512"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-256"),
    ("SSL", None),
    ("PLAINTEXT", None),
]


@pytest.fixture(scope="module", params=["sharecore", "apache"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    listeners = Listeners(tmp_path_factory.mktemp(request.param), request.param)
    listeners.start()
    yield listeners
    listeners.kill()


def go(broker: Listeners, settings: dict[str, str], *arguments: object) -> tuple[list[dict[str, Any]], str]:
    """What the client saw, and what it complained of."""
    file = broker.home / "go.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [str(CLIENT), str(file), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == (done.stderr == ""), done
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize(("protocol", "mechanism"), CASES)
def test_produces_and_consumes(broker: Listeners, protocol: str, mechanism: str | None) -> None:
    settings = broker.client(protocol, mechanism)
    topic = group = f"{protocol}-{mechanism}"
    create_topic(broker.address("PLAINTEXT"), topic)
    configure_group(broker.address("PLAINTEXT"), f"{group}-share", share_auto_offset_reset="earliest")
    wanted = [
        {"offset": n, "key": f"k{n}", "value": str(n), "header": f"h of {n}", "delivered": 0, "said": ""}
        for n in range(COUNT)
    ]
    assert go(broker, settings, "produce", topic, COUNT) == (wanted, "")
    assert go(broker, settings, "consume", topic, COUNT) == (wanted, "")
    assert go(broker, settings, "group", topic, group, COUNT) == (wanted, "")
    shared, told = go(broker, settings, "share", topic, f"{group}-share", COUNT)
    assert told == ""
    story = defaultdict(list)
    for record in shared:
        assert record["header"] == f"h of {record['value']}"
        story[record["offset"]].append((record["delivered"], record["said"]))
    assert {n: tuple(story[n]) for n in story} == {n: SAID[n % 5] for n in range(COUNT)}


def test_what_a_group_has_settled_does_not_come_again(broker: Listeners) -> None:
    settings = broker.client("SASL_SSL", "SCRAM-SHA-512")
    topic, at = "settled", broker.address("PLAINTEXT")
    create_topic(at, topic)
    configure_group(at, topic, share_auto_offset_reset="earliest")
    produce(at, topic, [b"%d" % n for n in range(COUNT)])
    go(broker, settings, "share", topic, topic, COUNT)
    produce(at, topic, [b"100"])
    (last,), _ = go(broker, settings, "share", topic, topic, 1)
    assert (last["offset"], last["value"], last["delivered"]) == (COUNT, "100", 1)


@pytest.mark.parametrize(
    ("mechanism", "change", "told"),
    [
        ("PLAIN", {"sasl.password": "wrong"}, "Invalid username or password"),
        ("SCRAM-SHA-512", {"sasl.password": "wrong"}, SCRAM_REFUSED),
        ("SCRAM-SHA-512", {"sasl.username": "nobody"}, SCRAM_REFUSED),
        ("PLAIN", {"ssl.ca.location": "/dev/null"}, "certificate signed by unknown authority"),
    ],
)
def test_who_is_refused_is_told_why(
    broker: Listeners, mechanism: str, change: dict[str, str], told: str
) -> None:
    settings = broker.client("SASL_SSL", mechanism) | change
    seen, complaint = go(broker, settings, "consume", "any", 1)
    assert seen == []
    assert told in complaint


def test_the_worker_of_the_documentation(tmp_path: Path) -> None:
    program = tmp_path / "worker"
    build = ["go", "build", "-o", str(program), str(EXAMPLES / "worker.go")]
    subprocess.run(build, cwd=Path(__file__).parent, check=True)
    get_jobs(tmp_path / "broker", [str(program)])
