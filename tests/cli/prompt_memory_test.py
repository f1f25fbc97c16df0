"""generate stays within its budget while it prepares the prompt: loads a tokenizer, renders a chat, encodes a long text."""

import json
import re
import shutil
import unittest

from program import CONFIG, ProgramTest, environment

import child_peak

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}\n{% endfor %}"
MERGES = 6  # of dashes: the last token is 64 of them


class PromptMemory(ProgramTest):
    def make_model(self):
        """Bytes, and tokens of dashes, so that a long word becomes few tokens."""
        tokenizer = json.loads((self.root / "model/tokenizer.json").read_text())
        runs = ["-" * (1 << i) for i in range(MERGES + 1)]
        tokenizer["model"]["merges"] = [f"{run} {run}" for run in runs[:-1]]
        tokenizer["model"]["vocab"] |= {run: 258 + i for i, run in enumerate(runs[1:])}
        (self.root / "dashes.json").write_text(json.dumps(tokenizer))
        config = CONFIG | {"vocab_size": 258 + MERGES, "hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 1,
                           "num_hidden_layers": 1, "max_position_embeddings": 32768}
        (self.root / "config.json").write_text(json.dumps(config))
        folder = self.root / "dashes"
        shutil.rmtree(folder, ignore_errors=True)
        made = self.call("init", "--config", "config.json", "--tokenizer", "dashes.json", "--output-dir", folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        (folder / "chat_template.jinja").write_text(TEMPLATE)
        return folder

    def run_in(self, memory, model, prompt, more):
        (self.root / "prompt").write_text(prompt)
        with open(self.root / "prompt", encoding="utf-8") as text:
            return child_peak.run([self.program, "generate", "--model", model, "--memory", memory, "--threads", 1, "--prompt", "-",
                                   "--max-new-tokens", 2, "--quiet", *more], stdin=text, env=environment(self.root))

    def least(self, *case):
        """The budget named in a refusal works. A refusal before the prompt is encoded knows less than the plan."""
        memory = 1 << 20
        for _ in range(4):
            code, peak, _, text = self.run_in(memory, *case)
            if code != 3:
                return memory
            memory = int(re.search(r"minimum_bytes (\d+)", text).group(1))
            self.assertLess(peak, memory, "the refusal itself")
        self.fail("a budget that a refusal names is refused again and again")

    def test_the_least_budget_holds(self):
        model = self.make_model()
        for prompt, more in (("a", ()), ("-" * (1 << 20), ()), ("the dog sleeps. " * 500, ("--chat",)), ("-" * (1 << 17), ("--chat",))):
            with self.subTest(bytes=len(prompt), more=more):
                least = self.least(model, prompt, more)
                code, peak, _, text = self.run_in(least, model, prompt, more)
                self.assertEqual(code, 0, text)
                self.assertLessEqual(peak, least)

    def test_a_prompt_without_end_is_refused(self):
        code, _, _, text = self.run_in(1 << 30, self.make_model(), "a" * (17 << 20), ())
        self.assertEqual(code, 2)
        self.assertIn("the prompt on stdin has more than 16777216 bytes", text)


if __name__ == "__main__":
    unittest.main()
