#!/usr/bin/env python3
"""Random runs of `headroom train` and `evaluate` whose largest phase is preparing the data, inside a memory cgroup whose limit is
the budget.

Usage: prepare_runs.py [HEADROOM_BINARY] [--seed S] [--first I] [--count N] [--keep DIR] [--verbose]
Tiny models with the tokenizers of ../shared (only with `bytes` if these are missing), most of them with adapters, so that
little is trained: rows of text, prompts, instructions, classes, pairs, ids, conversations and streams, one row of up to 16 MiB
among short ones, packed or in buckets in some runs, at the least budget or a little above it. random_runs.py states the
guarantees. A row that needs more than the budget is refused with exit code 2 and its file and line, and no files are left.
Standard library only.
"""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from random_runs import PLENTY, RandomRun, Violation, main  # noqa: E402
import child_peak  # noqa: E402

TOKENIZERS = Path(__file__).resolve().parents[3] / "shared/data/tokenizers"
# (name, ids, families)
CHOICES = (("bytes", 258, ("llama", "bert")), ("gpt2", 50257, ("llama",)), ("qwen2.5", 151665, ("llama",)), ("llama2", 32000, ("llama",)),
           ("bert-base-uncased", 30522, ("bert",)))
TEMPLATE = "{% for m in messages %}<{{ m.role }}> {{ m.content | trim }}\n{% endfor %}{% if add_generation_prompt %}<assistant> {% endif %}"
MOST_ROW = (16 << 20) - 4096
TEXTS = ("the quick brown fox jumps, ", "x", "caf\u00e9 na\u00efve ", "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0", "a\tb\"c\\ ", "0123456789")
KINDS = {"llama": ("text", "prompt", "instruction", "ids", "chats", "stream"), "bert": ("label", "pair", "id label", "table")}


