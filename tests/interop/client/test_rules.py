"""What the consumer allows and refuses, step by step beside Java's KafkaShareConsumer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from tests.harness import java
from tests.harness.aio import in_loop
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, produce
from tests.interop.client.conftest import ConsumerMaker
from tests.interop.client.receive import commit, nothing_comes, receive, values

from sharecore.client import Acknowledged, AcknowledgeType, Record
from sharecore.client.blocking import ShareConsumer
from sharecore.client.java_unused import REFUSED
from sharecore.client.settings import read_settings
from sharecore.errors import ConfigError, ErrorCode, KafkaError

PATIENCE = 60.0


def java_says(broker: Broker, topic: str, groups: list[str]) -> list[str]:
    """What the probe prints, run on Java's client."""
    source = java.PROBES / "RulesProbe.java"
    shown = java.run_program(source, broker.bootstrap, topic, *groups, libs=java.CLIENT_LIBS)
    return [line for line in shown.splitlines() if ": " in line and "INFO" not in line]


class Probe:
    """The same steps with the blocking consumer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.lines: list[str] = []

    def tell(self, step: str, run: Callable[[], object]) -> None:
        try:
            got = run()
            outcome = "ok" if got is None else str(got).lower()
        except RuntimeError:
            outcome = "refused"
        except ValueError:
            outcome = "argument"
        except KafkaError as error:
            # Java detects this itself, and raises IllegalStateException
            known = error.code is ErrorCode.INVALID_RECORD_STATE
            outcome = "refused" if known else error.code.name
        self.lines.append(f"{step}: {outcome}")

    def open(self, group: str, topic: str, mode: str = "explicit") -> ShareConsumer:
        made = ShareConsumer(
            bootstrap_servers=self.bootstrap, group_id=group, share_acknowledgement_mode=mode
        )
        made.subscribe([topic])
        return made

    def explicit(self, group: str) -> None:
        with self.open(group, self.topic) as consumer:
            records = take(consumer)
            self.lines += [
                f"sizes: {record.serialized_key_size} {record.serialized_value_size}" for record in records
            ]
            self.tell("poll with nothing acknowledged", lambda: poll(consumer))
            consumer.accept(records[0])
            self.tell("poll with one of three acknowledged", lambda: poll(consumer))
            self.tell("commit with one of three acknowledged", lambda: len(consumer.commit_sync()))
            self.tell("poll after that commit", lambda: poll(consumer))
            consumer.accept(records[1])
            consumer.renew(records[2])
            self.tell("poll with one of three renewed", lambda: poll(consumer))
            consumer.release(records[2])

    def renewed(self, group: str) -> None:
        with self.open(group, self.topic) as consumer:
            records = take(consumer)
            consumer.acknowledge(records, AcknowledgeType.RENEW)
            self.tell("commit of what is renewed", lambda: len(consumer.commit_sync()))
            self.tell("poll after renewal", lambda: shown(take(consumer)))
            self.tell("poll with what was renewed not acknowledged", lambda: poll(consumer))
            self.tell("acknowledge what was renewed", lambda: consumer.accept(records))
            self.tell("commit after renewal", lambda: len(consumer.commit_sync()))
            self.tell("acknowledge again", lambda: consumer.accept(records[0]))

    def implicit(self, group: str) -> None:
        with self.open(group, self.topic, "implicit") as consumer:
            records: list[Record] = []
            until = time.monotonic() + 20
            while not records and time.monotonic() < until:
                records += consumer.poll(timeout=0)
            self.lines.append(f"polls without waiting: {shown(records)}")
        with self.open(group, self.topic, "implicit") as consumer:
            self.lines.append(f"after the end in implicit mode: {shown(take(consumer))}")
            self.tell("commit in implicit mode", lambda: len(consumer.commit_sync()))
            self.tell("poll for -1 ms", lambda: consumer.poll(timeout=-0.001))
            self.tell("commit for -1 ms", lambda: consumer.commit_sync(-0.001))
            self.tell("subscribe to null", lambda: consumer.subscribe(None))  # type: ignore[arg-type]
            self.tell("subscribe to blank", lambda: consumer.subscribe([" "]))
            self.tell("close for -1 ms", lambda: consumer.close(-0.001))
        with self.open(group, self.topic, "implicit") as consumer:
            self.tell("after a commit in implicit mode", lambda: shown(list(consumer.poll(timeout=2))))

    def callback(self, group: str) -> None:
        with self.open(group, self.topic) as consumer:
            records = take(consumer)
            steps: dict[str, Callable[[], object]] = {
                "commit_sync": lambda: len(consumer.commit_sync()),
                "commit_async": consumer.commit_async,
                "poll": lambda: poll(consumer),
                "subscription": lambda: len(consumer.subscription),
                "subscribe": lambda: consumer.subscribe([self.topic]),
                "unsubscribe": consumer.unsubscribe,
                "acquisition_lock_timeout_ms": lambda: bool(consumer.acquisition_lock_timeout_ms),
                "set callback": lambda: consumer.set_acknowledgement_commit_callback(None),
                "close": consumer.close,
                "acknowledge": lambda: consumer.accept(records[0]),
                "metrics": lambda: not consumer.metrics(),
                "wakeup": consumer.wakeup,
            }

            def called(_: Acknowledged) -> None:
                for name, step in steps.items():
                    self.tell(f"in the callback, {name}", step)

            consumer.set_acknowledgement_commit_callback(called)
            consumer.accept(records)
            consumer.commit_async()
            consumer.close()

    def names(self, group: str) -> None:
        for name in ("no topic", "..", "x" * 250):
            with self.open(group, name) as consumer:
                self.tell("poll with an impossible name", lambda: len(take(consumer)))
                consumer.subscribe([self.topic])
                records = take(consumer)
                self.lines.append(f"poll with a good name: {'true' if records else 'false'}")
                consumer.release(records)


def take(consumer: ShareConsumer) -> list[Record]:
    return list(consumer.poll(timeout=20))


def shown(records: list[Record]) -> str:
    return " ".join(f"{record.offset}x{record.delivery_count}" for record in records)


def poll(consumer: ShareConsumer) -> None:
    consumer.poll(timeout=0.001)


@pytest.mark.long
def test_ours_refuses_what_javas_refuses(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"", b"one", b"three"], **{"linger.ms": 500})
    groups = [[f"{group}-{kind}-{part}" for part in range(5)] for kind in ("java", "ours")]
    for name in groups[0] + groups[1]:
        configure_group(broker.bootstrap, name, share_auto_offset_reset="earliest")
    said = java_says(broker, topic, groups[0])
    theirs = [line for line in said if not line.startswith("setting ")]
    probe = Probe(broker.bootstrap, topic)
    probe.explicit(groups[1][0])
    # a call that waits for its own thread would wait forever
    work = threading.Thread(target=probe.callback, args=(groups[1][1],), daemon=True)
    work.start()
    work.join(PATIENCE)
    assert not work.is_alive()
    probe.names(groups[1][2])
    probe.renewed(groups[1][3])
    probe.implicit(groups[1][4])
    assert probe.lines == theirs
    assert len(theirs) == 3 + 5 + 12 + 6 + 6 + 9
    named = [line.removeprefix("setting ").split(": ") for line in said if line.startswith("setting ")]
    assert len(named) > 90
    assert {name for name, outcome in named if outcome == "refused"} == REFUSED.keys()
    assert {name for name, _ in named if not _is_known(name)} == NOT_TAKEN


NOT_TAKEN = {"ssl.keystore.certificate.chain", "ssl.keystore.key"}
"""Java's settings that would be missed if they were passed over: they name who the client is."""


