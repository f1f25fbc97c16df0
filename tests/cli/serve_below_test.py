"""serve --disk-memory: weights that do not fit are on disk, texts are the plain ones, and peak, disk and copies are as planned."""

import json
import re
import resource
import subprocess
import threading
import unittest
import urllib.request

from program import CONFIG, DiskTest, environment
import served

SIZES = ["--max-model-len", "64", "--max-num-seqs", "4", "--max-num-batched-tokens", "16", "--block-size", "4"]
PROMPTS = [[3 + i, 7, 9, 11, 13] * (1 + 3 * (i % 2)) for i in range(6)]


class ServeBelow(DiskTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        deep = {**CONFIG, "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 40, "num_attention_heads": 4, "num_key_value_heads": 2}
        (cls.root / "deep.json").write_text(json.dumps(deep))
        made = cls.call("init", "--config", "deep.json", "--tokenizer", "bytes", "--output-dir", "deep")
        assert made.returncode == 0, made.stderr

    def plan(self, memory, *more):
        done = self.call("plan", "--serve", "--json", "--model", "deep", "--threads", "1", "--memory", memory, *SIZES, *more)
        return done, json.loads(done.stdout)

    def least(self, *more):
        return self.plan("1MiB", *more)[1]["minimum_bytes"]

    def serve(self, memory, *more):
        server = served.Server(self.program, str(self.root / "deep"), str(self.root), "--memory", str(memory), *SIZES, *more)
        self.addCleanup(lambda: server.process.poll() is None and server.stop())
        return server

    @staticmethod
    def complete(server, prompt):
        body = {"prompt": prompt, "max_tokens": 12, "temperature": 0, "ignore_eos": True, "return_token_ids": True}
        request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["choices"][0]["token_ids"]

    def texts(self, server):
        """The answers to all prompts, sent at once."""
        out = [None] * len(PROMPTS)

        def ask(i):
            out[i] = self.complete(server, PROMPTS[i])
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(PROMPTS))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return out

    @staticmethod
    def metrics(server):
        with urllib.request.urlopen(server.url + "/metrics") as answer:
            return {name: float(value) for name, value in re.findall(r"^([\w:]+(?:\{.*\})?) (\S+)$", answer.read().decode(), re.M)}

    def test_the_least_budget_gives_the_plain_texts_within_the_plan(self):
        for more in ([], ["--precision", "bf16-true", "--kv-cache-dtype", "int8"], ["--precision", "bf16-true", "--admission", "balanced", "--park-memory", "1MiB"]):
            with self.subTest(more):
                plain = [option for option in more if option not in ("--park-memory", "1MiB")]
                resident = self.serve("1GiB", *plain)
                expected = self.texts(resident)
                resident.stop()
                below = [*more, *self.disk()]
                least = self.least(*below)
                self.assertLess(least, self.least(*plain))
                plan = self.plan(least, *below)[1]
                server = self.serve(least, *below)
                self.assertEqual(self.texts(server), expected)
                metrics = self.metrics(server)
                self.assertEqual(metrics["headroom_planned_peak_bytes"], least)
                self.assertLessEqual(metrics["headroom_process_peak_bytes"], least)
                self.assertLessEqual(server.peak_bytes(), least)
                self.assertLessEqual(metrics["headroom_arena_measured_bytes"], metrics["headroom_arena_planned_bytes"])
                self.assertEqual(metrics["headroom_disk_planned_bytes"], plan["disk_bytes"])
                self.assertEqual(metrics["headroom_disk_budget_bytes"], 1 << 30)
                regions = {region["name"]: region["bytes"] for region in plan["regions"]}
                self.assertEqual({name: metrics[f'headroom_region_bytes{{region="{name}"}}'] for name in regions}, regions)
                self.assertGreater(regions["windows"], 0)
                self.assertEqual(metrics["headroom_weight_read_bytes_total"], metrics["headroom_steps_total"] * plan["step_weight_bytes"])
                self.assertEqual(metrics["headroom_step_weight_bytes"], plan["step_weight_bytes"])
                self.assertIn("offload-parameters disk", server.stop())
                self.assertEqual(list(self.scratch.iterdir()), [])

    def test_the_plan_says_what_is_copied(self):
        memory = self.least() - (4 << 20)
        done = self.call("plan", "--serve", "--model", "deep", "--threads", "1", "--memory", memory, *SIZES, *self.disk())
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("  windows ", "  on disk ", "  weights below ", "  copied by a step ", "offload-parameters disk"):
            self.assertIn(words, done.stdout)
        plan = self.plan(memory, *self.disk())[1]
        self.assertRegex(plan["techniques"]["offload-parameters"], r"disk(:\d+)?$")
        self.assertEqual(sum(region["bytes"] for region in plan["regions"]), plan["peak_bytes"])
        resident = self.plan("1GiB", *self.disk())[1]
        self.assertEqual((resident["disk_bytes"], resident["weights_below_bytes"], resident["techniques"]), (0, 0, {}))

    def test_the_refusal_names_the_way_out(self):
        command = ["serve", "--model", "deep", "--threads", "1", "--port", "0", *SIZES]
        memory = self.least() - (4 << 20)
        done = self.assert_refused([*command, "--memory", memory], 3, "weights below: --disk-memory DIR:")
        size = int(re.search(r"--disk-memory DIR:(\d+) would need", done.stderr)[1])
        self.assertEqual(self.plan(memory, *self.disk(size))[1]["feasible"], True)
        self.assert_refused([*command, "--memory", memory, *self.disk(size - 1)], 3, f"--disk-memory DIR:{size} or more")
        done = self.assert_refused([*command, "--memory", "1MiB"], 3, "with --disk-memory DIR:")
        least, size = re.search(r"--memory (\d+) with --disk-memory DIR:(\d+)", done.stderr).groups()
        self.assertEqual(self.plan(least, *self.disk(size))[1]["feasible"], True)
        self.assert_refused([*command, "--memory", memory, *self.disk(), "--technique", "offload-parameters=off"], 3, "does not fit")

    def test_a_disk_that_will_not_do_is_refused_before_the_socket_is_open(self):
        command = ["serve", "--model", "deep", "--threads", "1", "--port", "0", "--memory", "1GiB", "--technique", "offload-parameters=on", *SIZES]

        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        done = subprocess.run([self.program, *command, *self.disk()], cwd=self.root, env=environment(self.root), preexec_fn=full, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertNotIn("listening", done.stdout)
        self.assertIn("scratch", done.stderr)
        self.assertNotIn("listening", self.assert_refused([*command, "--disk-memory", "/dev/shm:1GiB"], 2, "is in memory").stdout)
        self.assert_refused(command, 2, "--disk-memory DIR:BYTES")
        self.assert_refused([*command, *self.disk(), "--technique", "offload-optimizer=on"], 2, "offload-optimizer")


if __name__ == "__main__":
    unittest.main()