def words_of(draw, size):
    """A text of about `size` bytes of JSON: words, or characters between which the text must not be cut."""
    word = draw.choice(TEXTS)
    return word * (size // len(json.dumps(word, ensure_ascii=False).encode()) + 1)


def row_of(draw, kind, size):
    text = words_of(draw, size)
    if kind == "chats":
        turns = 2 * draw.randint(1, 8)
        part = text[: len(text) // turns + 1]
        return {"messages": [{"role": ("user", "assistant")[i % 2], "content": part} for i in range(turns)]}
    ids = [draw.randrange(5, 250)] * max(2, size // 10)
    return {"text": {"text": text}, "prompt": {"prompt": "a", "completion": text}, "ids": {"input_ids": ids, "labels": ids},
            "instruction": {"instruction": "do it", "input": text[: len(text) // 2], "output": "b" + text[len(text) // 2 :]},
            "label": {"text": text, "label": 1}, "pair": {"text": text[: len(text) // 2], "text_pair": text[len(text) // 2 :], "label": 0},
            "id label": {"input_ids": ids, "label": 2}}[kind]


def draw_data(draw, kind):
    """(file name, text, size of the longest row)."""
    size = draw.choice((1000, 100_000, 1_000_000, MOST_ROW - 4096))
    if kind == "stream":
        return "data.txt", words_of(draw, size), 0
    if kind == "table":
        line = lambda most: words_of(draw, most).replace("\t", " ") + "\t1\n"
        return "data.tsv", "".join([line(100), line(size), line(50)]), size
    # Conversations near a row's size limit need more than a small budget.
    size = draw.choice((1000, 30_000, 100_000, 2_000_000)) if kind == "chats" else size
    rows = [row_of(draw, kind, draw.randint(10, 300)) for _ in range(draw.choice((2, 20, 3000)))]
    rows.insert(draw.randrange(len(rows) + 1), row_of(draw, kind, size))
    # One that certainly has a scored token.
    rows += [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}] if kind == "chats" else []
    rows += [{"instruction": "a", "output": "b"}] if kind == "instruction" else []
    return "data.jsonl", "".join(json.dumps(row, ensure_ascii=draw.random() < 0.3) + "\n" for row in rows), size


def config_of(family, ids):
    config = {"model_type": family, "torch_dtype": "float32", "vocab_size": ids, "hidden_size": 8, "intermediate_size": 16,
              "num_attention_heads": 1, "num_hidden_layers": 1, "max_position_embeddings": 512, "hidden_act": "silu"}
    if family == "llama":
        return config | {"architectures": ["LlamaForCausalLM"], "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
    return config | {"architectures": ["BertForSequenceClassification"], "hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": 2,
                     "pad_token_id": 0, "num_labels": 3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class PrepareRun(RandomRun):
    def __init__(self, binary, seed, index, directory):
        self.binary, self.directory, self.slack, self.limited = binary, directory, None, True
        self.draw = draw = random.Random(f"prepare-{seed}-{index}")
        there = [choice for choice in CHOICES if choice[0] == "bytes" or (TOKENIZERS / choice[0]).exists()]
        self.tokenizer, ids, families = there[index % len(there)]
        family = draw.choice(families)
        self.kind = draw.choice(KINDS[family])
        if self.tokenizer == "bytes" and self.kind in ("pair",):
            self.kind = "label"  # the tokenizer does not support pairs
        self.config = config_of(family, ids)
        name, text, self.longest = draw_data(draw, self.kind)
        self.data = f"{directory}/{name}"
        Path(self.data).write_text(text, encoding="utf-8")
        Path(f"{directory}/config.json").write_text(json.dumps(self.config))
        self.length = str(512 if self.kind in ("chats", "instruction") else draw.choice((16, 512)))
        self.options = ["--max-seq-length", self.length, "--global-batch-size", "2", "--threads", "1"]
        if draw.random() < 0.8:
            self.options += ["--lora-r", "1"]
        if draw.random() < 0.3:
            self.options += ["--packing" if family == "llama" and draw.random() < 0.6 else "--group-by-length", "true"]
        self.steps, self.schedule = 1, []

    def make_model_and_template(self):
        self.make_model(tokenizer="bytes" if self.tokenizer == "bytes" else f"{TOKENIZERS}/{self.tokenizer}/tokenizer.json")
        if self.kind == "chats":
            Path(f"{self.directory}/model/chat_template.jinja").write_text(TEMPLATE)

    def check_long_conversation(self, budget):
        """Whether the run correctly refuses a conversation that needs more than the budget."""
        code, text, resident = self.train(budget, 1)
        if code != 2 or self.kind != "chats":
            return False
        if not re.search(r"data.jsonl:\d+: .*more than \d+ bytes", text) or "--memory" not in text:
            raise Violation(f"refused with other words: {text.strip()[-600:]}")
        if resident > budget:
            raise Violation(f"refusing took {resident} bytes of {budget}")
        return True

    def evaluate(self):
        """The least budget of evaluation, found with one that is too small."""
        command = [self.binary, "evaluate", "--model", f"{self.directory}/model", "--data", self.data, "--threads", "1", "--max-seq-length", self.length]
        refused = subprocess.run([*command, "--memory", "1MiB"], capture_output=True, text=True, check=False)
        least = re.search(r"(?:least|needs|minimum)\D*(\d{7,})", refused.stderr)
        if refused.returncode != 3 or not least:
            raise Violation(f"evaluate with 1 MiB: exit {refused.returncode}: {refused.stderr.strip()[-300:]}")
        code, peak, _, text = child_peak.run([*command, "--memory", least[1]])
        long_conversation = self.kind == "chats" and code == 2 and "more than" in text
        if code != 0 and not long_conversation:
            raise Violation(f"evaluate at its least budget {least[1]}: exit {code}: {text.strip()[-300:]}")
        if peak > int(least[1]):
            raise Violation(f"evaluate at its least budget {least[1]}: peak {peak}")

    def run(self):
        self.make_model_and_template()
        plan = self.plan(PLENTY)
        budget = plan["minimum_bytes"] + self.draw.choice((0, 0, 1 << 20))
        what = f"{self.tokenizer}, {self.kind} up to {self.longest} bytes, budget {budget}, {' '.join(self.options)}"
        if self.check_long_conversation(budget):
            return what + ": refused"
        subprocess.run(["rm", "-rf", f"{self.directory}/out"], check=True)
        self.hold(budget, 1)
        if self.draw.random() < 0.3:
            self.evaluate()
        return what


if __name__ == "__main__":
    main(__doc__, PrepareRun)
