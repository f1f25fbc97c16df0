"""`bench-serve`: loads a headroom server; refusals."""

import json
import socket
import unittest

from program import ProgramTest
from served import Server

KEY = "sk-bench"


class BenchServeTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(cls.program, cls.root / "model", cls.root, "--memory", "64MiB", "--api-key", KEY)
        cls.addClassCleanup(cls.server.stop)

    def bench(self, *arguments, url=None):
        return self.call("bench-serve", "--base-url", url or self.server.url, "--api-key", KEY, "--random-input-len", 6, "--random-output-len", 8, *arguments)

    def test_measures_into_a_table_json_and_a_page(self):
        done = self.bench("--num-prompts", 12, "--max-concurrency", 3, "--ignore-eos", "--pid", self.server.process.pid, "--json", "b.json", "--html", "b.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "", "no progress without a terminal")
        self.assertRegex(done.stdout, r"Successful requests: +12 ")
        found = json.loads((self.root / "b.json").read_text())
        self.assertEqual((found["completed"], found["failed"], found["model_id"]), (12, 0, "model"))
        self.assertEqual(found["total_input_tokens"], 12 * 6, "prompts have the length that was asked for")
        self.assertEqual(found["total_output_tokens"], 12 * 8, "so have answers, whatever the model says")
        self.assertTrue(found["tokens_by_usage"])
        self.assertLessEqual(found["median_ttft_ms"], found["p99_ttft_ms"])
        self.assertGreater(found["memory"]["peak_bytes"], 1 << 20)
        self.assertLessEqual(found["memory"]["peak_bytes"], self.server.peak_bytes() + (1 << 20))
        self.assertIn("</html>", (self.root / "b.html").read_text())

    def test_json_goes_to_stdout_alone(self):
        done = self.bench("--num-prompts", 2, "--json", "-")
        self.assertEqual(json.loads(done.stdout)["completed"], 2)
        self.assertIn("Successful requests", done.stderr)

    def test_prompts_of_a_file(self):
        (self.root / "rows.jsonl").write_text('{"prompt": "the quick", "max_tokens": 3}\n{"prompt": [5, 6, 7], "max_tokens": 1, "seed": 4}\n{"prompt": "x", "max_tokens": 100000}\n')
        done = self.bench("--num-prompts", 6, "--dataset", "rows.jsonl", "--json", "f.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((self.root / "f.json").read_text())
        self.assertEqual((found["completed"], found["failures"]["client_error"]), (4, 2))
        self.assertIn("100000", " ".join(found["failures"]["messages"]), "what the server said is told")

    def test_a_rate_for_a_time(self):
        done = self.bench("--duration", 0.5, "--request-rate", 40, "--json", "r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads((self.root / "r.json").read_text())["completed"], 0)

    def test_refusals(self):
        with socket.socket() as held:  # without a listener
            held.bind(("127.0.0.1", 0))
            free = f"http://127.0.0.1:{held.getsockname()[1]}"
            self.assert_refused(["bench-serve", "--base-url", free], 1, free, "/v1/models")
        self.assert_refused(["bench-serve", "--base-url", self.server.url], 1, "status 401", "--api-key")
        self.assert_refused(["bench-serve", "--base-url", "https://example.com"], 2, "https://example.com", "TLS proxy")
        self.assert_refused(["bench-serve"], 2, "--base-url")
        url = ["bench-serve", "--base-url", self.server.url, "--api-key", KEY]
        self.assert_refused([*url, "--endpoint", "chat"], 1, "status 400", "chat template")
        self.assert_refused([*url, "--endpoint", "talk"], 2, "--endpoint talk")
        self.assert_refused([*url, "--request-rate", "fast"], 2, "--request-rate fast")
        self.assert_refused([*url, "--duration", "5"], 2, "--max-concurrency")
        self.assert_refused([*url, "--dataset", "absent.jsonl"], 2, "absent.jsonl")
        self.assert_refused([*url, "--pid", "999999999"], 2, "999999999")
        self.assert_refused([*url, "--cgroup", "/proc"], 2, "memory.current")
        self.assert_refused([*url, "--model", "other"], 1, "status 404", "other")


if __name__ == "__main__":
    unittest.main()
