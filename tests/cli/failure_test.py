"""Exit codes 1, 130 and 143: after failures and signals during a run, its checkpoint resumes bitwise."""

import json
import os
import resource
import signal
import subprocess
import time
import unittest

from program import ProgramTest, environment


class Failure(ProgramTest):
    def rows(self, name):
        return [json.loads(line) for line in (self.root / name / "metrics.jsonl").read_text().splitlines()]

    def model(self, name):
        return (self.root / name / "model.safetensors").read_bytes()

    def assert_same_run(self, name, reference):
        self.assertEqual(self.model(name), self.model(reference))
        measured = ("second", "resident")  # differ between runs
        timeless = lambda rows: [{k: v for k, v in row.items() if not any(word in k for word in measured)} for row in rows]
        self.assertEqual(timeless(self.rows(name)), timeless(self.rows(reference)))

    def start(self, output, *more):
        """A long run in the background, once it has logged a few steps."""
        process = subprocess.Popen([self.program, *self.train_arguments(output, "--max-steps", "100000", "--lr-scheduler-type", "constant", *more)], cwd=self.root,
                                   env=environment(self.root), stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.wait(process, lambda: (self.root / output / "metrics.jsonl").exists() and len(self.rows_so_far(output)) >= 3)
        return process

    def rows_so_far(self, output):
        return (self.root / output / "metrics.jsonl").read_text().splitlines()

    def wait(self, process, condition):
        deadline = time.monotonic() + 120
        while not condition():
            self.assertIsNone(process.poll(), "the run ended early")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def finish_like_the_uninterrupted(self, output):
        """Resumes for two steps, bitwise equal to an uninterrupted run of as many steps."""
        steps = str(self.rows(output)[-1]["step"] + 2)
        common = ["--max-steps", steps, "--lr-scheduler-type", "constant"]
        resumed = self.train(output, "--resume-from-checkpoint", "true", *common)
        self.assertRegex(resumed.stderr, rf"resuming {output}/checkpoint-\d+ after step {int(steps) - 2} of {steps}")
        self.train(output + "-whole", *common)
        self.assert_same_run(output, output + "-whole")

    def test_signals_save_and_resume(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(signal=number):
                output = f"signal-{code}"
                process = self.start(output)
                process.send_signal(number)
                errors = process.communicate(timeout=120)[1]
                self.assertEqual(process.returncode, code, errors)
                last = self.rows(output)[-1]["step"]
                self.assertTrue((self.root / output / f"checkpoint-{last}/state.json").exists())
                self.finish_like_the_uninterrupted(output)

    def test_a_burst_of_one_signal_is_one_request(self):
        process = self.start("burst")
        for _ in range(3):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        errors = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 143, errors)
        last = self.rows("burst")[-1]["step"]
        self.assertTrue((self.root / f"burst/checkpoint-{last}/state.json").exists())
        self.assertTrue((self.root / "burst/run.json").exists())

    def test_usr1_saves_and_goes_on(self):
        process = self.start("usr1")
        process.send_signal(signal.SIGUSR1)
        self.wait(process, lambda: any((path / "state.json").exists() for path in (self.root / "usr1").glob("checkpoint-*[0-9]")))
        steps = len(self.rows_so_far("usr1"))
        self.wait(process, lambda: len(self.rows_so_far("usr1")) > steps + 3)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143)

    def into_a_closed_pipe(self, arguments, *streams):
        """Exit code of the program when these streams are pipes without a reader."""
        read_end, write_end = os.pipe()
        os.close(read_end)
        files = {name: write_end if name in streams else subprocess.DEVNULL for name in ("stdout", "stderr")}
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.root, env=environment(self.root), timeout=300, **files)
        os.close(write_end)
        return done.returncode

    def test_nobody_reads(self):
        plan = ["plan", "--model", "model", "--threads", "1", "--memory"]
        self.assertEqual(self.into_a_closed_pipe([*plan, "64MiB"], "stdout", "stderr"), 1)
        self.assertEqual(self.into_a_closed_pipe([*plan, "12"], "stdout", "stderr"), 2)
        self.assertEqual(self.into_a_closed_pipe([*plan, "2MiB"], "stderr"), 3)
        self.assertEqual(self.into_a_closed_pipe(self.train_arguments("unread"), "stderr"), 0)
        self.assertTrue((self.root / "unread/model.safetensors").exists())
        quiet = subprocess.run(f"{self.program} plan --model model --threads 1 --memory 64MiB | true", shell=True, cwd=self.root, env=environment(self.root),
                               stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(quiet.stderr, "")

    def test_a_run_without_a_checkpoint_starts_anew(self):
        process = self.start("early")
        process.kill()
        process.communicate()
        self.assert_refused(self.train_arguments("early"), 2, "early", "another run")
        done = self.train("early", "--resume-from-checkpoint", "true")
        self.assertIn("step 0", done.stderr)
        self.train("early-whole")
        self.assert_same_run("early", "early-whole")

    def test_divergence(self):
        done = self.call(*self.train_arguments("nan", "--learning-rate", "1e3", "--max-grad-norm", "0", "--max-steps", "60", "--save-steps", "1", "--save-total-limit", "2"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"error: step \d+: loss .*\n  lower --learning-rate")
        self.assertFalse((self.root / "nan/model.safetensors").exists())

    def limited(self, size):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        return limit

    def test_a_full_disk_during_save_keeps_the_previous_checkpoint(self):
        self.train("full", "--max-steps", "2")
        weights = os.path.getsize(self.root / "full/checkpoint-2/model.safetensors")
        before = {path.name: path.read_bytes() for path in (self.root / "full/checkpoint-2").iterdir()}
        # The weights fit, but the optimizer's states do not.
        done = self.call(*self.train_arguments("full", "--max-steps", "4", "--resume-from-checkpoint", "true"), preexec_fn=self.limited(weights + 4096))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"error: .*optimizer.safetensors.*\n  \S")
        self.assertEqual({path.name: path.read_bytes() for path in (self.root / "full/checkpoint-2").iterdir()}, before)
        self.assertEqual(sorted(path.name for path in (self.root / "full").glob("checkpoint-*")), ["checkpoint-2"])
        self.train("full", "--max-steps", "4", "--resume-from-checkpoint", "true", "--lr-scheduler-type", "constant")

    def test_a_full_disk_during_init(self):
        done = self.call("init", "--config", "config.json", "--output-dir", "no-room", preexec_fn=self.limited(4096))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertFalse((self.root / "no-room").exists())

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.program, "plan", "--model", "model", "--memory", "128MiB", "--threads", "1", "--json"], cwd=self.root, env=environment(self.root), stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assert_refused(["plan", "--model", "model", "--memory", "128MiB", "--threads", "1", "--emit-text", "/dev/full"], 1, "cannot write /dev/full")


if __name__ == "__main__":
    unittest.main()
