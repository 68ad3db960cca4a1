"""The command `holdfast serve`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.opening import StoreUrl
from holdfast.cli.owner import act_as_owner_of
from holdfast.errors import MissingExtra
from holdfast.server.load.answer_memory import MIB, MOST_BYTES, MOST_BYTES_EACH

EXTRA = {"uvicorn", "uvloop", "httptools"}

HostNames = Annotated[list[str] | None, typer.Option(help="A name to accept in the Host header, * for any; may be repeated.")]
Authority = Annotated[
    Path | None, typer.Option(help="The authority whose certificates clients must show, a PEM file; without it none is asked for.")
]
Proxies = Annotated[
    list[str] | None, typer.Option(help="The address or network of a proxy whose X-Forwarded-For is believed; may be repeated.")
]
AllowsCopy = Annotated[bool, typer.Option("--allow-copy", help="Let anyone copy the store through this server, while it has no tokens.")]


def serve(
    *,
    url: StoreUrl = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to listen on; 0 for any that is free.")] = 7077,
    allow_host: HostNames = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The certificate to show, a PEM file.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The certificate's key, a PEM file.")] = None,
    client_ca: Authority = None,
    tls_terminated: Annotated[bool, typer.Option("--tls-terminated", help="A proxy in front of it speaks TLS.")] = False,
    proxy: Proxies = None,
    max_body_mib: Annotated[float, typer.Option(min=0.001, help="How long a body may be.")] = 24.0,
    max_answers_mib: Annotated[int, typer.Option(min=1, help="Memory that responses may take until read.")] = MOST_BYTES // MIB,
    max_answers_mib_each: Annotated[int, typer.Option(min=1, help="How much those of each token may.")] = MOST_BYTES_EACH // MIB,
    max_requests: Annotated[int, typer.Option(min=1, help="How many requests may be under way at once.")] = 2_000,
    max_waiting: Annotated[int, typer.Option(min=1, help="How many requests may wait or watch.")] = 10_000,
    max_waiting_each: Annotated[int, typer.Option(min=1, help="How many of each token may.")] = 5_000,
    max_rate_each: Annotated[float | None, typer.Option(min=0.01, help="How many requests a second each token may make.")] = None,
    max_command_s: Annotated[float, typer.Option(min=0.01, help="How long one command may take at the store.")] = 10.0,
    log_json: Annotated[bool, typer.Option("--json", "--log-json", help="Log one JSON object per line.")] = False,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log every request, without its contents.")] = False,
    allow_copy: AllowsCopy = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen beyond this host without TLS or tokens.")] = False,
) -> None:
    """Serve a store over HTTP until it is stopped; running requests are finished."""
    with server_packages():
        from holdfast.server.process import logs
        from holdfast.server.process.run import Exposure, Options, run
    logs.set_up("json" if log_json else "text", requests=log_requests)
    exposure = Exposure(
        host=host,
        port=port,
        hosts=allow_host or (),
        certificate=tls_cert,
        key=tls_key,
        client_ca=client_ca,
        is_tls_terminated=tls_terminated,
        is_insecure=insecure,
        proxies=[address_of(each) for each in proxy or ()],
    )
    options = Options(
        body_bytes=int(max_body_mib * 2**20),
        answers_bytes=max_answers_mib * 2**20,
        answers_bytes_each=max_answers_mib_each * 2**20,
        in_flight=max_requests,
        waiting=max_waiting,
        waiting_each=max_waiting_each,
        requests_each_per_s=max_rate_each,
        command_s=max_command_s,
        allows_copy=allow_copy,
    )
    act_as_owner_of(url)
    run(url, exposure, options)


@contextmanager
def server_packages() -> Iterator[None]:
    """Raise MissingExtra where the packages of a server are not installed."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRA:
            raise
        raise MissingExtra("it needs its extra: pip install 'holdfast[server]'") from None


def address_of(proxy: str) -> str:
    """The address; ValueError if it is none, since nothing that came through that proxy would be believed."""
    from ipaddress import ip_network

    try:
        ip_network(proxy, strict=False)
    except ValueError:
        if proxy != "*":
            raise ValueError(f"--proxy {proxy} is not an address: write 10.0.0.7, 10.0.0.0/24, or * for any") from None
    return proxy
