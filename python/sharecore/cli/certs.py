"""`sharecore certs`: certificates for development."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

EXIT_USAGE = 2


def certs(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files go.")] = Path("certs"),
    host: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            help="Name or address that clients connect to; may be repeated.  [default: localhost, 127.0.0.1]"
        ),
    ] = None,
    client: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(help="Also create a certificate for this client; may be repeated."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Validity of the certificates.")] = 365,
) -> None:
    """Create a certificate authority for development, and certificates signed by it.

    \b
    sharecore certs                              ca.pem, ca.key and broker.pem in ./certs
    sharecore certs ./tls --client alice         the same, and alice.pem

    broker.pem and alice.pem hold a key and its certificate: use them as ssl.keystore.location with
    ssl.keystore.type=PEM. ca.pem makes others trust them: use it as ssl.truststore.location, or as a client's
    ssl.ca.location. An existing authority in the directory is reused; certificates are created anew.
    """
    from sharecore.security.certificates import Authority

    hosts = host or ["localhost", "127.0.0.1"]
    try:
        authority = Authority(directory, days=days)
        made = [authority.certificate_path, authority.issue(hosts[0], file="broker", hosts=hosts)]
        for name in client or ():
            if name in ("ca", "broker") or not name or "/" in name:
                raise ValueError(f"--client {name}: no name of a client; allowed: one that can name a file")
            made.append(authority.issue(name, file=name))
    except (OSError, ValueError) as error:
        typer.echo(f"sharecore: {error}", err=True)
        raise typer.Exit(EXIT_USAGE if isinstance(error, ValueError) else 1) from None
    for path in made:
        typer.echo(path)
