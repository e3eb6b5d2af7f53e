"""State of share partitions is initialized, deleted and read by the node that owns its slot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from sharecore.broker.cluster import NOBODY, Leader, Node
from sharecore.config import BrokerConfig, Listener
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.persister import MemoryPersister, SharePartitionKey, StateSummary
from sharecore.protocol import ApiKey, calls
from sharecore.protocol.calls import Call
from sharecore.tier.membership.peers import Peers, inter_node_listener, inter_node_settings
from sharecore.tier.persister import TierPersister

TOPIC = UUID(int=5)
HERE, THERE = 1, 2


def key(partition: int = 0) -> SharePartitionKey:
    return SharePartitionKey("g", TOPIC, partition)


class World:
    """Two nodes: the one under test, and another with its own state.

    Attributes:
        owner: of every slot.
        claims, coordinates: of the group's slot: how often this node has claimed it, and whether it owns it.
        refusals: codes for the next requests to the other node.
        unreachable: whether it is unreachable.
        connecting_s: how long connecting to it takes.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.owner = THERE
        self.claims, self.coordinates = 0, True
        self.here, self.there = MemoryPersister(), MemoryPersister()
        self.asked: list[tuple[int, ApiKey, dict[str, Any]]] = []
        self.refusals: list[ErrorCode] = []
        self.unreachable = False
        self.connecting_s = 0.0
        loop = asyncio.get_running_loop()
        self.persister = TierPersister(
            self.here,
            self,
            HERE,
            self,
            loop,
            lambda: int(loop.time() * 1000),
            timeout_ms,
        )

    # the view

    def keeper(self, topic_id: UUID, partition: int) -> Leader:
        return Leader(self.owner, 0)

    def term(self, group_id: str) -> int:
        return self.claims

    def check_coordinator(self, group_id: str) -> None:
        if not self.coordinates:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    # the other node

    async def ask(
        self, node: int, call: Call[Any], message: dict[str, Any], check: Callable[[], None]
    ) -> Any:
        await asyncio.sleep(self.connecting_s)
        check()
        self.asked.append((node, call.key, message))
        if self.unreachable:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "no route")
        refusal = self.refusals.pop(0) if self.refusals else ErrorCode.NONE
        return SimpleNamespace(
            results=[
                SimpleNamespace(
                    topic_id=topic["topic_id"],
                    partitions=[
                        self._answer(call.key, message["group_id"], topic["topic_id"], each, refusal)
                        for each in topic["partitions"]
                    ],
                )
                for topic in message["topics"]
            ]
        )

    def _answer(
        self, api_key: ApiKey, group_id: str, topic_id: UUID, asked: dict[str, Any], refusal: ErrorCode
    ) -> Any:
        told: list[Any] = []
        name = SharePartitionKey(group_id, topic_id, asked["partition"])
        answer = SimpleNamespace(partition=asked["partition"], error_code=refusal, error_message="no")
        if refusal:
            return answer
        if api_key is ApiKey.INITIALIZE_SHARE_GROUP_STATE:
            self.there.initialize(name, asked["state_epoch"], asked["start_offset"], told.append)
        elif api_key is ApiKey.DELETE_SHARE_GROUP_STATE:
            self.there.delete(name, told.append)
        else:
            self.there.summary(name, told.append)
            answer.__dict__.update(told[0]._asdict())
        return answer

    async def end(self, operation: Callable[..., object], *args: Any) -> Any:
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        operation(*args, ended.set_result)
        return await asyncio.wait_for(ended, 60)


def run(test: Callable[[World], Awaitable[None]], *, timeout_ms: int = 60_000) -> None:
    async def main() -> None:
        await test(World(timeout_ms))

    asyncio.run(main())


def test_who_changes_state_says_under_which_epoch_the_group_is_coordinated() -> None:
    async def test(world: World) -> None:
        world.claims = 7
        await world.end(world.persister.initialize, key(), 3, 40)
        await world.end(world.persister.summary, key())
        await world.end(world.persister.delete, key())
        told = [message.get("coordinator_epoch") for _, _, message in world.asked]
        assert told == [7, None, 7]

    run(test)


