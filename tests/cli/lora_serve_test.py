"""Several LoRA adapters in one server: given at the start, loaded and unloaded by requests, read again on SIGHUP."""

import concurrent.futures
import json
import shutil
import signal
import time
import unittest

from program import ProgramTest, read_safetensors, write_safetensors
from served import Server

PROMPT = "the quick brown"


class Running(Server):
    """`headroom serve` of the test's model, with adapters named after their folders."""

    def __init__(self, test, *arguments):
        super().__init__(test.program, "model", test.root, "--memory", "128MiB", "--max-model-len", "64", *map(str, arguments), cwd=test.root)

    def text(self, model, prompt=PROMPT, tokens=24):
        status, body = self.post("/v1/completions", model=model, prompt=prompt, max_tokens=tokens, temperature=0)
        assert status == 200, body
        return json.loads(body)["choices"][0]["text"]

    def embedding(self, model, text=PROMPT):
        status, body = self.post("/v1/embeddings", model=model, input=text)
        assert status == 200, body
        answer = json.loads(body)
        assert answer["model"] == model, body
        return answer["data"][0]["embedding"]

    def models(self):
        return {model["id"]: model for model in json.loads(self.get("/v1/models")[1])["data"]}

    def metric(self, name):
        return int(self.metrics()[name])


