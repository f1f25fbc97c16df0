"""--optim and --optim-args: settings and refusals, bytes of states, runs that resume bitwise, other precisions."""

import json
import math
import unittest

from program import ProgramTest, read_safetensors

MOMENTUM = ["--optim", "sgd", "--optim-args", "momentum=0.9"]
STEADY = ["--lr-scheduler-type", "constant", "--learning-rate", "0.05", "--weight-decay", "0.01"]


class OptimizerTest(ProgramTest):
    def weights(self, run):
        return (self.root / run / "model.safetensors").read_bytes()

    def losses(self, run):
        rows = map(json.loads, (self.root / run / "metrics.jsonl").read_text().splitlines())
        return [row["loss"] for row in rows if "loss" in row]

    def plan(self, *more):
        return json.loads(self.call("plan", "--model", "model", "--memory", "64MiB", "--threads", 1, "--json", *more).stdout)

    def test_what_it_does_not_know_is_refused(self):
        self.assert_refused(self.train_arguments("out", "--optim", "sgdd"), 2, "--optim 'sgdd' is not known", "one of adamw, sgd")
        self.assert_refused(self.train_arguments("out", "--optim", "sgd", "--optim-args", "beta1=0.5"), 2,
                            "--optim-args beta1: sgd has no such argument", "momentum=0 (", "nesterov=false (")
        self.assert_refused(self.train_arguments("out", "--optim-args", "beta1=1.5"), 2, "'1.5' is no legal value", "beta1 takes 0 <= v < 1")
        self.assert_refused(self.train_arguments("out", "--optim-args", "beta1=0.8", "--adam-beta1", "0.7"), 2, "--adam-beta1 set the same")
        self.assert_refused(self.train_arguments("out", "--optim", "sgd", "--optim-args", "nesterov=true"), 2, "without momentum")

    def test_states_take_the_bytes_of_the_optimizer(self):
        plain, momentum, adamw = self.plan("--optim", "sgd"), self.plan(*MOMENTUM), self.plan()
        parameters = sum(math.prod(tensor["shape"]) for name, tensor in read_safetensors(self.root / "model" / "model.safetensors")[0].items()
                         if name != "__metadata__")
        self.assertEqual(plain["breakdown"]["optimizer"], 0)
        self.assertEqual(momentum["breakdown"]["optimizer"], 4 * parameters)
        self.assertEqual(adamw["breakdown"]["optimizer"], 8 * parameters)

    def test_an_argument_is_the_option_of_its_own(self):
        self.train("by-option", "--max-steps", 3, "--adam-beta1", "0.8")
        self.train("by-argument", "--max-steps", 3, "--optim-args", "beta1=0.8")
        self.train("usual", "--max-steps", 3)
        self.assertEqual(self.weights("by-option"), self.weights("by-argument"))
        self.assertNotEqual(self.weights("by-option"), self.weights("usual"))

    def test_a_run_resumes_bitwise(self):
        for name, options in (("momentum", MOMENTUM), ("plain", ["--optim", "sgd"])):
            for precision in ("32-true", "bf16-mixed", "bf16-true"):
                with self.subTest(optimizer=name, precision=precision):
                    more = [*options, *STEADY, "--precision", precision]
                    whole, parts = f"whole-{name}-{precision}", f"parts-{name}-{precision}"
                    self.train(whole, *more, "--max-steps", 4)
                    self.train(parts, *more, "--max-steps", 2)
                    self.train(parts, *more, "--max-steps", 4, "--resume-from-checkpoint", "true")
                    self.assertEqual(self.weights(whole), self.weights(parts))
                    first, *_, last = self.losses(whole)
                    self.assertLess(last, first)

    def test_a_run_does_not_go_on_with_states_of_another(self):
        self.train("other", "--max-steps", 1)
        self.assert_refused(self.train_arguments("other", *MOMENTUM, "--max-steps", 2, "--resume-from-checkpoint", "true"), 2,
                            "momentum_buffer' is missing", "resume with the optimizer that wrote it")


if __name__ == "__main__":
    unittest.main()
