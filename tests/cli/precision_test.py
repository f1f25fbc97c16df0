"""Weights in bf16 and adapters, through the program: what is written, resumed bitwise, evaluated, generated from."""

import json
import shutil
import unittest

from program import ProgramTest, read_safetensors


class Precision(ProgramTest):
    def run_of(self, out, *more):
        self.train(out, "--learning-rate", "1e-2", "--lr-scheduler-type", "constant", "--quiet", *more)
        return self.root / out

    def result(self, *arguments):
        done = self.call(*arguments, "--memory", "128MiB", "--threads", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def losses(self, out):
        rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return [row["loss"] for row in rows if "loss" in row]

    def resumed(self, name, file, *options):
        """A run of six steps, and one that stops after three and goes on: the same bytes."""
        whole = self.run_of(f"{name}-whole", "--max-steps", "6", "--save-steps", "3", *options)
        half = self.root / f"{name}-half"
        shutil.copytree(whole, half)
        shutil.rmtree(half / "checkpoint-6")
        (half / file).unlink()
        self.run_of(half.name, "--max-steps", "6", "--save-steps", "3", "--resume-from-checkpoint", "true", *options)
        self.assertEqual((whole / file).read_bytes(), (half / file).read_bytes())
        self.assertEqual((whole / "checkpoint-6/optimizer.safetensors").read_bytes(),
                         (half / "checkpoint-6/optimizer.safetensors").read_bytes())
        self.assertEqual(self.losses(whole), self.losses(half))
        return whole

    def test_bf16_true_is_written_in_bf16_and_resumed_bitwise(self):
        out = self.resumed("true", "model.safetensors", "--precision", "bf16-true")
        for path in (out / "model.safetensors", out / "checkpoint-6/model.safetensors"):
            header, _ = read_safetensors(path)
            self.assertEqual({entry["dtype"] for name, entry in header.items() if name != "__metadata__"}, {"BF16"})
        config = json.loads((out / "config.json").read_text())
        self.assertIn("bfloat16", (config.get("dtype"), config.get("torch_dtype")))
        header, _ = read_safetensors(out / "checkpoint-6/optimizer.safetensors")
        self.assertEqual({entry["dtype"] for name, entry in header.items() if name != "__metadata__"}, {"F32"})
        evaluated = self.result("evaluate", "--model", out.name, "--data", "data.txt", "--precision", "bf16-true")
        self.assertLess(evaluated["loss"], self.losses(out)[0])
        generated = self.result("generate", "--model", out.name, "--prompt", "the", "--max-new-tokens", "3", "--temperature", "0",
                                "--precision", "bf16-true")
        self.assertEqual(len(generated["ids"]), 3)

    def test_adapters_with_dropout_are_resumed_bitwise_and_applied(self):
        out = self.resumed("lora", "adapter_model.safetensors", "--precision", "bf16-true", "--lora-r", "4", "--lora-dropout", "0.2")
        self.assertEqual(json.loads((out / "adapter_config.json").read_text())["lora_dropout"], 0.2)
        evaluate = ("evaluate", "--data", "data.txt", "--precision", "bf16-true")
        base = self.result(*evaluate, "--model", "model")
        named = self.result(*evaluate, "--model", "model", "--adapter", out.name)
        self.assertLess(named["loss"], base["loss"])
        self.assertEqual(self.result(*evaluate, "--model", out.name), named)
        generate = ("generate", "--prompt", "the", "--max-new-tokens", "3", "--temperature", "0")
        self.assertEqual(self.result(*generate, "--model", out.name), self.result(*generate, "--model", "model", "--adapter", out.name))

    def test_what_an_adapter_cannot_be_is_refused(self):
        out = self.run_of("adapter", "--max-steps", "1", "--lora-r", "2")
        config = json.loads((out / "adapter_config.json").read_text())
        for key, value in (("use_dora", True), ("peft_type", "LOHA"), ("rank_pattern", {"q_proj": 1})):
            with self.subTest(key=key):
                (out / "adapter_config.json").write_text(json.dumps({**config, key: value}))
                for command in (["evaluate", "--data", "data.txt"], ["generate", "--prompt", "a"]):
                    self.assert_refused([*command, "--model", "model", "--adapter", "adapter", "--memory", "128MiB"], 2, key)
        (out / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": "org/nowhere"}))
        self.assert_refused(["generate", "--model", "adapter", "--memory", "128MiB"], 2, "org/nowhere", "--adapter")

    def test_a_ratio_of_rates_needs_adapters(self):
        self.assert_refused(self.train_arguments("ratio", "--optim-args", "loraplus_lr_ratio=4"), 2, "loraplus_lr_ratio=4", "--lora-r")
        self.train("ratio", "--lora-r", "2", "--optim-args", "loraplus_lr_ratio=4")

    def test_precisions_that_are_not_built_are_refused(self):
        for command in (["evaluate", "--data", "data.txt"], ["generate"]):
            self.assert_refused([*command, "--model", "model", "--memory", "128MiB", "--precision", "16-true"], 2, "16-true")


if __name__ == "__main__":
    unittest.main()
