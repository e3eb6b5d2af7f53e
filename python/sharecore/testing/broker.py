"""A broker in a process of its own, for the length of a test."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self
from urllib.error import HTTPError
from urllib.request import Request, build_opener

if TYPE_CHECKING:
    from sharecore.client.wire.transport import Transport

_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 20.0
_CALL_SECONDS_MAX = 60.0
_LOG_TAIL = 4000
_NOT_RUNNING = "the broker does not run: use it in a with block, or call start()"


class EphemeralBroker:
    """A sharecore broker on a free port of 127.0.0.1, with data that are deleted when it stops.

    Use it as `async with EphemeralBroker() as broker:` or `with EphemeralBroker() as broker:`. It stops
    at the end of the block, and when this process ends in whatever way. `log()` returns what it has logged.

    Args:
        settings: settings of the broker, by Kafka's names (server.properties).
        arguments: more of the command line of `sharecore serve`.

    Attributes:
        bootstrap_server: the address for clients, `127.0.0.1:PORT`.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, *, arguments: tuple[str, ...] = ()) -> None:
        self._settings = dict(settings or {})
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._addresses: dict[str, object] = {}

    @property
    def bootstrap_server(self) -> str:
        """Where clients connect; raises RuntimeError while the broker does not run."""
        return str(self._address("bootstrap_server"))

    @property
    def config(self) -> dict[str, str]:
        """The settings of a client of this broker: `bootstrap.servers`."""
        return {"bootstrap.servers": self.bootstrap_server}

    @property
    def data_dir(self) -> Path:
        """Where its data are, until it stops."""
        return Path(str(self._address("data_dir")))

    @property
    def pid(self) -> int:
        """The process of the broker, for tests that kill it."""
        if self._process is None:
            raise RuntimeError(_NOT_RUNNING)
        return self._process.pid

    @property
    def control_url(self) -> str:
        """The control endpoint, for programs in other languages: `POST URL/advance?seconds=30`."""
        return str(self._address("control"))

    def start(self) -> Self:
        """Start the broker and wait until it serves.

        Raises:
            RuntimeError: it ended, or did not serve within a minute; the message holds the end of its log.
        """
        if self._process is not None:
            raise RuntimeError("the broker runs already")
        command = [sys.executable, "-m", "sharecore", "serve"]
        command += ["--ephemeral", "--print-address", "--stop-with-stdin", *self._arguments]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        # append mode, so that reading here does not move the broker's write position
        self._log = tempfile.TemporaryFile(mode="a+b", prefix="sharecore-log-")  # noqa: SIM115 - until stop
        # its standard input is a pipe held by this process, which closes however this process ends
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
        )
        line = self._first_line(self._process)
        if not line:
            status = self._end()
            raise RuntimeError(f"the broker did not start (exit status {status}):\n{self._close_log()}")
        self._addresses = json.loads(line)
        return self

    @staticmethod
    def _first_line(process: subprocess.Popen[bytes]) -> bytes:
        """Return the broker's first line; nothing if it ended or took too long."""
        assert process.stdout is not None
        late = threading.Timer(_START_SECONDS_MAX, process.kill)
        late.start()
        try:
            return process.stdout.readline()
        finally:
            late.cancel()

    def stop(self) -> None:
        """Stop the broker and delete its data; does nothing if it does not run."""
        if self._process is not None:
            self._end()
            self._close_log()

    def _end(self) -> int:
        assert self._process is not None
        process, self._process, self._addresses = self._process, None, {}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            return process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            process.stdout.close()

    def log(self) -> str:
        """Return what the broker has logged since its start."""
        if self._log is None:
            return ""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def _close_log(self) -> str:
        text = self.log()
        if self._log is not None:
            self._log.close()
            self._log = None
        return text[-_LOG_TAIL:].strip()

    async def advance(self, seconds: float) -> None:
        """Move the time of acquisition locks forward: locks that end within `seconds` expire at once.

        Sessions of members, timeouts of requests and connections stay as they are, so no client is cut off.

        Raises:
            ValueError: `seconds` is negative.
            RuntimeError: the broker does not run, or has ended; then the message holds the end of its log.
        """
        await asyncio.to_thread(self.advance_blocking, seconds)

    def advance_blocking(self, seconds: float) -> None:
        """Do what `advance` does, without an event loop."""
        if seconds < 0:
            raise ValueError(f"time cannot move back by {-seconds} s")
        request = Request(f"{self.control_url}/advance?seconds={seconds}", method="POST")
        try:
            # no proxy from the environment between this process and its own broker
            with build_opener().open(request, timeout=_CALL_SECONDS_MAX):
                pass
        except HTTPError as error:
            reason = error.read().decode(errors="replace").strip()
            raise RuntimeError(f"the broker refused to advance: {reason}") from None
        except OSError as error:
            tail = self.log()[-_LOG_TAIL:].strip()
            raise RuntimeError(f"the broker does not answer ({error}); the end of its log:\n{tail}") from None

    async def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic.

        Raises:
            KafkaError: it exists (TOPIC_ALREADY_EXISTS), or the broker refused it.
        """
        from sharecore.client.topics import create_topic

        async with self._transport() as transport:
            await create_topic(transport, name, partitions=partitions)

    async def create_group(self, name: str, settings: Mapping[str, str] | None = None) -> None:
        """Create a share group with settings, before its first member joins.

        Args:
            name: the group.
            settings: settings of the group, by Kafka's names; without them it reads from the first record.

        Raises:
            KafkaError: the broker refused a setting.
        """
        from sharecore.client.configs import ResourceKind, alter_configs

        values = {"share.auto.offset.reset": "earliest", **(settings or {})}
        async with self._transport() as transport:
            await alter_configs(transport, ResourceKind.GROUP, name, values)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Transport]:
        from sharecore.client.settings import read_connection_settings
        from sharecore.client.wire.transport import Transport

        transport = Transport(read_connection_settings(self.config))
        try:
            yield transport
        finally:
            await transport.close()

    def create_topic_blocking(self, name: str, partitions: int = 1) -> None:
        """Do what `create_topic` does, without an event loop."""
        _run(self.create_topic(name, partitions))

    def create_group_blocking(self, name: str, settings: Mapping[str, str] | None = None) -> None:
        """Do what `create_group` does, without an event loop."""
        _run(self.create_group(name, settings))

    def _address(self, name: str) -> object:
        if name not in self._addresses:
            raise RuntimeError(_NOT_RUNNING)
        return self._addresses[name]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # the thread continues, and its broker would run until this process exits
            await asyncio.wait((starting,))
            self.stop()
            raise

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)


def _run(work: Coroutine[object, object, None]) -> None:
    """Run a coroutine to its end, in a thread: an event loop may run in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()
