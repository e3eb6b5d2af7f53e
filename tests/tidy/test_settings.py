"""Code reads each setting that is said to have an effect."""

from __future__ import annotations

import ast
from functools import cache

import pytest
from tests.tidy.tree import PACKAGE, nodes

from sharecore.config import Status, broker_keys, group_keys, topic_keys


@cache
def used() -> frozenset[str]:
    """Attributes and strings in the code, without the declarations of settings."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        declares = path.parent.name == "config"
        for node in nodes(path):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not declares:
                found.add(node.value)
    return frozenset(found)


def follows(attribute: str) -> bool:
    """Return whether code uses a broker setting as the default or limit of a group's or topic's."""
    kind, _, rest = attribute.removeprefix("group_").partition("_")
    name = f"{kind}_{rest.removeprefix('min_').removeprefix('max_')}"
    return attribute.startswith("group_") and name in used()


@pytest.mark.parametrize(
    "name", [name for name, (_, key) in broker_keys().items() if key.status is Status.WORKS]
)
def test_code_acts_on_each_setting_of_the_broker_that_works(name: str) -> None:
    attribute, _ = broker_keys()[name]
    defaults = {key.synonym: own for own, key in (*topic_keys().values(), *group_keys().values())}
    assert attribute in used() or name in used() or defaults.get(name) in used() or follows(attribute), (
        f"{name} has no effect: config/unserved.py is where to say so"
    )


@pytest.mark.parametrize("keys", [topic_keys, group_keys])
def test_code_acts_on_each_setting_of_topics_and_groups_that_works(keys: object) -> None:
    assert callable(keys)
    without = [
        name for name, (own, key) in keys().items() if key.status is Status.WORKS and own not in used()
    ]
    # a group's reset strategy is read as a whole
    assert set(without) <= {"share.auto.offset.reset"}
