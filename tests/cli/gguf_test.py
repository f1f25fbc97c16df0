"""GGUF models: written, read back, trained, refused; and read by the package gguf, if it is installed."""

import json
import shutil
import struct
import unittest

from program import CONFIG, SHARED, ProgramTest, read_safetensors

try:
    import gguf
except ImportError:
    gguf = None

KINDS = ("f16", "bf16", "q8_0", "q4_0")
# Rows of whole blocks, grouped heads, and q and k, whose rows have another order in GGUF.
WIDE = {**CONFIG, "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
        "tie_word_embeddings": False}


class Gguf(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make("wide", WIDE)
        for kind in KINDS:
            cls.quantize("wide", kind, f"g-{kind}")

    @classmethod
    def make(cls, name, config):
        (cls.root / f"{name}.json").write_text(json.dumps(config))
        done = cls.call("init", "--config", f"{name}.json", "--tokenizer", "bytes", "--dtype", "bfloat16", "--output-dir", name)
        assert done.returncode == 0, done.stderr

    @classmethod
    def quantize(cls, model, kind, output, *more):
        done = cls.call("quantize", "--model", model, "--weights", kind, "--output-dir", output, *more)
        assert done.returncode == 0, done.stderr
        return done

    def evaluate(self, model, *more, data="data.txt", length=32):
        done = self.call("evaluate", "--model", model, "--data", data, "--memory", "256MiB", "--threads", "1",
                         "--max-seq-length", length, "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_what_is_written_is_read(self):
        plain = self.evaluate("wide")["loss"]
        for kind, most in zip(KINDS, (1e-6, 0, 2e-3, 0.05)):
            with self.subTest(kind):
                self.assertAlmostEqual(self.evaluate(f"g-{kind}")["loss"], plain, delta=most)
                self.assertEqual(self.evaluate(f"g-{kind}/model.gguf"), self.evaluate(f"g-{kind}"))

    def test_info_says_what_a_file_holds(self):
        for kind, words in (("q8_0", ("Q8_0", "gguf: int8-g32")), ("q4_0", ("Q4_0", "gguf: int4")), ("bf16", ("BF16", "bfloat16"))):
            with self.subTest(kind):
                done = self.call("info", f"g-{kind}")
                self.assertEqual(done.returncode, 0, done.stderr)
                for word in (*words, "LlamaForCausalLM", "F32"):
                    self.assertIn(word, done.stdout)

    def test_text_is_generated(self):
        texts = [self.call("generate", "--model", model, "--prompt", "the", "--max-new-tokens", "4", "--temperature", "0",
                           "--memory", "128MiB", "--threads", "1") for model in ("wide", "g-f16")]
        for done in texts:
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(texts[0].stdout, texts[1].stdout)

    def generated(self, model, *more):
        done = self.call("generate", "--model", model, "--prompt", "the cat", "--max-new-tokens", "24", "--temperature", "0",
                         "--memory", "128MiB", "--threads", "1", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def served_weights(self, model, *more):
        done = self.call("plan", "--serve", "--json", "--model", model, "--memory", "128MiB", "--threads", "1", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {region["name"]: region["bytes"] for region in json.loads(done.stdout)["regions"]}["weights"]

    def test_embedding_and_head_stay_codes(self):
        matrices = 2 * 258 * 64
        for kind, layers, bits in (("q8_0", "int8-g32", 9), ("q4_0", "int4", 5)):
            decoded = ("--technique", f"quantize-weights={layers}")  # the layers alone
            with self.subTest(kind):
                self.assertEqual(self.served_weights(f"g-{kind}", *decoded) - self.served_weights(f"g-{kind}"),
                                 4 * matrices - matrices * bits // 8)
            for precision in ("32-true", "bf16-true", "16-true"):
                with self.subTest(kind, precision=precision):
                    self.assertEqual(self.generated(f"g-{kind}", "--precision", precision),
                                     self.generated(f"g-{kind}", "--precision", precision, *decoded))

    def test_a_head_may_be_other_codes_than_the_layers(self):
        """A file of Q4_0 with the head of the one in Q8_0, its last tensor; another type is decoded."""
        self.make("even", {**WIDE, "vocab_size": 288})  # matrices of whole multiples of the alignment
        for kind in ("q4_0", "q8_0", "f16"):
            self.quantize("even", kind, f"e-{kind}")
        matrix = {kind: 288 * 64 // 32 * size for kind, size in (("q4_0", 18), ("q8_0", 34), ("f16", 64))}
        parts = {kind: (self.root / f"e-{kind}/model.gguf").read_bytes() for kind in matrix}
        name = struct.pack("<Q", 13) + b"output.weight"
        at = parts["q4_0"].index(name) + len(name) + 4 + 16  # of its type
        decoded = ("--technique", "quantize-weights=int4")
        for kind, number, bytes_of_head in (("q8_0", 8, 288 * 64 * 9 // 8), ("f16", 1, 288 * 64 * 4)):
            with self.subTest(kind):
                shutil.copytree(self.root / "e-q4_0", self.root / f"e-q4_0-{kind}")
                good = parts["q4_0"][:-matrix["q4_0"]]
                (self.root / f"e-q4_0-{kind}/model.gguf").write_bytes(
                    good[:at] + struct.pack("<I", number) + good[at + 4:] + parts[kind][-matrix[kind]:])
                self.assertEqual(self.served_weights(f"e-q4_0-{kind}") - self.served_weights("e-q4_0"),
                                 bytes_of_head - 288 * 64 * 5 // 8)
                self.assertEqual(self.generated(f"e-q4_0-{kind}"), self.generated(f"e-q4_0-{kind}", *decoded))

    def test_an_adapter_may_replace_the_head(self):
        self.train("a-head", "--lora-r", "4", "--modules-to-save", "lm_head", model="g-q8_0")
        matrix = 258 * 64
        self.assertEqual(self.served_weights("g-q8_0", "--adapter", "a-head") - self.served_weights("g-q8_0"),
                         matrix * 4 - matrix * 9 // 8 + self.adapter_bytes("a-head"))
        self.generated("g-q8_0", "--adapter", "a-head")
        named = ["generate", "--model", "wide", "--adapter", "a-head", "--prompt", "the", "--memory", "128MiB"]
        self.assert_refused([*named, "--technique", "quantize-weights=int8+head"], 2, "its own lm_head.weight", "leave that part out")
        self.make("tied-base", {**WIDE, "tie_word_embeddings": True})
        self.quantize("tied-base", "q8_0", "g-tied-base")
        self.train("a-tied", "--lora-r", "4", "--modules-to-save", "embed_tokens", model="g-tied-base")
        self.assertEqual(self.served_weights("g-tied-base", "--adapter", "a-tied") - self.served_weights("g-tied-base"),
                         matrix * 4 - matrix * 9 // 8 + self.adapter_bytes("a-tied"))

    def adapter_bytes(self, name):
        header, _ = read_safetensors(self.root / name / "adapter_model.safetensors")
        sizes = [entry["data_offsets"] for key, entry in header.items() if ".lora_" in key]
        return sum(end - begin for begin, end in sizes)

    def test_embedding_and_head_are_codes_if_named(self):
        def named(setting):
            return ("--technique", f"quantize-weights={setting}")
        self.generated("wide", *named("int8+embedding+head"))
        matrix = 258 * 64
        self.assertEqual(self.served_weights("wide", *named("int8")) - self.served_weights("wide", *named("int8+head:int4")),
                         matrix * 4 - matrix * 5 // 8)
        data = ("--data", "data.txt", "--memory", "128MiB")
        self.assert_refused(["evaluate", "--model", "wide", *data, *named("int8+head")], 2, "a loss", "use int8")
        self.assert_refused(self.train_arguments("r5", "--lora-r", "4", *named("int8+head"), model="wide"), 2, "a loss", "use int8")
        self.assert_refused(["evaluate", "--model", "g-q8_0", *data, *named("int8-g32+head")], 2, "int8-g32 codes", "leave it out")

    def talking_alone(self, name):
        """Makes the model NAME with a chat template, its GGUF in g-NAME, and a folder alone-NAME with nothing but the GGUF."""
        self.make(name, WIDE)
        (self.root / name / "chat_template.jinja").write_text(
            "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}{{ eos_token }}")
        self.quantize(name, "bf16", f"g-{name}")
        (self.root / f"alone-{name}").mkdir()
        shutil.copy(self.root / f"g-{name}/model.gguf", self.root / f"alone-{name}/a.gguf")
        return f"alone-{name}"

    def tokens(self, model):
        text = json.dumps({"text": "two  spaces, 12 digits, 中文 🎉</s>x"}) + "\n"
        done = self.call("tokenize", "--model", model, stdin=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_its_own_tokenizer_and_chat_template_are_used(self):
        alone = self.talking_alone("talks")
        for model in (alone, f"{alone}/a.gguf"):
            with self.subTest(model):
                self.assertEqual(self.tokens(model), self.tokens("talks"))
                self.assertEqual(self.evaluate(model), self.evaluate("g-talks"))
                info = self.call("info", model).stdout
                for words in ("258 ids, BOS 256, EOS 257", "chat template    yes"):
                    self.assertIn(words, info)
                for more in ((), ("--chat",)):
                    texts = [self.call("generate", "--model", each, "--prompt", "the", "--max-new-tokens", "4", "--temperature",
                                       "0", "--memory", "128MiB", "--threads", "1", *more) for each in ("g-talks", model)]
                    for done in texts:
                        self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(texts[0].stdout, texts[1].stdout)

    def test_what_is_made_of_it_has_its_tokenizer(self):
        alone = self.talking_alone("teaches")
        for stranger in ("chat_template.jinja", "special_tokens_map.json"):  # which are not those of the GGUF's tokenizer
            (self.root / alone / stranger).write_text('{"eos_token": "a"}')
        self.train("full", "--save-steps", "2", model=f"{alone}/a.gguf")
        self.train("beside", "--lora-r", "4", model=alone)
        self.assertFalse((self.root / "beside/tokenizer.json").exists())
        done = self.call("merge", "--model", alone, "--adapter", "beside", "--output-dir", "merged")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.quantize(alone, "int8", "codes")
        self.quantize(alone, "f16", "again")
        (self.root / "alone-again").mkdir()
        shutil.copy(self.root / "again/model.gguf", self.root / "alone-again/a.gguf")
        made = ("full", "full/checkpoint-2", "merged", "codes", "again")
        for model in (*made, "alone-again"):
            with self.subTest(model):
                self.assertEqual(self.tokens(model), self.tokens("teaches"))
                self.assertIn("chat template    yes", self.call("info", model).stdout)
                for more in ((), ("--chat",)):
                    done = self.call("generate", "--model", model, "--prompt", "the", "--max-new-tokens", "4", "--memory", "128MiB", "--threads", "1", *more)
                    self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            self.assertEqual({(self.root / model / name).read_bytes() for model in made}, {(self.root / "full" / name).read_bytes()})
        names = json.loads((self.root / "full/tokenizer_config.json").read_text())
        self.assertEqual((names["bos_token"], names["eos_token"]), ("<s>", "</s>"))
        self.assertFalse((self.root / "full/special_tokens_map.json").exists())
        self.train("full", "--save-steps", "2", "--max-steps", "4", "--resume-from-checkpoint", "true", model=alone)
        self.assertEqual(self.tokens("full"), self.tokens("teaches"))

    def test_a_tokenizer_that_is_not_read_is_refused_by_name(self):
        (self.root / "other").mkdir()
        (self.root / "other/a.gguf").write_bytes((self.root / "g-f16/model.gguf").read_bytes().replace(b"gpt-2", b"gpt-9"))
        (self.root / "ids.jsonl").write_text(json.dumps({"input_ids": list(range(20)), "labels": list(range(20))}) + "\n")
        parts = ("tokenizer.ggml.pre is 'gpt-9'", "tokenizer.json next to the file")
        budget = ("--memory", "128MiB")
        self.assert_refused(["generate", "--model", "other/a.gguf", "--prompt", "the", *budget], 2, *parts)
        self.assert_refused(["evaluate", "--model", "other/a.gguf", "--data", "data.txt", *budget], 2, *parts)
        self.assertEqual(self.evaluate("other/a.gguf", data="ids.jsonl"), self.evaluate("g-f16", data="ids.jsonl"))

    def test_a_tied_head_has_no_tensor(self):
        self.make("tied", {**WIDE, "tie_word_embeddings": True})
        self.quantize("tied", "bf16", "g-tied")
        self.assertEqual(self.evaluate("g-tied"), self.evaluate("tied"))

    def test_scaled_positions_are_kept(self):
        scalings = {"llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 32},
                    "linear": {"rope_type": "linear", "factor": 4.0}}
        for name, scaling in scalings.items():
            with self.subTest(name):
                self.make(name, {**WIDE, "rope_scaling": scaling})
                self.quantize(name, "bf16", f"g-{name}")
                self.assertAlmostEqual(self.evaluate(f"g-{name}")["loss"], self.evaluate(name)["loss"], delta=1e-6)

    def test_families_with_biases_and_norms_of_heads(self):
        for family, name in (("qwen2", "Qwen2ForCausalLM"), ("qwen3", "Qwen3ForCausalLM"), ("mistral", "MistralForCausalLM")):
            with self.subTest(family):
                self.make(family, {**WIDE, "model_type": family, "architectures": [name], "head_dim": 16, "sliding_window": None})
                self.quantize(family, "bf16", f"g-{family}")
                self.assertEqual(self.evaluate(f"g-{family}"), self.evaluate(family))

    def test_adapters_are_trained_beside_it_and_merged(self):
        for kind in ("q4_0", "f16"):
            with self.subTest(kind):
                self.train(f"a-{kind}", "--lora-r", "4", model=f"g-{kind}")
                beside = self.evaluate(f"g-{kind}", "--adapter", f"a-{kind}")
                self.assertEqual(self.evaluate(f"a-{kind}"), beside)
                done = self.call("merge", "--model", f"g-{kind}", "--adapter", f"a-{kind}", "--output-dir", f"m-{kind}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertAlmostEqual(self.evaluate(f"m-{kind}")["loss"], beside["loss"], delta=1e-5)
                self.quantize(f"m-{kind}", "f16", f"mg-{kind}")
                self.assertAlmostEqual(self.evaluate(f"mg-{kind}")["loss"], beside["loss"], delta=1e-3)

    def test_codes_may_be_made_of_its_numbers(self):
        for kind in ("nf4", "int8"):
            made = self.evaluate("g-f16", "--technique", f"quantize-weights={kind}")["loss"]
            self.quantize("g-f16", kind, f"f-{kind}")
            self.assertEqual(self.evaluate(f"f-{kind}")["loss"], made)

    def test_what_cannot_be_is_refused(self):
        data = ("--data", "data.txt", "--memory", "128MiB")
        self.assert_refused(self.train_arguments("r0", model="g-q8_0"), 2, "trained", "--lora-r")
        self.assert_refused(["evaluate", "--model", "g-q4_0", *data, "--technique", "quantize-weights=nf4"], 2, "nf4", "int4 codes")
        self.assert_refused(["quantize", "--model", "wide", "--weights", "q8_0", "--output-dir", "r1", "--memory", "1MiB"], 3, "minimum_bytes")
        self.assert_refused(["quantize", "--model", "wide", "--weights", "q5_0", "--output-dir", "r1"], 2, "q5_0", "q8_0")
        self.make("gpt2", {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 16, "n_head": 2, "n_layer": 1,
                           "n_positions": 64, "vocab_size": 258, "activation_function": "gelu_new"})
        self.assert_refused(["quantize", "--model", "gpt2", "--weights", "q8_0", "--output-dir", "r1"], 2, "gpt2", "GGUF")
        self.make("windows", {**WIDE, "model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 16})
        self.assert_refused(["quantize", "--model", "windows", "--weights", "f16", "--output-dir", "r1"], 2, "window of 16")

    def test_a_malformed_file_is_refused_with_tensor_and_offset(self):
        directory = self.root / "spoilt"
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(self.root / "g-q4_0", directory)
        good = (directory / "model.gguf").read_bytes()
        arguments = ["evaluate", "--model", "spoilt", "--data", "data.txt", "--memory", "128MiB"]
        for size in (0, 10, 100, len(good) // 4):
            (directory / "model.gguf").write_bytes(good[:size])
            self.assert_refused(arguments, 2, "model.gguf", "at byte")
        (directory / "model.gguf").write_bytes(good[: len(good) - 1000])
        self.assert_refused(arguments, 2, "tensor 'output.weight'", "ends beyond the file's")
        at = good.index(b"blk.0.attn_q.weight") + len("blk.0.attn_q.weight") + 4 + 16  # offset of its type
        (directory / "model.gguf").write_bytes(good[:at] + struct.pack("<I", 13) + good[at + 4:])
        self.assert_refused(arguments, 2, "blk.0.attn_q.weight", "Q5_K")
        (directory / "model.gguf").write_bytes(good.replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_xx.weight"))
        self.assert_refused(arguments, 2, "blk.1.ffn_xx.weight", "at byte")
        (directory / "model.gguf").write_bytes(good.replace(b"blk.1.ffn_up.weight", b"blk.0.ffn_up.weight"))
        self.assert_refused(arguments, 2, "'blk.0.ffn_up.weight' appears twice")

    @unittest.skipUnless(gguf, "the package gguf is not installed")
    def test_the_package_reads_it(self):
        import numpy
        header, data = read_safetensors(self.root / "wide/model.safetensors")

        def matrix(name):
            entry = header[name]
            bits = numpy.frombuffer(data[slice(*entry["data_offsets"])], numpy.uint16).astype(numpy.uint32) << 16
            return bits.view(numpy.float32).reshape(entry["shape"])
        for kind in KINDS:
            with self.subTest(kind):
                reader = gguf.GGUFReader(self.root / f"g-{kind}/model.gguf")
                fields = {key: field.contents() for key, field in reader.fields.items()}
                self.assertEqual(fields["general.architecture"], "llama")
                self.assertEqual((fields["llama.block_count"], fields["llama.attention.head_count_kv"]), (2, 2))
                self.assertEqual((fields["tokenizer.ggml.model"], fields["tokenizer.ggml.pre"]), ("gpt2", "gpt-2"))
                self.assertEqual((fields["tokenizer.ggml.bos_token_id"], fields["tokenizer.ggml.add_bos_token"]), (256, True))
                self.assertEqual(len(fields["tokenizer.ggml.tokens"]), 258)
                self.assertEqual(fields["tokenizer.ggml.token_type"][-3:], [1, 3, 3])
                tensors = {tensor.name: tensor for tensor in reader.tensors}
                self.assertEqual(len(tensors), len(header) - ("__metadata__" in header))
                wanted = gguf.GGMLQuantizationType[kind.upper()]
                q = matrix("model.layers.1.self_attn.q_proj.weight").reshape(4, 2, 8, 64).swapaxes(1, 2).reshape(64, 64)
                for name, values in (("blk.1.attn_q.weight", q), ("blk.0.ffn_down.weight", matrix("model.layers.0.mlp.down_proj.weight")),
                                     ("token_embd.weight", matrix("model.embed_tokens.weight"))):
                    self.assertEqual(tensors[name].tensor_type, wanted)
                    self.assertEqual(tensors[name].data.tobytes(), gguf.quants.quantize(values, wanted).tobytes(), name)
                self.assertEqual(tensors["output_norm.weight"].tensor_type, gguf.GGMLQuantizationType.F32)

    @unittest.skipUnless((SHARED / "data/quantized").is_dir(), "no ../shared")
    def test_checkpoints_of_other_programs(self):
        for kind in ("gguf-q8_0", "gguf-q4_0"):
            with self.subTest(kind):
                folder = SHARED / "data/quantized" / kind
                wanted = json.loads((folder / "loss.json").read_text())
                found = self.evaluate(folder / "model", data=folder / "rows.jsonl", length=64)
                self.assertEqual(found["tokens"], wanted["tokens"])
                self.assertAlmostEqual(found["loss"], wanted["loss"], delta=1e-5)

    @unittest.skipUnless((SHARED / "data/quantized").is_dir(), "no ../shared")
    def test_bytes_are_those_of_other_programs(self):
        for kind in ("q8_0", "q4_0"):
            with self.subTest(kind):
                self.quantize(SHARED / "data/quantized/original", kind, f"o-{kind}")
                ours, theirs = ((path / "model.gguf").read_bytes() for path in
                                (self.root / f"o-{kind}", SHARED / f"data/quantized/gguf-{kind}/model"))
                matrix = 128 * 320 // 32 * (34 if kind == "q8_0" else 18)  # of the head, which is the last tensor
                self.assertEqual(ours[-matrix:], theirs[-matrix:])


if __name__ == "__main__":
    unittest.main()
