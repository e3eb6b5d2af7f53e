"""Sources of a client's bearer token: a setting, a function or an issuer (KIP-768)."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import ssl
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from sharecore.client.errors import AuthenticationFailed
from sharecore.client.settings import ConnectionSettings

_ANSWER_BYTES_MAX = 1 << 20


async def find_token(settings: ConnectionSettings) -> str:
    """Return a token; called each time, since the previous one may have expired.

    Raises:
        AuthenticationFailed: no token is available.
    """
    given = settings.sasl_oauthbearer_token
    loop = asyncio.get_running_loop()
    if given is None:
        return await loop.run_in_executor(None, _fetch, settings)
    if isinstance(given, str):
        return given
    try:
        found: object = await loop.run_in_executor(None, given)
        if inspect.isawaitable(found):
            found = await found
    except Exception as error:
        raise AuthenticationFailed(
            f"sasl.oauthbearer.token returned no token: {type(error).__name__}"
        ) from error
    if not isinstance(found, str) or not found:
        raise AuthenticationFailed(f"sasl.oauthbearer.token returned no token, but {type(found).__name__}")
    return found


class _NoRedirects(HTTPRedirectHandler):
    """Sends the secret only to the configured address."""

    def redirect_request(self, *_: object) -> None:
        return None


def _fetch(settings: ConnectionSettings) -> str:
    """Return a token for the client ID and secret (RFC 6749, 4.4)."""
    url = settings.sasl_oauthbearer_token_endpoint_url or ""
    client = f"{settings.sasl_oauthbearer_client_id}:{settings.sasl_oauthbearer_client_secret}"
    form = {"grant_type": "client_credentials"}
    if settings.sasl_oauthbearer_scope:
        form["scope"] = settings.sasl_oauthbearer_scope
    headers = {
        "Authorization": f"Basic {base64.b64encode(client.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    context = ssl.create_default_context(cafile=settings.ssl_ca_location, cadata=settings.ssl_ca_pem)
    opener = build_opener(_NoRedirects, HTTPSHandler(context=context))
    seconds = settings.socket_connection_setup_timeout_ms / 1000
    try:
        request = Request(url, urlencode(form).encode(), headers)
        with opener.open(request, timeout=seconds) as answer:
            token = json.loads(answer.read(_ANSWER_BYTES_MAX))["access_token"]
    except HTTPError as error:
        raise AuthenticationFailed(f"{url} returned no token: status {error.code}") from None
    except (OSError, HTTPException) as error:
        raise AuthenticationFailed(f"{url} returned no token: {getattr(error, 'reason', error)}") from None
    except (ValueError, KeyError, TypeError):
        raise AuthenticationFailed(f"{url} returned no token: the response has no access_token") from None
    return str(token)