def test_the_owner_is_asked_whichever_node_it_is() -> None:
    async def test(world: World) -> None:
        persister = world.persister
        assert await world.end(persister.initialize, key(), 3, 40) is None
        assert await world.end(persister.summary, key()) == StateSummary(3, 0, 40, 0)
        world.owner = HERE
        assert await world.end(persister.summary, key()) == StateSummary(0, 0, -1, -1)
        assert await world.end(persister.initialize, key(), 1, 7) is None
        assert await world.end(persister.summary, key()) == StateSummary(1, 0, 7, 0)
        assert len(world.asked) == 2, "what is here needs no request"
        world.owner = THERE
        assert await world.end(persister.delete, key()) is None
        assert await world.end(persister.summary, key()) == StateSummary(0, 0, -1, -1)

    run(test)


def test_leaders_read_and_write_here() -> None:
    async def test(world: World) -> None:
        world.here.initialize(key(), 0, 0, lambda error: None)
        loaded = await world.end(world.persister.read, key(), 4)
        assert loaded.start_offset == 0
        assert await world.end(world.persister.write_start, key(), 0, 4, 9) is None
        with pytest.raises(KafkaError) as error:
            world.persister.read(key(), 3, lambda state: None)
        assert error.value.code is ErrorCode.FENCED_LEADER_EPOCH
        assert world.asked == []

    run(test)


def test_what_is_asked_for_in_one_turn_is_one_request() -> None:
    async def test(world: World) -> None:
        operations = [world.end(world.persister.initialize, key(each), 0, 0) for each in range(100)]
        assert await asyncio.gather(*operations) == [None] * 100
        [(node, _, message)] = world.asked
        assert node == THERE
        assert [each["partition"] for each in message["topics"][0]["partitions"]] == list(range(100))

    run(test)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_what_passes_is_tried_again(code: ErrorCode) -> None:
    async def test(world: World) -> None:
        world.refusals = [code, code]
        assert await world.end(world.persister.initialize, key(), 0, 5) is None
        assert len(world.asked) == 3

    run(test)


def test_a_slot_that_moves_is_followed() -> None:
    async def test(world: World) -> None:
        world.owner = NOBODY
        asyncio.get_running_loop().call_later(0.07, setattr, world, "owner", HERE)
        assert await world.end(world.persister.initialize, key(), 0, 5) is None
        assert (await world.end(world.persister.summary, key())).start_offset == 5
        assert world.asked == []

    run(test)


def test_a_node_whose_lease_is_over_asks_when_it_has_one_again() -> None:
    async def test(world: World) -> None:
        world.coordinates = False
        asyncio.get_running_loop().call_later(0.07, setattr, world, "coordinates", True)
        assert await world.end(world.persister.initialize, key(), 0, 5) is None
        assert len(world.asked) == 1

    run(test)


@pytest.mark.parametrize("owner", [HERE, THERE])
def test_what_a_former_coordinator_asked_for_is_not_tried_again(owner: int) -> None:
    """The next coordinator has initialized the state that this would reset."""

    async def test(world: World) -> None:
        world.coordinates, world.owner = False, owner
        waiting = asyncio.create_task(world.end(world.persister.initialize, key(), 0, 5))
        await asyncio.sleep(0)
        # it has lost the group, and got it back
        world.claims, world.coordinates = 1, True
        assert (await waiting).code is ErrorCode.NOT_COORDINATOR
        assert world.asked == []
        assert await world.end(world.persister.summary, key()) == StateSummary(0, 0, -1, -1)

    run(test)


def test_who_has_lost_the_group_while_it_connects_asks_nothing() -> None:
    async def test(world: World) -> None:
        world.connecting_s = 0.05
        waiting = asyncio.create_task(world.end(world.persister.delete, key()))
        await asyncio.sleep(0.01)
        world.claims = 1
        assert (await waiting).code is ErrorCode.NOT_COORDINATOR
        assert world.asked == []

    run(test)


