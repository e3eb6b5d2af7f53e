"""Java clients of a broker whose tables are full: they report it, members and offsets that exist go on, and
once there is room the same clients are served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import create_topic
from tests.harness.java import PROBES
from tests.harness.running import Client
from tests.interop.conftest import BrokerMaker

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

PARTITIONS = 2
PADDINGS = (30_000, 3_000, 300, 0)
"""Long names fill most of a table of a megabyte, and short ones the rest."""


pytestmark = pytest.mark.long


@pytest.fixture
def full(request: pytest.FixtureRequest, new_broker: BrokerMaker) -> Iterator[tuple[Broker, java.LineServer]]:
    """Return a broker, one of whose tables takes a megabyte, and a Java client."""
    settings = {f"sharecore.{request.param}.bytes.max": "1048576"}
    broker = new_broker(**settings, **{"group.initial.rebalance.delay.ms": "0"})
    broker.start()
    create_topic(broker.bootstrap, "t", PARTITIONS)
    with java.LineServer(java.program(PROBES / "BoundsProbe.java", broker.bootstrap)) as probe:
        yield broker, probe


def join(client: Client, group: str) -> tuple[int, str]:
    """Return the error code and the member id of a new member of a classic group."""
    asked = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000, "member_id": ""}
    protocols = [{"name": "range", "metadata": b""}]
    answer = client.ask(
        ApiKey.JOIN_GROUP, 3, **asked, group_id=group, protocol_type="consumer", protocols=protocols
    )
    return answer.error_code, answer.member_id


def fill(enter: Callable[[str], int]) -> list[str]:
    """Enter names until not even a short one is taken; return those that were."""
    taken = []
    for padding in PADDINGS:
        for number in count():
            name = f"{number}-{'x' * padding}"
            if enter(name) != 0:
                break
            taken.append(name)
    return taken


def ask(probe: java.LineServer, line: str) -> str:
    return probe.ask(line).strip()


@pytest.mark.parametrize("full", ["groups"], indirect=True)
def test_java_clients_report_full_groups_and_are_served_once_there_is_room(
    full: tuple[Broker, java.LineServer],
) -> None:
    broker, probe = full
    assert ask(probe, "stay classic-before classic") == "ok"
    assert ask(probe, "stay before consumer") == "ok"
    client = Client(broker.port)
    members: dict[str, tuple[int, str]] = {}

    def enter(name: str) -> int:
        members[name] = join(client, name)
        return members[name][0]

    filled = fill(enter)
    assert len(filled) > 20
    for line in ("join after classic", "join after consumer", "share after-share"):
        assert ask(probe, line).startswith("GroupMaxSizeReachedException"), line
    assert ask(probe, "still classic-before") == "ok"
    assert ask(probe, "still before") == "ok"
    for name in filled:
        client.ask(ApiKey.LEAVE_GROUP, 1, group_id=name, member_id=members[name][1])
    client.ask(ApiKey.DELETE_GROUPS, 2, groups_names=filled)
    for line in ("join after classic", "join after-too consumer", "share after-share"):
        assert ask(probe, line) == "ok", line
    client.close()


@pytest.mark.parametrize("full", ["group.offsets"], indirect=True)
def test_java_clients_report_full_offsets_and_are_served_once_there_is_room(
    full: tuple[Broker, java.LineServer],
) -> None:
    broker, probe = full
    assert ask(probe, "commit before 0") == "ok"
    client = Client(broker.port)

    def commit(group: str) -> int:
        part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m" * 4000}
        topics = [{"name": "t", "partitions": [part]}]
        asked = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
        answer = client.ask(ApiKey.OFFSET_COMMIT, 8, **asked, topics=topics)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    filled = fill(commit)
    assert "policy" in ask(probe, "commit after 0").lower()
    assert "policy" in ask(probe, "commit before 1").lower()
    assert ask(probe, "commit before 0") == "ok"
    client.ask(ApiKey.DELETE_GROUPS, 2, groups_names=filled)
    client.close()
    for line in ("commit after 0", "commit before 1"):
        assert ask(probe, line) == "ok"


@pytest.mark.parametrize("full", ["transactional.ids"], indirect=True)
def test_java_clients_report_full_transactional_ids_and_others_go_on(
    full: tuple[Broker, java.LineServer],
) -> None:
    broker, probe = full
    assert ask(probe, "transaction before") == "ok"
    client = Client(broker.port)
    codes: list[int] = []

    def begin(name: str) -> int:
        asked = {"transactional_id": name, "transaction_timeout_ms": 10_000}
        codes.append(client.ask(ApiKey.INIT_PRODUCER_ID, 4, **asked).error_code)
        return codes[-1]

    fill(begin)
    client.close()
    assert set(codes) == {0, ErrorCode.POLICY_VIOLATION}
    assert "policy" in ask(probe, "transaction after").lower()
    assert ask(probe, "transaction before") == "ok"
