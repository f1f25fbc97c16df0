"""16-bit weights, fp16's loss scale and adapters through the command line: files, bitwise resuming, evaluation, generation."""

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

    def steps(self, out):
        rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return [row for row in rows if "loss" in row]

    def losses(self, out):
        return [row["loss"] for row in self.steps(out)]

    def resumed(self, name, file, *options):
        """A run of six steps, and one that stops after three and resumes, give the same bytes."""
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

    def dtypes(self, file):
        header, _ = read_safetensors(file)
        return {entry["dtype"] for name, entry in header.items() if name != "__metadata__"}

    def test_true_precisions_are_written_as_they_are_and_resumed_bitwise(self):
        for precision, stored, dtype in (("bf16-true", "BF16", "bfloat16"), ("16-true", "F16", "float16")):
            with self.subTest(precision=precision):
                out = self.resumed(precision, "model.safetensors", "--precision", precision)
                for path in (out / "model.safetensors", out / "checkpoint-6/model.safetensors"):
                    self.assertEqual(self.dtypes(path), {stored})
                config = json.loads((out / "config.json").read_text())
                self.assertIn(dtype, (config.get("dtype"), config.get("torch_dtype")))
                self.assertEqual(self.dtypes(out / "checkpoint-6/optimizer.safetensors"), {"F32"})
                evaluated = self.result("evaluate", "--model", out.name, "--data", "data.txt", "--precision", precision)
                self.assertLess(evaluated["loss"], self.losses(out)[0])
                generated = self.result("generate", "--model", out.name, "--prompt", "the", "--max-new-tokens", "3",
                                        "--temperature", "0", "--precision", precision)
                self.assertEqual(len(generated["ids"]), 3)

    def test_a_moving_scale_is_resumed_bitwise(self):
        """Steps are skipped, and the scale falls and grows again; the checkpoint is in the middle of a window."""
        out = self.resumed("scaled", "model.safetensors", "--precision", "16-mixed", "--fp16-initial-scale-power", "32",
                           "--fp16-loss-scale-window", "2", "--save-dtype", "float16")
        self.assertEqual(self.dtypes(out / "model.safetensors"), {"F16"})
        self.assertEqual(self.dtypes(out / "checkpoint-6/model.safetensors"), {"F32"})
        state = json.loads((out / "checkpoint-3/state.json").read_text())["loss_scale"]
        rows = self.steps(out)
        self.assertEqual(rows[0]["loss_scale"], 2 ** 32)
        self.assertTrue(rows[0]["skipped"])
        self.assertEqual(state["scale"], rows[3]["loss_scale"])
        self.assertEqual(state["skipped"], sum(row["skipped"] for row in rows[:3]))
        half = self.steps(self.root / "scaled-half")
        self.assertEqual([(row["loss_scale"], row["skipped"]) for row in rows], [(row["loss_scale"], row["skipped"]) for row in half])

    def test_an_overflow_skips_halves_and_the_scale_grows_again(self):
        common = ("--precision", "16-mixed", "--max-steps", "30", "--fp16-initial-scale-power", "32", "--fp16-loss-scale-window", "4")
        rows = self.steps(self.run_of("torch", *common))
        scale, good = 2 ** 32, 0
        for row in rows:  # torch.amp.GradScaler
            self.assertEqual(row["loss_scale"], scale)
            if row["skipped"]:
                scale, good = scale / 2, 0
            elif (good := good + 1) == 4:
                scale, good = scale * 2, 0
        self.assertTrue(rows[0]["skipped"])
        self.assertTrue(any(row["loss_scale"] > before["loss_scale"] for before, row in zip(rows, rows[1:])))
        first = next(i for i, row in enumerate(rows) if not row["skipped"])
        self.assertEqual({row["skipped"] for row in rows[:first]}, {True})
        self.assertLess(rows[-1]["loss"], rows[0]["loss"])
        self.assertLess(rows[first]["grad_norm"], 1000)  # unscaled
        forgiving = self.steps(self.run_of("deepspeed", *common, "--fp16-preset", "deepspeed"))
        self.assertEqual([row["loss_scale"] for row in forgiving[:3]], [2 ** 32, 2 ** 32, 2 ** 31])  # the first overflow is forgiven

    def test_a_skipped_step_leaves_weights_on_disk_as_they_are(self):
        """Windows of narrow copies are not loaded for an update, so a skipped one writes them too."""
        for optimizer in ("adamw", "adafactor", "muon"):
            common = ("--precision", "16-mixed", "--max-steps", "14", "--fp16-initial-scale-power", "32", "--micro-batch-size", "1",
                      "--global-batch-size", "16", "--optim", optimizer)  # as many micro-batches make copies worth their bytes
            scratch = self.root / f"scratch-{optimizer}"
            scratch.mkdir()
            rows = self.steps(self.run_of(f"memory-{optimizer}", *common))
            on_disk = self.steps(self.run_of(f"disk-{optimizer}", *common, "--disk-memory", f"{scratch}:64MiB",
                                             "--technique", "offload-parameters=on"))
            self.assertTrue(rows[0]["skipped"])
            self.assertFalse(rows[-1]["skipped"])
            self.assertEqual([row["loss"] for row in on_disk], [row["loss"] for row in rows], optimizer)

    def test_a_scale_that_stays_and_one_at_its_least(self):
        rows = self.steps(self.run_of("static", "--precision", "16-true", "--max-steps", "3", "--fp16-loss-scale", "128"))
        self.assertEqual([(row["loss_scale"], row["skipped"]) for row in rows], [(128, False)] * 3)
        done = self.call(*self.train_arguments("least", "--max-steps", "3", "--precision", "16-mixed", "--fp16-initial-scale-power",
                                               "32", "--fp16-min-loss-scale", "4294967296"))
        self.assertEqual(done.returncode, 1)
        for word in ("step 1", "loss scale of 4294967296", "bf16-mixed"):
            self.assertIn(word, done.stderr)

    def test_contradictions_are_refused_in_words(self):
        train = ["plan", "--model", "model", "--memory", "128MiB"]
        self.assert_refused([*train, "--fp16-loss-scale", "8"], 2, "--fp16-loss-scale", "--precision 16-mixed")
        self.assert_refused([*train, "--precision", "16-true", "--technique", "fp16-mixed=on"], 2, "fp16-mixed")
        self.assert_refused([*train, "--precision", "16-mixed", "--technique", "fused-optimizer=on", "--max-grad-norm", "0"], 2,
                            "fused-optimizer", "non-finite")
        self.assert_refused([*train, "--precision", "16-mixed", "--fp16-preset", "apex"], 2, "--fp16-preset")

    def test_the_plan_says_what_fp16_costs(self):
        for precision, words in (("16-mixed", ("converted to fp32", "loss is scaled", "more memory than fp32")),
                                 ("16-true", ("converted to fp32", "NaN"))):
            done = self.call("plan", "--model", "model", "--memory", "128MiB", "--global-batch-size", "1", "--max-seq-length", "16",
                             "--precision", precision, "--threads", "1", "--explain")
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in words:
                self.assertIn(word, " ".join(done.stdout.split()), precision)

    def test_evaluate_takes_the_mixed_precision(self):
        wide = self.result("evaluate", "--model", "model", "--data", "data.txt")
        for precision in ("16-mixed", "16-true"):
            narrow = self.result("evaluate", "--model", "model", "--data", "data.txt", "--precision", precision)
            self.assertLess(abs(narrow["loss"] - wide["loss"]), 0.01)

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

    def test_compressed_activations_are_resumed_bitwise(self):
        options = ("--technique", "recompute=drop-cheap", "--technique", "compress-activations=int8")
        out = self.resumed("compressed", "model.safetensors", *options)
        self.assertEqual(json.loads((out / "plan.json").read_text())["compress_activations"], "int8")
        plain = self.run_of("uncompressed", "--max-steps", "6", *options[:2])
        self.assertEqual(self.losses(out)[0], self.losses(plain)[0])
        self.assertNotEqual(self.losses(out)[1:], self.losses(plain)[1:])

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
        self.assert_refused(["generate", "--model", "model", "--memory", "128MiB", "--precision", "16-mixed"], 2, "16-mixed", "16-true")
        for command in (["evaluate", "--data", "data.txt"], ["generate"]):
            self.assert_refused([*command, "--model", "model", "--memory", "128MiB", "--precision", "8-true"], 2, "8-true")


if __name__ == "__main__":
    unittest.main()
