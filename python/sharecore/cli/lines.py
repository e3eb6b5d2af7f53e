"""Lines to standard output, one by one: of each it is known whether its reader has it."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import sys
import termios

from sharecore.cli.clients import CommandFailed
from sharecore.cli.interrupts import Interrupts

_PAGE = 4096
_TAKEN_WITHIN_MS = 1000
_ENDED = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Lines:
    """Standard output as bytes, without a buffer of this process.

    A pipe is given the next line when its reader has taken the one before, as far as the system can say: what
    a reader that ends early, such as `head`, leaves in the pipe would count as written otherwise. A reader
    that takes nothing for a second is not waited for any more, as long as the pipe has room.

    Args:
        interrupts: Ctrl-C; what is being written is left where it comes.

    Raises:
        CommandFailed: standard output is closed.
    """

    def __init__(self, interrupts: Interrupts) -> None:
        if sys.stdout is None or sys.stdout.closed:
            raise CommandFailed("standard output is closed: there is nowhere to write records to")
        sys.stdout.flush()
        self._interrupts = interrupts
        self._descriptor = sys.stdout.fileno()
        self.is_terminal = os.isatty(self._descriptor)
        self._is_pipe = stat.S_ISFIFO(os.fstat(self._descriptor).st_mode)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)
        self._room = self._resize(_PAGE) if self._is_pipe else 0
        """What a pipe that is being handed lines one by one had room for before; 0: none is."""

    @property
    def has_reader(self) -> bool:
        """Return whether the output has a reader, as far as the system knows."""
        return not self._is_pipe or not any(event & _ENDED for _, event in self._poll.poll(0))

    def write(self, line: bytes) -> bool:
        """Write a line; return False if the reader of the pipe has gone.

        Raises:
            OSError: it cannot be written, such as for want of space.
            KeyboardInterrupt: Ctrl-C, before the line was written.
        """
        left = memoryview(line)
        while left:
            try:
                with self._interrupts.waiting():
                    if any(event & _ENDED for _, event in self._poll.poll()):
                        return False
                    written = os.write(self._descriptor, left)
                left = left[written:]
            except BlockingIOError:  # noqa: PERF203
                continue
            except BrokenPipeError:
                return False
        if not self._room:
            return True
        # a pipe with room for one page accepts more only when it is empty
        try:
            with self._interrupts.waiting():
                events = self._poll.poll(_TAKEN_WITHIN_MS)
        except KeyboardInterrupt:
            return not self._unread()
        if not events:
            self._resize(self._room)
            self._room = 0
        return not any(event & _ENDED for _, event in events) or not self._unread()

    def _unread(self) -> int:
        """Return how many bytes of a pipe its reader has left."""
        found = fcntl.ioctl(self._descriptor, termios.FIONREAD, bytes(4))
        return int.from_bytes(found, sys.byteorder)

    def _resize(self, size: int) -> int:
        """Resize a pipe's buffer; return its former size, 0 if it cannot be changed."""
        if not hasattr(fcntl, "F_SETPIPE_SZ"):
            return 0
        try:
            before = fcntl.fcntl(self._descriptor, fcntl.F_GETPIPE_SZ)
            fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, size)
        except OSError:  # it holds more than a page
            return 0
        return before
