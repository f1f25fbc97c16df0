"""--optim and --optim-args: settings and refusals, bytes of states, runs that resume bitwise, other precisions."""

import json
import math
import re
import unittest

from program import CONFIG, DiskTest, ProgramTest, read_safetensors


def squares_of_rows_and_columns(shape):
    return 4 * sum(shape)


def moments(shape, states, least=4096):
    """Codes and a magnitude per block of 256, except for small weights and the embeddings, which are also the head."""
    elements = math.prod(shape)
    narrow = elements >= least and shape[0] != CONFIG["vocab_size"]
    return states * (elements + 4 * -(-elements // 256) if narrow else 4 * elements)


# Each optimizer's options, and the bytes of its states per parameter, or for a tensor of a shape.
OPTIMIZERS = {
    "sgd": ([], 0),
    "momentum": (["--optim", "sgd", "--optim-args", "momentum=0.9"], 4),
    "nesterov": (["--optim", "sgd", "--optim-args", "momentum=0.9,nesterov=true"], 4),
    "adam": (["--learning-rate", "1e-3"], 8),
    "adamw": (["--learning-rate", "1e-3"], 8),
    "rmsprop": (["--learning-rate", "1e-3"], 4),
    "rmsprop-centered": (["--optim", "rmsprop", "--optim-args", "centered=true,momentum=0.5", "--learning-rate", "1e-3"], 12),
    "adagrad": ([], 4),
    "lion_32bit": (["--learning-rate", "3e-4"], 4),
    "sophia": (["--learning-rate", "3e-4"], 8),
    "sophia-often": (["--optim", "sophia", "--optim-args", "interval=3,rho=100", "--learning-rate", "0.01"], 8),
    "adamw_bnb_8bit": (["--learning-rate", "1e-3"], lambda shape: moments(shape, 2)),
    "lion_8bit": (["--learning-rate", "3e-4"], lambda shape: moments(shape, 1)),
    "all-in-8-bits": (["--optim", "paged_adamw_8bit", "--optim-args", "min_8bit_size=1", "--learning-rate", "1e-3"],
                      lambda shape: moments(shape, 2, 1)),
    "muon": (["--learning-rate", "1e-3"], lambda shape: math.prod(shape) * (8 if len(shape) < 2 or shape[0] == CONFIG["vocab_size"] else 4)),
    "adafactor": (["--learning-rate", "5e-3"], squares_of_rows_and_columns),
    "adafactor-moment": (["--optim", "adafactor", "--optim-args", "beta1=0.9,scale_parameter=true"],
                         lambda shape: squares_of_rows_and_columns(shape) + 4 * math.prod(shape)),
}
MOMENTUM = ["--optim", "sgd", "--optim-args", "momentum=0.9"]
STEADY = ["--lr-scheduler-type", "constant", "--learning-rate", "0.05", "--weight-decay", "0.01"]  # a later option overrides


def arguments(name):
    options = OPTIMIZERS[name][0] if name in OPTIMIZERS else ["--learning-rate", "1e-3"]
    return options if "--optim" in options else ["--optim", name, *options]


def every_optimizer(test):
    """The cases above, and the other optimizers that the program knows, with their usual settings."""
    refusal = test.call(*test.train_arguments("out", "--optim", "?")).stderr
    known = " ".join(refusal.split("one of ", 1)[1].split())
    names = re.sub(r" \([^)]*\)", "", known).split(", ")
    tested = {arguments(name)[1] for name in OPTIMIZERS}
    return [*OPTIMIZERS, *(name for name in names if name not in tested)]


class OptimizerTest(ProgramTest):
    def weights(self, run):
        return (self.root / run / "model.safetensors").read_bytes()

    def losses(self, run):
        rows = map(json.loads, (self.root / run / "metrics.jsonl").read_text().splitlines())
        return [row["loss"] for row in rows if "loss" in row]

    def plan(self, *more):
        return json.loads(self.call("plan", "--model", "model", "--memory", "64MiB", "--threads", 1, "--json", *more).stdout)

    def test_what_it_does_not_know_is_refused(self):
        self.assert_refused(self.train_arguments("out", "--optim", "sgdd"), 2, "--optim 'sgdd' is not known", "one of adafactor, adagrad, adam, adamw (adamw_torch, ")
        self.assert_refused(self.train_arguments("out", "--optim", "sgd", "--optim-args", "beta1=0.5"), 2,
                            "--optim-args beta1: sgd has no such argument", "momentum=0 (", "nesterov=false (")
        self.assert_refused(self.train_arguments("out", "--optim-args", "beta1=1.5"), 2, "'1.5' is not a legal value", "beta1 takes 0 <= v < 1")
        self.assert_refused(self.train_arguments("out", "--optim-args", "beta1=0.8", "--adam-beta1", "0.7"), 2, "--adam-beta1 set the same")
        self.assert_refused(self.train_arguments("out", "--optim", "sgd", "--optim-args", "nesterov=true"), 2, "without momentum")
        self.assert_refused(self.train_arguments("out", "--optim", "sophia", "--optim-args", "k=5"), 2, "k: sophia has no such argument", "rho=0.04 (", "interval=10 (")
        self.assert_refused(self.train_arguments("out", "--optim", "sophia", "--optim-args", "interval=2.5"), 2, "not a whole number", "interval=2")

    def test_states_take_the_bytes_of_the_optimizer(self):
        shapes = [tensor["shape"] for name, tensor in read_safetensors(self.root / "model" / "model.safetensors")[0].items() if name != "__metadata__"]
        for name, (_, each) in OPTIMIZERS.items():
            with self.subTest(optimizer=name):
                expected = sum(each(shape) if callable(each) else each * math.prod(shape) for shape in shapes)
                self.assertEqual(self.plan(*arguments(name))["breakdown"]["optimizer"], expected)

    def test_an_argument_is_the_option_of_its_own(self):
        self.train("by-option", "--max-steps", 3, "--adam-beta1", "0.8")
        self.train("by-argument", "--max-steps", 3, "--optim-args", "beta1=0.8")
        self.train("usual", "--max-steps", 3)
        self.assertEqual(self.weights("by-option"), self.weights("by-argument"))
        self.assertNotEqual(self.weights("by-option"), self.weights("usual"))

    def test_a_run_resumes_bitwise(self):
        for name in every_optimizer(self):
            for precision in ("32-true", "bf16-mixed", "bf16-true", "16-mixed", "16-true"):
                with self.subTest(optimizer=name, precision=precision):
                    more = [*STEADY, *arguments(name), "--precision", precision]
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

    def test_states_in_8_bits_do_not_become_32_bits_unasked(self):
        self.train("narrow", "--optim", "adamw_8bit", "--optim-args", "min_8bit_size=1", "--max-steps", 1)
        header, _ = read_safetensors(self.root / "narrow" / "checkpoint-1" / "optimizer.safetensors")
        self.assertEqual(header["model.layers.0.mlp.up_proj.weight.exp_avg"]["dtype"], "U8")
        self.assertEqual(header["model.layers.0.mlp.up_proj.weight.exp_avg_absmax"], {**header["model.layers.0.mlp.up_proj.weight.exp_avg_absmax"], "dtype": "F32", "shape": [2]})
        self.assert_refused(self.train_arguments("narrow", "--optim", "adamw", "--max-steps", 2, "--resume-from-checkpoint", "true"), 2,
                            "is missing, or not F32", "resume with the optimizer that wrote it")

    def test_estimates_of_the_curvature_are_in_the_plan(self):
        seconds = lambda plan: plan["predicted_step_seconds"]
        rare, each = (self.plan("--optim", "sophia", "--optim-args", f"interval={interval}", "--global-batch-size", 4) for interval in (1000, 1))
        self.assertEqual((rare["curvature_interval"], each["curvature_interval"], each["curvature_rows"]), (1000, 1, 4))
        self.assertGreater(seconds(each), 1.9 * seconds(rare))
        self.assertNotIn("curvature_interval", self.plan("--optim", "adamw"))

    def test_an_estimate_of_the_curvature_counts(self):
        self.train("estimated", *STEADY, "--optim", "sophia", "--optim-args", "interval=1,rho=1e6", "--max-steps", 2)
        self.train("clipped", *STEADY, "--optim", "sophia", "--optim-args", "interval=1,rho=0", "--max-steps", 2)
        self.assertNotEqual(self.weights("estimated"), self.weights("clipped"))
        self.assertEqual(self.losses("estimated")[0], self.losses("clipped")[0])

    def test_a_name_of_transformers_is_the_same(self):
        self.train("own-name", "--optim", "adamw", "--max-steps", 2)
        self.train("other-name", "--optim", "adamw_torch_fused", "--max-steps", 2)
        self.assertEqual(self.weights("own-name"), self.weights("other-name"))


class CompositionTest(DiskTest):
    """Every optimizer with the techniques that touch updates."""

    def result(self, run, *more):
        self.train(run, *STEADY, "--max-steps", 2, "--save-steps", 100, *more)
        return (self.root / run / "model.safetensors").read_bytes()

    def test_exact_techniques_change_no_bit(self):
        for name in every_optimizer(self):
            options = [*arguments(name), "--technique", "micro-batch=4"]
            plain = self.result(f"plain-{name}", *options)
            unclipped = self.result(f"unclipped-{name}", *options, "--max-grad-norm", 0, "--technique", "fused-optimizer=off")
            for technique in (["recompute=on"], ["offload-optimizer=on"], ["offload-optimizer=on", "offload-gradients=on", "offload-parameters=on"]):
                with self.subTest(optimizer=name, technique=technique):
                    pins = [part for each in technique for part in ("--technique", each)]
                    self.assertEqual(self.result(f"{technique[-1]}-{name}", *options, *pins, *self.disk()), plain)
            with self.subTest(optimizer=name, technique="fused-optimizer"):
                self.assertEqual(self.result(f"fused-{name}", *options, "--max-grad-norm", 0, "--technique", "fused-optimizer=on"), unclipped)

    def test_paged_states_lie_on_the_disk_that_is_given(self):
        plan = lambda *more: json.loads(self.call("plan", "--model", "model", "--memory", "64MiB", "--threads", 1, "--json", *more).stdout)
        setting = lambda plan: [each["value"] for each in plan["techniques"] if each["name"] == "offload-optimizer"]
        self.assertEqual(setting(plan("--optim", "paged_adamw_8bit", *self.disk())), ["disk"])
        self.assertNotIn("disk", setting(plan("--optim", "paged_adamw_8bit")))
        self.assertNotIn("disk", setting(plan("--optim", "adamw_8bit", *self.disk())))

    def test_parts_of_the_batch_and_of_the_model(self):
        for name in every_optimizer(self):
            with self.subTest(optimizer=name):
                losses = []
                for run, more in (("whole", ["--technique", "micro-batch=4"]), ("ones", ["--technique", "micro-batch=1"])):
                    self.result(f"{run}-{name}", *arguments(name), *more)
                    rows = map(json.loads, (self.root / f"{run}-{name}" / "metrics.jsonl").read_text().splitlines())
                    losses.append([row["loss"] for row in rows if "loss" in row])
                for whole, ones in zip(*losses):
                    self.assertAlmostEqual(whole, ones, delta=2e-5 * whole)
                before = read_safetensors(self.root / "model" / "model.safetensors")
                self.result(f"frozen-{name}", *arguments(name), "--freeze", "layers.0")
                after = read_safetensors(self.root / f"frozen-{name}" / "model.safetensors")
                for tensor in [t for t in before[0] if t != "__metadata__"]:
                    a, b = (data[slice(*header[tensor]["data_offsets"])] for header, data in (before, after))
                    self.assertEqual(a == b, "layers.0." in tensor, tensor)


if __name__ == "__main__":
    unittest.main()
