"""The page as an ASGI application: files, sessions, views and actions."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sharecore.admin.peek import ALL_STATES
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.page import actions, reading, views
from sharecore.page.access import Access, Busy, Credentials, Logins, Refused
from sharecore.page.actions import BadRequest
from sharecore.page.events import EventStream, looks
from sharecore.page.guard import BODY_BYTES_MAX, Guard, comes_from_here
from sharecore.page.looker import Looker
from sharecore.page.sessions import Full, Session, Sessions
from sharecore.page.settings import PageConfig
from sharecore.page.window import Leaders

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Files:
    """What lies in `assets`, by name."""

    def __init__(self) -> None:
        self._files = {
            each.name: each.read_bytes()
            for each in files("sharecore.page").joinpath("assets").iterdir()
            if each.name[each.name.rfind(".") :] in _TYPES
        }
        self._etags = {
            name: f'"{hashlib.sha256(data).hexdigest()[:32]}"' for name, data in self._files.items()
        }

    def answer(self, request: Request, name: str) -> Response:
        """Return a file, or that the browser has it already."""
        data = self._files.get(name)
        if data is None:
            return Response("there is no such file\n", 404, media_type="text/plain")
        headers = {"etag": self._etags[name], "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self._etags[name]:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=_TYPES[name[name.rfind(".") :]])


log = logging.getLogger("sharecore.page")

_BODY_S = 10.0
_LOOK_S = 10.0
_NAME_MAX = 1000
_DENIED = frozenset(
    {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_MISSING = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class Refusal(Exception):
    """An answer that refuses a request, with a status and a text."""

    def __init__(self, status: int, text: str, code: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class Page:
    """The page of a cluster.

    Args:
        access: connects to the cluster.
        config: bounds and rights.
        leaders: reports acquired records, if the page belongs to a broker.

    Raises:
        ConfigError: settings with which no client could connect.
    """

    def __init__(self, access: Access, config: PageConfig, leaders: Leaders | None = None) -> None:
        self._access = access
        self._config = config
        self._leaders = leaders
        self._logins = Logins(access, config)
        self._files = Files()
        self._stopping = asyncio.Event()
        everybody = None
        if not access.mechanisms:
            looker = Looker(access.connect(None, ""), config.interval_s, leaders, config.standby)
            everybody = Session(None, looker, may_act=config.actions == "everyone")
        self.sessions = Sessions(config, everybody)
        self.app = Starlette(
            routes=[
                Route("/", self._index),
                Route("/assets/{name}", self._asset),
                Route("/api/session", _answering(self._session)),
                Route("/api/login", _answering(self._login), methods=["POST"]),
                Route("/api/logout", _answering(self._logout), methods=["POST"]),
                Route("/api/groups", _answering(self._groups)),
                Route("/api/group", _answering(self._group)),
                Route("/api/trail", _answering(self._trail)),
                Route("/api/records", _answering(self._records)),
                Route("/api/poison", _answering(self._poison)),
                Route("/api/letter-topics", _answering(self._letter_topics)),
                Route("/api/letters", _answering(self._letters)),
                *(
                    Route(f"/api/{name}", _answering(self._action(act)), methods=["POST"])
                    for name, act in _ACTIONS.items()
                ),
            ],
            middleware=[Middleware(Guard, hosts=config.hosts)],
        )

    def start(self) -> None:
        """Start; call it in a running event loop."""
        self.sessions.start()

    async def stop(self) -> None:
        """End streams and sessions."""
        self._stopping.set()
        await self.sessions.stop()

    # files and sessions

    async def _index(self, request: Request) -> Response:
        return self._files.answer(request, "index.html")

    async def _asset(self, request: Request) -> Response:
        return self._files.answer(request, request.path_params["name"])

    async def _session(self, request: Request) -> Response:
        session = self._find(request)
        shown: dict[str, object] = {
            "about": self._config.about,
            "mechanisms": list(self._access.mechanisms),
            "in": session is not None,
            "troubles": [] if session is None else list(self._config.troubles()),
        }
        if session is not None:
            shown |= {"user": session.user, "may_act": session.may_act, "csrf": session.csrf}
            shown["leaders"] = self._leaders is not None
        return JSONResponse(shown)

    async def _login(self, request: Request) -> Response:
        if not self._access.mechanisms:
            raise Refusal(404, "nobody logs in here")
        if not comes_from_here(request, None):
            raise Refusal(403, "this request does not come from the page")
        body = await _json_of(request)
        credentials = Credentials(*(actions.text_of(body, name) for name in Credentials._fields))
        peer = request.client.host if request.client is not None else ""
        before = self._find(request)
        if before is not None:
            await self.sessions.end(before)
        try:
            transport = await self._logins.try_credentials(credentials, peer)
        except Refused as refused:
            log.warning("%s is refused the page as %.100r: %s", peer, credentials.user, refused)
            raise Refusal(401, str(refused)) from None
        except ConfigError as error:
            raise Refusal(400, str(error)) from None
        try:
            session = self.sessions.add(
                credentials.user,
                lambda: Looker(transport, self._config.interval_s, self._leaders, self._config.standby),
                may_act=self._config.actions != "none",
            )
        except Full:
            await transport.close()
            raise
        log.info("%s is logged in on the page as %s", peer, credentials.user)
        answer = JSONResponse({})
        answer.set_cookie(
            _cookie(request), session.token, httponly=True, samesite="strict", path="/",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return answer

    async def _logout(self, request: Request) -> Response:
        session = self._require(request)
        self._require_proof(request, session)
        if session.user is not None:
            await self.sessions.end(session)
        answer = JSONResponse({})
        answer.delete_cookie(_cookie(request), path="/")
        return answer

    # reading

    async def _groups(self, request: Request) -> Response:
        session, wanted = self._require(request), _text(request, "filter")

        async def view() -> views.Json:
            return views.groups_view(session.looker, wanted)

        return self._stream(session, view)

    async def _group(self, request: Request) -> Response:
        session = self._require(request)
        group, topic, first = (
            _text(request, "group"),
            _text(request, "topic"),
            _number(request, "first", 0, 1 << 31),
        )
        return self._stream(session, lambda: views.group_view(session.looker, group, topic, first))

    def _stream(self, session: Session, view: Callable[[], Awaitable[views.Json]]) -> Response:
        events = looks(session, view, self._config.stream_s, self._stopping)
        return EventStream(events, self.sessions.stream(session))

    async def _trail(self, request: Request) -> Response:
        looker = (await self._looked(request)).looker
        group = _text(request, "group")
        settings = await views.group_settings(looker, group)
        return JSONResponse({"points": looker.trails.of(group), **settings})

    async def _records(self, request: Request) -> Response:
        session = await self._looked(request)
        states = [each for each in _text(request, "states").split(",") if each]
        if not states or not ALL_STATES.issuperset(states):
            raise BadRequest(f"states: some of {', '.join(sorted(ALL_STATES))} are needed")
        found = await reading.browse(
            session.looker,
            _text(request, "group"),
            _text(request, "topic"),
            _number(request, "partition", 0, 1 << 31),
            frozenset(states),
            _number(request, "first", 0, 1 << 63),
            _number(request, "most", 50, reading.RECORDS_MAX),
        )
        return JSONResponse(found)

    async def _poison(self, request: Request) -> Response:
        session = await self._looked(request)
        return JSONResponse(await reading.poison(session.looker, _text(request, "group")))

    async def _letter_topics(self, request: Request) -> Response:
        session = self._require(request)
        return JSONResponse({"topics": await reading.letter_topics(session.looker.transport)})

    async def _letters(self, request: Request) -> Response:
        session = self._require(request)
        found = await reading.letters(
            session.looker.transport,
            _text(request, "topic"),
            _text(request, "group"),
            _text(request, "cause"),
            _number(request, "most", 50, reading.RECORDS_MAX),
        )
        return JSONResponse(found)

    # changes

    def _action(self, act: _Action) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            session = self._require(request)
            self._require_proof(request, session)
            if not session.may_act:
                raise Refusal(403, "this page only shows (sharecore.page.actions)")
            body = await _json_of(request)
            found = await act(session.looker, body)
            who = session.user or "everybody"
            log.info("%s on the page: %s of %.200s", who, request.url.path, json.dumps(body))
            return JSONResponse(found)

        return handle

    # sessions of requests

    def _find(self, request: Request) -> Session | None:
        return self.sessions.find(request.cookies.get(_cookie(request)))

    def _require(self, request: Request) -> Session:
        session = self._find(request)
        if session is None:
            raise Refusal(401, "log in first")
        return session

    def _require_proof(self, request: Request, session: Session) -> None:
        if not comes_from_here(request, session.csrf):
            raise Refusal(403, "this request does not come from the page")

    async def _looked(self, request: Request) -> Session:
        """Return the session of a request that is about a look; there is one then."""
        session = self._require(request)
        with session.looker.watched():
            if session.looker.now is None and not await session.looker.newer(0, _LOOK_S):
                raise Refusal(503, "the cluster has not answered yet")
        if session.looker.now is None:
            raise Refusal(503, session.looker.trouble)
        return session


_Action = Callable[[Looker, views.Json], Awaitable[views.Json]]
_ACTIONS: dict[str, _Action] = {
    "reset": lambda looker, body: actions.reset(looker.admin, body),
    "delete-offsets": lambda looker, body: actions.delete_offsets(looker.admin, body),
    "delete-group": lambda looker, body: actions.delete_group(looker.admin, body),
    "pause": lambda looker, body: actions.pause(looker.admin, body),
    "resume": lambda looker, body: actions.resume(looker.admin, body),
    "redrive": lambda looker, body: actions.redrive(looker.transport, body),
}


def _answering(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Answer errors with a status and one sentence."""

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
        except Refusal as refusal:
            return _error(refusal.status, str(refusal), refusal.code)
        except BadRequest as error:
            return _error(400, str(error))
        except (Busy, Full) as busy:
            return _error(429, str(busy))
        except KafkaError as error:
            status = 403 if error.code in _DENIED else 404 if error.code in _MISSING else 502
            return _error(status, str(error), error.code.name)
        except OSError as error:
            return _error(502, str(error))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception:
            log.exception("%s could not be answered", request.url.path)
            return _error(500, "the page failed; the log of its process says why")

    return answer


def _error(status: int, text: str, code: str = "") -> Response:
    headers = {"retry-after": "1"} if status == 429 else None
    return JSONResponse({"error": text, "code": code}, status, headers)


def _cookie(request: Request) -> str:
    # cookies ignore ports: two pages on one machine would log each other out
    return f"sharecore_{request.url.port or request.url.scheme}"


def _text(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if len(value) > _NAME_MAX:
        raise BadRequest(f"{name}: too long")
    return value


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or len(text) > 19 or not 0 <= int(text) <= most:
        raise BadRequest(f"{name}: must be a whole number from 0 to {most}")
    return int(text)


async def _json_of(request: Request) -> views.Json:
    body = b""
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_BYTES_MAX:
                    raise Refusal(413, f"a request has at most {BODY_BYTES_MAX} bytes")
    except TimeoutError:
        raise Refusal(408, "the request did not come in time") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("this is no JSON") from None
    if not isinstance(found, dict):
        raise BadRequest("an object is needed")
    return found
