"""--disk-memory of evaluate and generate: weights that do not fit are on disk, the result is the plain one, and the peak is as planned."""

import json
import re
import resource
import unittest

from program import CONFIG, DiskTest, environment
import child_peak

GENERATE = ["generate", "--model", "wide", "--threads", "1", "--prompt", "the quick brown fox", "--max-new-tokens", "6", "--temperature", "1", "--seed", "3", "--json"]
EVALUATE = ["evaluate", "--model", "wide", "--threads", "1", "--data", "data.txt", "--max-seq-length", "32", "--json"]


class InferenceDisk(DiskTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wide = {**CONFIG, "vocab_size": 2048, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 4}
        (cls.root / "wide.json").write_text(json.dumps(wide))
        made = cls.call("init", "--config", "wide.json", "--tokenizer", "bytes", "--output-dir", "wide")
        assert made.returncode == 0, made.stderr

    def least(self, *arguments):
        """The least --memory that works, read from a refusal."""
        done = self.assert_refused([*arguments, "--memory", "1MiB"], 3, "does not fit")
        return int(re.search(r"give --memory (\d+) or more", done.stderr)[1])

    def result(self, *arguments, memory):
        """(stdout, notes, peak bytes of the process) of a run that succeeds and leaves nothing on disk."""
        code, peak, text, notes = child_peak.run([self.program, *arguments, "--memory", memory], cwd=self.root, env=environment(self.root))
        self.assertEqual(code, 0, notes)
        self.assertEqual(list(self.scratch.iterdir()), [])
        return text, notes, peak

    def test_the_least_budget_gives_the_plain_result_within_the_plan(self):
        for command in (GENERATE, EVALUATE):
            for precision in ("32-true", "bf16-true", "16-true"):
                with self.subTest(f"{command[0]} {precision}"):
                    plain = [*command, "--precision", precision]
                    below = [*plain, *self.disk()]
                    expected = self.result(*plain, memory="1GiB")[0]
                    least = self.least(*below)
                    self.assertLess(least, self.least(*plain))
                    found, notes, peak = self.result(*below, memory=least)
                    if command is GENERATE:
                        self.assertEqual(found, expected)
                    else:  # fewer sequences at once: the same losses in another order
                        self.assertAlmostEqual(json.loads(found)["loss"], json.loads(expected)["loss"], delta=1e-12)
                    self.assertLessEqual(peak, least)
                    self.assertRegex(notes, r"(?m)^offload-parameters disk(:\d+)?, prefetch (off|1): [\d.]+ MiB of weights; predicted [\d.e-]+ s for")
                    self.assert_refused([*below, "--memory", str(least - 1)], 3, f"give --memory {least} or more")

    def test_no_more_waits_there_than_must(self):
        plain = self.least(*GENERATE)
        notes = self.result(*GENERATE, *self.disk(), memory=plain)[1]
        self.assertNotIn("offload-parameters", notes)
        expected = self.result(*GENERATE, memory=plain)[0]
        found, notes, _ = self.result(*GENERATE, *self.disk(), memory=plain - (6 << 20))
        self.assertEqual(found, expected)
        self.assertRegex(notes, r"offload-parameters disk:[2-5],")

    def test_the_remedy_names_the_disk_that_it_takes(self):
        for command in (GENERATE, EVALUATE):
            memory = self.least(*command) - (6 << 20)
            done = self.assert_refused([*command, "--memory", memory], 3, "--disk-memory DIR:")
            size = int(re.search(r"--disk-memory DIR:(\d+) would need", done.stderr)[1])
            self.result(*command, *self.disk(size), memory=memory)
            done = self.assert_refused([*command, "--memory", "1MiB"], 3, "--disk-memory DIR:")
            least, size = re.search(r"or: --memory (\d+) with --disk-memory DIR:(\d+)", done.stderr).groups()
            self.result(*command, *self.disk(size), memory=least)
            self.assert_refused([*command, *self.disk(int(size) - 1), "--memory", least], 3, f"--disk-memory DIR:{size} or more")

    def test_pins_are_honoured(self):
        for command, layers, words, depth in ((GENERATE, "4", "disk:4", "off"), (GENERATE, "disk:999", "disk:6", "3"), (EVALUATE, "on", "disk", "2")):
            pins = ["--technique", f"offload-parameters={layers}", "--technique", f"prefetch={depth}"]
            found, notes, _ = self.result(*command, *self.disk(), *pins, memory="1GiB")
            self.assertIn(f"offload-parameters {words}, prefetch {depth}:", notes)
            self.assertEqual(found, self.result(*command, memory="1GiB")[0])
        least = self.least(*GENERATE, *self.disk(), "--technique", "offload-parameters=off")
        self.assertEqual(least, self.least(*GENERATE))

    def test_values_that_will_not_do(self):
        for command in (GENERATE, EVALUATE):
            for value, part in (("nowhere:1GiB", "nowhere"), ("wide.json:1GiB", "wide.json"), ("/proc/self:1GiB", "/proc/self"), ("scratch", "DIR:SIZE"), (":1GiB", "DIR:SIZE"),
                                ("scratch:", "DIR:SIZE"), ("scratch:12", "12GiB"), ("scratch:much", "much"), ("scratch:-1GiB", "-1GiB")):
                with self.subTest(value):
                    self.assert_refused([*command, "--memory", "1GiB", "--disk-memory", value, "--technique", "offload-parameters=on"], 2, part)
            self.assert_refused([*command, "--host-memory", "1GiB"], 2, "--host-memory")
            for value in ("offload-parameters", "offload-parameters=", "offload-parameters=0", "offload-parameters=-1", "offload-parameters=1.5", "offload-parameters=host", "offload-parameters=disk:0",
                          "offload-parameters=99999999999999999999", "prefetch=65", "recompute=on", "offload-optimizer=on", "nonsense=on"):
                with self.subTest(value):
                    self.assert_refused([*command, *self.disk(), "--memory", "1GiB", "--technique", value], 2, value.split("=")[0])
            self.assert_refused([*command, "--memory", "1GiB", "--technique", "offload-parameters=on"], 2, "--disk-memory DIR:BYTES")

    def test_a_disk_that_is_full_ends_it_in_words(self):
        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        for command in (GENERATE, EVALUATE):
            done = self.call(*command, *self.disk(), "--memory", "1GiB", "--technique", "offload-parameters=on", preexec_fn=full)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, r"(?m)^error: [^\n]*scratch[^\n]*\n  \S")
            self.assertEqual(list(self.scratch.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