def test_it_is_given_up_in_time_with_the_reason() -> None:
    async def test(world: World) -> None:
        world.unreachable = True
        error = await world.end(world.persister.initialize, key(), 0, 5)
        assert (error.code, error.message) == (ErrorCode.NETWORK_EXCEPTION, "no route")
        assert 2 <= len(world.asked) <= 6

    run(test, timeout_ms=500)


def test_what_does_not_pass_is_told_at_once() -> None:
    async def test(world: World) -> None:
        world.refusals = [ErrorCode.FENCED_STATE_EPOCH]
        assert (await world.end(world.persister.initialize, key(), 0, 5)).code is ErrorCode.FENCED_STATE_EPOCH
        world.refusals = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        error = await world.end(world.persister.delete, key())
        assert error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert "give its user CLUSTER_ACTION" in error.message
        assert len(world.asked) == 2

    run(test)


def test_state_of_a_topic_that_its_owner_knows_no_more_is_gone() -> None:
    async def test(world: World) -> None:
        world.refusals = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await world.end(world.persister.delete, key()) is None

    run(test)


def test_operations_on_one_share_partition_keep_their_order() -> None:
    async def test(world: World) -> None:
        world.refusals = [ErrorCode.NOT_COORDINATOR]
        first = asyncio.create_task(world.end(world.persister.initialize, key(), 1, 5))
        await asyncio.sleep(0)
        await world.end(world.persister.delete, key())
        assert await first is None
        assert (await world.end(world.persister.summary, key())).start_offset == -1

    run(test)


def test_a_node_that_stops_ends_what_is_under_way() -> None:
    async def test(world: World) -> None:
        world.owner = NOBODY
        waiting = asyncio.create_task(world.end(world.persister.initialize, key(), 0, 0))
        await asyncio.sleep(0)
        world.persister.close()
        assert (await waiting).code is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(test)


def test_how_nodes_ask_each_other() -> None:
    inside = Listener("INSIDE", "", 9093, "here", 9093, "SASL_SSL")
    outside = Listener("OUTSIDE", "", 9092, "here", 9092)
    config = BrokerConfig.from_properties({})
    assert inter_node_listener(config, [outside, inside]) == outside
    assert inter_node_settings(config, outside).security_protocol == "PLAINTEXT"
    config = BrokerConfig.from_properties({"sharecore.tier.inter.node.listener.name": "inside"})
    assert inter_node_listener(config, [outside, inside]) == inside
    with pytest.raises(ConfigError, match=r"sasl\.mechanism"):
        inter_node_settings(config, inside)
    given = {"sasl.mechanism": "PLAIN", "sasl.username": "node", "sasl.password": "secret"}
    prefixed = {f"sharecore.tier.inter.node.{name}": value for name, value in given.items()}
    config = BrokerConfig.from_properties(prefixed)
    settings = inter_node_settings(config, inside)
    assert (settings.security_protocol, settings.sasl_username) == ("SASL_SSL", "node")
    assert "secret" not in repr(config)
    config = BrokerConfig.from_properties({"sharecore.tier.inter.node.listener.name": "none"})
    with pytest.raises(ConfigError, match="allowed: one of OUTSIDE, INSIDE"):
        inter_node_listener(config, [outside, inside])


def test_nodes_are_asked_where_they_are_now() -> None:
    async def main() -> None:
        settings = inter_node_settings(
            BrokerConfig.from_properties({}), Listener("PLAINTEXT", "", 9092, "here", 9092)
        )
        peers = Peers(settings, lambda: {THERE: Node(THERE, "127.0.0.1", 1, None)})
        for node, reason in ((HERE, "not known"), (THERE, "127.0.0.1:1")):
            with pytest.raises(KafkaError, match=reason) as error:
                await peers.ask(node, calls.DELETE_SHARE_GROUP_STATE, {}, lambda: None)
            assert error.value.code is ErrorCode.NETWORK_EXCEPTION
        await peers.close()

    asyncio.run(main())
