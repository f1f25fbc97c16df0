"""serve --admission balanced: sequences are parked, in memory and on disk, and give the text that each gives alone."""

import http.client
import json
import re
import signal
import subprocess
import unittest

from program import ProgramTest, environment

SIZES = ["--max-model-len", "64", "--max-num-seqs", "8", "--max-num-batched-tokens", "32", "--block-size", "4",
         "--threads", "1", "--admission", "balanced"]
END = 257


class Running:
    """A server with the least pool and 16 KiB."""

    def __init__(self, test, *more):
        refused = test.call("plan", "--serve", "--model", "model", "--memory", "1MiB", *SIZES, *more)
        memory = int(re.search(r"(?:minimum_bytes|the least is) (\d+)", refused.stderr)[1]) + (16 << 10)
        self.process = subprocess.Popen([test.program, "serve", "--model", "model", "--memory", str(memory), "--port", "0",
                                         "--quiet", *SIZES, *more], cwd=test.root, env=environment(test.root),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        self.plan = ""
        for line in self.process.stdout:
            self.plan += line
            if found := re.match(r"listening on http://([\d.]+):(\d+)", line):
                self.address = found[1], int(found[2])
                break
        else:
            raise AssertionError(self.process.stderr.read())
        while self.request("GET", "/health")[0] != 200:
            pass

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection(*self.address, timeout=120)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def complete(self, prompts, bias):
        status, text = self.request("POST", "/v1/completions", {
            "prompt": prompts, "max_tokens": 50, "temperature": 0, "logit_bias": {str(END): bias}, "return_token_ids": True})
        assert status == 200, text
        return [choice["token_ids"] for choice in json.loads(text)["choices"]]

    def metrics(self):
        text = self.request("GET", "/metrics")[1]
        return {name: float(value) for name, value in re.findall(r"^([\w:]+(?:\{.*\})?) (\S+)$", text, re.M)}

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


class ServeParking(ProgramTest):
    def serve(self, *more):
        server = Running(self, *more)
        for i in range(10):
            server.complete([[i, 2, 3, j] for j in range(4)], 100)  # answers of no token: that is learned
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
        server.end()
        self.assertEqual(server.process.returncode, 0)
        return server, metrics

    def test_in_memory(self):
        server, metrics = self.serve()
        self.assertIn("admission balanced", server.plan)
        self.assertGreater(metrics['headroom_region_bytes{region="park"}'], 0)

    def test_on_disk(self):
        before = sorted(self.root.iterdir())
        server, metrics = self.serve("--disk-memory", f"{self.root}:4MiB", "--park-memory", "2MiB")
        self.assertIn(f"of a file in {self.root}", server.plan)
        self.assertNotIn('headroom_region_bytes{region="park"}', metrics)
        self.assertEqual(sorted(self.root.iterdir()), before)

    def test_a_place_that_is_no_disk_is_refused_before_the_socket_is_open(self):
        done = self.call("serve", "--model", "model", "--memory", "128MiB", "--port", "0", *SIZES, "--disk-memory",
                         "/dev/shm:4MiB")
        self.assertEqual(done.returncode, 2)
        self.assertIn("lies in memory", done.stderr)
        self.assertNotIn("listening", done.stdout)


if __name__ == "__main__":
    unittest.main()
