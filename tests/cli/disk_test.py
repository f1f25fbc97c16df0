"""--disk-memory: the plan lists what is on disk, the run is bitwise equal to the plain one, and the directory is left empty."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from program import CONFIG, DiskTest, environment


def offload(to):
    return [word for what in ("optimizer", "gradients", "activations") for word in ("--technique", f"offload-{what}={to}")]


OFFLOAD = offload("on")


class Disk(DiskTest):
    def plan(self, *arguments):
        done = self.call("plan", "--model", "model", "--memory", "128MiB", "--threads", "1", "--max-seq-length", "32", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def rows(self, output, key):
        return [row[key] for row in map(json.loads, (self.root / output / "metrics.jsonl").read_text().splitlines()) if key in row]

    def outcome(self, output):
        return self.rows(output, "loss"), (self.root / output / "model.safetensors").read_bytes()

    def test_the_plan_says_what_lies_on_disk(self):
        plan = json.loads(self.plan(*self.disk(), *OFFLOAD, "--json").stdout)
        self.assertEqual(plan["tiers"]["disk"], {"budget_bytes": 1 << 30, "peak_bytes": plan["disk_arena_bytes"]})
        self.assertGreater(plan["disk_breakdown"]["optimizer"], 0)
        self.assertEqual(plan["disk_arena_bytes"] % 4096, 0)
        self.assertGreater(plan["process"]["copies"], 4 << 20)
        values = {technique["name"]: technique["value"] for technique in plan["techniques"]}
        self.assertEqual((values["offload-optimizer"], values["offload-activations"]), ("disk", "disk:2"))
        text = self.plan(*self.disk(), *OFFLOAD, "--explain").stdout
        self.assertRegex(text, r"(?m)^on disk, of a budget of 1.00 GiB$")
        self.assertIn("of disk: states, gradients", text)
        unused = json.loads(self.plan(*self.disk(), "--json").stdout)
        self.assertNotIn("disk_arena_bytes", unused)
        self.assertEqual(unused["process"]["copies"], 0)
        null = self.plan("--device", "null", *self.disk(), *OFFLOAD)
        self.assertRegex(null.stderr, r"of the disk at (\d+) of \1")

    def test_below_a_gpu_its_buffers_are_the_hosts(self):
        gpu = ["--device", "null", "--profile", "H100-80GB", "--memory", "2GiB", *self.disk()]
        plan = json.loads(self.plan(*gpu, *OFFLOAD, "--json").stdout)
        self.assertGreater(plan["disk_breakdown"]["optimizer"], 0)
        self.assertNotIn("host_arena_bytes", plan)
        self.assertEqual(plan["process"]["copies"], 0)
        self.assertGreater(plan["host_process"]["copies"], 6 << 20)
        held = sum(plan["host_process"].values())  # preparing the data, before there are copies, may take more
        self.assertGreaterEqual(plan["tiers"]["host"]["peak_bytes"], held)
        self.assertLess(plan["tiers"]["host"]["peak_bytes"], held + (8 << 20))
        self.assertRegex(self.plan(*gpu, *OFFLOAD, "--explain").stdout, r"(?s)on the host\n.*copies to disk +6\.50 MiB.*on disk, of a budget of 1\.00 GiB")
        both = json.loads(self.plan(*gpu, *offload("host"), "--host-memory", "1GiB", "--json").stdout)
        self.assertGreater(both["host_arena_bytes"], 0)
        self.assertEqual(both["host_process"]["copies"], 0)

    def test_training_is_bitwise_the_plain_run_and_leaves_nothing(self):
        self.train("plain")
        self.train("on-disk", *self.disk(), *OFFLOAD, "--technique", "offload-parameters=on")
        self.assertEqual(self.outcome("on-disk"), self.outcome("plain"))
        run = json.loads((self.root / "on-disk/run.json").read_text())
        self.assertEqual(run["disk_planned_bytes"], run["disk_measured_bytes"])
        self.assertGreater(run["disk_planned_bytes"], 0)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_a_run_resumes_with_and_without_the_disk(self):
        options = ["--lr-scheduler-type", "constant"]
        self.train("whole", *options, "--max-steps", "4")
        for name, first, second in (("in", self.disk() + OFFLOAD, []), ("out", [], self.disk() + OFFLOAD), ("both", self.disk() + OFFLOAD, self.disk() + OFFLOAD)):
            with self.subTest(name):
                self.train(name, *options, *first, "--max-steps", "2")
                self.train(name, *options, *second, "--max-steps", "4", "--resume-from-checkpoint", "true")
                self.assertEqual(self.outcome(name), self.outcome("whole"))

    def test_a_resumed_run_without_the_disk_says_what_it_cannot_repeat(self):
        (self.root / "table.json").write_text(json.dumps({**CONFIG, "vocab_size": 4100}))
        self.assertEqual(self.call("init", "--config", "table.json", "--tokenizer", "bytes", "--output-dir", "table").returncode, 0)
        common = ("--model", "table", "--max-steps", "4")
        self.train("sliced", *common, "--save-steps", "2", *self.disk(), "--technique", "vocabulary-slices=on")
        for output, more, value, tolerance in (("again", self.disk(), "on", 0), ("without", (), "off", 1e-4)):
            with self.subTest(output=output):
                done = self.train(output, *common, "--resume-from-checkpoint", "sliced/checkpoint-2", *more)
                told = {each["name"]: each["value"] for each in json.loads((self.root / output / "plan.json").read_text())["techniques"]}
                self.assertEqual(told["vocabulary-slices"], value)
                self.assertEqual("used vocabulary-slices, which cannot be used here" in done.stderr, value == "off")
                for found, expected in zip(self.rows(output, "loss"), self.rows("sliced", "loss")[2:]):
                    self.assertAlmostEqual(found, expected, delta=tolerance)

    def test_a_killed_run_leaves_no_file(self):
        command = [self.program, *self.train_arguments("killed", *self.disk(), *OFFLOAD, "--max-steps", "100000")]
        with subprocess.Popen(command, cwd=self.root, env=environment(self.root), stderr=subprocess.DEVNULL) as run:
            metrics, deadline = self.root / "killed/metrics.jsonl", time.monotonic() + 120
            while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.02)
            held = [os.readlink(f"/proc/{run.pid}/fd/{name}") for name in os.listdir(f"/proc/{run.pid}/fd")]
            self.assertTrue(any(link.startswith(str(self.scratch)) for link in held), held)
            run.send_signal(signal.SIGKILL)
        self.assertEqual(list(self.scratch.iterdir()), [])

    def test_directories_and_sizes_that_will_not_do(self):
        (self.root / "a-file").write_text("x")
        cases = [("nowhere:1GiB", "nowhere"), ("a-file:1GiB", "a-file"), ("/proc/self:1GiB", "/proc/self"), ("scratch", "DIR:SIZE"), (":1GiB", "DIR:SIZE"),
                 ("scratch:", "DIR:SIZE"), ("scratch:12", "12GiB"), ("scratch:much", "much")]
        for value, part in cases:
            with self.subTest(value):
                self.assert_refused(self.train_arguments("out", "--disk-memory", value), 2, part)
        if Path("/dev/shm").is_dir():
            with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
                self.assert_refused(self.train_arguments("out", "--disk-memory", f"{memory}:1GiB"), 2, "is in memory")

    def test_a_disk_that_is_too_small_is_refused_in_bytes(self):
        (self.root / "wide.json").write_text(json.dumps({**json.loads((self.root / "config.json").read_text()), "vocab_size": 20000, "hidden_size": 256, "intermediate_size": 512}))
        plan = ["plan", "--model", "wide.json", "--threads", "1", "--max-seq-length", "32", *OFFLOAD]
        refused = self.call(*plan, "--memory", "4GiB", *self.disk("1MiB"), "--json")
        self.assertEqual(refused.returncode, 3)
        needed = json.loads(refused.stdout)["tiers"]["disk"]["peak_bytes"]
        done = self.assert_refused([*plan, "--memory", "4GiB", *self.disk(needed - 1)], 3, f"{needed - 1} bytes", "on disk", str(needed))
        self.assertIn(f"--disk-memory DIR:{needed} or more", done.stderr)
        self.assertEqual(self.call(*plan, "--memory", "4GiB", *self.disk(needed)).returncode, 0)


if __name__ == "__main__":
    unittest.main()
