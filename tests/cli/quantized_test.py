"""Frozen weights as codes: made by the program, read from checkpoints, and with adapters trained on top."""

import json
import struct
import unittest

from program import SHARED, ProgramTest, read_safetensors, write_safetensors

NF4 = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)
KINDS = ("nf4", "nf4-dq", "fp4", "int8")  # the tiny model's rows are too short for int4
LAYERS = "model.layers."


def narrow(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def coded(values):
    """Codes and scales of nf4 by definition: the nearest value of the table, the lower one for ties."""
    scales, codes = [], []
    for begin in range(0, len(values), 64):
        block = values[begin : begin + 64]
        most = max(abs(v) for v in block)
        scales.append(most)
        inverse = narrow(1 / most)
        codes += [min(range(16), key=lambda c: (abs(NF4[c] - narrow(v * inverse)), c)) for v in block]
    return bytes(high << 4 | low for high, low in zip(codes[::2], codes[1::2])), scales


def is_matrix(name, entry):
    return name.startswith(LAYERS) and len(entry["shape"]) == 2


def as_bitsandbytes(header, data):
    """The tensors of a float32 checkpoint with the layers' matrices as bitsandbytes stores nf4."""
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[begin:end]
        if not is_matrix(name, entry):
            tensors[name] = ("F32", entry["shape"], raw)
            continue
        codes, scales = coded(struct.unpack(f"<{len(raw) // 4}f", raw))
        state = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": entry["shape"]}).encode()
        tensors[name] = ("U8", [len(codes), 1], codes)
        tensors[name + ".absmax"] = ("F32", [len(scales)], struct.pack(f"<{len(scales)}f", *scales))
        tensors[name + ".quant_map"] = ("F32", [16], struct.pack("<16f", *NF4))
        tensors[name + ".quant_state.bitsandbytes__nf4"] = ("U8", [len(state)], state)
    return tensors


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    write_safetensors(path, header, data)


class Quantized(ProgramTest):
    def evaluate(self, model, *more, data="data.txt", length=32):
        done = self.call("evaluate", "--model", model, "--data", data, "--memory", "256MiB", "--threads", "1",
                         "--max-seq-length", length, "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def stored(self, change=lambda tensors: None, **config):
        """The tiny model as stored by bitsandbytes; `change` modifies its tensors."""
        directory = self.fresh_model("stored")
        tensors = as_bitsandbytes(*read_safetensors(self.root / "model/model.safetensors"))
        change(tensors)
        write_tensors(directory / "model.safetensors", tensors)
        path = directory / "config.json"
        said = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_use_double_quant": False, **config}
        path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": said}))

    def adapter_run(self, output, *more, **named):
        done = self.train(output, "--lora-r", "4", "--technique", "quantize-weights=nf4", *more, **named)
        return [json.loads(line)["loss"] for line in (self.root / output / "metrics.jsonl").read_text().splitlines()
                if "loss" in json.loads(line)], done

    def test_codes_of_the_checkpoint_are_those_of_its_numbers(self):
        self.stored()
        made = self.evaluate("model", "--technique", "quantize-weights=nf4")
        self.assertEqual(self.evaluate("stored"), made)
        self.assertNotEqual(made["loss"], self.evaluate("model")["loss"])
        self.assertIn("nf4", self.call("info", "stored").stdout)

    def test_every_kind_stays_near_the_plain_loss(self):
        plain = self.evaluate("model")["loss"]
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.assertAlmostEqual(self.evaluate("model", "--technique", f"quantize-weights={kind}")["loss"], plain, delta=0.02)

    def test_losses_do_not_depend_on_how_the_step_is_computed(self):
        plain, _ = self.adapter_run("q0")
        for i, options in enumerate((("--technique", "recompute=on"), ("--technique", "recompute=drop-cheap"))):
            with self.subTest(options=options):
                self.assertEqual(self.adapter_run(f"q1{i}", *options)[0], plain)

    def test_codes_may_wait_on_disk(self):
        (self.root / "disk").mkdir(exist_ok=True)
        plain, _ = self.adapter_run("d0")
        moved, _ = self.adapter_run("d1", "--disk-memory", "disk:64MiB", "--technique", "offload-parameters=on")
        self.assertEqual(moved, plain)

    def test_an_adapter_is_trained_further(self):
        first, _ = self.adapter_run("a0")
        self.train("a1", "--adapter", "a0", "--technique", "quantize-weights=nf4")
        found = json.loads((self.root / "a1/adapter_config.json").read_text())
        self.assertEqual(found["r"], 4)
        more = json.loads((self.root / "a1/metrics.jsonl").read_text().splitlines()[0])["loss"]
        self.assertLess(more, first[0])
        self.assert_refused(self.train_arguments("a2", "--adapter", "a0", "--lora-r", "8"), 2, "--lora-r 8", "has 4")
        self.assert_refused(self.train_arguments("a3", "--adapter", "nowhere"), 2, "nowhere")

    def test_a_continued_adapter_resumes_bitwise(self):
        self.adapter_run("c0")
        options = ("--adapter", "c0", "--technique", "quantize-weights=nf4", "--save-steps", "2", "--lr-scheduler-type", "constant",
                   "--max-steps")
        self.train("c1", *options, "4")
        self.train("c2", *options, "2")
        self.train("c2", *options, "4", "--resume-from-checkpoint", "true")
        whole, resumed = ((self.root / run / "adapter_model.safetensors").read_bytes() for run in ("c1", "c2"))
        self.assertNotEqual(whole, (self.root / "c0/adapter_model.safetensors").read_bytes())

        def losses(run):
            rows = map(json.loads, (self.root / run / "metrics.jsonl").read_text().splitlines())
            return [(row["step"], row["loss"]) for row in rows if "loss" in row]
        self.assertEqual(losses("c1")[2:], losses("c2")[-2:])
        self.assertEqual(whole, resumed)

    def test_adapters_of_a_stored_base_are_those_of_its_numbers(self):
        self.stored()
        plain, _ = self.adapter_run("s0")
        self.train("s1", "--lora-r", "4", model="stored")
        rows = [json.loads(line) for line in (self.root / "s1/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["loss"] for row in rows if "loss" in row], plain)

    def test_an_adapter_is_merged_into_the_numbers_of_a_stored_base(self):
        bases = {"stored": "nf4", "m-dq": "nf4-dq", "m-int8": "int8"}
        self.stored()
        for base, kind in bases.items():
            with self.subTest(kind):
                if base != "stored":
                    self.call("quantize", "--model", "model", "--weights", kind, "--output-dir", base)
                self.train(f"a-{base}", "--lora-r", "4", model=base)
                done = self.call("merge", "--model", base, "--adapter", f"a-{base}", "--output-dir", f"merged-{base}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("quantization_config", json.loads((self.root / f"merged-{base}/config.json").read_text()))
                beside = self.evaluate(base, "--adapter", f"a-{base}")
                self.assertAlmostEqual(self.evaluate(f"merged-{base}")["loss"], beside["loss"], delta=1e-5)

    def test_what_contradicts_is_refused(self):
        self.stored()
        self.assert_refused(self.train_arguments("r0", "--technique", "quantize-weights=nf4"), 2, "quantize-weights=nf4", "--lora-r")
        self.assert_refused(self.train_arguments("r1", model="stored"), 2, "trained", "--lora-r")
        self.assert_refused(["evaluate", "--model", "stored", "--data", "data.txt", "--memory", "128MiB", "--technique",
                             "quantize-weights=fp4"], 2, "fp4", "nf4 codes")
        self.assert_refused(self.train_arguments("r2", "--lora-r", "4", "--technique", "quantize-weights=nf5"), 2, "nf5")
        self.assert_refused(self.train_arguments("r3", "--lora-r", "4", "--technique", "quantize-weights=int4"), 2, "int4", "32")

    def test_malformed_codes_are_refused_by_name(self):
        matrix = LAYERS + "0.mlp.up_proj.weight"

        def without(part):
            return lambda tensors: tensors.pop(matrix + part)

        def replaced(part, dtype, shape, raw):
            return lambda tensors: tensors.__setitem__(matrix + part, (dtype, shape, raw))

        state = json.dumps({"quant_type": "nf4", "blocksize": 128, "dtype": "float32", "shape": [32, 16]}).encode()
        cases = {"no scales": (without(".absmax"), ".absmax", "missing"),
                 "short scales": (replaced(".absmax", "F32", [1], b"\0" * 4), ".absmax", "1 elements"),
                 "short codes": (replaced("", "U8", [2, 1], b"\0\0"), matrix, "2 elements"),
                 "another table": (replaced(".quant_map", "F32", [16], b"\0" * 64), ".quant_map", "code 0"),
                 "another block": (replaced(".quant_state.bitsandbytes__nf4", "U8", [len(state)], state), "blocksize 128"),
                 "no JSON": (replaced(".quant_state.bitsandbytes__nf4", "U8", [1], b"{"), "quant_state"),
                 "a plain one": (replaced("", "F32", [32, 16], b"\0" * 2048), matrix)}
        for name, (change, *parts) in cases.items():
            with self.subTest(name):
                self.stored(change)
                self.assert_refused(["evaluate", "--model", "stored", "--data", "data.txt", "--memory", "128MiB"], 2, *parts)

    def test_codes_that_are_not_read_are_refused(self):
        self.stored(load_in_4bit=False, load_in_8bit=True)
        self.assert_refused(["evaluate", "--model", "stored", "--data", "data.txt", "--memory", "128MiB"], 2, "bitsandbytes")

    def test_quantize_writes_what_it_would_compute_with(self):
        for kind in KINDS:
            with self.subTest(kind):
                done = self.call("quantize", "--model", "model", "--weights", kind, "--output-dir", f"w-{kind}", "--memory", "64MiB")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.evaluate(f"w-{kind}"), self.evaluate("model", "--technique", f"quantize-weights={kind}"))
        self.stored()
        ours, theirs = (read_safetensors(self.root / name / "model.safetensors") for name in ("w-nf4", "stored"))
        for name, entry in theirs[0].items():
            found = ours[0][name]
            self.assertEqual((found["dtype"], found["shape"] if "quant_state" not in name else []),
                             (entry["dtype"], entry["shape"] if "quant_state" not in name else []), name)
            raw = [data[slice(*header[name]["data_offsets"])] for header, data in (ours, theirs)]
            self.assertEqual(*(map(json.loads, raw) if "quant_state" in name else raw), name)

    def test_groups_of_other_sizes(self):
        for kind, options in (("int8-g8", ("int8", "--group-size", "8")), ("int4-g16", ("int4", "--group-size", "16")),
                              ("int4-row", ("int4-row",)), ("int8-g16", ("int8-g16",))):
            with self.subTest(kind):
                done = self.call("quantize", "--model", "model", "--output-dir", f"g-{kind}", "--weights", *options)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.evaluate(f"g-{kind}"), self.evaluate("model", "--technique", f"quantize-weights={kind}"))
                self.assertIn(kind, self.call("info", f"g-{kind}").stdout)
        coarse, fine = (self.evaluate("model", "--technique", f"quantize-weights={kind}")["loss"] for kind in ("int4-row", "int4-g8"))
        self.assertNotEqual(coarse, fine)
        said = json.loads((self.root / "g-int4-g16/config.json").read_text())["quantization_config"]["config_groups"]["group_0"]["weights"]
        self.assertEqual((said["num_bits"], said["strategy"], said["group_size"]), (4, "group", 16))

    def test_groups_that_cannot_be_are_refused(self):
        arguments = ["quantize", "--model", "model", "--output-dir", "w-refused"]
        self.assert_refused([*arguments, "--weights", "int4", "--group-size", "24"], 2, "int4-g24", "16 elements", "int4-g16")
        self.assert_refused([*arguments, "--weights", "int8", "--group-size", "12"], 2, "--group-size 12", "multiple of 8")
        self.assert_refused([*arguments, "--weights", "nf4", "--group-size", "32"], 2, "--group-size 32", "int8 and int4")
        for setting in ("int4-g12", "int4-g", "int8-gx", "int4-g0"):
            self.assert_refused(self.train_arguments("r4", "--lora-r", "4", "--technique", f"quantize-weights={setting}"), 2, setting, "multiple of 8")

    def test_quantize_refuses(self):
        self.stored()
        arguments = ["quantize", "--model", "model", "--output-dir", "w-refused"]
        self.assert_refused([*arguments, "--weights", "nf5"], 2, "nf5")
        self.assert_refused([*arguments, "--weights", "int4"], 2, "int4", "32")
        self.assert_refused([*arguments, "--memory", "1MiB"], 3, "minimum_bytes")
        self.assert_refused(["quantize", "--model", "stored", "--output-dir", "w-refused"], 2, "quantised")
        self.assert_refused(["quantize", "--model", "model", "--output-dir", "stored"], 2, "not empty")

    @unittest.skipUnless((SHARED / "data/quantized").is_dir(), "no ../shared")
    def test_activations_in_eight_bits(self):
        for kind in ("gguf-q8_0", "gguf-q4_0", "ct-int8", "ct-int4"):
            with self.subTest(kind):
                folder = SHARED / "data/quantized" / kind
                named = dict(data=folder / "rows.jsonl", length=64)
                kept, rounded = (self.evaluate(folder / "model", "--technique", f"quantize-activations={setting}", **named)["loss"]
                                 for setting in ("off", "int8"))
                self.assertNotEqual(kept, rounded)
                self.assertAlmostEqual(kept, rounded, delta=1e-3)
        folder = SHARED / "data/quantized/gguf-q8_0"
        done = self.call("train", "--model", folder / "model", "--data", folder / "rows.jsonl", "--lora-r", "4", "--max-steps", "1",
                         "--memory", "256MiB", "--threads", "1", "--output-dir", "beside")
        self.assertEqual(done.returncode, 0, done.stderr)
        named = ("--adapter", "beside", "--technique", "quantize-activations=int8")
        self.assertLess(self.evaluate(folder / "model", *named, data=folder / "rows.jsonl", length=64)["loss"], 3.43)
        text = ["evaluate", "--data", "data.txt", "--memory", "256MiB", "--technique", "quantize-activations=int8", "--model"]
        self.assert_refused([*text, SHARED / "data/quantized/bnb-nf4/model"], 2, "no matrix", "int8-g32")

    @unittest.skipUnless((SHARED / "data/quantized").is_dir(), "no ../shared")
    def test_checkpoints_of_other_programs(self):
        for kind in ("bnb-nf4", "bnb-fp4", "bnb-nf4-dq", "ct-int8", "ct-int4"):
            with self.subTest(kind):
                folder = SHARED / "data/quantized" / kind
                wanted = json.loads((folder / "loss.json").read_text())
                found = self.evaluate(folder / "model", data=folder / "rows.jsonl", length=64)
                self.assertEqual(found["tokens"], wanted["tokens"])
                self.assertAlmostEqual(found["loss"], wanted["loss"], delta=1e-5 * wanted["loss"])

    @unittest.skipUnless((SHARED / "data/quantized").is_dir(), "no ../shared")
    def test_codes_are_those_of_bitsandbytes(self):
        original = SHARED / "data/quantized/original"
        for kind, folder in (("nf4", "bnb-nf4"), ("fp4", "bnb-fp4"), ("nf4-dq", "bnb-nf4-dq")):
            done = self.call("quantize", "--model", original, "--weights", kind, "--output-dir", f"b-{kind}")
            self.assertEqual(done.returncode, 0, done.stderr)
            ours, theirs = (read_safetensors(path / "model.safetensors")
                            for path in (self.root / f"b-{kind}", SHARED / "data/quantized" / folder / "model"))
            self.assertEqual(set(ours[0]) - {"__metadata__"}, set(theirs[0]) - {"__metadata__"})
            for name in theirs[0]:
                if name + ".absmax" in theirs[0]:
                    raw = [data[slice(*header[name]["data_offsets"])] for header, data in (ours, theirs)]
                    self.assertTrue(raw[0] == raw[1], f"{kind} {name}")


if __name__ == "__main__":
    unittest.main()
