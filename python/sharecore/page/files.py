"""The files of the page, read once: HTML, style, modules."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

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
