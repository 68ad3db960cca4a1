"""The files of the dashboard, and what a server without them says."""

from contextlib import closing
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from holdfast.connect import connect
from holdfast.server.audit import Actor
from holdfast.server.auth.tokens import create_token
from holdfast.server.layers.dashboard import NOT_BUILT
from tests.server.processes import Process

WITHOUT = """
from pathlib import Path
from holdfast.server.layers.dashboard import read_files
read_files.__defaults__ = (Path("nowhere"),)
"""


def get(url: str) -> tuple[int, str, bytes]:
    """The status, the type and the body of a page."""
    with urlopen(url) as answer:  # noqa: S310 - of the test's own server
        return answer.status, answer.headers["content-type"], answer.read()


def test_a_server_without_the_built_files_says_what_to_do(tmp_path: Path) -> None:
    with Process(tmp_path / "s.db", broken=WITHOUT) as server:
        assert get(server.url) == (200, "text/plain; charset=utf-8", NOT_BUILT)
        server.wait_for_log(lambda log: any("there is no dashboard: run `make dashboard`" in line for line in log))
        assert get(f"{server.url}/readyz")[0] == 200


def test_the_files_need_no_token(tmp_path: Path) -> None:
    with closing(connect(f"sqlite:///{tmp_path}/s.db")) as store:
        create_token(store, "reader", ["queue:*:read"], by=Actor("test", "here"))
    with Process(tmp_path / "s.db") as server:
        for path, kind in {"": "text/html", "dashboard/app.js": "text/javascript", "dashboard/app.css": "text/css"}.items():
            assert get(f"{server.url}/{path}")[:2] == (200, f"{kind}; charset=utf-8")
        with pytest.raises(HTTPError, match="401"):
            get(f"{server.url}/v1/about")
