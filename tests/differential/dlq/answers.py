"""Requests about dead letters, and their answers: settings, and share state as leaders read and write it."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.dlq.registry import alone, scenario
from tests.differential.dlq.side import BROKER, GROUP, TOPIC
from tests.differential.dlq.world import Seen, World

from sharecore.protocol import ApiKey

NAME, COPY = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable"
ENABLE = "errors.deadletterqueue.group.enable"
AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
SET, DELETE, APPEND, SUBTRACT = range(4)
NAMES = ["dlq.a", " dlq.a ", "", "__x", " __x", "_x", "dlq.a b", "dlq." + "x" * 300, ".", "..", "ü", None]
SWITCHES = ["true", "TRUE", " true ", "false", "yes", "1", "", None]


def _altered(
    world: World, kind: int, resource: str, name: str, value: str | None, how: int, *, dry: bool
) -> Any:
    asked = {
        "resource_type": kind,
        "resource_name": resource,
        "configs": [{"name": name, "config_operation": how, "value": value}],
    }
    answer = world.side.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=dry)
    said = answer.responses[0].error_message if kind == GROUP else None
    return answer.responses[0].error_code, said


def _described(world: World, kind: int, resource: str, name: str) -> Any:
    asked = {"resource_type": kind, "resource_name": resource, "configuration_keys": [name]}
    answer = world.side.ask(
        ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked], include_synonyms=True, include_documentation=False
    )
    (result,) = answer.results
    return [result.error_code] + [
        {
            "name": each.name,
            "value": each.value,
            "read only": each.read_only,
            "source": each.config_source,
            "sensitive": each.is_sensitive,
            "type": each.config_type,
            "synonyms": [(other.name, other.value, other.source) for other in each.synonyms],
        }
        for each in result.configs
    ]


def _tried(world: World, kind: int, resource: str, name: str, values: list[str | None]) -> Seen:
    found: Seen = {"before": _described(world, kind, resource, name)}
    for value in values:
        for how in (SET, APPEND, SUBTRACT):
            found[f"dry {value!r} {how}"] = _altered(world, kind, resource, name, value, how, dry=True)
        found[f"set {value!r}"] = _altered(world, kind, resource, name, value, SET, dry=False)
        time.sleep(0.1)
        found[f"then {value!r}"] = _described(world, kind, resource, name)
    found["deleted"] = _altered(world, kind, resource, name, None, DELETE, dry=False)
    time.sleep(0.1)
    return found | {"after": _described(world, kind, resource, name)}


@scenario
def settings_of_a_group(world: World) -> Seen:
    return {
        name: _tried(world, GROUP, world.group, name, values)
        for name, values in ((NAME, NAMES), (COPY, SWITCHES))
    }


@scenario
def settings_of_a_topic(world: World) -> Seen:
    world.side.create(world.source)
    return _tried(world, TOPIC, world.source, ENABLE, SWITCHES)


@alone
def settings_of_brokers(world: World) -> Seen:
    return {
        f"{resource}{name}": _tried(world, BROKER, resource, name, values)
        for resource in ("", "0")
        for name, values in ((AUTO_CREATE, SWITCHES), (PREFIX, ["a.", "", " a ", None]))
    }


@scenario
def settings_where_they_do_not_belong(world: World) -> Seen:
    world.side.create(world.source)
    places = ((GROUP, world.group), (TOPIC, world.source))
    return {
        f"{kind} {name}": _altered(world, kind, resource, name, "true", SET, dry=True)
        for kind, resource in places
        for name in (NAME, COPY, ENABLE, AUTO_CREATE, PREFIX)
    }


@scenario
def state_as_it_is_written(world: World) -> Seen:
    """Every state a leader may write, over each other, and what is read then."""
    world.begin()
    steps = [
        [(0, 9, 3, 1)],
        [(2, 4, 4, 1)],
        [(0, 1, 3, 2), (5, 9, 4, 1)],
        [(10, 12, 3, 0), (13, 13, 0, 1)],
        [(11, 11, 2, 1)],
        [(20, 25, 1, 1)],
        [(20, 25, 5, 1)],
        [(20, 25, -1, 1)],
        [(20, 25, 127, 1)],
        [(30, 29, 3, 1)],
        [(40, 41, 3, -1)],
        [(-5, -1, 3, 1)],
    ]
    found: Seen = {}
    for step in steps:
        code = world.side.write_state(world.group, world.source_id, step)
        found[f"{step}"] = code, *_read(world)
    code = world.side.write_state(world.group, world.source_id, [(8, 12, 3, 3)], start_offset=6)
    return found | {"start": (code, *_read(world))}


def _read(world: World) -> Any:
    state = world.side.read_state(world.group, world.source_id)
    asked = [{"topic_id": world.source_id, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
    summary = world.side.ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, group_id=world.group, topics=asked)
    part = summary.results[0].partitions[0]
    return (
        state.error_code,
        state.start_offset,
        [tuple(each) for each in state.state_batches],
        part.error_code,
        part.start_offset,
        part.delivery_complete_count,
    )
