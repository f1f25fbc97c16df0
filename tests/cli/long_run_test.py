"""The memory of a run does not grow with its history: planning, a long run's files, temporary files."""

import json
import os
import subprocess
import time
import unittest

from program import CONFIG, ProgramTest, environment
import child_peak


class LongRun(ProgramTest):
    def measured(self, *arguments):
        """(exit code, largest resident set in bytes, stdout) of a call."""
        code, peak, text, _ = child_peak.run([self.program, *arguments], cwd=self.root, env=environment(self.root))
        return code, peak, text

    def least(self, *arguments):
        done = self.call("plan", "--json", "--memory", "1TiB", "--threads", 1, *arguments)
        return json.loads(done.stdout)["minimum_bytes"]

    def test_a_resumed_run_does_not_hold_the_lines_before_it(self):
        options = ["--max-seq-length", 32, "--global-batch-size", 4]
        least = self.least("--model", "model", *options)
        self.train("long", "--memory", least, "--save-steps", 3)
        metrics = self.root / "long/metrics.jsonl"
        line = metrics.read_text().splitlines(keepends=True)[0]
        with open(metrics, "a", encoding="utf-8") as out:
            for _ in range(100):
                out.write(line * 3000)  # 60 MB: twice the budget
        code, resident, _ = self.measured(*self.train_arguments("long", "--memory", least, "--max-steps", 4,
                                                               "--resume-from-checkpoint", "true"))
        self.assertEqual(code, 0)
        self.assertLessEqual(resident, least)
        with open(metrics, "rb") as lines:
            self.assertEqual(sum(1 for _ in lines), 3 + 300000 + 1)

    def test_planning_stays_within_the_least_budget(self):
        # Deep and narrow: the weights take less memory than planning.
        config = {**CONFIG, "num_hidden_layers": 200, "hidden_size": 8, "intermediate_size": 16}
        (self.root / "deep.json").write_text(json.dumps(config))
        for more in ([], ["--lora-r", 4]):
            options = ["--model", "deep.json", "--max-seq-length", 8, "--global-batch-size", 1, *more]
            least = self.least(*options)
            code, resident, _ = self.measured("plan", "--json", "--memory", least, "--threads", 1, *options)
            self.assertEqual(code, 0)
            self.assertLessEqual(resident, least, more)

    def test_the_tokens_of_an_evaluation_lie_in_a_file_without_a_name_on_a_disk(self):
        kind = subprocess.run(["stat", "-f", "-c", "%T", "/dev/shm"], capture_output=True, text=True).stdout.strip()
        if kind != "tmpfs" or not os.access("/dev/shm", os.W_OK):
            self.skipTest("no tmpfs at /dev/shm")
        (self.root / "much.txt").write_text((self.root / "data.txt").read_text() * 300)
        child = subprocess.Popen([self.program, "evaluate", "--model", "model", "--data", "much.txt", "--memory", "128MiB", "--threads", "1"],
                                 cwd=self.root, env={**environment(self.root), "TMPDIR": "/dev/shm"}, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
        seen = []
        while child.poll() is None:
            for name in os.listdir(f"/proc/{child.pid}/fd") if child.poll() is None else []:
                path = f"/proc/{child.pid}/fd/{name}"
                try:
                    if os.readlink(path).endswith("(deleted)"):
                        seen.append(os.stat(path))
                except OSError:  # it was closed in the meantime
                    continue
            time.sleep(0.005)
        errors = child.stderr.read().decode()
        child.stderr.close()
        if os.stat("/var/tmp").st_dev == os.stat("/dev/shm").st_dev:
            self.skipTest("every place for temporary files is in memory")
        self.assertEqual(child.returncode, 0, errors)
        self.assertTrue(seen)
        for status in seen:
            self.assertNotEqual(status.st_dev, os.stat("/dev/shm").st_dev)
            self.assertEqual(status.st_mode & 0o777, 0o600)
            self.assertEqual(status.st_nlink, 0)


if __name__ == "__main__":
    unittest.main()
