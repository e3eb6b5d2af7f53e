from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.persister import MemoryPersister, Persister, SharePartitionKey, load_plugin

KEY = SharePartitionKey("g", UUID(int=1), 0)
SOURCE = """
from sharecore.persister import MemoryPersister

class Kept(MemoryPersister):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings

class Late(Kept):
    def delete(self, key, done):
        import threading
        threading.Thread(target=lambda: (done(None), done(None))).start()

class Broken(Kept):
    def delete(self, key, done):
        raise ZeroDivisionError("division by zero")
    def close(self):
        raise ZeroDivisionError("division by zero")

class Half:
    def __init__(self, settings):
        pass
    def read(self, key, leader_epoch, done):
        pass

class NeedsPath:
    def __init__(self, settings):
        self.path = settings["path"]
"""


class Loop:
    """Collects calls from other threads."""

    def __init__(self) -> None:
        self.posted: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.came = threading.Event()

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> None:
        self.posted.append((callback, args))
        self.came.set()


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_persister.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("my_persister", None)


def load(name: str, settings: Mapping[str, str] | None = None, loop: Loop | None = None) -> Persister:
    return load_plugin(f"my_persister:{name}", settings or {}, loop or Loop())


def test_a_class_is_made_with_its_settings_and_called() -> None:
    ends: list[Any] = []
    persister = load("Kept", {"path": "/x"})
    persister.initialize(KEY, 0, 5, ends.append)
    persister.read(KEY, 0, ends.append)
    assert ends[0] is None
    assert ends[1].start_offset == 5
    assert sys.modules["my_persister"].Kept.__mro__[1] is MemoryPersister


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere:Kept", "ModuleNotFoundError"),
        ("my_persister:Gone", "AttributeError"),
        ("my_persister:NeedsPath", "KeyError: 'path'"),
        ("my_persister:Half", "it lacks initialize, write, write_start, delete, summary, close"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        load_plugin(name, {}, Loop())
    assert f"group.share.persister.class.name={name}" in str(refused.value)


def test_what_is_called_back_from_a_thread_comes_to_the_loop_and_comes_once() -> None:
    loop, ends = Loop(), list[Any]()
    load("Late", loop=loop).delete(KEY, ends.append)
    assert loop.came.wait(10)
    assert ends == []
    ((callback, args),) = loop.posted
    callback(*args)
    assert ends == [None]


def test_what_a_persister_raises_is_the_error_of_that_operation() -> None:
    ends: list[KafkaError | None] = []
    persister = load("Broken")
    persister.delete(KEY, ends.append)
    assert [end and end.code for end in ends] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    persister.initialize(KEY, 0, 0, ends.append)
    assert ends[1:] == [None]
    persister.close()
