"""The loop of a simulation: what asyncio and the system promise is kept, everything else is the seed's.

Kept: callbacks of one process that are ready run in the order in which they became so, and nothing runs
before it is due. Drawn: how long a turn of the loop takes; the order of all that has become due in that time,
be it bytes on several connections, timers or what a thread has done; the order between processes, of which
the broker is one and each actor another; when a process stands still.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any, cast

from tests.harness.virtual_loop import VirtualLoop

_LONG, _VERY_LONG = 0.3, 0.003
_TURN_S, _LONG_TURN_S = 0.001, 0.02
_FAREWELL_S = 1.0
"""So long what is left may take to end, each time that it is told to."""
_THREAD_S = 0.01
_FOREVER = 1 << 62


class Process:
    """What is killed at once: nothing that began in it runs any more.

    Attributes:
        context: what its callbacks run in.
        held: what it would have run while it stands still; None while it runs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.held: list[Any] | None = None
        self.context: Context = copy_context()
        self.context.run(_process.set, self)


_process: ContextVar[Process | None] = ContextVar("process", default=None)


def process_of(context: Context) -> Process | None:
    """The process that a context belongs to."""
    return context.get(_process)


class _Call(asyncio.TimerHandle):
    """A callback that is ready or has a time, without what asyncio keeps for its debug mode."""

    __slots__ = ()
    _callback: Any
    _args: Any
    _context: Context

    def __init__(
        self, when: float, callback: Any, args: Any, loop: SimulatedLoop, context: Context | None
    ) -> None:
        self._when = when
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = copy_context() if context is None else context
        self._cancelled = self._scheduled = False
        self._repr = self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None


class SimulatedLoop(VirtualLoop):
    """Virtual time, a seeded order, threads that are none.

    What it overrides takes only those of asyncio's keywords that anybody here gives.

    Attributes:
        events: callbacks that have run.
        readers: who waits for which file descriptor, with the context to call it in.
        pumps: called before time passes.
        interrupt_at: the event before which `interrupt` is called.
        processes: all that ever ran.
        graveyard: what belonged to dead processes.
    """

    _stopping: bool

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
        self._timers: list[tuple[float, int, _Call]] = []
        self._timer_number = 0

    def _run_once(self) -> None:
        """One turn, as asyncio's."""
        timers, ready, random = self._timers, self._ready, self.random
        if not ready and not self._stopping:
            for pump in self.pumps:
                pump()
            while timers and timers[0][2]._cancelled:
                heappop(timers)
            if not ready:
                if not timers:
                    raise AssertionError("the simulation waits for something that nothing will bring about")
                self.now = max(self.now, timers[0][0])
        drawn = random.random()
        if drawn < _LONG:
            self.now += drawn * (_LONG_TURN_S / _VERY_LONG if drawn < _VERY_LONG else _TURN_S / _LONG)
        if timers and timers[0][0] <= self.now:
            ready.extend(self._due())
        batch: list[Any] = [ready.popleft()] if len(ready) == 1 else self._interleaved()
        for handle in batch:
            if handle._cancelled:
                continue
            self.events += 1
            if self.events >= self.interrupt_at:
                self.interrupt_at = _FOREVER
                self.interrupt()
            process = handle._context.get(_process)
            if process is None or (process.alive and process.held is None):
                handle._run()
            elif process.held is not None:
                process.held.append(handle)
            else:
                # kept, so that their `finally` blocks do not run in later processes
                self.graveyard.append(handle)

    def _due(self) -> list[_Call]:
        """What has become due, in any order: whoever polls gets it so."""
        timers, now = self._timers, self.now
        due = []
        while timers and timers[0][0] <= now:
            timer = heappop(timers)[2]
            if not timer._cancelled:
                due.append(timer)
        if len(due) > 1:
            self.random.shuffle(due)
        return due

    def _interleaved(self) -> list[Any]:
        """What is ready, in the order of each process and in any order between them."""
        queues: dict[Process | None, deque[Any]] = {}
        order = []
        for handle in self._ready:
            process = handle._context.get(_process)
            queue = queues.get(process)
            if queue is None:
                queue = queues[process] = deque()
            queue.append(handle)
            order.append(queue)
        self._ready.clear()
        if len(queues) > 1:
            self.random.shuffle(order)
        return [queue.popleft() for queue in order]

    def pause(self, process: Process) -> None:
        """A process stands still, as after SIGSTOP."""
        if process.alive and process.held is None:
            process.held = []

    def go_on(self, process: Process) -> None:
        """It goes on: what was ready runs in its order, then what has become due meanwhile, in any order."""
        if process.held is None:
            return
        held, process.held = process.held, None
        due = [handle for handle in held if handle._when]
        self.random.shuffle(due)
        self._ready.extend([*(handle for handle in held if not handle._when), *due])

    def end(self, process: Process) -> None:
        """It is gone, with what it held."""
        process.alive = False
        self.graveyard.extend(process.held or ())
        process.held = None

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        handle = _Call(0.0, callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        when = self.due(when, context)
        timer = _Call(when, callback, args, self, context)
        self._timer_number += 1
        heappush(self._timers, (when, self._timer_number, timer))
        return timer

    def due(self, when: float, context: Context | None) -> float:
        """When something is called that is to be called at a time, by the clock of who asks for it."""
        return when

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
            self.go_on(process)
        for handle in self.graveyard:
            woken = getattr(getattr(handle, "_callback", None), "__self__", None)
            if isinstance(woken, asyncio.Task) and not woken.done():
                # what it waited for came after its process had died; until it wakes, it cannot be cancelled
                self._ready.append(handle)
        for _ in range(20):
            for task in asyncio.all_tasks(self):
                task.cancel()
            self.run_until_complete(asyncio.sleep(_FAREWELL_S))
        for task in asyncio.all_tasks(self):
            coroutine: Any = task.get_coro()
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                # created in the last turn: it never starts, and would log that when it is collected
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine.close()
        self.graveyard.clear()
        self._timers.clear()
        self.close()

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(0, 0, 0, "", (host, port))]

    def start_connection(self, peer: Any, protocol: Any) -> None:
        """Start serving a client that was accepted."""
        self.connect.begin(lambda: protocol, peer)

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
        self._steps = [(0.0, self.wall_ms)]

    def step(self, by_ms: int) -> None:
        """Sets the wall clock anew."""
        self.wall_ms += by_ms
        self.jumped = True
        self._steps.append((self._loop.now, self.wall_ms))

    def between(self, begin: float, end: float) -> tuple[int, int]:
        """The earliest and the latest time that it showed."""
        shown = []
        for at, (since, wall_ms) in enumerate(self._steps):
            until = self._steps[at + 1][0] if at + 1 < len(self._steps) else end
            if since <= end and until >= begin:
                shown += [wall_ms + int(max(since, begin) * 1000), wall_ms + int(min(until, end) * 1000)]
        return min(shown), max(shown)

    def now_ms(self) -> int:
        return self.wall_ms + int(self._loop.now * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.now * 1000)
