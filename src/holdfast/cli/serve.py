"""The command `holdfast serve`."""

import logging
from pathlib import Path
from typing import Annotated

import typer

REFUSED = 2
"""The exit code for options that do not go together, and for an extra that is missing."""

EXTRA = {"uvicorn", "uvloop", "httptools"}


def serve(
    *,
    store: Annotated[str | None, typer.Option(help="The store's URL; without it HOLDFAST_URL, else the file in your data folder.")] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 for any that is free.")] = 7077,
    allow_host: Annotated[list[str] | None, typer.Option(help="A name in a Host header to answer to, * for any; may be repeated.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The certificate to show, a PEM file.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The certificate's key, a PEM file.")] = None,
    tls_terminated: Annotated[bool, typer.Option("--tls-terminated", help="A proxy in front of it speaks TLS.")] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen beyond this host without TLS or tokens.")] = False,
) -> None:
    """Serve a store over HTTP until it is told to end; then it drains."""
    try:
        from holdfast.server.running import Exposure, run
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRA:
            raise
        raise _refusal("it needs its extra: pip install 'holdfast[server]'") from None
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    exposure = Exposure(
        host=host,
        port=port,
        hosts=allow_host or (),
        certificate=tls_cert,
        key=tls_key,
        is_tls_terminated=tls_terminated,
        is_insecure=insecure,
    )
    try:
        run(store, exposure)
    except (ValueError, OSError) as error:
        raise _refusal(str(error)) from None


def _refusal(problem: str) -> typer.Exit:
    typer.echo(f"holdfast serve: {problem}", err=True)
    return typer.Exit(REFUSED)
