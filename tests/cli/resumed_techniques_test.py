"""A resumed run repeats each technique of its checkpoint, except where its options name another setting."""

import json
import unittest

from program import CONFIG, ProgramTest

# Two micro-batches a step; what the planner would not choose for them.
FIRST = ("--micro-batch-size", "2", "--technique", "chunked-loss=16", "--technique", "sequence-chunks=2", "--technique", "compress-gradients=bf16",
         "--technique", "compress-activations=int8")
RECORDED = {"micro-batch": "2", "chunked-loss": "16", "sequence-chunks": "2", "compress-gradients": "bf16", "compress-activations": "int8"}


class ResumedTechniques(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = cls.call(*cls.train_arguments("first", *FIRST, "--max-steps", "4", "--save-steps", "2"))
        assert done.returncode == 0, done.stderr

    def resume(self, output, *more):
        return self.train(output, "--max-steps", "4", "--resume-from-checkpoint", "first/checkpoint-2", *more)

    def used(self, output):
        """The settings of the plan that a run used, of those in RECORDED."""
        told = json.loads((self.root / output / "plan.json").read_text())["techniques"]
        return {each["name"]: each["value"] for each in told if each["name"] in RECORDED}

    def losses(self, output):
        rows = map(json.loads, (self.root / output / "metrics.jsonl").read_text().splitlines())
        return {row["step"]: (row["loss"], row["grad_norm"]) for row in rows if "loss" in row and row["step"] > 2}

    def test_the_same_micro_batch_continues_bitwise(self):
        for i, options in enumerate(((), ("--micro-batch-size", "2"), ("--technique", "micro-batch=2"))):
            with self.subTest(options=options):
                self.resume(f"same{i}", *options)
                self.assertEqual(self.used(f"same{i}"), RECORDED)
                self.assertEqual(self.losses(f"same{i}"), self.losses("first"))

    def test_an_option_replaces_what_it_names_and_nothing_else(self):
        for i, (options, named) in enumerate(((("--micro-batch-size", "1"), {"micro-batch": "1"}),
                                              (("--micro-batch-size", "4"), {"micro-batch": "4"}),
                                              (("--technique", "chunked-loss=8"), {"chunked-loss": "8"}),
                                              (("--technique", "compress-activations=off"), {"compress-activations": "off"}),
                                              (("--technique", "sequence-chunks=off", "--micro-batch-size", "1"), {"sequence-chunks": "off", "micro-batch": "1"}))):
            with self.subTest(options=options):
                self.resume(f"named{i}", *options)
                self.assertEqual(self.used(f"named{i}"), {**RECORDED, **named})
                for step, (loss, _) in self.losses("first").items():
                    self.assertAlmostEqual(self.losses(f"named{i}")[step][0], loss, delta=0.01)

    def test_on_and_permission_leave_the_recorded_setting(self):
        self.resume("open", "--allow", "lossy", "--technique", "chunked-loss=on", "--technique", "sequence-chunks=on", "--technique", "micro-batch=on")
        self.assertEqual(self.used("open"), RECORDED)
        self.assertEqual(self.losses("open"), self.losses("first"))

    def test_sizes_that_do_not_fit_are_chosen_anew_and_the_rest_is_kept(self):
        (self.root / "wide.json").write_text(json.dumps({**CONFIG, "hidden_size": 64, "intermediate_size": 512}))
        self.assertEqual(self.call("init", "--config", "wide.json", "--tokenizer", "bytes", "--output-dir", "wide").returncode, 0)
        batch, int8 = ("--global-batch-size", "64", "--max-seq-length", "64"), ("--technique", "compress-activations=int8")
        self.train("large", *batch, *int8, "--micro-batch-size", "64", "--technique", "chunked-loss=off", "--max-steps", "2", "--save-steps", "2", model="wide")
        planned = self.call("plan", "--model", "wide", "--memory", "128MiB", "--threads", "1", *batch, *int8, "--json")
        least = json.loads(planned.stdout)["minimum_bytes"]
        for output, options, sizes in (("small", (), "micro-batch and chunk sizes"), ("named", ("--micro-batch-size", "1", "--technique", "chunked-loss=on"), "")):
            with self.subTest(output):
                done = self.train(output, *batch, "--max-steps", "4", "--resume-from-checkpoint", "large/checkpoint-2", "--memory", least, *options, model="wide")
                self.assertEqual("sizes do not fit" in done.stderr, bool(sizes), done.stderr)
                self.assertIn(sizes, done.stderr)
                self.assertEqual(self.used(output)["compress-activations"], "int8")
                self.assertLess(int(self.used(output)["micro-batch"]), 64)


if __name__ == "__main__":
    unittest.main()
