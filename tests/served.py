"""A running `headroom serve` for tests. Standard library only."""
import os
import re
import subprocess
import time
import urllib.request


class Server:
    """Of a model's folder, on a free port of this machine, ready. `home` is an empty folder: no cached profile. Output is kept in files there."""

    def __init__(self, program, model, home, *more):
        self.errors = open(os.path.join(home, "serve.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([program, "serve", "--model", model, "--threads", "1", "--port", "0", *more], stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home)})
        self.url = next((found[1] for found in (re.search(r"listening on (\S+)", line) for line in self.process.stdout) if found), None)
        for _ in range(600):
            if self.url is None or self.process.poll() is not None:
                raise RuntimeError("the server ended: " + self.stop())
            try:
                urllib.request.urlopen(self.url + "/health").close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server does not become ready: " + self.stop())

    def stop(self):
        """Ends it and gives what it logged."""
        self.process.terminate()
        self.process.wait(60)
        self.process.stdout.close()
        self.errors.seek(0)
        text = self.errors.read()
        self.errors.close()
        return text

    def peak_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
