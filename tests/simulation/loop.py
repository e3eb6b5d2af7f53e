"""The loop of a simulation: asyncio's order is kept, everything that is not asyncio's is the seed's.

What asyncio promises stays: callbacks that are ready run in the order in which they became so, and no timer
runs early. What it leaves open is drawn: how late a timer runs, which of several that are due comes first,
when a thread has finished, when bytes arrive, when the disk has written.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any, cast

from tests.harness.virtual_loop import VirtualLoop

_IN_TIME, _LATE = 0.7, 0.995
_THREAD_S = 0.01
_FOREVER = 1 << 62


class Process:
    """What is killed at once: nothing that began in it runs any more.

    Attributes:
        context: what its callbacks run in.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.context: Context = copy_context()
        self.context.run(_process.set, self)


_process: ContextVar[Process | None] = ContextVar("process", default=None)


class SimulatedLoop(VirtualLoop):
    """Virtual time, seeded lateness, threads that are none.

    Attributes:
        events: callbacks that have run.
        readers: who waits for which file descriptor, with the context to call it in.
        pumps: called before time passes.
        interrupt_at: the event before which `interrupt` is called.
        processes: all that ever ran.
        graveyard: what belonged to dead processes.
    """

    _stopping: bool
    _clock_resolution: float

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.events = 0
        self.readers: dict[Any, tuple[Context, Callable[..., object], tuple[Any, ...]]] = {}
        self.pumps: list[Callable[[], None]] = []
        self.interrupt_at = _FOREVER
        self.interrupt: Callable[[], None] = lambda: None
        self.graveyard: list[Any] = []
        self.processes: list[Process] = []
        self.servers: dict[int, Any] = {}
        self.connect: Any = None
        self.late_s = 0.1
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_number = 0

    def _run_once(self) -> None:
        """As asyncio's, whose order it keeps, without what nobody needs here."""
        timers, ready = self._timers, self._ready
        if not ready and not self._stopping:
            for pump in self.pumps:
                pump()
            while timers and timers[0][2]._cancelled:
                heappop(timers)
            if not ready:
                if not timers:
                    raise AssertionError("the simulation waits for something that nothing will bring about")
                self.now = max(self.now, timers[0][0])
        end = self.now + self._clock_resolution
        while timers and timers[0][0] < end:
            ready.append(heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            self.events += 1
            if self.events >= self.interrupt_at:
                self.interrupt_at = _FOREVER
                self.interrupt()
            if handle._cancelled:
                continue
            process = handle._context.get(_process)
            if process is not None and not process.alive:
                # kept: what ends with it must not run its `finally` in the living
                self.graveyard.append(handle)
                continue
            handle._run()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled ones are passed over when their time comes."""

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        drawn = self.random.random()
        if drawn >= _IN_TIME:
            when += self.random.uniform(0, 0.002 if drawn < _LATE else self.late_s)
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timer_number += 1
        heappush(self._timers, (when, self._timer_number, timer))
        return timer

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Runs what a thread would, between two callbacks, some time from now."""
        future: asyncio.Future[Any] = self.create_future()

        def run() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_later(self.random.uniform(0, _THREAD_S), run)
        return future

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        self.readers[fd] = copy_context(), callback, args
        if getattr(fd, "backlog", None):
            self.readable(fd)

    def remove_reader(self, fd: Any) -> bool:
        return self.readers.pop(fd, None) is not None

    def readable(self, fd: Any) -> None:
        """A file has become readable: whoever waits for it is called."""
        found = self.readers.get(fd)
        if found is not None:
            context, callback, args = found
            self.call_soon(callback, *args, context=context)

    def bury(self, close: Callable[[], None]) -> None:
        """Ends what is left, the dead too: nothing of them may run in another loop.

        Args:
            close: ends the world outside of the loop.
        """
        self.pumps.clear()
        self.interrupt_at = _FOREVER
        close()
        for process in self.processes:
            process.alive = True
        for _ in range(20):
            for task in asyncio.all_tasks(self):
                task.cancel()
            self.run_until_complete(asyncio.sleep(1.0))
        self.graveyard.clear()
        self._timers.clear()
        self.close()

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(0, 0, 0, "", (host, port))]

    async def connect_accepted_socket(  # type: ignore[override]
        self, factory: Any, sock: Any, **_: Any
    ) -> Any:
        return self.connect.begin(factory, sock)

    async def create_connection(  # type: ignore[override]
        self, factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        return await self.connect.open(factory, port)


def the_loop() -> SimulatedLoop:
    """The loop that runs."""
    return cast(SimulatedLoop, asyncio.get_running_loop())


class Clock:
    """The time of one machine: its wall clock may jump.

    Attributes:
        jumped: it has done so.
    """

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.wall_ms = 1_700_000_000_000
        self.jumped = False

    def now_ms(self) -> int:
        return self.wall_ms + int(self._loop.now * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.now * 1000)
