"""serve with encoders: embeddings against a forward pass in plain Python, pooling, uncut inputs, refusals."""

import concurrent.futures
import json
import math
import shutil
import struct
import unittest

from encoders_test import BERT, tokenizer_json
from program import ProgramTest, read_safetensors, write_safetensors
from served import Server

TEXTS = ["so1 good2 bad3", "so1", "bad1 bad2 so3 so4 so5 good6 good7", " ".join(f"so{n % 18}" for n in range(30)), ""]
HEADS, EPSILON = BERT["num_attention_heads"], BERT["layer_norm_eps"]
PATHS = {"/v1/completions": {"prompt": "so1"}, "/v1/chat/completions": {"messages": [{"role": "user", "content": "so1"}]},
         "/v1/responses": {"input": "so1"}, "/v1/messages": {"messages": [{"role": "user", "content": "so1"}], "max_tokens": 3}}


def weights_of(folder):
    header, data = read_safetensors(folder / "model.safetensors")
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
        for prefix in ("bert.", "roberta."):
            name = name.removeprefix(prefix)
        width = entry["shape"][-1]
        out[name] = list(values) if len(entry["shape"]) == 1 else [values[at:at + width] for at in range(0, len(values), width)]
    return out


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def hidden_states(w, ids, first):
    """The last layer's hidden states in double precision."""
    def linear(x, name):
        return [[dot(row, column) + bias for column, bias in zip(w[name + ".weight"], w[name + ".bias"])] for row in x]

    def norm(x, name):
        out = []
        for row in x:
            mean = math.fsum(row) / len(row)
            scale = 1 / math.sqrt(math.fsum((value - mean) ** 2 for value in row) / len(row) + EPSILON)
            out.append([(value - mean) * scale * g + b for value, g, b in zip(row, w[name + ".weight"], w[name + ".bias"])])
        return out

    def add(x, y):
        return [[a + b for a, b in zip(row, other)] for row, other in zip(x, y)]

    words, places, types = (w[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type"))
    x = norm([[a + b + c for a, b, c in zip(words[token], places[first + at], types[0])] for at, token in enumerate(ids)], "embeddings.LayerNorm")
    width = len(x[0]) // HEADS
    for layer in range(BERT["num_hidden_layers"]):
        name = f"encoder.layer.{layer}."
        q, k, v = (linear(x, f"{name}attention.self.{part}") for part in ("query", "key", "value"))
        mixed = [[] for _ in x]
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            for at, row in enumerate(q):
                scores = [dot(row[part], other[part]) / math.sqrt(width) for other in k]
                powers = [math.exp(score - max(scores)) for score in scores]
                mixed[at] += [dot(powers, column) / math.fsum(powers) for column in zip(*(other[part] for other in v))]
        x = norm(add(x, linear(mixed, name + "attention.output.dense")), name + "attention.output.LayerNorm")
        inner = [[value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in row] for row in linear(x, name + "intermediate.dense")]
        x = norm(add(x, linear(inner, name + "output.dense")), name + "output.LayerNorm")
    return x


def embedding_of(states, pooling):
    state = [math.fsum(column) / len(states) for column in zip(*states)] if pooling == "mean" else states[0 if pooling == "cls" else -1]
    length = math.sqrt(dot(state, state))
    return [value / length for value in state]


class EncoderServe(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.root / "words").mkdir()
        (cls.root / "words/tokenizer.json").write_text(json.dumps(tokenizer_json()))
        for name, config in (("bare", {"architectures": ["BertModel"]}), ("masked", {"architectures": ["BertForMaskedLM"]}),
                             ("roberta", {"architectures": ["RobertaForSequenceClassification"], "model_type": "roberta", "pad_token_id": 1})):
            (cls.root / f"{name}.json").write_text(json.dumps({**BERT, **config}))
            made = cls.call("init", "--config", f"{name}.json", "--tokenizer", "words/tokenizer.json", "--output-dir", name)
            assert made.returncode == 0, made.stderr

    def serve(self, model, *more):
        server = Server(self.program, model, self.root, "--memory", "96MiB", *more, cwd=self.root)
        self.addCleanup(server.stop)
        return server

    def embeddings(self, server, texts):
        status, body = server.post("/v1/embeddings", input=texts)
        self.assertEqual(status, 200, body)
        return [one["embedding"] for one in json.loads(body)["data"]]

    def check(self, model, pooling, first=0):
        with self.serve(model) as server:
            found = self.embeddings(server, TEXTS)
            weights = weights_of(self.root / model)
            for text, embedding in zip(TEXTS, found):
                ids = json.loads(server.post("/tokenize", prompt=text)[1])["tokens"]
                self.assertEqual((ids[0], ids[-1]), (2, 3))
                expected = embedding_of(hidden_states(weights, ids, first), pooling)
                self.assertLess(max(abs(a - b) for a, b in zip(embedding, expected)), 1e-5, (model, text))

    def test_numbers_are_those_of_the_formula(self):
        self.check("bare", "mean")
        self.check("masked", "mean")
        self.check("roberta", "mean", first=2)

    def test_the_page_is_told_that_it_makes_no_text(self):
        with self.serve("bare") as server:
            self.assertIs(json.loads(server.get("/arena")[1])["makes_text"], False)

    def test_pooling_is_as_the_models_file_says(self):
        for pooling, key in (("cls", "pooling_mode_cls_token"), ("mean", "pooling_mode_mean_tokens"), ("last", "pooling_mode_lasttoken")):
            folder = self.root / f"pooled-{pooling}"
            shutil.copytree(self.root / "bare", folder)
            (folder / "1_Pooling").mkdir()
            (folder / "1_Pooling/config.json").write_text(json.dumps({key: True}))
            self.check(folder.name, pooling)

    def test_a_checkpoint_needs_no_head(self):
        folder = self.root / "headless"
        shutil.copytree(self.root / "bare", folder)
        header, data = read_safetensors(folder / "model.safetensors")
        kept, parts, at = {}, [], 0
        for name, entry in header.items():
            if name == "__metadata__" or "pooler" in name:
                continue
            begin, end = entry["data_offsets"]
            kept[name.removeprefix("bert.")] = {**entry, "data_offsets": [at, at + end - begin]}
            parts.append(data[begin:end])
            at += end - begin
        self.assertLess(len(kept), len([name for name in header if name != "__metadata__"]))
        write_safetensors(folder / "model.safetensors", kept, b"".join(parts))
        self.check("headless", "mean")

    def test_an_input_gets_what_it_gets_alone_inside_the_plan(self):
        with self.serve("bare", "--max-num-batched-tokens", "48", "--max-num-seqs", "3") as server:
            alone = [self.embeddings(server, [text])[0] for text in TEXTS]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for found in pool.map(lambda _: self.embeddings(server, TEXTS * 9), range(16)):
                    self.assertEqual(found, alone * 9)
            figures = server.metrics()
            self.assertEqual(figures["headroom_arena_measured_bytes"], figures["headroom_arena_planned_bytes"])
            self.assertLessEqual(figures["headroom_process_peak_bytes"], figures["headroom_planned_peak_bytes"])
            self.assertEqual(figures["headroom_kv_blocks_used"] + figures["headroom_kv_blocks_kept"], 0)
            self.assertEqual(figures["vllm:prefix_cache_hits_total"], 0)

    def test_what_is_no_embedding_is_refused(self):
        with self.serve("bare") as server:
            for path, body in PATHS.items():
                status, text = server.post(path, **body)
                self.assertEqual(status, 400, path)
                self.assertIn("is an encoder", text)
                self.assertIn("/v1/embeddings", text)
            self.assertEqual([model["id"] for model in json.loads(server.get("/v1/models")[1])["data"]], ["bare"])
            self.assertEqual(server.get("/health")[0], 200)
            status, text = server.post("/v1/embeddings", input=" ".join(["so1"] * 39))
            self.assertEqual((status, json.loads(text)["error"]["code"]), (400, "context_length_exceeded"))
            ids = json.loads(server.post("/tokenize", prompt="so1 bad2")[1])["tokens"]
            self.assertEqual(self.embeddings(server, [ids]), self.embeddings(server, ["so1 bad2"]))

    def test_options(self):
        command = ["serve", "--model", "bare", "--memory", "96MiB"]
        self.assert_refused([*command, "--enable-lora"], 2, "adapter slots for BertModel", "merge")
        self.assert_refused([*command, "--admission", "balanced"], 2, "--admission balanced")
        self.assert_refused([*command, "--max-num-batched-tokens", "8", "--max-model-len", "9"], 2, "--max-num-batched-tokens 8", "--max-model-len 9")
        self.assert_refused([*command, "--max-model-len", "41"], 2, "--max-model-len 41")
        self.assertEqual(self.call("serve", "--model", "bare", "--memory", "1MiB").returncode, 3)

    def test_a_small_budget_makes_small_steps(self):
        config = dict(json.loads((self.root / "bare.json").read_text()), max_position_embeddings=1024)
        (self.root / "long.json").write_text(json.dumps(config))

        def plan(memory, *more):
            done = self.call("plan", "--serve", "--json", "--model", "long.json", "--memory", str(memory), "--threads", "1", *more)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            return json.loads(done.stdout)

        def sizes(memory, *more):
            found = plan(memory, *more)
            return (found["max_model_len"], found["max_num_batched_tokens"]) if found["feasible"] else None

        self.assertEqual(sizes("1GiB"), (1024, 1024))
        self.assertEqual(sizes("1GiB", "--max-num-batched-tokens", "4096"), (1024, 4096))
        self.assertEqual(sizes("1GiB", "--max-model-len", "100"), (100, 256))
        whole, half, least = (plan("1GiB", "--max-model-len", str(length), "--max-num-batched-tokens", str(length))["minimum_bytes"]
                              for length in (1024, 512, 256))
        self.assertEqual([sizes(memory) for memory in (whole, whole - 1, half, half - 1, least, least - 1)],
                         [(1024, 1024), (512, 512), (512, 512), (256, 256), (256, 256), None])
        self.assertIsNone(sizes(whole - 1, "--max-model-len", "1024"))
        self.assertEqual([plan(memory)["minimum_bytes"] for memory in ("1GiB", half, least - 1)], [least] * 3)
        small = plan("1GiB", "--max-model-len", "100", "--max-num-batched-tokens", "100")["minimum_bytes"]
        self.assertEqual(sizes(small, "--max-model-len", "100"), (100, 100))

    def test_the_plan_has_no_logits(self):
        def plan(*more):
            done = self.call("plan", "--serve", "--json", "--model", "bare.json", "--memory", "1GiB", "--threads", "1", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            return found, {region["name"]: region["bytes"] for region in found["regions"]}

        found, regions = plan()
        self.assertEqual((found["max_model_len"], found["max_num_batched_tokens"], found["max_num_seqs"]), (40, 256, 32))
        self.assertEqual(regions["logits"], 0)
        self.assertEqual(found["blocks"], 256 // 16 + 32)
        self.assertEqual(plan("--max-num-batched-tokens", "8")[0]["max_model_len"], 8)
        larger = plan("--max-num-batched-tokens", "65536")[1]
        self.assertGreater(larger["activations"], regions["activations"])
        self.assertIn("an encoder", self.call("plan", "--serve", "--model", "bare", "--memory", "96MiB").stdout)


if __name__ == "__main__":
    unittest.main()
