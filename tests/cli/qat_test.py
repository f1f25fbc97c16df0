"""Quantisation-aware training: combinations with other techniques, conversion, refusals."""

import json
import shutil
import struct
import unittest

from program import CONFIG, SHARED, ProgramTest, read_safetensors

KINDS = ("int8-int4", "int4", "int8")


def floats(raw):
    return struct.unpack(f"<{len(raw) // 4}f", raw)


class Qat(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wide = {**CONFIG, "hidden_size": 32, "intermediate_size": 64}  # whole groups of 32
        (cls.root / "wide.json").write_text(json.dumps(wide))
        made = cls.call("init", "--config", "wide.json", "--tokenizer", "bytes", "--output-dir", "wide")
        assert made.returncode == 0, made.stderr

    def losses(self, output, *more, model="wide"):
        self.train(output, "--learning-rate", "2e-3", *more, model=model)
        rows = map(json.loads, (self.root / output / "metrics.jsonl").read_text().splitlines())
        return [(row["step"], row["loss"], row["grad_norm"]) for row in rows if "loss" in row]

    def weights(self, output):
        return (self.root / output / "model.safetensors").read_bytes()

    def evaluate(self, model, *more, data="data.txt", length=32):
        done = self.call("evaluate", "--model", model, "--data", data, "--memory", "128MiB", "--threads", "1",
                         "--max-seq-length", length, "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def plan(self, *more):
        done = self.call("plan", "--model", "shape.json", "--memory", "1GiB", "--threads", "1", "--max-seq-length", "256",
                         "--global-batch-size", "4", "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def convert(self, kind, source, output):
        shutil.rmtree(self.root / output, ignore_errors=True)
        done = self.call("quantize", "--model", source, "--weights", f"qat-{kind}", "--output-dir", output, "--memory", "64MiB")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_losses_do_not_depend_on_how_the_step_is_computed(self):
        for kind in KINDS:
            self.assertNotEqual(self.losses(f"p-{kind}", "--technique", f"qat={kind}"), self.losses(f"n-{kind}"))
            plain = self.losses(f"a-{kind}", "--technique", f"qat={kind}", "--technique", "recompute=off", "--micro-batch-size", "4")
            for i, options in enumerate((("recompute=on",), ("recompute=drop-cheap",), ("recompute=drop-attention",))):
                with self.subTest(kind=kind, options=options):
                    more = [word for option in options for word in ("--technique", option)]
                    self.assertEqual(self.losses(f"b{i}-{kind}", "--technique", f"qat={kind}", "--micro-batch-size", "4", *more), plain)
                    self.assertEqual(self.weights(f"b{i}-{kind}"), self.weights(f"a-{kind}"))

    def test_a_resumed_run_is_the_whole_one(self):
        for kind in KINDS:
            with self.subTest(kind):
                options = ("--technique", f"qat={kind}", "--save-steps", "2", "--lr-scheduler-type", "constant", "--max-steps")
                whole = self.losses(f"w-{kind}", *options, "4")
                self.losses(f"h-{kind}", *options, "2")
                self.assertEqual(self.losses(f"h-{kind}", *options, "4", "--resume-from-checkpoint", "true")[-2:], whole[2:])
                self.assertEqual(self.weights(f"h-{kind}"), self.weights(f"w-{kind}"))
                # The checkpoint records the kind of training.
                resumed = self.losses(f"r-{kind}", *options[2:], "4", "--resume-from-checkpoint", f"h-{kind}/checkpoint-2")
                self.assertEqual(resumed[-2:], whole[2:])

    def test_it_goes_with_what_else_is_asked(self):
        for kind in KINDS:
            wide = [loss for _, loss, _ in self.losses(f"x-{kind}", "--technique", f"qat={kind}")]
            for i, options in enumerate((("--precision", "bf16-mixed"), ("--precision", "bf16-true"), ("--optim", "adamw_bnb_8bit"),
                                         ("--technique", "fused-optimizer=on", "--max-grad-norm", "0", "--micro-batch-size", "4"),
                                         ("--freeze", "layers.0"), ("--technique", "sequence-chunks=2"))):
                with self.subTest(kind=kind, options=options):
                    found = [loss for _, loss, _ in self.losses(f"y{i}-{kind}", "--technique", f"qat={kind}", *options)]
                    for a, b in zip(wide, found):
                        self.assertAlmostEqual(a, b, delta=0.05)

    def test_the_plan_says_what_it_takes(self):
        shape = {**CONFIG, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4, "max_position_embeddings": 256}
        (self.root / "shape.json").write_text(json.dumps(shape))
        matrix, at = 4 * 256 * 1024, ("--technique", "recompute=off", "--micro-batch-size", "4")
        least, peak = self.plan()["minimum_bytes"], self.plan(*at)["peak_bytes"]
        for kind in KINDS:
            plan = self.plan("--technique", f"qat={kind}")
            self.assertEqual(next(t for t in plan["techniques"] if t["name"] == "qat")["value"], kind)
            self.assertGreater(plan["minimum_bytes"], least)  # rounded matrices are held together with the weights while a layer runs
            self.assertLess(plan["minimum_bytes"], least + 4 * matrix)
            plan = self.plan(*at, "--technique", f"qat={kind}")
            if kind == "int8-int4":  # the products' operands are kept as codes, a quarter of their bytes
                self.assertLess(plan["peak_bytes"], peak - 3 * 1024 * 1024 * 4)
            else:
                self.assertLess(plan["peak_bytes"], peak + 4 * matrix)

    def test_a_converted_model_has_the_prepared_ones_loss(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.losses(f"t-{kind}", "--technique", f"qat={kind}")
                prepared = self.evaluate(f"t-{kind}", "--technique", f"qat={kind}")
                self.convert(kind, f"t-{kind}", f"c-{kind}")
                converted = self.evaluate(f"c-{kind}")
                self.assertEqual(converted["tokens"], prepared["tokens"])
                self.assertAlmostEqual(converted["loss"], prepared["loss"], delta=1e-6)
                self.assertNotAlmostEqual(converted["loss"], self.evaluate(f"t-{kind}")["loss"], delta=1e-6)
                said = json.loads((self.root / f"c-{kind}/config.json").read_text())["quantization_config"]["config_groups"]["group_0"]
                self.assertEqual((said["weights"]["num_bits"], said["weights"]["group_size"]), (8 if kind == "int8" else 4, 32))
                self.assertEqual(said["input_activations"] is not None, kind == "int8-int4")
                self.assertIn("int8" if kind == "int8" else "int4", self.call("info", f"c-{kind}").stdout)
                text = self.call("generate", "--model", f"c-{kind}", "--prompt", "the quick", "--temperature", "0", "--max-new-tokens", "12",
                                 "--memory", "128MiB", "--threads", "1")
                self.assertEqual(text.returncode, 0, text.stderr)
                same = self.call("generate", "--model", f"t-{kind}", "--technique", f"qat={kind}", "--prompt", "the quick", "--temperature", "0",
                                 "--max-new-tokens", "12", "--memory", "128MiB", "--threads", "1")
                self.assertEqual(text.stdout, same.stdout)

    def test_codes_are_those_of_the_formula(self):
        """Scales are max|w| / 7.5; the reciprocal is rounded before multiplying."""
        self.convert("int4", "wide", "formula")
        header, data = read_safetensors(self.root / "formula/model.safetensors")
        plain, numbers = read_safetensors(self.root / "wide/model.safetensors")
        name = "model.layers.0.mlp.up_proj.weight"
        weights = floats(numbers[slice(*plain[name]["data_offsets"])])
        scales = floats(data[slice(*header[name + "_scale"]["data_offsets"])])
        packed = data[slice(*header[name + "_packed"]["data_offsets"])]
        codes = [nibble - 8 for byte in packed for nibble in (byte & 15, byte >> 4)]
        for group, scale in enumerate(scales):
            part = weights[32 * group : 32 * group + 32]
            self.assertAlmostEqual(scale, max(map(abs, part)) / 7.5, delta=1e-6 * scale)
            for weight, code in zip(part, codes[32 * group : 32 * group + 32]):
                self.assertLessEqual(abs(min(max(weight / scale, -8), 7) - code), 0.5001)

    def test_what_contradicts_is_refused(self):
        def refused(*more, parts, model="wide"):
            self.assert_refused(self.train_arguments("out", *more, model=model), 2, *parts)
        refused("--technique", "qat=int4", "--lora-r", "4", parts=("qat=int4", "adapters", "quantize-weights=int4"))
        refused("--technique", "qat=int5", parts=("int5", "int8-int4"))
        refused("--technique", "qat=int4", model="model", parts=("qat=int4", "q_proj", "16", "32", "nf4"))
        self.call("quantize", "--model", "wide", "--weights", "int4", "--output-dir", "base")
        refused("--technique", "qat=int4", model="base", parts=("qat=int4", "codes"))
        self.convert("int8-int4", "wide", "converted")
        refused("--lora-r", "4", model="converted", parts=("activations", "evaluate"))
        self.assert_refused(["evaluate", "--model", "converted", "--data", "data.txt", "--memory", "128MiB", "--technique", "qat=int4"], 2,
                            "qat=int4", "int8-int4 codes")
        self.assert_refused(["quantize", "--model", "model", "--weights", "qat-int4", "--output-dir", "out"], 2, "32")

    @unittest.skipUnless((SHARED / "accept/golden-qat").is_dir(), "no ../shared")
    def test_torchaos_losses_before_and_after_converting(self):
        for case, kind in (("int4", "int4"), ("int8", "int8"), ("int8_int4", "int8-int4")):
            with self.subTest(kind):
                folder = SHARED / "accept/golden-qat" / case
                wanted = json.loads((folder / "start.json").read_text())
                rows = (folder / "data.jsonl").read_text().splitlines(keepends=True)[: wanted["rows"]]
                (self.root / "rows.jsonl").write_text("".join(rows))
                prepared = self.evaluate(folder / "model", "--technique", f"qat={kind}", data="rows.jsonl", length=64)
                self.assertEqual(prepared["tokens"], wanted["tokens"])
                self.assertAlmostEqual(prepared["loss"], wanted["loss"], delta=1e-5 * wanted["loss"])  # a code may flip
                self.convert(kind, folder / "model", "start")
                self.assertAlmostEqual(self.evaluate("start", data="rows.jsonl", length=64)["loss"], wanted["loss"], delta=1e-5 * wanted["loss"])

    def test_its_kernels_take_fp16_as_they_take_bf16(self):
        first = lambda run: json.loads((self.root / run / "metrics.jsonl").read_text().splitlines()[0])["loss"]
        for technique in ("qat=int8-int4", "qat=int4", "compress-activations=int8"):
            for narrow, like in (("16-mixed", "bf16-mixed"), ("16-true", "bf16-true")):
                with self.subTest(technique=technique, precision=narrow):
                    for precision in (narrow, like):
                        self.train(f"{technique}-{precision}", "--technique", technique, "--precision", precision, model="wide")
                    self.assertAlmostEqual(first(f"{technique}-{narrow}"), first(f"{technique}-{like}"), delta=0.02)


if __name__ == "__main__":
    unittest.main()
