"""The address of a server, and the client's credentials."""

import ipaddress
import os
import re
import ssl
from collections.abc import Mapping
from typing import Self
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from msgspec import Struct

INSECURE = "insecure=allow"
"""What a URL says if its token may cross the network in the clear."""

CERTIFICATE, KEY = "tls_cert", "tls_key"
"""The options of a URL that name the client's certificate and its key, which `HOLDFAST_TLS_CERT` and `HOLDFAST_TLS_KEY` do too."""

_TOKEN = re.compile(r"[\x21-\x7e]+")


class Address(Struct, frozen=True):
    """The parts of a server's URL, and the token, which no `repr` shows."""

    scheme: str
    host: str
    port: int
    path: str
    token: str | None
    is_insecure: bool = False
    """Whether the token may cross the network in the clear."""
    certificate: str | None = None
    key: str | None = None
    """PEM files of the client's own, for a server that asks for a certificate."""

    @classmethod
    def parse(cls, url: str, token: str | None = None) -> Self:
        """Take a URL apart; without a token it is that of `HOLDFAST_TOKEN`."""
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        is_insecure = options.pop("insecure", None) == "allow"
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"the {parts.scheme}:// URL has a user or a password, which the server does not use: give token=")
        if (
            not parts.hostname
            or not options.keys() <= {CERTIFICATE, KEY}
            or (parts.query and not options and not is_insecure)
            or parts.fragment
            or _port_of(parts) is None
        ):
            raise ValueError(f"{parts.scheme}://… has no host: write {parts.scheme}://host:port, or with a path in front of a proxy")
        token = os.environ.get("HOLDFAST_TOKEN") if token is None else token
        if token is not None and not _TOKEN.fullmatch(token):
            raise ValueError("the token has an invalid character: copy it again")
        place = (parts.scheme, parts.hostname, _port_of(parts) or 0, parts.path.rstrip("/"))
        address = cls(*place, token, is_insecure, *_certificate(parts.scheme, options))
        address.check_token()
        return address

    def check_token(self) -> None:
        """Refuse to send a token to another host in the clear."""
        if self.token is None or self.scheme == "https" or self.is_insecure or is_loopback(self.host):
            return
        raise ValueError(f"the token would be sent unencrypted to {self.host}: write https://, or allow it with ?{INSECURE}")

    @property
    def url(self) -> str:
        options = {"insecure": "allow" if self.is_insecure else None, CERTIFICATE: self.certificate, KEY: self.key}
        query = urlencode({name: value for name, value in options.items() if value is not None}, safe="/")
        return f"{self.base}?{query}" if query else self.base

    @property
    def base(self) -> str:
        """What every request's URL begins with."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def tls(self) -> ssl.SSLContext | None:
        """Verifies the server by the certificates of the system and of SSL_CERT_FILE, and shows the client's own; None without TLS."""
        if self.scheme != "https":
            return None
        context = ssl.create_default_context()
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key)
            except OSError as error:  # As ssl.SSLError is.
                raise ValueError(f"the client certificate {self.certificate} with the key {self.key} cannot be used: {error}") from error
        return context

    def cut_off(self, error: Exception) -> str:
        """What to say of a connection that ended before the answer: a server that misses a certificate gives no reason."""
        advice = (
            f" (does the server require a certificate? give {CERTIFICATE} and {KEY})" if self.scheme == "https" and not self.key else ""
        )
        return f"{self.url} closed the connection before it replied: {error}{advice}"

    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        headers = {"content-type": "application/json"}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        return headers

    def __repr__(self) -> str:
        return f"Address({self.url!r})"


def _certificate(scheme: str, options: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The client's certificate and its key, from the URL or else the environment."""
    if scheme != "https":
        if options:
            raise ValueError(f"{CERTIFICATE} and {KEY} apply only to https://")
        return None, None
    certificate, key = options.get(CERTIFICATE), options.get(KEY)
    if not options:
        certificate, key = os.environ.get("HOLDFAST_TLS_CERT"), os.environ.get("HOLDFAST_TLS_KEY")
    if (certificate is None) != (key is None):
        raise ValueError(f"a client certificate needs its key: give {CERTIFICATE} and {KEY}, or HOLDFAST_TLS_CERT and HOLDFAST_TLS_KEY")
    return certificate, key


def is_loopback(host: str) -> bool:
    """Whether what is sent there stays on this host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _port_of(parts: SplitResult) -> int | None:
    """The port, that of the scheme where none is named; None for what is none, and may be a password in the wrong place."""
    try:
        return parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
