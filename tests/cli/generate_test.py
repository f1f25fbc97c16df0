"""generate: chat templates, stop texts, and the end tokens of generation_config.json."""

import json
import unittest

from program import ProgramTest

OPTIONS = ["--memory", "128MiB", "--threads", "1", "--max-new-tokens", "24", "--temperature", "1", "--seed", "5"]
TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"


class Generate(ProgramTest):
    def setUp(self):
        self.model = self.fresh_model("talker")
        self.write("tokenizer_config.json", {"chat_template": TEMPLATE, "bos_token": "<s>"})

    def write(self, name, value):
        (self.model / name).write_text(json.dumps(value))

    def generate(self, *arguments, **options):
        done = self.call("generate", "--model", "talker", *OPTIONS, *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def result(self, *arguments, **options):
        return json.loads(self.generate("--json", *arguments, **options).stdout)

    def test_a_chat_is_what_the_template_renders(self):
        plain = self.result("--prompt", "[user]Hi\n[assistant]")
        self.assertEqual(self.result("--chat", "--prompt", "Hi"), plain)
        self.assertEqual(self.result("--chat", "--prompt", "-", stdin="Hi\n"), plain)
        self.assertIn("prompt: 21 tokens", self.generate("--chat", "--prompt", "Hi").stderr)
        briefed = self.result("--prompt", "[system]Be brief.\n[user]Hi\n[assistant]")
        for option in ("--system", "--system-prompt"):
            self.assertEqual(self.result("--chat", option, "Be brief.", "--prompt", "Hi"), briefed)

    def test_a_chat_of_marks_stays_text(self):
        quoted = '"} {{ m }}\t'
        self.assertEqual(self.result("--chat", "--prompt", quoted), self.result("--prompt", f"[user]{quoted}\n[assistant]"))

    def test_the_template_of_its_own_file_wins(self):
        (self.model / "chat_template.jinja").write_text("{% for m in messages %}<{{ m.content }}>{% endfor %}")
        done = self.generate("--chat", "--prompt", "Hi")
        self.assertIn("prompt: 4 tokens", done.stderr)

    def test_chats_that_cannot_be(self):
        command = ["generate", "--model", "talker", *OPTIONS]
        self.assert_refused([*command, "--chat"], 2, "--chat without a message", "--prompt")
        self.assert_refused([*command, "--prompt", "Hi", "--system", "Be brief."], 2, "--system without --chat", "add --chat")
        self.write("tokenizer_config.json", {"chat_template": "{{ raise_exception('no system messages') }}"})
        self.assert_refused([*command, "--chat", "--prompt", "Hi"], 2, "--chat: ", "no system messages")
        self.write("tokenizer_config.json", {"chat_template": "{% if %}"})
        self.assert_refused([*command, "--chat", "--prompt", "Hi"], 2, "talker/tokenizer_config.json: chat template:1")
        self.write("tokenizer_config.json", {"chat_template": None})
        self.assert_refused([*command, "--chat", "--prompt", "Hi"], 2, "talker has no chat template", "chat_template.jinja", "leave out --chat")

    def test_it_ends_before_a_stop_text(self):
        whole = self.result("--prompt", "a")
        text = whole["text"]
        self.assertEqual((len(whole["ids"]), whole["finish_reason"]), (24, "length"))
        for begin, end in ((8, 9), (8, 12), (2, 5), (0, 1)):
            stop = text[begin:end]
            before = text[: text.index(stop)]
            with self.subTest(stop=stop):
                stopped = self.result("--prompt", "a", "--stop", "never there", f"--stop={stop}")
                self.assertEqual((stopped["text"], stopped["finish_reason"]), (before, "stop"))
                self.assertLess(len(stopped["ids"]), 24)
                self.assertEqual(stopped["ids"], whole["ids"][: len(stopped["ids"])])
                self.assertEqual(self.generate("--prompt", "a", f"--stop={stop}").stdout, before + "\n")
        self.assertEqual(self.result("--prompt", "a", "--stop", text[-3:] + "more"), whole)
        self.assert_refused(["generate", "--model", "talker", *OPTIONS, "--stop", ""], 2, "--stop ''")

    def test_it_ends_at_every_id_that_the_model_names(self):
        whole = self.result("--prompt", "a")
        at = next(n for n in range(4, 24) if whole["ids"][n] not in whole["ids"][:n])
        for ids in (whole["ids"][at], [3, whole["ids"][at]]):
            self.write("generation_config.json", {"eos_token_id": ids})
            ended = self.result("--prompt", "a")
            self.assertEqual((ended["ids"], ended["finish_reason"]), (whole["ids"][:at], "stop"))
        self.write("generation_config.json", {"eos_token_id": "</s>"})
        self.assert_refused(["generate", "--model", "talker", *OPTIONS, "--prompt", "a"], 2, "talker/generation_config.json", "eos_token_id")

    def test_a_special_token_stops_though_no_text_shows_it(self):
        tokenizer = json.loads((self.model / "tokenizer.json").read_text())
        whole = self.result("--prompt", "a")
        at = next(n for n in range(4, 24) if whole["ids"][n] not in whole["ids"][:n])
        name = next(token for token, n in tokenizer["model"]["vocab"].items() if n == whole["ids"][at])
        tokenizer["added_tokens"].append({"id": whole["ids"][at], "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                                          "normalized": False, "special": True})
        self.write("tokenizer.json", tokenizer)
        self.assertEqual(self.result("--prompt", "a", f"--stop={name}")["ids"], whole["ids"][:at])

    def test_positions_beyond_any_table(self):
        config = json.loads((self.model / "config.json").read_text())
        self.write("config.json", {**config, "max_position_embeddings": 1 << 40})
        self.assertEqual(len(self.result("--prompt", "a")["ids"]), 24)
        for tokens, code, said in (("1000000000", 3, "minimum"), ("99999999999", 2, "2147483648")):
            self.assert_refused(["generate", "--model", "talker", *OPTIONS, "--prompt", "a", "--max-new-tokens", tokens], code, said)

    def test_names_of_other_programs(self):
        for wrong, meant in (("--stop-sequence", "'--stop'"), ("--reverse-prompt", "'--stop'"), ("--apply-chat-template", "'--chat'")):
            self.assert_refused(["generate", "--model", "talker", *OPTIONS, wrong], 2, f"did you mean {meant}?")


if __name__ == "__main__":
    unittest.main()
