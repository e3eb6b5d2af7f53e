"""Who uses the page: sessions with a token each, bounded in number and time."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sharecore.page.looker import Looker
from sharecore.page.settings import PageConfig

log = logging.getLogger("sharecore.page")

_SWEEP_S = 5.0


class Full(Exception):
    """No more sessions or logins are possible; the text names the limit."""


class Session:
    """The session of one user, or of everybody without a login.

    Args:
        user: None where nobody logs in.
        looker: looks at the cluster as this user.
    """

    def __init__(self, user: str | None, looker: Looker, *, may_act: bool) -> None:
        self.user = user
        self.looker = looker
        self.may_act = may_act
        self.token = secrets.token_urlsafe(32)
        self.csrf = secrets.token_urlsafe(32)
        self.began = self.used = time.monotonic()
        self.streams = 0
        self.ended = False


class Sessions:
    """The sessions there are.

    Args:
        config: their bounds.
        open_session: that of everybody, where nobody logs in.
    """

    def __init__(self, config: PageConfig, open_session: Session | None) -> None:
        self._config = config
        self._open = open_session
        self._by_token: dict[str, Session] = {}
        self._streams = 0
        self._sweeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to end expired sessions."""
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def stop(self) -> None:
        """End all."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for session in [*self._by_token.values(), *([self._open] if self._open else [])]:
            await self.end(session)

    def find(self, token: str | None) -> Session | None:
        """Return the session of a request; asking uses it."""
        session = self._open if self._open is not None else self._by_token.get(token or "")
        if session is None or self._is_over(session):
            return None
        session.used = time.monotonic()
        return session

    def add(self, user: str, make: Callable[[], Looker], *, may_act: bool) -> Session:
        """Return a session for an authenticated user; raise Full."""
        if len(self._by_token) >= self._config.sessions_max:
            raise Full(f"{self._config.sessions_max} users are logged in, and more may not")
        session = Session(user, make(), may_act=may_act)
        self._by_token[session.token] = session
        return session

    async def end(self, session: Session) -> None:
        """Log a user out."""
        session.ended = True
        self._by_token.pop(session.token, None)
        await session.looker.close()

    @contextmanager
    def stream(self, session: Session) -> Iterator[None]:
        """One more window follows the cluster; raises Full."""
        config = self._config
        of_one = config.streams_max if session is self._open else config.streams_of_user_max
        if session.streams >= of_one or self._streams >= config.streams_max:
            raise Full("too many windows follow this page; close some")
        session.streams += 1
        self._streams += 1
        try:
            with session.looker.watched():
                yield
        finally:
            session.streams -= 1
            self._streams -= 1
            session.used = time.monotonic()

    def _is_over(self, session: Session) -> bool:
        if session is self._open:
            return False
        now = time.monotonic()
        idle = not session.streams and now - session.used > self._config.idle_s
        return session.ended or idle or now - session.began > self._config.life_s

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_S, self._config.idle_s / 2))
            for session in [each for each in self._by_token.values() if self._is_over(each)]:
                log.info("%s is logged out of the page: the time has passed", session.user)
                await self.end(session)