def _is_known(name: str) -> bool:
    """Whether a setting is taken, warned of, refused by its name, or for its value alone."""
    try:
        read_settings({"bootstrap.servers": "broker:9092", "group.id": "g"} | {name: "1"})
    except ConfigError as error:
        return "is not a setting" not in str(error)
    return True


@in_loop
async def test_what_is_worked_on_does_not_hold_up_a_poll(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(4))
    async with consumer(share_acquire_mode="record_limit", max_poll_records=1) as member:
        (leased,) = await member.poll(1, timeout=20)
        async with member.lease(leased):
            (renewed,) = await member.poll(1, timeout=20)
            await member.renew(renewed)
            (back,) = await member.poll(1, timeout=20)
            member.put_back([back])
            (back,) = await member.poll(1, timeout=20)
            with pytest.raises(RuntimeError, match="before the next poll"):
                await member.poll(1, timeout=20)
            member.accept(back)
            (last,) = await member.poll(1, timeout=20)
        assert [record.offset for record in (leased, renewed, back, last)] == [0, 1, 2, 3]
        member.accept([renewed, last])
        await commit(member)
    async with consumer() as successor:
        assert await nothing_comes(successor, 1)


@in_loop
async def test_a_callback_of_the_asyncio_consumer(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(2))
    refused: list[str] = []
    later: list[asyncio.Task[object]] = []
    async with consumer() as member:
        first, second = await receive(member, 2)

        def called(_: Acknowledged) -> None:
            try:
                member.acknowledge(second, AcknowledgeType.ACCEPT)
            except RuntimeError as error:
                refused.append(str(error))
            # a task runs after the callback has ended
            later.append(asyncio.ensure_future(member.poll(timeout=0.1)))

        member.set_acknowledgement_commit_callback(called)
        member.accept(first)
        await commit(member)
        assert refused == ["an acknowledgement callback may call only wakeup and metrics"]
        with pytest.raises(RuntimeError, match="before the next poll"):
            await later[0]
        member.set_acknowledgement_commit_callback(None)
        member.accept(second)
        await commit(member)


@in_loop
async def test_an_impossible_name_among_good_ones(
    broker: Broker, topic: str, consumer: ConsumerMaker
) -> None:
    produce(broker.bootstrap, topic, values(1))
    async with consumer(topics=[topic, "no topic"], share_acknowledgement_mode="implicit") as member:
        taken: list[Record] = []

        async def poll_on() -> None:
            while True:
                taken.extend(await member.poll(timeout=1))

        async with asyncio.timeout(20):
            with pytest.raises(KafkaError, match="'no topic'") as refused:
                await poll_on()
            assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
            while not taken:
                taken += await member.poll(timeout=1)
