"""A headless Chromium or Chrome for tests of pages. Standard library only."""
import base64
import fcntl
import json
import os
import shutil
import subprocess

SKIPPED = 77  # exit status of a test without a browser


def find_browser():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None)


class Browser:
    """A headless browser, spoken to over its debugging pipe: JSON messages that end in a zero byte, read from 3, written to 4.

    No host is reached but those of `reached`."""

    def __init__(self, program, profile, reached=()):
        ours_in, theirs_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in os.pipe())
        theirs_in, ours_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in os.pipe())
        self.process = subprocess.Popen(
            [program, "--headless", "--disable-gpu", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={profile}",
             "--host-resolver-rules=" + ", ".join(["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in reached)]), "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(theirs_in, 3), os.dup2(theirs_out, 4)))
        os.close(theirs_in)
        os.close(theirs_out)
        self.input, self.output = os.fdopen(ours_in, "rb", 0), os.fdopen(ours_out, "wb", 0)
        self.left, self.number, self.session, self.events = b"", 0, None, []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(domain + ".enable")

    def message(self):
        while b"\0" not in self.left:
            piece = self.input.read(1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.left += piece
        text, self.left = self.left.split(b"\0", 1)
        return json.loads(text)

    def __call__(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        self.output.write(json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def show(self, width, height, scheme="light"):
        """The screen: narrow ones are a phone's."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if width < 600 else 1, mobile=width < 600)
        self("Emulation.setScrollbarsHidden", hidden=True)
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def load(self, url):
        self.events = []
        self("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def value(self, expression):
        """The value of an expression, or of the promise that it returns."""
        found = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def screenshot(self, file, size):
        picture = self("Page.captureScreenshot", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": size["wide"], "height": size["height"], "scale": 1})
        file.write_bytes(base64.b64decode(picture["data"]))

    def close(self):
        try:
            self("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
