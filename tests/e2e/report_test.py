"""Reports, `watch` and TensorBoard event files of a run, checked from the outside."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
import unittest
import xml.dom.minidom
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from program import ProgramTest, environment  # noqa: E402


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(raw):
    """The records of an event file, checksums verified."""
    at = 0
    while at < len(raw):
        head = raw[at : at + 8]
        size, check = struct.unpack("<QI", raw[at : at + 12])
        data = raw[at + 12 : at + 12 + size]
        assert masked(head) == check and struct.unpack("<I", raw[at + 12 + size : at + 16 + size])[0] == masked(data)
        yield data
        at += 16 + size


def fields(data):
    """[(number, value)] of a protocol buffer message."""
    at, out = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            out.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        out.append((key >> 3, data[at : at + size]))
        at += size
    return out


def scalars(raw):
    """[(step, tag, value)] of an event file."""
    out = []
    for record in records(raw):
        event = fields(record)
        step = dict(event).get(2, 0)
        for _, summary in (field for field in event if field[0] == 5):
            for _, value in fields(summary):
                parts = dict(fields(value))
                out.append((step, parts[1].decode(), struct.unpack("<f", parts[2])[0]))
    return out


class Report(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        arguments = cls.train_arguments("run", "--eval-data", "data.txt", "--report-to", "tensorboard", "--max-steps", 4, "--save-steps", 2)
        done = cls.call(*arguments)
        assert done.returncode == 0, done.stderr
        cls.run_directory = cls.root / "run"
        cls.rows = [json.loads(line) for line in (cls.run_directory / "metrics.jsonl").read_text().splitlines()]

    def test_the_page(self):
        done = self.call("report", "run", "-o", "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.root / "page.html").read_text()
        xml.dom.minidom.parseString(page.replace("<!doctype html>", ""))
        for part in ("Finished after step 4", "Memory of a step", "The peak", "Loss", "Techniques", "What another budget would give",
                     "gradient of model.layers.*.mlp.up_proj.weight", "measured: resident set"):
            self.assertIn(part, page)
        self.assertNotIn("<script", page)
        self.assertLess(len(page), 400_000)
        self.assertEqual(self.call("report", "run", "-o", "-").stdout, page)

    def test_the_files_agree(self):
        plan, memory, measured, run = (json.loads((self.run_directory / name).read_text()) for name in ("plan.json", "memory.json", "measured.json", "run.json"))
        peak = dict(zip(memory["classes"], memory["peak"]["bytes"]))
        # For so small a model, the plan's peak is loading and not the step.
        self.assertLessEqual(sum(peak.values()), plan["lower_bound_bytes"])
        self.assertEqual(sum(peak.values()), max(sum(point[3:]) for point in memory["points"]))
        for name, size in peak.items():
            if name != "alignment":
                self.assertEqual(sum(group["bytes"] for group in memory["groups"] if group["class"] == name), size, name)
        self.assertEqual(len(memory["points"]), len(measured["points"]))
        self.assertLessEqual(max(point[1] for point in measured["points"]), plan["peak_bytes"])
        self.assertGreater(sum(point[2] for point in measured["points"]), 0)
        self.assertEqual((run["steps"], run["total_steps"], run["stopped_by"]), (4, 4, 0))
        seconds = [point["step_seconds"] for point in memory["frontier"]]
        self.assertEqual(seconds, sorted(seconds, reverse=True))
        recorded = [row["resident_bytes"] for row in self.rows if "loss" in row] + [point[1] for point in measured["points"]]
        self.assertLessEqual(max(recorded), run["process_peak_rss_bytes"])
        self.assertLessEqual(run["process_peak_rss_bytes"], plan["peak_bytes"])

    def test_the_event_file(self):
        (file,) = (self.run_directory / "runs").iterdir()
        raw = file.read_bytes()
        self.assertEqual(dict(fields(next(records(raw))))[3], b"brain.Event:2")
        seen = scalars(raw)
        for name in ("loss", "grad_norm", "learning_rate", "tokens_per_second"):
            got = [(step, value) for step, tag, value in seen if tag == "train/" + name]
            self.assertEqual([step for step, _ in got], [1, 2, 3, 4])
            for (_, value), row in zip(got, (row for row in self.rows if "loss" in row)):
                self.assertAlmostEqual(value / max(1e-12, row[name]), 1, places=2)
        self.assertEqual([step for step, tag, _ in seen if tag == "eval/loss"], [2, 4])

    def test_refusals(self):
        self.assert_refused(["report", "nothing", "-o", "page2.html"], 2, "nothing", "plan.json")
        self.assert_refused(["report", "model", "-o", "page2.html"], 2, "model", "holds no run")
        self.assert_refused(["report"], 2, "directory")
        self.assert_refused(["report", "run", "-o", "run/plan.json"], 2, "plan.json", "belongs to the run")
        self.assert_refused(["report", "run", "-o", "absent/page.html"], 1, "absent/page.html")
        self.assert_refused(["watch", "data.txt"], 2, "data.txt", "not a directory")
        self.assert_refused(self.train_arguments("out", "--report-to", "paper"), 2, "--report-to", "paper")
        broken = self.root / "broken"
        broken.mkdir()
        for name in ("plan.json", "memory.json", "metrics.jsonl"):
            (broken / name).write_bytes((self.run_directory / name).read_bytes())
        (broken / "memory.json").write_text((broken / "memory.json").read_text()[:500])
        self.assert_refused(["report", "broken", "-o", "page2.html"], 2, "broken/memory.json", "at byte 500")
        (broken / "memory.json").unlink()
        (broken / "metrics.jsonl").write_text('{"step": 1}\n')
        self.assert_refused(["report", "broken", "-o", "page2.html"], 2, "broken/metrics.jsonl:1", "loss")

    def test_watch_a_finished_run(self):
        done = self.call("watch", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\n"), 1)
        self.assertIn("step 4/4", done.stdout)
        self.assertIn("finished after step 4", done.stdout)

    def watch(self, name):
        return subprocess.Popen([self.program, "watch", name], cwd=self.root, env=environment(self.root), stdout=subprocess.PIPE, text=True)

    def start(self, name):
        return subprocess.Popen([self.program, *self.train_arguments(name, "--max-steps", 1_000_000)], cwd=self.root, env=environment(self.root),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_for_steps(self, name):
        deadline = time.monotonic() + 120
        while not ((self.root / name / "metrics.jsonl").exists() and (self.root / name / "metrics.jsonl").stat().st_size > 0):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_watch_a_run_that_is_killed(self):
        watcher = self.watch("killed")
        self.assertIn("waiting: no run in killed yet", watcher.stdout.readline())
        trainer = self.start("killed")
        self.wait_for_steps("killed")
        line = ""
        while "running" not in line:
            line = watcher.stdout.readline()
            self.assertTrue(line, "the watcher left before it saw a step")
        trainer.kill()
        trainer.wait()
        rest, _ = watcher.communicate(timeout=120)
        self.assertIn(f"died: process {trainer.pid} is gone", rest)
        self.assertEqual(watcher.returncode, 1)
        self.assertIn("Not finished", self.call("report", "killed", "-o", "-").stdout)

    def test_watch_a_run_that_is_stopped(self):
        trainer = self.start("stopped")
        self.wait_for_steps("stopped")
        watcher = self.watch("stopped")
        watcher.stdout.readline()
        trainer.send_signal(signal.SIGTERM)
        self.assertEqual(trainer.wait(120), 143)
        rest, _ = watcher.communicate(timeout=120)
        self.assertIn("stopped by signal 15", rest)
        self.assertEqual(watcher.returncode, 0)

    def test_leave_by_interrupt(self):
        watcher = self.watch("never-begun")
        watcher.stdout.readline()
        watcher.send_signal(signal.SIGINT)
        self.assertEqual(watcher.wait(60), 130)
        watcher.stdout.close()
        self.assertFalse((self.root / "never-begun").exists())


if __name__ == "__main__":
    unittest.main()
