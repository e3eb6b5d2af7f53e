"""TLS and SASL with a broker that asks for them: Apache Kafka's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.harness.aio import in_loop
from tests.harness.secured import SecuredBroker

from sharecore.admin import Admin
from sharecore.client import BlockingProducer, Producer, RecordsNotSent, ShareConsumer
from sharecore.client.errors import AuthenticationFailed


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Settings of a client for a broker with TLS and SASL, but for the mechanism."""
    broker = SecuredBroker(tmp_path_factory.mktemp("safe"))
    broker.start()
    yield broker.client
    broker.kill()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@in_loop
async def test_who_knows_the_password_is_let_in(safe: dict[str, str], mechanism: str) -> None:
    async with Admin({**safe, "sasl.mechanism": mechanism}) as admin:
        assert await admin.list_groups() == []


@in_loop
async def test_who_does_not_is_told_so(safe: dict[str, str]) -> None:
    wrong = {**safe, "sasl.mechanism": "SCRAM-SHA-256", "sasl.password": "guess"}
    with pytest.raises(AuthenticationFailed):
        async with Admin(wrong) as admin:
            await admin.list_groups()


@in_loop
async def test_a_certificate_of_nobody_is_refused(safe: dict[str, str]) -> None:
    settings = {key: value for key, value in safe.items() if key != "ssl.ca.location"}
    with pytest.raises(Exception, match="certificate"):
        async with Admin({**settings, "sasl.mechanism": "PLAIN"}) as admin:
            await admin.list_groups()


@in_loop
async def test_a_share_consumer_joins(safe: dict[str, str]) -> None:
    settings = {**safe, "sasl.mechanism": "PLAIN", "group.id": "safe"}
    async with ShareConsumer(settings) as consumer:
        consumer.subscribe(["nothing"])
        assert not await consumer.poll(timeout=3)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_producer_that_knows_the_password(safe: dict[str, str], mechanism: str) -> None:
    with BlockingProducer({**safe, "sasl.mechanism": mechanism}) as producer:
        assert producer.send(f"produced-{mechanism}", b"v").offset == 0


@pytest.mark.parametrize(
    "wrong",
    [{"sasl.password": "guess"}, {"ssl.ca.location": None}],
    ids=["password", "certificate"],
)
@in_loop
async def test_a_producer_that_is_refused_is_told_so_at_once(
    safe: dict[str, str], wrong: dict[str, str | None]
) -> None:
    settings = {**safe, "sasl.mechanism": "SCRAM-SHA-256", **wrong}
    chosen = {name: value for name, value in settings.items() if value is not None}
    async with Producer(chosen) as producer:
        with pytest.raises(AuthenticationFailed):
            await producer.send("refused", b"v")
        with pytest.raises((AuthenticationFailed, RecordsNotSent)) as refused:
            await producer.send_many("refused", [b"v"] * 3)
        if isinstance(refused.value, RecordsNotSent):
            assert all(isinstance(each, AuthenticationFailed) for each in refused.value.results)
