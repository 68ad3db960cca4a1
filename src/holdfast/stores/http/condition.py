"""The condition of a server: its release."""

from contextlib import closing

from holdfast.stores.condition import Condition
from holdfast.stores.http.store import HttpStore
from holdfast.version import __version__

DIFFER = "They understand each other. Upgrade the older one, so that each can do what the other offers."


def http_condition(url: str) -> Condition:
    """Ask the server for its release; of the engine behind it nothing is known."""
    with closing(HttpStore(url)) as store:
        about = store.about
    is_same = about.version == __version__
    return Condition(f"the server is of release {about.version}, and this is {__version__}", form_remedy="" if is_same else DIFFER)
