#!/usr/bin/env python3
"""Runs all of benchmarks/gpu/first_hour.sh on the shim: every step runs, a second call repeats none, and a failed step is
reported and repeated. Usage: first_hour_test.py HEADROOM_ON_SHIM FOLDER_OF_FAKE_NVML
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks/gpu/first_hour.sh"
PROGRAM, LIBRARIES = map(os.path.abspath, sys.argv[1:3])
PEER = """#!/bin/sh
echo '{"tokens_per_second": 1.0, "device_peak_bytes": 2147483648, "step_seconds": 1.0}'
"""


class FirstHour(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="headroom-first-hour-")
        self.out = Path(self.folder.name) / "out"
        self.peer = Path(self.folder.name) / "python"
        self.peer.write_text(PEER)
        self.peer.chmod(0o755)

    def tearDown(self):
        self.folder.cleanup()

    def call(self, *more, program=PROGRAM):
        path = os.pathsep.join([os.environ.get("LD_LIBRARY_PATH", ""), LIBRARIES]).strip(os.pathsep)
        command = [str(SCRIPT), str(self.out), "--headroom", program, "--torch-python", str(self.peer), "--shared", "/nonexistent", "--small",
                   "--kernel-tests", "/nonexistent", *more]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": path, "XDG_CACHE_HOME": self.folder.name})
        rows = dict(re.findall(r"(?m)^(\S+) +(passed|before|failed|skipped|too long) ", done.stdout))
        return done, rows

    def test_every_step_runs_once(self):
        done, rows = self.call()
        logs = "".join(f"\n== {log.name}\n{log.read_text()[-600:]}" for log in sorted((self.out / "logs").iterdir()))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + logs)
        for name in ("model", "losses-bf16-mixed", "losses-nf4", "losses-heads-of-64", "budget", "serve", "llmq", "torch", "offload-7b"):
            self.assertEqual(rows.get(name), "passed", (name, done.stdout))
        self.assertRegex(done.stdout.splitlines()[-1], r"^\d+ passed, 0 failed, \d+ skipped$")
        summary = (self.out / "summary.md").read_text()
        self.assertIn("| losses-bf16-mixed | passed |", summary)
        self.assertIn("| tiny | bf16-mixed |", summary)  # LLMQ's table

        (self.out / "done/offload-7b").unlink()
        again, rows = self.call()
        self.assertEqual(again.returncode, 0, again.stdout)
        self.assertEqual({name for name, outcome in rows.items() if outcome == "passed"}, {"offload-7b"}, again.stdout)

    def test_a_step_that_fails_is_said(self):
        broken = Path(self.folder.name) / "broken"
        broken.write_text("#!/bin/sh\necho no luck >&2\nexit 4\n")
        broken.chmod(0o755)
        done, rows = self.call(program=str(broken))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(rows["model"], "failed")
        self.assertIn("exit 4: no luck", done.stdout)
        self.assertIn("| model | failed |", (self.out / "summary.md").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
