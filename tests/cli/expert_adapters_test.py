"""Adapters of experts and routers through the program: PEFT's names and shapes, resumed bitwise, applied, merged."""

import json
import re
import shutil
import unittest

from program import CONFIG, ProgramTest, read_safetensors

MIXTRAL = {**CONFIG, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
QWEN = {**CONFIG, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": 3, "num_experts_per_tok": 2,
        "moe_intermediate_size": 24, "mlp_only_layers": [1], "norm_topk_prob": True, "head_dim": 8}
FAMILIES = {"mixtral": MIXTRAL, "qwen3_moe": QWEN}
MODULE = "base_model.model.model.layers.0.mlp."


class ExpertAdapters(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, config in FAMILIES.items():
            (cls.root / f"{name}.json").write_text(json.dumps(config))
            made = cls.call("init", "--config", f"{name}.json", "--tokenizer", "bytes", "--output-dir", name)
            assert made.returncode == 0, made.stderr

    def adapted(self, family, out, *more):
        self.train(out, "--learning-rate", "1e-2", "--lora-r", "2", "--quiet", *more, model=family)
        return self.root / out

    def loss(self, *arguments):
        done = self.call("evaluate", "--data", "data.txt", "--memory", "128MiB", "--threads", "1", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["loss"]

    def test_files_have_the_names_and_shapes_of_peft(self):
        for family, experts, width in (("mixtral", 4, 32), ("qwen3_moe", 3, 24)):
            with self.subTest(family=family):
                out = self.adapted(family, f"{family}-files", "--max-steps", "1")
                header, _ = read_safetensors(out / "adapter_model.safetensors")
                shapes = {name.removeprefix(MODULE): entry["shape"] for name, entry in header.items() if name.startswith(MODULE)}
                self.assertEqual(shapes, {
                    "experts.base_layer.lora_A.weight": [experts * 4, 16], "experts.base_layer.lora_B.weight": [2 * width, 4 * experts],
                    "experts.lora_A.weight": [experts * 2, width], "experts.lora_B.weight": [16, 2 * experts],
                    "gate.lora_A.weight": [2, 16], "gate.lora_B.weight": [experts, 2]})
                config = json.loads((out / "adapter_config.json").read_text())
                self.assertEqual(config["target_modules"], ["k_proj", "o_proj", "q_proj", "v_proj"])
                self.assertEqual(config["target_parameters"], ["mlp.experts.down_proj", "mlp.experts.gate_up_proj", "mlp.gate.weight"])
                self.assertEqual((config["rank_pattern"], config["alpha_pattern"]),
                                 ({".*\\.gate_up_proj": 4}, {".*\\.gate_up_proj": 16}))

    def test_a_resumed_run_is_the_whole_one_bit_for_bit(self):
        for family, precision in (("mixtral", "bf16-true"), ("qwen3_moe", "bf16-mixed"), ("qwen3_moe", "16-mixed")):
            with self.subTest(family=family, precision=precision):
                options = ("--max-steps", "4", "--save-steps", "2", "--precision", precision)
                whole = self.adapted(family, f"{family}-{precision}-whole", *options)
                half = self.root / f"{family}-{precision}-half"
                shutil.copytree(whole, half)
                shutil.rmtree(half / "checkpoint-4")
                (half / "adapter_model.safetensors").unlink()
                self.adapted(family, half.name, *options, "--resume-from-checkpoint", "true")
                for file in ("adapter_model.safetensors", "checkpoint-4/optimizer.safetensors"):
                    self.assertEqual((whole / file).read_bytes(), (half / file).read_bytes(), file)

    def test_applied_and_merged_it_has_one_loss(self):
        for family in FAMILIES:
            with self.subTest(family=family):
                out = self.adapted(family, f"{family}-tuned", "--max-steps", "5", "--lora-rslora", "true")
                base, tuned = self.loss("--model", family), self.loss("--model", out.name)
                self.assertLess(tuned, base - 0.01)
                self.assertEqual(self.loss("--model", family, "--adapter", out.name), tuned)
                done = self.call("merge", "--model", family, "--adapter", out.name, "--output-dir", f"{family}-merged")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertAlmostEqual(self.loss("--model", f"{family}-merged"), tuned, delta=1e-5 * tuned)
                generate = ("generate", "--prompt", "the", "--max-new-tokens", "5", "--temperature", "0", "--memory", "128MiB", "--json")
                ids = [json.loads(self.call(*generate, "--model", model).stdout)["ids"] for model in (out.name, f"{family}-merged")]
                self.assertEqual(ids[0], ids[1])

    def test_a_run_within_the_least_budget_stays_in_it(self):
        for family, precision in (("mixtral", "32-true"), ("qwen3_moe", "bf16-mixed"), ("qwen3_moe", "bf16-true"), ("mixtral", "16-mixed"), ("mixtral", "16-true")):
            with self.subTest(family=family, precision=precision):
                options = ("--lora-r", "4", "--precision", precision)
                done = self.call(*self.train_arguments("out", *options, "--memory", "2MiB", model=family))
                minimum = int(re.search(r"minimum_bytes (\d+)", done.stderr).group(1))
                out = self.adapted(family, f"{family}-{precision}-least", *options, "--memory", str(minimum))
                run = json.loads((out / "run.json").read_text())
                self.assertEqual(run["arena_planned_bytes"], run["arena_measured_bytes"])
                self.assertLessEqual(run["process_peak_rss_bytes"], minimum)

    def test_what_peft_refuses_is_refused(self):
        for targets, part, remedy in ((("gate_proj",), "without the other half", "experts.gate_up_proj"),
                                      (("experts", "--lora-dropout", "0.1"), "--lora-dropout 0.1 before", "q_proj k_proj"),
                                      (("experts.1",), "matches no linear layer", "gate_up_proj")):
            with self.subTest(targets=targets):
                self.assert_refused(self.train_arguments("out", "--lora-r", "2", "--lora-target-modules", *targets, model="qwen3_moe"),
                                    2, part, remedy)


if __name__ == "__main__":
    unittest.main()
