"""`plan --measure`: runs the best plans on this machine, for any model and techniques, and leaves no files."""

import json
import shlex
import unittest

from program import CONFIG, DiskTest

OPTIONS = ["--threads", "1", "--max-seq-length", "32", "--global-batch-size", "4", "--memory", "200MiB"]
BERT = {"model_type": "bert", "vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": 40, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0}
CONFIGS = {"llama": CONFIG, "wide": {**CONFIG, "vocab_size": 2000, "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 6}, "masked": {**BERT, "architectures": ["BertForMaskedLM"]},
           "classes": {**BERT, "architectures": ["BertForSequenceClassification"], "id2label": {"0": "bad", "1": "good"}},
           "last": {**BERT, "architectures": ["GPTNeoXForSequenceClassification"], "model_type": "gpt_neox", "id2label": {"0": "bad", "1": "good"}}}


class PlanMeasure(DiskTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, config in CONFIGS.items():
            (cls.root / f"{name}.json").write_text(json.dumps(config))

    def measure(self, model, *more):
        before = self.files()
        done = self.call("plan", "--model", f"{model}.json", *OPTIONS, *more, "--measure", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.files(), before, "nothing is written")
        answer = json.loads(done.stdout)
        self.assertEqual(done.stderr.count("predicted"), len(answer["plans"]))
        return answer

    def test_the_best_plans_are_run(self):
        answer = self.measure("wide")
        plans = answer["plans"]
        self.assertEqual(len(plans), 3)
        self.assertEqual(plans[answer["chosen"]]["measured_step_seconds"], min(plan["measured_step_seconds"] for plan in plans))
        for plan, before in zip(plans, [None] + plans):
            self.assertGreater(plan["measured_step_seconds"], 0)
            if before:
                self.assertLess(plan["peak_bytes"], before["peak_bytes"])
                self.assertGreaterEqual(plan["predicted_step_seconds"], before["predicted_step_seconds"])
            planned = json.loads(self.call(*shlex.split(plan["command"])[1:], "--json").stdout)
            self.assertEqual((planned["peak_bytes"], planned["predicted_step_seconds"]), (plan["peak_bytes"], plan["predicted_step_seconds"]))
            values = {technique["name"]: technique["value"] for technique in planned["techniques"]}
            self.assertEqual({name: values[name] for name in plan["choices"]}, plan["choices"])

    def test_every_kind_of_run(self):
        for model, *more in (["masked"], ["classes"], ["last"], ["llama", "--precision", "bf16-mixed"], ["llama", "--precision", "16-mixed"], ["llama", "--precision", "bf16-true", "--lora-r", "2"],
                             ["llama", "--optim", "adafactor", "--freeze", "layers.0"], ["llama", "--packing"], ["llama", "--group-by-length"],
                             ["llama", *self.disk(), "--technique", "offload-optimizer=disk", "--technique", "offload-parameters=disk"], ["llama", "--micro-batch-size", "3", "--max-grad-norm", "0"]):
            with self.subTest(model=model, more=more):
                self.assertGreater(self.measure(model, *more)["plans"][0]["measured_step_seconds"], 0)

    def test_people_see_which_is_fastest(self):
        done = self.call("plan", "--model", "wide.json", *OPTIONS, "--measure", "--quiet")
        text = done.stdout
        self.assertEqual(done.stderr, "")
        self.assertEqual(sum(line.startswith("> ") for line in text.splitlines()), 1)
        self.assertEqual(text.count("headroom plan --model wide.json"), 3)

    def test_what_cannot_be_run_is_refused(self):
        self.assert_refused(["plan", "--model", "llama.json", *OPTIONS, "--device", "null", "--measure"], 2, "null device", "--device cpu")
        self.assert_refused(["plan", "--model", "llama.json", *OPTIONS, "--memory", "900TiB", "--measure"], 3, "900 TiB", "--force")
        self.assert_refused(["plan", "--model", "llama.json", *OPTIONS, "--memory", "2MiB", "--measure"], 3, "minimum_bytes")


if __name__ == "__main__":
    unittest.main()
