"""kill -9 at random moments of a run that saves at every step: the newest checkpoint always resumes bitwise."""

import json
import os
import random
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from program import ProgramTest, environment  # noqa: E402

ROUNDS = 20
STEPS = 120
OPTIONS = ["--max-steps", str(STEPS), "--save-steps", "1", "--save-total-limit", "2", "--learning-rate", "1e-3"]


class CrashSafety(ProgramTest):
    def losses(self, name):
        rows = [json.loads(line) for line in (self.root / name / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], list(range(1, len(rows) + 1)), "every step is logged once")
        return [row["loss"] for row in rows]

    def bytes_of(self, name):
        return [(self.root / name / part).read_bytes() for part in ("model.safetensors", f"checkpoint-{STEPS}/optimizer.safetensors")]

    def test_kill_at_random_moments(self):
        begin = time.monotonic()
        self.train("whole", *OPTIONS)
        whole = time.monotonic() - begin
        source = random.Random(7)
        started, killed = False, 0
        for _ in range(ROUNDS):
            process = subprocess.Popen([self.program, *self.train_arguments("killed", *OPTIONS, "--quiet", *(["--resume-from-checkpoint", "true"] if started else []))],
                                       cwd=self.root, env=environment(self.root), stderr=subprocess.PIPE, text=True)
            try:
                process.wait(source.uniform(0.02, 0.2) * whole)
            except subprocess.TimeoutExpired:
                process.kill()
            errors = process.communicate()[1]
            self.assertIn(process.returncode, (0, -9), errors)
            # Killed before its first step: the same command starts the run.
            started = (self.root / "killed/metrics.jsonl").exists()
            killed += process.returncode == -9
        self.assertGreaterEqual(killed, ROUNDS // 4, "most rounds should end in the middle")
        self.train("killed", *OPTIONS, "--resume-from-checkpoint", "true")
        self.assertEqual(self.losses("killed"), self.losses("whole"))
        self.assertEqual(self.bytes_of("killed"), self.bytes_of("whole"))
        leftovers = [path.name for path in (self.root / "killed").iterdir() if ".tmp-" in path.name]
        self.assertEqual(leftovers, [], "what killed processes left is cleared")

    def test_resume_under_another_budget(self):
        options = ["--max-steps", "12", "--save-steps", "6", "--learning-rate", "1e-3", "--global-batch-size", "16", "--max-seq-length", "64"]
        self.train("plenty", *options)
        minimum = json.loads((self.root / "plenty/plan.json").read_text())["minimum_bytes"]
        self.train("moved", *options, "--max-steps", "12")
        for name in ("model.safetensors", "run.json", "metrics.jsonl"):
            self.assertTrue((self.root / "moved" / name).exists())
        done = self.train("moved", *options, "--resume-from-checkpoint", "moved/checkpoint-6", "--memory", minimum)
        for ours, theirs in zip(self.losses("moved"), self.losses("plenty"), strict=True):
            self.assertAlmostEqual(ours, theirs, delta=1e-5 * abs(theirs), msg=done.stderr)

    def test_changed_options_are_listed(self):
        self.train("changed", "--max-steps", "2")
        done = self.train("changed", "--max-steps", "4", "--learning-rate", "1e-4", "--resume-from-checkpoint", "true")
        self.assertIn("learning-rate", done.stderr)
        self.assertIn("max-steps=4 (was 2)", done.stderr)


if __name__ == "__main__":
    unittest.main()
