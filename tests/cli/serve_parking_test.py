"""serve --admission balanced: sequences are parked in memory and on disk, and give the text that each gives alone."""

import json
import re
import shutil
import tempfile
import unittest

from program import ProgramTest
from served import Server

SIZES = ["--max-model-len", "64", "--max-num-seqs", "8", "--max-num-batched-tokens", "32", "--block-size", "4",
         "--threads", "1", "--admission", "balanced"]
END = 257


class Running(Server):
    """A server with the smallest pool plus 16 KiB."""

    def __init__(self, test, *more):
        refused = test.call("plan", "--serve", "--model", "model", "--memory", "1MiB", *SIZES, *more)
        memory = int(re.search(r"(?:minimum_bytes|the least is) (\d+)", refused.stderr)[1]) + (16 << 10)
        super().__init__(test.program, "model", test.home, "--memory", str(memory), "--quiet", *SIZES, *more, cwd=test.root)
        test.addCleanup(self.stop)

    def complete(self, prompts, bias):
        status, text = self.post("/v1/completions", prompt=prompts, max_tokens=50, temperature=0, logit_bias={str(END): bias}, return_token_ids=True)
        assert status == 200, text
        return [choice["token_ids"] for choice in json.loads(text)["choices"]]


class ServeParking(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = tempfile.mkdtemp(prefix="headroom-cli-")  # outside the root, where no file may appear
        cls.addClassCleanup(shutil.rmtree, cls.home, True)

    def serve(self, *more):
        server = Running(self, *more)
        for i in range(10):
            server.complete([[i, 2, 3, j] for j in range(4)], 100)  # answers without a token: the server learns that
        prompts = [[60 + i, 7, 9, 11, 13] for i in range(8)]
        together = server.complete(prompts, -100)
        metrics = server.metrics()
        self.assertEqual(together, [server.complete([prompt], -100)[0] for prompt in prompts])
        self.assertGreater(metrics["vllm:num_preemptions_total"], 0)
        self.assertEqual(metrics["vllm:num_preemptions_total"], metrics["headroom_resumes_total"])
        self.assertGreater(metrics["headroom_park_written_bytes_total"], 0)
        self.assertGreater(metrics["headroom_park_blocks"], 0)
        self.assertEqual(metrics["headroom_sequences_parked"] + metrics["headroom_park_blocks_used"], 0)
        self.assertLessEqual(metrics["headroom_process_peak_bytes"], metrics["headroom_budget_bytes"])
        server.stop()
        self.assertEqual(server.process.returncode, 0)
        return server, metrics

    def test_in_memory(self):
        server, metrics = self.serve()
        self.assertIn("admission balanced", server.printed)
        self.assertGreater(metrics['headroom_region_bytes{region="park"}'], 0)

    def test_on_disk(self):
        before = sorted(self.root.iterdir())
        server, metrics = self.serve("--disk-memory", f"{self.root}:4MiB", "--park-memory", "2MiB")
        self.assertIn(f"of a file in {self.root}", server.printed)
        self.assertNotIn('headroom_region_bytes{region="park"}', metrics)
        self.assertEqual(sorted(self.root.iterdir()), before)

    def test_a_place_that_is_no_disk_is_refused_before_the_socket_is_open(self):
        done = self.call("serve", "--model", "model", "--memory", "128MiB", "--port", "0", *SIZES, "--disk-memory",
                         "/dev/shm:4MiB")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is in memory", done.stderr)
        self.assertNotIn("listening", done.stdout)


if __name__ == "__main__":
    unittest.main()
