"""Invalid config.json and tokenizer.json: refused with key, value and remedy."""

import json
import unittest

from program import CONFIG, DATA, ProgramTest


class Config(ProgramTest):
    def assert_config_refused(self, changes, *parts):
        directory = self.fresh_model("odd")
        config = {key: value for key, value in {**CONFIG, **changes}.items() if value is not None}
        (directory / "config.json").write_text(json.dumps(config))
        self.assert_refused(self.train_arguments("out", model="odd"), 2, *parts)
        self.assert_refused(["plan", "--model", "odd/config.json", "--memory", "128MiB"], 2, *parts)
        self.assert_refused(["init", "--config", "odd/config.json", "--tokenizer", "bytes", "--output-dir", "out"], 2, *parts)

    def test_out_of_range(self):
        for key, value in [("hidden_size", 0), ("hidden_size", -16), ("num_hidden_layers", 0), ("num_hidden_layers", 10**12), ("vocab_size", -1), ("vocab_size", 2**40),
                           ("intermediate_size", 0), ("num_attention_heads", 0), ("num_key_value_heads", -2), ("max_position_embeddings", 0), ("rms_norm_eps", -1.0),
                           ("rope_theta", 0.0)]:
            with self.subTest(key=key, value=value):
                self.assert_config_refused({key: value}, "config.json", key)

    def test_wrong_type(self):
        for key, value in [("hidden_size", "16"), ("num_hidden_layers", 2.5), ("vocab_size", [258]), ("tie_word_embeddings", "yes"), ("rms_norm_eps", "small"), ("architectures", 3)]:
            with self.subTest(key=key, value=value):
                self.assert_config_refused({key: value}, "config.json", key)

    def test_contradictory(self):
        self.assert_config_refused({"num_attention_heads": 3}, "config.json", "3")
        self.assert_config_refused({"num_attention_heads": 4, "num_key_value_heads": 3}, "config.json", "num_key_value_heads")

    def test_missing_key(self):
        for key in ("hidden_size", "vocab_size", "num_hidden_layers"):
            with self.subTest(key=key):
                self.assert_config_refused({key: None}, "config.json", key)

    def test_unknown_family(self):
        self.assert_config_refused({"architectures": ["MambaForCausalLM"], "model_type": "mamba"}, "config.json", "mamba")

    def test_unknown_activation_and_scaling(self):
        self.assert_config_refused({"hidden_act": "wiggle"}, "config.json", "wiggle")
        self.assert_config_refused({"rope_scaling": {"type": "wobble", "factor": 2.0}}, "config.json", "wobble")

    def test_no_json(self):
        directory = self.fresh_model("odd")
        for text in ("", "{", "[]", "null", "{\"hidden_size\": 1e400}", "[" * 20000, "\x00"):
            with self.subTest(text=text[:20]):
                (directory / "config.json").write_text(text)
                self.assert_refused(self.train_arguments("out", model="odd"), 2, "config.json")
                self.assert_refused(["info", "odd"], 2, "config.json")

    def test_missing_config(self):
        (self.fresh_model("odd") / "config.json").unlink()
        self.assert_refused(self.train_arguments("out", model="odd"), 2, "config.json")

    def test_quantised_model_is_counted_but_not_trained(self):
        directory = self.fresh_model("odd")
        config = {**CONFIG, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
        (directory / "config.json").write_text(json.dumps(config))
        for arguments in (self.train_arguments("out", model="odd"), ["plan", "--model", "odd", "--memory", "128MiB"],
                          ["generate", "--model", "odd", "--prompt", "a", "--memory", "128MiB"], ["evaluate", "--model", "odd", "--data", "data.txt", "--memory", "128MiB"]):
            self.assert_refused(arguments, 2, "config.json", "gptq")
        done = self.call("info", "odd/config.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gptq", done.stdout)

    def test_hub_id(self):
        for command in (self.train_arguments("out", model="meta-llama/Llama-3.2-1B"), ["info", "meta-llama/Llama-3.2-1B"],
                        ["plan", "--model", "meta-llama/Llama-3.2-1B", "--memory", "8GiB"]):
            self.assert_refused(command, 2, "meta-llama/Llama-3.2-1B", "Hub id", "download")

    def test_bare_config_has_no_weights(self):
        self.assert_refused(self.train_arguments("out", model="config.json"), 2, "config.json", "headroom init")
        self.assert_refused(["generate", "--model", "config.json", "--prompt", "a", "--memory", "128MiB"], 2, "config.json")


class Tokenizers(ProgramTest):
    def test_ids_beyond_the_vocabulary(self):
        config = self.root / "small.json"
        config.write_text(json.dumps({**CONFIG, "vocab_size": 200}))
        self.assert_refused(["init", "--config", "small.json", "--tokenizer", "bytes", "--output-dir", "out"], 2, "258", "200", "vocab_size")

    def test_a_data_id_beyond_the_vocabulary(self):
        directory = self.fresh_model("odd")
        tokenizer = json.loads((directory / "tokenizer.json").read_text())
        for token in tokenizer["added_tokens"]:
            if token["id"] == 257:
                token["id"] = 400
        vocab = tokenizer["model"]["vocab"]
        for name, number in list(vocab.items()):
            if number == 257:
                vocab[name] = 400
        (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
        (self.root / "rows.jsonl").write_text('{"text": "a row ends with EOS"}\n')
        self.assert_refused(self.train_arguments("out", model="odd", data="rows.jsonl"), 2, "400", "258")

    def test_malformed(self):
        directory = self.fresh_model("odd")
        for text in ("", "{}", "{\"model\": {\"type\": \"Unigram\"}}", "[" * 20000):
            with self.subTest(text=text[:30]):
                (directory / "tokenizer.json").write_text(text)
                self.assert_refused(self.train_arguments("out", model="odd"), 2, "tokenizer.json")
                self.assert_refused(["tokenize", "--model", "odd"], 2, "tokenizer.json", stdin="{\"text\": \"a\"}\n")

    def test_missing(self):
        (self.fresh_model("odd") / "tokenizer.json").unlink()
        self.assert_refused(self.train_arguments("out", model="odd"), 2, "tokenizer")
        self.assert_refused(["generate", "--model", "odd", "--prompt", "a", "--memory", "128MiB"], 2, "tokenizer.json")

    def test_rows_for_tokenize(self):
        self.assert_refused(["tokenize", "--model", "model"], 2, "standard input:2", stdin="{\"text\": \"a\"}\nno json\n")
        self.assert_refused(["tokenize", "--model", "model"], 2, "standard input:1", "\"text\"", stdin="{\"ids\": [1]}\n")
        self.assert_refused(["tokenize", "--model", "model", "--decode"], 2, "standard input:1", stdin="{\"ids\": \"9\"}\n")
        self.assert_refused(["tokenize", "--model", "model", "--decode"], 2, "standard input:1", stdin="{\"ids\": [1.5]}\n")
        self.assert_refused(["tokenize"], 2, "--model", stdin="")

    def test_info_of_a_directory_without_weights(self):
        (self.fresh_model("bare") / "model.safetensors").unlink()
        done = self.call("info", "bare")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for part in ("weights          none in this directory", "tokenizer        ", "training needs   at least"):
            self.assertIn(part, done.stdout)

    def test_an_adapter_is_no_model(self):
        self.train("adapter", "--max-steps", 1, "--lora-r", 2)
        for arguments in (["info", "adapter"], self.train_arguments("out", model="adapter"), ["plan", "--model", "adapter", "--memory", "64MiB"]):
            self.assert_refused(arguments, 2, "adapter holds an adapter", "headroom merge")

    def test_a_prompt_from_stdin(self):
        base = ["generate", "--model", "model", "--memory", "128MiB", "--threads", 1, "--temperature", 0, "--max-new-tokens", 8, "--json"]
        given, piped = self.call(*base, "--prompt", "the quick\nfox"), self.call(*base, "--prompt", "-", stdin="the quick\nfox\n")
        self.assertEqual(piped.returncode, 0, piped.stderr)
        self.assertEqual(piped.stdout, given.stdout)

    def test_published_models_are_read(self):
        done = self.call("info", DATA / "stories260K")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("llama", done.stdout)


if __name__ == "__main__":
    unittest.main()
