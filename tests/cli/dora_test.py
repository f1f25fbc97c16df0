"""DoRA through the program: PEFT's names and shapes, bytes planned, resumed bitwise, applied, merged, trained further."""

import json
import re
import shutil
import unittest

from program import CONFIG, ProgramTest, read_safetensors

LENGTHS = ".lora_magnitude_vector"


class Dora(ProgramTest):
    def adapted(self, out, *more, model="model"):
        self.train(out, "--learning-rate", "1e-2", "--lora-r", "2", "--use-dora", "--quiet", *more, model=model)
        return self.root / out

    def loss(self, *arguments):
        done = self.call("evaluate", "--data", "data.txt", "--memory", "128MiB", "--threads", "1", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["loss"]

    def plan(self, *more):
        done = self.call("plan", "--model", "model", "--memory", "64MiB", "--threads", 1, "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_files_have_the_names_and_shapes_of_peft(self):
        out = self.adapted("files", "--max-steps", "1")
        header, _ = read_safetensors(out / "adapter_model.safetensors")
        weights = {name.removesuffix(".lora_B.weight"): entry["shape"][0] for name, entry in header.items() if name.endswith("B.weight")}
        lengths = {name.removesuffix(LENGTHS): entry for name, entry in header.items() if name.endswith(LENGTHS)}
        self.assertEqual({name: entry["shape"] for name, entry in lengths.items()}, {name: [rows] for name, rows in weights.items()})
        self.assertEqual({entry["dtype"] for entry in lengths.values()}, {"F32"})
        self.assertTrue(json.loads((out / "adapter_config.json").read_text())["use_dora"])

    def test_magnitudes_their_gradients_and_states_are_planned_to_the_byte(self):
        rows = {"q_proj": CONFIG["hidden_size"], "down_proj": CONFIG["hidden_size"]}
        own = 4 * CONFIG["num_hidden_layers"] * sum(rows.values())
        options = ("--lora-r", "2", "--lora-target-modules", *rows, "--technique", "fused-optimizer=off")
        plain, dora = (self.plan(*options, *more)["breakdown"] for more in ((), ("--use-dora",)))
        self.assertEqual(dora["optimizer"] - plain["optimizer"], 2 * own)
        self.assertEqual(dora["weights"] - plain["weights"], own)

    def test_a_resumed_run_is_the_whole_one_bit_for_bit(self):
        for precision, more in (("32-true", ()), ("bf16-mixed", ("--packing",)), ("bf16-true", ()), ("16-mixed", ()),
                                ("bf16-mixed", ("--technique", "quantize-weights=nf4"))):
            with self.subTest(precision=precision, more=more):
                name = f"{precision}-{len(more)}"
                options = ("--max-steps", "4", "--save-steps", "2", "--precision", precision, *more)
                whole = self.adapted(f"{name}-whole", *options)
                half = self.root / f"{name}-half"
                shutil.copytree(whole, half)
                shutil.rmtree(half / "checkpoint-4")
                (half / "adapter_model.safetensors").unlink()
                self.adapted(half.name, *options, "--resume-from-checkpoint", "true")
                for file in ("adapter_model.safetensors", "checkpoint-4/optimizer.safetensors"):
                    self.assertEqual((whole / file).read_bytes(), (half / file).read_bytes(), file)

    def test_applied_and_merged_it_has_one_loss(self):
        out = self.adapted("tuned", "--max-steps", "6", "--lora-rslora", "true")
        base, tuned = self.loss("--model", "model"), self.loss("--model", "tuned")
        self.assertLess(tuned, base - 0.01)
        self.assertEqual(self.loss("--model", "model", "--adapter", "tuned"), tuned)
        done = self.call("merge", "--model", "model", "--adapter", "tuned", "--output-dir", "merged")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(self.loss("--model", "merged"), tuned, delta=1e-5 * tuned)
        generate = ("generate", "--prompt", "the", "--max-new-tokens", "8", "--temperature", "0", "--memory", "128MiB", "--json")
        for precision in ("32-true", "bf16-true"):
            ids = [json.loads(self.call(*generate, "--model", model, "--precision", precision).stdout)["ids"] for model in (out.name, "merged")]
            self.assertEqual(ids[0], ids[1], precision)

    def test_it_is_trained_further(self):
        self.adapted("first", "--max-steps", "6")
        before = self.loss("--model", "first")
        self.train("further", "--learning-rate", "1e-2", "--adapter", "first", "--max-steps", "6", "--quiet")
        self.assertTrue(json.loads((self.root / "further" / "adapter_config.json").read_text())["use_dora"])
        self.assertLess(self.loss("--model", "further"), before)
        self.train("plain", "--lora-r", "2", "--max-steps", "1", "--quiet")
        self.assert_refused(self.train_arguments("out", "--adapter", "plain", "--use-dora"), 2, "--use-dora", "leave --use-dora out")

    def test_a_run_within_the_least_budget_stays_in_it(self):
        for precision in ("32-true", "bf16-mixed", "bf16-true"):
            with self.subTest(precision=precision):
                options = ("--lora-r", "4", "--use-dora", "--precision", precision)
                done = self.call(*self.train_arguments("out", *options, "--memory", "2MiB"))
                minimum = int(re.search(r"minimum_bytes (\d+)", done.stderr).group(1))
                self.train(f"{precision}-least", *options, "--quiet", "--memory", str(minimum))
                run = json.loads((self.root / f"{precision}-least" / "run.json").read_text())
                self.assertEqual(run["arena_planned_bytes"], run["arena_measured_bytes"])
                self.assertLessEqual(run["process_peak_rss_bytes"], minimum)

    def test_what_it_cannot_be_is_refused(self):
        self.assert_refused(self.train_arguments("out", "--use-dora"), 2, "--use-dora without --lora-r", "add --lora-r 16")
        self.assert_refused(self.train_arguments("out", "--lora-r", "2", "--use-dora", "--lora-dropout", "0.1"), 2, "--lora-dropout 0.1", "leave out")
        self.adapted("served", "--max-steps", "1")
        self.assert_refused(["serve", "--model", "model", "--memory", "128MiB", "--port", "0", "--lora-modules", "a=served"], 2, "use_dora",
                            "headroom merge")


if __name__ == "__main__":
    unittest.main()
