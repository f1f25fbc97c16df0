"""Gradients kept in bf16: planned bytes, losses close to the plain run's, resuming, other techniques beside it, refusals."""

import json
import unittest

from program import CONFIG, DiskTest, ProgramTest

ON = ("--technique", "compress-gradients=bf16")
TWO = ("--micro-batch-size", "2")  # of the four rows of a step
WIDE = {**CONFIG, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4}
LAYER = (256 * 256, 128 * 256, 128 * 256, 256 * 256, 1024 * 256, 1024 * 256, 256 * 1024)  # elements of its matrices


class Runs:
    def steps(self, output, *more):
        self.train(output, "--learning-rate", "1e-2", "--lr-scheduler-type", "constant", *more)
        rows = map(json.loads, (self.root / output / "metrics.jsonl").read_text().splitlines())
        return [(row["step"], row["loss"], row["grad_norm"]) for row in rows if "loss" in row]

    def weights(self, output):
        return (self.root / output / "model.safetensors").read_bytes()

    def plan(self, *more):
        (self.root / "wide.json").write_text(json.dumps(WIDE))
        done = self.call("plan", "--model", "wide.json", "--memory", "1GiB", "--threads", "1", "--max-seq-length", "32",
                         "--global-batch-size", "4", "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @staticmethod
    def told(plan):
        return next(each for each in plan["techniques"] if each["name"] == "compress-gradients")


class CompressGradients(Runs, ProgramTest):
    def test_the_plan_has_two_bytes_for_each_element_of_the_layers(self):
        kept = ("--technique", "recompute=off")
        for micro_batch in ("1", "4"):
            for precision in ("32-true", "bf16-true"):
                with self.subTest(micro_batch=micro_batch, precision=precision):
                    options = (*kept, "--micro-batch-size", micro_batch, "--precision", precision)
                    plain, narrow = self.plan(*options), self.plan(*options, *ON)
                    gradients = [{t["name"]: t["bytes"] for t in plan["tensors"] if t["name"].startswith("gradient of ")} for plan in (plain, narrow)]
                    layers = [{name: size for name, size in each.items() if "proj" in name} for each in gradients]
                    self.assertEqual(sum(layers[0].values()), 4 * 4 * sum(LAYER))
                    self.assertEqual({name: size / 2 for name, size in layers[0].items()}, layers[1])
                    for name in gradients[0].keys() - layers[0].keys():  # vectors, and the embedding
                        self.assertEqual(gradients[0][name], gradients[1][name], name)
                    saved = plain["arena_bytes"] - narrow["arena_bytes"]
                    self.assertLessEqual(saved, 2 * 4 * sum(LAYER))
                    self.assertGreaterEqual(saved, 2 * 4 * sum(LAYER) - 4 * max(LAYER))
                    self.assertEqual((self.told(narrow)["value"], self.told(narrow)["kind"]), ("bf16", "lossy"))
                    self.assertGreater(self.told(narrow)["saves_bytes"], 0)

    def test_it_saves_nothing_where_updates_run_in_the_backward_pass(self):
        options = ("--max-grad-norm", "0", "--micro-batch-size", "4")
        plain, narrow = self.plan(*options), self.plan(*options, *ON)
        self.assertEqual((narrow["arena_bytes"], self.told(narrow)["value"]), (plain["arena_bytes"], "off"))
        self.assertIn("saves nothing", self.told(narrow)["why"])
        self.assertEqual(self.steps("fused", *options), self.steps("fused-on", *options, *ON))

    def test_permission_lowers_the_least_budget_and_asks_for_nothing(self):
        plain, allowed = self.plan(), self.plan("--allow", "compress-gradients")
        self.assertEqual(self.told(plain)["value"], "off")
        self.assertIn("used only when named", self.told(plain)["why"])
        self.assertEqual((self.told(allowed)["value"], allowed["predicted_step_seconds"]), ("off", plain["predicted_step_seconds"]))
        self.assertLess(allowed["minimum_bytes"], plain["minimum_bytes"])
        tight = self.plan("--allow", "lossy", "--memory", allowed["minimum_bytes"])
        self.assertEqual(self.told(tight)["value"], "bf16")

    def test_the_first_loss_is_the_same_and_the_others_are_close(self):
        """A gradient of n micro-batches is rounded n times by at most 2^-9 of its sum so far; the losses of six steps of Adam differ less
        than 0.01 from those of about 5.5 to 3."""
        for i, options in enumerate(((*TWO, "--lora-r", "4"), (*TWO, "--precision", "bf16-mixed"), (*TWO, "--precision", "16-mixed"),
                                     (*TWO, "--precision", "bf16-true"), ("--micro-batch-size", "1"), ("--micro-batch-size", "4"), TWO)):
            with self.subTest(options=options):
                plain, narrow = (self.steps(run, "--max-steps", "6", *options, *more) for run, more in ((f"plain{i}", ()), (f"narrow{i}", ON)))
                self.assertEqual(plain[0][1], narrow[0][1])
                self.assertNotEqual(plain[1:], narrow[1:])
                self.assertAlmostEqual(narrow[0][2] / plain[0][2], 1, delta=2 ** -7)
                for (_, loss, _), (_, close, _) in zip(plain, narrow):
                    self.assertAlmostEqual(loss, close, delta=0.01)
        self.assertLess(narrow[-1][1], narrow[0][1])

    def test_losses_do_not_depend_on_how_the_step_is_computed(self):
        plain = self.steps("whole", *TWO, *ON)
        for i, options in enumerate((("--technique", "recompute=on"), ("--technique", "recompute=drop-cheap"), ())):
            with self.subTest(options=options):
                self.assertEqual(self.steps(f"run{i}", *TWO, *ON, *options), plain)
                self.assertEqual(self.weights(f"run{i}"), self.weights("whole"))

    def test_every_access_is_inside_what_was_planned(self):
        for options in (TWO, ("--micro-batch-size", "4"), (*TWO, "--technique", "sequence-chunks=2"), (*TWO, "--lora-r", "4")):
            with self.subTest(options=options):
                done = self.call("plan", "--model", "model", "--memory", "128MiB", "--threads", "1", "--max-seq-length", "32", "--global-batch-size", "4",
                                 "--device", "null", *ON, *options)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, r"at (\d+) of \1")

    def test_a_resumed_run_is_the_whole_one(self):
        options = ("--save-steps", "2", "--max-steps")
        whole = self.steps("whole-run", *TWO, *ON, *options, "4")
        self.steps("half", *TWO, *ON, *options, "2")
        self.assertEqual(self.steps("half", *TWO, *ON, *options, "4", "--resume-from-checkpoint", "true")[-2:], whole[2:])
        self.assertEqual(self.weights("half"), self.weights("whole-run"))
        recorded = self.steps("recorded", *options, "4", "--resume-from-checkpoint", "half/checkpoint-2")  # both as the checkpoint says
        self.assertEqual(recorded[-2:], whole[2:])

    def test_other_settings_are_refused(self):
        for setting in ("int8", "on", "fp16"):
            with self.subTest(setting=setting):
                self.assert_refused(self.train_arguments("out", "--technique", f"compress-gradients={setting}"), 2, "compress-gradients", "bf16")


class BelowTheDevice(Runs, DiskTest):
    def test_gradients_on_disk_are_the_same_and_half_as_large(self):
        below = ("--technique", "offload-gradients=disk", *self.disk())
        for rows in ("2", "4"):
            with self.subTest(micro_batch=rows):
                options = (*ON, "--micro-batch-size", rows)
                self.assertEqual(self.steps(f"below{rows}", *options, *below), self.steps(f"beside{rows}", *options))
                self.assertEqual(self.weights(f"below{rows}"), self.weights(f"beside{rows}"))
        wide, narrow = (self.plan(*TWO, *below, *more)["disk_arena_bytes"] for more in ((), ON))
        self.assertEqual(wide - narrow, 2 * 4 * sum(LAYER))


if __name__ == "__main__":
    unittest.main()
