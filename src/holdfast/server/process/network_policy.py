"""Decides whether the server may listen on an address: beyond this host it needs tokens and TLS."""

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from holdfast.server.layers.hosts import LOOPBACK
from holdfast.stores.http.address import is_loopback


class Exposure(Struct, frozen=True, kw_only=True):
    """Where a server listens, and what protects it there."""

    host: str = "127.0.0.1"
    port: int = 7077
    hosts: Collection[str] = ()
    """The names it is known by, beside those of this host and the address it listens on."""
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    """Whose certificates clients must show; None asks for none."""
    is_tls_terminated: bool = False
    """A proxy in front of it speaks TLS."""
    is_insecure: bool = False
    proxies: Collection[str] = ()
    """The addresses of proxies that are believed when they say whom a request came from."""

    def check(self, *, asks_for_tokens: bool) -> None:
        """Refuse, with a ValueError, to be reached from elsewhere without a token and TLS."""
        if (self.certificate is None) != (self.key is None):
            raise ValueError("a certificate needs its key: give --tls-cert and --tls-key")
        if self.client_ca is not None and self.certificate is None:
            raise ValueError("client certificates need TLS: give --tls-cert and --tls-key with --client-ca")
        if self.is_loopback or self.is_insecure:
            return
        if not asks_for_tokens:
            raise ValueError(
                f"{self.host} can be reached from other hosts, and no token was made: make one with `holdfast token create`, "
                "listen on 127.0.0.1, or use --insecure"
            )
        if self.certificate is None and not self.is_tls_terminated:
            raise ValueError(
                f"{self.host} can be reached from other hosts, and tokens would be sent unencrypted: give --tls-cert and --tls-key, "
                "--tls-terminated behind a proxy that terminates TLS, or --insecure"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this host can reach it."""
        return is_loopback(self.host)

    @property
    def known_hosts(self) -> frozenset[str]:
        """What may stand in a Host header."""
        return LOOPBACK | {self.shown_host} | frozenset(self.hosts)

    @property
    def shown_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def url(self, port: int) -> str:
        return f"{'http' if self.certificate is None else 'https'}://{self.shown_host}:{port}"
