"""plan --serve: regions that add up, the pool's contents, the least budget, refusals."""

import json
import re
import unittest

from program import ProgramTest


class PlanServe(ProgramTest):
    def plan(self, memory, *more):
        done = self.call("plan", "--serve", "--json", "--model", "model", "--memory", memory, "--threads", "1", *more)
        return done, json.loads(done.stdout)

    def test_the_regions_are_the_peak(self):
        for more in ([], ["--kv-cache-dtype", "bf16"], ["--kv-cache-dtype", "int8"], ["--precision", "bf16-true"], ["--max-num-seqs", "3"]):
            done, plan = self.plan("64MiB", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(plan["feasible"])
            self.assertEqual(sum(region["bytes"] for region in plan["regions"]), plan["peak_bytes"])
            self.assertLessEqual(plan["peak_bytes"], 64 << 20)
            self.assertEqual(plan["pool_tokens"], plan["blocks"] * plan["block_size"])
            self.assertEqual(plan["max_model_len"], 64)

    def test_sizes_that_are_asked_for(self):
        _, plan = self.plan("64MiB", "--max-model-len", "32", "--max-num-seqs", "5", "--max-num-batched-tokens", "17",
                            "--block-size", "8")
        sizes = [plan[k] for k in ("max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size")]
        self.assertEqual(sizes, [32, 5, 17, 8])
        self.assertEqual(plan["blocks"], 2 * 5 * 4)

    def test_the_park_area(self):
        _, plain = self.plan("64MiB")
        self.assertEqual((plain["admission"], plain["park_blocks"], plain["park_place"]), ("guaranteed", 0, "none"))
        done, plan = self.plan("64MiB", "--admission", "balanced")
        self.assertEqual((plan["admission"], plan["park_place"]), ("balanced", "memory"), done.stderr)
        self.assertEqual(plan["park_blocks"], 4)  # one sequence of full length
        regions = {region["name"]: region["bytes"] for region in plan["regions"]}
        self.assertEqual(regions["park"], plan["park_bytes"])
        self.assertEqual(sum(regions.values()), plan["peak_bytes"])
        done, plan = self.plan("64MiB", "--admission", "balanced", "--disk-memory", f"{self.root}:2MiB", "--park-memory", "1MiB")
        self.assertEqual((plan["park_place"], plan["park_bytes"]), ("disk", min(1 << 20, 32 * 4 * 4096)), done.stderr)

    def test_the_least_budget_is_exact(self):
        done, refused = self.plan("1MiB")
        self.assertEqual((done.returncode, refused["feasible"]), (3, False))
        least = refused["minimum_bytes"]
        self.assertIn(f"minimum_bytes {least} ", done.stderr)
        self.assertEqual(self.plan(least)[0].returncode, 0)
        self.assertEqual(self.plan(least - 1)[0].returncode, 3)

    def test_the_text_says_what_it_holds(self):
        done = self.call("plan", "--serve", "--model", "model", "--memory", "64MiB", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("kv_pool", "tokens in", "are computed together", "the next GiB would hold"):
            self.assertIn(words, done.stdout)

    def test_a_model_of_16_bits_gets_a_note(self):
        config = json.loads((self.root / "model" / "config.json").read_text())
        for dtype, word in (("bfloat16", "bf16-true"), ("float16", "16-true"), ("float32", None)):
            (self.root / "stored.json").write_text(json.dumps({**config, "torch_dtype": dtype}))
            command = ["plan", "--serve", "--model", "stored.json", "--memory", "64MiB", "--threads", "1"]
            said = self.call(*command).stderr
            self.assertEqual("computed in fp32" in said, word is not None, said)
            if word:
                self.assertIn(f"--precision {word}", said)
                self.assertNotIn("computed in fp32", self.call(*command, "--precision", word).stderr)
                self.assertNotIn("computed in fp32", self.call(*command, "--quiet").stderr)

    def test_the_least_budget_is_that_of_the_server(self):
        options = ["--model", "model", "--memory", "1MiB", "--threads", "1", "--max-model-len", "64"]
        least = [re.search(r"minimum_bytes (\d+)", self.call(*command, *options).stderr)[1] for command in (["plan", "--serve"], ["serve"])]
        self.assertEqual(least[0], least[1])

    def test_a_config_alone_will_do(self):
        done = self.call("plan", "--serve", "--model", "config.json", "--memory", "64MiB")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_shares_of_memory(self):
        command = ["plan", "--serve", "--model", "model", "--gpu-memory-utilization"]
        self.assert_refused([*command, "1.5"], 2, "--gpu-memory-utilization 1.5", "above 0 up to 1")
        self.assertIn("is ignored because --memory is given", self.call(*command, "0.5", "--memory", "64MiB").stderr)

    def test_what_is_refused(self):
        command = ["plan", "--serve", "--model", "model", "--memory", "64MiB"]
        self.assert_refused([*command, "--max-model-len", "65"], 2, "--max-model-len 65", "the model's positions")
        for name in ("fp8", "fp8_e4m3", "fp8_e5m2"):
            self.assert_refused([*command, "--kv-cache-dtype", name], 2, f"--kv-cache-dtype {name}", "use int8")
        self.assert_refused([*command, "--kv-cache-dtype", "int7"], 2, "--kv-cache-dtype int7", "f16 or int8")
        for precision, cache in (("bf16-true", "f16"), ("16-true", "bf16")):
            self.assert_refused([*command, "--precision", precision, "--kv-cache-dtype", cache], 2, f"--kv-cache-dtype {cache}",
                                f"--precision {precision}", "auto, f32")
        self.assert_refused([*command, "--admission", "hopeful"], 2, "--admission hopeful", "guaranteed or balanced")
        self.assert_refused([*command, "--park-memory", "2MiB"], 2, "--park-memory has no meaning", "--admission balanced")
        self.assert_refused([*command, "--precision", "bf16-mixed"], 2, "bf16-mixed", "bf16-true")
        self.assert_refused([*command, "--technique", "recompute=on"], 2, "recompute", "quantize-weights")
        self.assert_refused(["plan", "--serve"], 2, "no model", "--model")

    def test_what_is_lossy_says_so(self):
        command = ["plan", "--serve", "--model", "model", "--memory", "64MiB"]
        self.assertIn("int8 is lossy", self.call(*command, "--kv-cache-dtype", "int8").stdout)
        self.assertNotIn("lossy", self.call(*command).stdout)
        self.assertEqual(self.plan("64MiB", "--kv-cache-dtype", "int8")[1]["kv_cache_dtype"], "int8")


if __name__ == "__main__":
    unittest.main()
