"""A headless Chromium that a test can look through: opens a page, clicks, and keeps what the page said and asked for.

Speaks the DevTools protocol over the browser's own pipe (file descriptors 3 and 4), so that `chromium` alone is
enough: no driver whose version must match, and no library that would fetch one.
"""

import base64
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# Becomes the browser after putting our two pipes where it looks for them.
LAUNCH = (
    "import fcntl, os, sys\n"
    "ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]\n"
    "for fd, end in zip((3, 4), ends): os.dup2(end, fd)\n"
    "os.execvp(sys.argv[3], sys.argv[3:])\n"
)
SECONDS = 30.0


class Chromium:
    """One browser with one open page."""

    def __init__(self, program: str, profile: Path) -> None:
        reads, self._write = os.pipe()
        self._read, writes = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(reads), str(writes), program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._received = b""
        self._count = 0
        self._session: str | None = None
        self._loaded: set[str] = set()
        self.complaints: list[str] = []  # console messages of any kind, exceptions, refusals by the security policy
        self.requests: list[str] = []  # every address that the page asked for
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The browser's answer to one command."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + SECONDS
        while True:
            answer = self._next(limit, method)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self, limit: float, waiting_for: str) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], max(0.0, limit - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError(f"the browser did not answer {waiting_for} within {SECONDS:g} s, or it ended")
            self._received += data
        first, self._received = self._received.split(b"\0", 1)
        message: dict[str, Any] = json.loads(first)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        match message.get("method"):
            case "Runtime.consoleAPICalled":
                self.complaints.append(" ".join(str(one.get("value", one.get("description"))) for one in told["args"]))
            case "Runtime.exceptionThrown":
                details = told["exceptionDetails"]
                self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
            case "Log.entryAdded":
                self.complaints.append(told["entry"]["text"])
            case "Page.lifecycleEvent" if told["name"] == "load":
                self._loaded.add(told["loaderId"])
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])

    def open(self, address: str) -> None:
        """Load a page; what it says and asks for is noted from here on."""
        self.complaints.clear()
        self.requests.clear()
        loader = self.call("Page.navigate", url=address)["loaderId"]
        limit = time.monotonic() + SECONDS
        while loader not in self._loaded:
            self._next(limit, f"that {address} is loaded")

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Until the expression is true."""
        limit = time.monotonic() + SECONDS
        while not self.ask(expression):
            if time.monotonic() > limit:
                raise TimeoutError(
                    f"{expression} did not come true within {SECONDS:g} s; complaints: {self.complaints}"
                )
            time.sleep(0.05)

    def move_to(self, x: float, y: float) -> None:
        """Put the pointer there, in pixels of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def appear(self, *, width: int = 1280, height: int = 900, dark: bool = False, printed: bool = False) -> None:
        """As on a screen of this size and scheme, or on paper."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="print" if printed else "", features=[scheme])

    def picture(self, path: Path) -> None:
        """A screenshot, for a person."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """End the browser."""
        try:
            self._session = None
            self.call("Browser.close")
        except (OSError, TimeoutError):
            self._process.kill()
        finally:
            self._process.wait(timeout=SECONDS)
            os.close(self._write)
            os.close(self._read)