class LoraServe(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.adapter("one", "2", "q_proj", "v_proj")
        cls.adapter("two", "4", "o_proj", "down_proj", more=("--lora-rslora", "true"))
        cls.adapter("three", "4", "all-linear", more=("--lora-alpha", "3"))

    @classmethod
    def adapter(cls, name, rank, *targets, more=()):
        done = cls.call(*cls.train_arguments(name, "--learning-rate", "5e-2", "--max-steps", "6", "--lora-r", rank, "--quiet", *more,
                                             "--lora-target-modules", *targets))
        assert done.returncode == 0, done.stderr

    def generated(self, *more):
        done = self.call("generate", "--model", "model", "--prompt", PROMPT, "--max-new-tokens", "24", "--temperature", "0", "--memory",
                         "128MiB", "--threads", "1", "--quiet", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_each_request_gets_its_adapter(self):
        names = ["model", "one", "two", "three"]
        modules = ["--lora-modules", "one=one", json.dumps({"name": "two", "path": "two"}), "three=three"]
        with Running(self, *modules) as server:
            alone = {name: server.text(name) for name in names}
            self.assertEqual(len(set(alone.values())), 4, alone)
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                mixed = list(pool.map(lambda name: (name, server.text(name)), names * 5))
            for name, text in mixed:
                self.assertEqual(text, alone[name], name)
            for name in names[1:]:
                self.assertIn(alone[name].strip(), self.generated("--adapter", name), name)
            models = server.models()
            self.assertEqual(sorted(models), sorted(names))
            self.assertEqual((models["one"]["parent"], models["one"]["root"]), ("model", "one"))
            self.assertIsNone(models["model"]["parent"])
            status, body = server.post("/v1/completions", model="four", prompt=PROMPT)
            self.assertEqual((status, json.loads(body)["error"]["code"]), (404, "model_not_found"))
            self.assertEqual(json.loads(server.get("/v1/models/two")[1])["id"], "two")
            status, body = server.post("/v1/load_lora_adapter", lora_name="x", lora_path="one")
            self.assertEqual(status, 403)
            self.assertIn("--allow-runtime-lora", body)

    def test_embeddings_are_those_of_the_adapter(self):
        def alone(*more):
            with Running(self, *more) as server:
                return server.embedding("model")

        expected = {"model": alone(), "one": alone("--adapter", "one"), "three": alone("--adapter", "three")}
        with Running(self, "--lora-modules", "one=one", "three=three") as server:
            first = {name: server.embedding(name) for name in expected}
            for name, values in expected.items():  # a slot's products are added in another order
                for found, value in zip(first[name], values, strict=True):
                    self.assertAlmostEqual(found, value, delta=1e-6, msg=name)
            for name in expected:  # with blocks that were kept
                self.assertEqual(server.embedding(name), first[name], name)
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                for name, found in pool.map(lambda name: (name, server.embedding(name)), list(expected) * 5):
                    self.assertEqual(found, first[name], name)
            self.assertNotEqual(expected["model"], expected["one"])
            self.assertEqual(server.post("/v1/embeddings", model="two", input=PROMPT)[0], 404)
            # More inputs than run at once: the later ones use the adapter too.
            data = json.loads(server.post("/v1/embeddings", model="one", input=[PROMPT] * 70)[1])["data"]
            self.assertEqual({json.dumps(one["embedding"]) for one in data}, {json.dumps(expected["one"])})

    def test_tokens_are_those_of_the_base(self):
        with Running(self, "--lora-modules", "one=one") as server:
            tokens = json.loads(server.post("/tokenize", model="model", prompt=PROMPT)[1])["tokens"]
            self.assertEqual(json.loads(server.post("/tokenize", model="one", prompt=PROMPT)[1])["tokens"], tokens)
            self.assertEqual(json.loads(server.post("/detokenize", model="one", tokens=tokens)[1])["prompt"], PROMPT)
            for path in ("/tokenize", "/detokenize"):
                self.assertEqual(server.post(path, model="two", prompt=PROMPT, tokens=tokens)[0], 404)

    def test_prefixes_are_not_shared(self):
        with Running(self, "--lora-modules", "one=one", "two=two") as server:
            prompt = "the lazy dog sleeps on the quick brown fox"
            for model in ("model", "one", "two"):
                server.text(model, prompt, 2)
            self.assertEqual(server.metric("vllm:prefix_cache_hits_total"), 0)
            for model in ("model", "one", "two"):
                server.text(model, prompt, 2)
            self.assertGreater(server.metric("vllm:prefix_cache_hits_total"), 3 * 16)

    def test_adapters_are_loaded_and_unloaded(self):
        with Running(self, "--enable-lora", "--max-loras", "2", "--allow-runtime-lora") as server:
            base = server.text("model")
            resident = server.metric("headroom_process_peak_bytes")
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="a", lora_path="one"),
                             (200, "Success: LoRA adapter 'a' added successfully."))
            first = server.text("a")
            self.assertNotEqual(first, base)
            status, body = server.post("/v1/load_lora_adapter", lora_name="a", lora_path="two")
            self.assertEqual(status, 400)
            self.assertIn("The lora adapter 'a' has already been loaded.", json.loads(body)["error"]["message"])
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="b", lora_path="two")[0], 200)
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="c", lora_path="three")[0], 503)
            self.assertEqual(server.post("/v1/unload_lora_adapter", lora_name="a"),
                             (200, "Success: LoRA adapter 'a' removed successfully."))
            status, body = server.post("/v1/unload_lora_adapter", lora_name="a")
            self.assertEqual((status, json.loads(body)["error"]["message"]), (404, "The lora adapter 'a' cannot be found."))
            self.assertEqual(server.post("/v1/completions", model="a", prompt=PROMPT)[0], 404)
            # A new adapter with the same name and slot does not find blocks of the first one.
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="a", lora_path="three")[0], 200)
            third = server.text("a")
            self.assertNotIn(third, (first, base))
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="a", lora_path="one", load_inplace=True)[0], 200)
            self.assertEqual(server.text("a"), first)
            self.assertEqual(server.text("model"), base)
            for body in ({}, {"lora_name": "x"}, {"lora_path": "one"}, {"lora_name": "model", "lora_path": "one"}, {"lora_name": 5, "lora_path": "one"}):
                self.assertEqual(server.post("/v1/load_lora_adapter", **body)[0], 400, body)
            self.assertEqual(server.post("/v1/unload_lora_adapter")[0], 400)
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="x", lora_path="nowhere")[0], 404)
            for _ in range(40):
                server.post("/v1/load_lora_adapter", lora_name="a", lora_path="three", load_inplace=True)
            self.assertLess(server.metric("headroom_process_peak_bytes") - resident, 2 << 20)
            self.assertLessEqual(server.metric("headroom_process_peak_bytes"), server.metric("headroom_planned_peak_bytes"))
            self.assertEqual(server.metric("headroom_arena_measured_bytes"), server.metric("headroom_arena_planned_bytes"))

    def test_what_runs_on_an_adapter_is_not_written_over(self):
        with Running(self, "--max-loras", "1", "--max-lora-rank", "4", "--max-num-seqs", "2", "--allow-runtime-lora") as server:
            def load(path):
                return server.post("/v1/load_lora_adapter", lora_name="a", lora_path=path)[0]

            expected = {}
            for path in ("one", "two"):
                self.assertEqual(load(path), 200)
                expected[path] = server.text("a", tokens=40)
                self.assertEqual(server.post("/v1/unload_lora_adapter", lora_name="a")[0], 200)
            self.assertEqual(load("one"), 200)
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                running = [pool.submit(server.post, "/v1/completions", model="a", prompt=PROMPT, max_tokens=40, temperature=0) for _ in range(48)]
                while server.metric("vllm:num_requests_running") == 0 and not all(future.done() for future in running):
                    time.sleep(0.001)
                self.assertEqual(server.post("/v1/unload_lora_adapter", lora_name="a")[0], 200)
                while (status := load("two")) == 503:
                    time.sleep(0.002)
                self.assertEqual(status, 200)
                answers = [future.result() for future in running]
            texts = [json.loads(body)["choices"][0]["text"] for status, body in answers if status == 200]
            self.assertLessEqual(set(texts), set(expected.values()))
            self.assertIn(expected["one"], texts)
            self.assertEqual({status for status, _ in answers} - {200, 404}, set())
            self.assertEqual(server.text("a", tokens=40), expected["two"])

    def test_hostile_files_are_refused(self):
        bad = self.root / "bad"

        def refused(server, part, status=400):
            found, body = server.post("/v1/load_lora_adapter", lora_name="bad", lora_path="bad")
            self.assertEqual(found, status, body)
            self.assertIn(part, body)

        with Running(self, "--max-loras", "1", "--max-lora-rank", "2", "--allow-runtime-lora") as server:
            shutil.copytree(self.root / "two", bad, dirs_exist_ok=True)
            refused(server, "has rank 4, the slots hold 2")
            shutil.copytree(self.root / "one", bad, dirs_exist_ok=True)
            weights = bad / "adapter_model.safetensors"
            whole = weights.read_bytes()
            weights.write_bytes(whole[:-7])
            refused(server, "adapter_model.safetensors")
            weights.write_bytes(whole[:6])
            refused(server, "adapter_model.safetensors")
            header, data = read_safetensors(self.root / "one" / "adapter_model.safetensors")
            write_safetensors(weights, header, data, declared=1 << 40)
            refused(server, "adapter_model.safetensors")
            other = {name: {**entry, "shape": entry["shape"][::-1]} if name != "__metadata__" else entry for name, entry in header.items()}
            write_safetensors(weights, other, data)
            refused(server, "the model asks for")
            weights.unlink()
            refused(server, "has no file adapter_model.safetensors")
            weights.write_bytes(whole)
            (bad / "adapter_config.json").write_text("{" * 70000)
            refused(server, "adapter_config.json")
            (bad / "adapter_config.json").unlink()
            refused(server, "No adapter found", 404)
            self.assertEqual(sorted(server.models()), ["model"])
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="good", lora_path="one")[0], 200)

    def test_folders_below_a_root_alone(self):
        (self.root / "pool").mkdir()
        shutil.copytree(self.root / "one", self.root / "pool" / "inner")
        (self.root / "pool" / "way-out").symlink_to(self.root / "one")
        with Running(self, "--enable-lora", "--lora-root", "pool") as server:
            for path in ("../one", str(self.root / "one"), "way-out", "/", "inner/../../one"):
                self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="x", lora_path=path)[0], 403, path)
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="x", lora_path="inner")[0], 200)
            self.assertEqual(server.post("/v1/unload_lora_adapter", lora_name="x")[0], 200)
            self.assertEqual(server.post("/v1/load_lora_adapter", lora_name="x", lora_path=str(self.root / "pool" / "inner"))[0], 200)

    def test_without_slots_nothing_is_loaded(self):
        with Running(self, "--allow-runtime-lora") as server:
            status, body = server.post("/v1/load_lora_adapter", lora_name="x", lora_path="one")
            self.assertEqual(status, 400)
            self.assertIn("--enable-lora", body)

    def test_a_hangup_reads_folders_again(self):
        shutil.copytree(self.root / "one", self.root / "changing", dirs_exist_ok=True)
        with Running(self, "--lora-modules", "changing=changing", "--lora-target-modules", "all-linear", "--max-lora-rank", "4") as server:
            before = server.text("changing")
            shutil.copytree(self.root / "three", self.root / "changing", dirs_exist_ok=True)
            self.assertEqual(server.text("changing"), before)
            self.hang_up(server, "adapter changing was read again")
            after = server.text("changing")
            self.assertNotEqual(after, before)
            (self.root / "changing" / "adapter_model.safetensors").write_bytes(b"short")
            self.hang_up(server, "adapter changing was not read again")
            self.assertEqual(server.text("changing"), after)

    def hang_up(self, server, line):
        server.process.send_signal(signal.SIGHUP)
        for _ in range(200):
            if line in (self.root / "serve.log").read_text():
                return
            time.sleep(0.05)
        self.fail((self.root / "serve.log").read_text())

    def test_the_plan_names_the_slots(self):
        def slots(*more):
            done = self.call("plan", "--serve", "--json", "--model", "model", "--memory", "128MiB", "--threads", "1", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            return {region["name"]: region["bytes"] for region in json.loads(done.stdout)["regions"]}.get("lora_slots")

        hidden, width, keys = 16, 32, 8
        sums = {"q_proj": 2 * hidden, "k_proj": hidden + keys, "v_proj": hidden + keys, "o_proj": 2 * hidden,
                "gate_proj": hidden + width, "up_proj": hidden + width, "down_proj": hidden + width}
        whole = 2 * sum(sums.values())
        self.assertIsNone(slots())
        self.assertEqual(slots("--enable-lora"), 4 * (16 * whole + 1))
        self.assertEqual(slots("--max-loras", "3", "--max-lora-rank", "5"), 4 * (3 * 5 * whole + 3))
        self.assertEqual(slots("--enable-lora", "--precision", "bf16-true"), 2 * 16 * whole + 4)
        self.assertEqual(slots("--enable-lora", "--lora-target-modules", "q_proj"), 4 * (16 * 2 * sums["q_proj"] + 1))
        self.assertEqual(slots("--lora-modules", "one=one", "two=two"),
                         4 * (2 * 4 * 2 * sum(sums[name] for name in ("q_proj", "v_proj", "o_proj", "down_proj")) + 2))

    def test_what_is_refused(self):
        command = ["serve", "--model", "model", "--memory", "128MiB"]
        self.assert_refused([*command, "--lora-modules", "one"], 2, "--lora-modules one", "NAME=DIR")
        self.assert_refused([*command, "--lora-modules", '{"name": "one"}'], 2, "has no name, or no path")
        self.assert_refused([*command, "--lora-modules", "a=one", "a=two"], 2, "appears twice")
        self.assert_refused([*command, "--lora-modules", "model=one"], 2, "the name of the model")
        self.assert_refused([*command, "--lora-modules", "a=nowhere"], 2, "has no file adapter_config.json")
        self.assert_refused([*command, "--lora-modules", "a=two", "--max-lora-rank", "2"], 2, "has rank 4, the slots hold 2", "--max-lora-rank 4")
        self.assert_refused([*command, "--enable-lora", "--adapter", "one"], 2, "--adapter cannot be combined")
        self.assert_refused([*command, "--enable-lora", "--max-loras", "0"], 2, "--max-loras 0")


if __name__ == "__main__":
    unittest.main()
