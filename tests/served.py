"""A running `headroom serve` for tests. Standard library only."""
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request


class Server:
    """Serves a model's folder on a free port of this machine, and waits until it is ready; also a context manager. `home` is an empty folder: no
    cached profile. Output is kept in files there."""

    def __init__(self, program, model, home, *more, cwd=None):
        self.errors = open(os.path.join(home, "serve.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([program, "serve", "--model", model, "--threads", "1", "--port", "0", *more], cwd=cwd, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home)})
        self.printed = ""  # before it listened
        self.url = None
        for line in self.process.stdout:
            self.printed += line
            if found := re.search(r"listening on (\S+)", line):
                self.url = found[1]
                break
        for _ in range(600):
            if self.url is None or self.process.poll() is not None:
                raise RuntimeError("the server ended: " + self.stop())
            try:
                urllib.request.urlopen(self.url + "/health").close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server does not become ready: " + self.stop())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends it if it still runs, and returns its log."""
        if self.errors.closed:
            return ""
        self.process.terminate()
        self.process.wait(60)
        self.process.stdout.close()
        self.errors.seek(0)
        text = self.errors.read()
        self.errors.close()
        return text

    def call(self, path, body=None):
        """(status, text) of the answer to a GET, or to a POST of a body that is converted to JSON."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}), timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def get(self, path):
        return self.call(path)

    def post(self, path, **body):
        return self.call(path, body)

    def metrics(self):
        """The figures of /metrics by name, including the labels."""
        return {name: float(value) for name, value in re.findall(r"^([\w:]+(?:\{.*\})?) (\S+)$", self.get("/metrics")[1], re.M)}

    def peak_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
