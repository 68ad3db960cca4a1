"""A real headless Chromium, driven over the pipe of its DevTools protocol: messages are JSON, and each ends with a null byte."""

import base64
import fcntl
import os
import select
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from msgspec import json

from tools.browser import executable

PATIENCE_S = 60.0
READ_BYTES = 1 << 20
FIRST_FREE_FD = 10
"""Above those that the browser is given."""

OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    # A sandbox needs rights that containers and root do not have; the pages are those of the tests.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--no-proxy-server",
    # Newer browsers ask the user before a public page reaches this host. The server must not count on that.
    "--disable-features=LocalNetworkAccessChecks",
    # Every name but that of this host: no test leaves the machine.
    "--host-resolver-rules=MAP * 127.0.0.1",
)

Params = dict[str, Any]

COMPLAINTS = ("Runtime.exceptionThrown", "Log.entryAdded")


class Chromium:
    """One browser process with a profile of its own."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="holdfast-browser-", ignore_cleanup_errors=True)
        self._log = Path(self._profile.name) / "stderr"
        self._input, self._output, self._pid = self._start()
        self._unread = b""
        self._count = 0
        self._events: deque[Params] = deque()

    def _start(self) -> tuple[int, int, int]:
        binary = executable()
        theirs_in, ours_out = _pipe()
        ours_in, theirs_out = _pipe()
        command = [str(binary), *OPTIONS, f"--user-data-dir={self._profile.name}"]
        environment = {**os.environ, "HOME": self._profile.name, "LANG": "en_US.UTF-8", "LC_ALL": "en_US.UTF-8"}
        if (binary.parent / "fonts.conf").exists():
            environment |= {"LD_LIBRARY_PATH": str(binary.parent / "lib"), "FONTCONFIG_PATH": str(binary.parent)}
        files = [
            (os.POSIX_SPAWN_OPEN, 2, str(self._log), os.O_CREAT | os.O_WRONLY, 0o600),
            (os.POSIX_SPAWN_DUP2, theirs_in, 3),
            (os.POSIX_SPAWN_DUP2, theirs_out, 4),
        ]
        # A process group: the processes of its pages end with it.
        pid = os.posix_spawn(str(binary), command, environment, file_actions=files, setpgroup=0)
        os.close(theirs_in)
        os.close(theirs_out)
        return ours_in, ours_out, pid

    def call(self, method: str, params: Params | None = None, session: str | None = None) -> Params:
        """Send a command and return its result; events that come before it are kept."""
        return self.result(self.send(method, params, session), method)

    def send(self, method: str, params: Params | None = None, session: str | None = None) -> int:
        """Send a command; `result` waits for what comes of it."""
        self._count += 1
        message: Params = {"id": self._count, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self._output, json.encode(message) + b"\0")
        return self._count

    def result(self, number: int, method: str = "") -> Params:
        """What came of a command that was sent."""
        reply = self._take(lambda message: message.get("id") == number, method)
        assert "error" not in reply, f"{method}: {reply['error']}"
        result: Params = reply["result"]
        return result

    def event(self, method: str, session: str) -> Params:
        """The first event of this kind that was not asked for before; waits for it."""
        event = self._take(lambda message: message.get("method") == method and message.get("sessionId") == session, method)
        params: Params = event["params"]
        return params

    def complaints(self, session: str) -> list[Params]:
        """The errors of a page that were reported before the last answer."""
        mine = [event["params"] for event in self._events if event.get("sessionId") == session and event.get("method") in COMPLAINTS]
        return [params for params in mine if "exceptionDetails" in params or params["entry"]["level"] == "error"]

    def _take(self, is_it: Callable[[Params], bool], what: str) -> Params:
        for message in self._events:
            if is_it(message):
                self._events.remove(message)
                return message
        until = time.monotonic() + PATIENCE_S
        while not is_it(message := self._next(until, what)):
            self._events.append(message)
        return message

    def _next(self, until: float, what: str) -> Params:
        while b"\0" not in self._unread:
            readable, _, _ = select.select([self._input], [], [], max(0.0, until - time.monotonic()))
            read = os.read(self._input, READ_BYTES) if readable else b""
            assert read, f"the browser {'ended' if readable else 'did not answer'} while {what} was waited for: {self._log.read_text()}"
            self._unread += read
        text, _, self._unread = self._unread.partition(b"\0")
        message: Params = json.decode(text)
        return message

    def page(self) -> "Page":
        """A new, empty page that shares no cookies, caches or connections with others."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", {"url": "about:blank", "browserContextId": context})["targetId"]
        return Page(self, context, self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])

    def close(self) -> None:
        """End it with all its processes."""
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._input)
        os.close(self._output)
        self._profile.cleanup()


class Page:
    """One tab."""

    def __init__(self, browser: Chromium, context: str, session: str) -> None:
        self._browser = browser
        self._context = context
        self._session = session
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Go to an address, and return when the page is loaded."""
        self._loaded(self._browser.send("Page.navigate", {"url": url}, self._session))

    def open_as(self, url: str, html: str) -> None:
        """Show a page as if it came from the address, of which nothing is asked; all that the page asks for is asked for real."""
        self._call("Fetch.enable", {"patterns": [{"urlPattern": url, "resourceType": "Document"}]})
        navigation = self._browser.send("Page.navigate", {"url": url}, self._session)
        request = self._browser.event("Fetch.requestPaused", self._session)["requestId"]
        headers = [{"name": "Content-Type", "value": "text/html"}]
        # A binary field of the protocol: base64, as msgspec writes bytes.
        self._call("Fetch.fulfillRequest", {"requestId": request, "responseCode": 200, "responseHeaders": headers, "body": html.encode()})
        self._loaded(navigation)
        self._call("Fetch.disable")

    def _loaded(self, navigation: int) -> None:
        failure = self._browser.result(navigation, "Page.navigate").get("errorText")
        assert not failure, f"the page was not loaded: {failure}"
        self.loaded()

    def loaded(self) -> None:
        """Return when a page that was gone to is loaded."""
        self._browser.event("Page.loadEventFired", self._session)

    def run(self, expression: str) -> Any:
        """What a JavaScript expression gives; a promise is waited for."""
        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True, "userGesture": True}
        reply = self._call("Runtime.evaluate", asked)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def prefer(self, scheme: str) -> None:
        """Let the system of the reader prefer a colour scheme."""
        self._call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def size(self, width: int, height: int) -> None:
        """Make the window so large."""
        self._call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def complaints(self) -> list[str]:
        """The errors that the page has thrown or logged so far, and what its policy has blocked."""
        return [str(event) for event in self._browser.complaints(self._session)]

    def picture(self) -> bytes:
        """What the page looks like, as a PNG file."""
        return base64.b64decode(self._call("Page.captureScreenshot", {"format": "png"})["data"])

    def _call(self, method: str, params: Params | None = None) -> Params:
        return self._browser.call(method, params, self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.call("Target.disposeBrowserContext", {"browserContextId": self._context})


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not those that the browser gets: duplicating one onto itself would leave it closed there."""
    ends = os.pipe()
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_FD) for end in ends)
    for end in ends:
        os.close(end)
    return reading, writing
