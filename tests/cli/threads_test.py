"""At most as many threads as CPUs that the process may use. More are answered with a note, and so is a profile taken on a busy machine."""

import json
import os
import unittest
from pathlib import Path

from program import ProgramTest


def on_one_cpu():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Threads(ProgramTest):
    def test_the_affinity_bounds_the_default(self):
        planned = self.call("plan", "--model", "model", "--memory", "64MiB", "--json", preexec_fn=on_one_cpu)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertEqual(json.loads(planned.stdout)["threads"], 1)

    def test_a_fresh_model_is_the_same_whatever_the_threads(self):
        for name, more in (("one", {"preexec_fn": on_one_cpu}), ("all", {})):
            done = self.call("init", "--config", "config.json", "--tokenizer", "bytes", "--output-dir", name, "--seed", 5, **more)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.root / "one/model.safetensors").read_bytes(), (self.root / "all/model.safetensors").read_bytes())

    def test_more_threads_than_cpus_are_noted(self):
        done = self.call(*self.train_arguments("shared", "--max-steps", 1, "--threads", 2), preexec_fn=on_one_cpu)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("note: 2 threads share the 1 CPU that this process may use and wait for each other: give --threads 1", done.stderr)
        for n, more in enumerate((["--quiet", "--threads", 2], ["--threads", 1])):
            done = self.call(*self.train_arguments(f"alone{n}", "--max-steps", 1, *more), preexec_fn=on_one_cpu)
            self.assertNotIn("threads share", done.stderr)
        command = ["generate", "--model", "model", "--prompt", "a", "--max-new-tokens", 2, "--memory", "128MiB"]
        self.assertIn("2 threads share", self.call(*command, "--threads", 2, preexec_fn=on_one_cpu).stderr)

    def test_a_disturbed_profile_is_noted(self):
        with open(Path(__file__).resolve().parents[2] / "src/cost/profiles/cpu-avx2.json", encoding="utf-8") as file:
            profile = json.load(file)
        command = ["plan", "--model", "model", "--memory", "64MiB", "--profile", "profile.json"]
        for disturbed, quiet in ((False, []), (True, ["--quiet"]), (True, [])):
            profile["products"][0]["disturbed"] = disturbed
            with open(self.root / "profile.json", "w", encoding="utf-8") as file:
                json.dump(profile, file)
            planned = self.call(*command, *quiet)
            self.assertEqual(planned.returncode, 0, planned.stderr)
            noted = "points were measured only while others kept the CPUs busy" in planned.stderr
            self.assertEqual(noted, disturbed and not quiet, planned.stderr)
        self.assertIn("measure again with `headroom profile`", planned.stderr)
        trained = self.call(*self.train_arguments("disturbed", "--max-steps", 1, "--profile", "profile.json"))
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.assertIn("note: of profile", trained.stderr)


if __name__ == "__main__":
    unittest.main()
