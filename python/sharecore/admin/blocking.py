"""The administration of share groups, for programs without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Concatenate, ParamSpec, Self, TypeVar

from sharecore.admin.client import Admin

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def _blocking(
    method: Callable[Concatenate[Admin, Arguments], Coroutine[object, None, Value]],
) -> Callable[Concatenate[BlockingAdmin, Arguments], Value]:
    def call(self: BlockingAdmin, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        return self._runner.run(method(self._admin, *args, **kwargs))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class BlockingAdmin:
    """`Admin` with blocking methods, for callers without an event loop.

    Raises:
        ConfigError: an unknown, missing or invalid setting.
    """

    def __init__(self, config: Mapping[str, object] | None = None, /, **keywords: object) -> None:
        self._admin = Admin(config, **keywords)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._runner.run(self._admin.close())
        self._runner.close()

    list_groups = _blocking(Admin.list_groups)
    describe = _blocking(Admin.describe)
    members = _blocking(Admin.members)
    offsets = _blocking(Admin.offsets)
    plan_reset = _blocking(Admin.plan_reset)
    group_type = _blocking(Admin.group_type)
    group_members = _blocking(Admin.group_members)
    remove_members = _blocking(Admin.remove_members)
    reset = _blocking(Admin.reset)
    delete_offsets = _blocking(Admin.delete_offsets)
    delete_group = _blocking(Admin.delete_group)
    configs = _blocking(Admin.configs)
    share_state = _blocking(Admin.share_state)
    share_state_history = _blocking(Admin.share_state_history)
    alter_configs = _blocking(Admin.alter_configs)
    waiting_of = _blocking(Admin.waiting_of)
    pauses = _blocking(Admin.pauses)
    pause_of = _blocking(Admin.pause_of)
    pause = _blocking(Admin.pause)
    resume = _blocking(Admin.resume)
    set_up_dead_letters = _blocking(Admin.set_up_dead_letters)
