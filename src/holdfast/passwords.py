"""Shows a store's URL without its password."""

import re

_SECRET_OPTION = re.compile(r"(?<=[?&])[^=&?]*(?:pass|secret|token)[^=&?]*=[^&]*&?", re.IGNORECASE)
_PLACE = re.compile(r"[^/?#]*")
_NO_PORT = re.compile(r":(?![0-9]+(?:,|$))[^,\[\]]*(?=,|$)")


def without_password(url: str) -> str:
    """The URL with its user, and without its password, also where that was not quoted or stands in another's place."""
    url, removed = _SECRET_OPTION.subn("", url)
    if removed:
        url = url.rstrip("?&")
    scheme, mark, rest = url.partition("://")
    if not mark:
        return f"…@{url.rpartition('@')[2]}" if "@" in url else url  # No URL: what is before the place may be a password.
    if rest.startswith("/"):
        return url
    before, _, behind = rest.rpartition("@")
    user = before.partition(":")[0]
    place = _PLACE.sub(lambda found: _NO_PORT.sub("", found[0]), behind, count=1)
    return f"{scheme}{mark}{user}{'@' if user else ''}{place}"
