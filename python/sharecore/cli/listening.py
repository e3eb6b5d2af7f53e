"""Where a command serves pages of its own."""

from __future__ import annotations

from sharecore.cli.clients import UsageFailed


def listen_address(text: str) -> tuple[str | None, int]:
    """Host, None for every address of the machine, and port of --listen; raises CommandFailed."""
    from sharecore.config.address import parse_address

    try:
        return parse_address(text)
    except ValueError:
        raise UsageFailed(f"--listen {text}: not an address; allowed: HOST:PORT") from None


def url(scheme: str, host: str | None, port: int) -> str:
    """Return the URL of a listener for a browser on this machine, without a path."""
    shown = "localhost" if host is None else f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"
