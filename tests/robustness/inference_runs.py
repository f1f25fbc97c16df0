#!/usr/bin/env python3
"""Random runs of `headroom generate` and `evaluate` on tiny models, inside a memory cgroup whose limit is the budget.

Usage: inference_runs.py [HEADROOM_BINARY] [--seed S] [--first I] [--count N] [--keep DIR] [--verbose]
Models as in random_runs.py, most of them with quantised weights, 8-bit activations, 16 bits, an adapter or a disk below; greedy
and sampled texts, of prompts of every length. Guarantees: the least budget that a refusal names is enough, within the kernel's
limit, and one byte less is refused again; neither the budget nor threads change a token of a text, or a loss by more than
rounding. The last line is as in random_runs.py. Standard library only.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from random_runs import QUANTIZED_WEIGHTS, RandomRun, Refused, Violation, main  # noqa: E402
import child_peak  # noqa: E402
from memory_group import MemoryGroup  # noqa: E402
from tiny_models import positions_of  # noqa: E402

LITTLE = 2 << 20
PLENTY = 1 << 30
CLOSE = 1e-5  # of losses that are summed in another order


def draw_form(draw, directory, kind):
    """Options of the model's form: precision, weights in codes, a disk."""
    options = ["--precision", draw.choices(("32-true", "bf16-true", "16-true"), (5, 3, 2))[0]]
    if draw.random() < 0.6:
        weights = draw.choice(QUANTIZED_WEIGHTS) + draw.choice(("", "", "+head", "+embedding+head") if kind == "generate" else ("",))
        options += ["--technique", f"quantize-weights={weights}"]
        if weights.startswith("int") and draw.random() < 0.5:
            options += ["--technique", "quantize-activations=int8"]
    if draw.random() < 0.3:
        Path(f"{directory}/scratch").mkdir(exist_ok=True)
        options += ["--disk-memory", f"{directory}/scratch:1GiB"]
    return options


def draw_text(draw, config):
    """Options of a text that fits the model's positions."""
    positions = positions_of(config)
    prompt = draw.randint(1, positions - 1)
    letters = "etaoin shrdlu,."
    options = ["--prompt", "".join(draw.choice(letters) for _ in range(prompt)).strip() or "a",
               "--max-new-tokens", str(draw.randint(1, positions - prompt)), "--seed", str(draw.randrange(1000))]
    return options + (["--temperature", "0"] if draw.random() < 0.6 else ["--temperature", "0.8", "--top-p", "0.9"])


class InferenceRun(RandomRun):
    def __init__(self, binary, seed, index, directory):
        super().__init__(binary, seed, index, directory)
        causal = self.config["architectures"][0].endswith("CausalLM")
        self.kind = "generate" if causal and self.draw.random() < 0.7 else "evaluate"
        length = ["--data", self.data, "--max-seq-length", str(self.draw.randint(2, positions_of(self.config)))]
        form = draw_form(self.draw, directory, self.kind)
        self.options = [*form, *(draw_text(self.draw, self.config) if self.kind == "generate" else length)]
        self.schedule = [self.kind]

    def adapter(self):
        """Trains adapters in some runs."""
        if self.draw.random() > 0.25 or not self.config["architectures"][0].endswith("CausalLM"):
            return []
        made = self.call("train", "--model", f"{self.directory}/model", "--data", self.data, "--output-dir", f"{self.directory}/adapter",
                         "--memory", "512MiB", "--lora-r", str(self.draw.choice((1, 4, 8))), "--max-steps", "1", "--threads", "1",
                         "--max-seq-length", "16", "--global-batch-size", "1", "--quiet")
        return ["--adapter", f"{self.directory}/adapter"] if made.returncode == 0 else []

    def infer(self, budget, *more):
        """(exit code, stdout, stderr) of a run that the kernel limits to the budget, if it is enough to say that it is not."""
        group = MemoryGroup(budget if budget > LITTLE else PLENTY)
        self.limited = self.limited and group.path is not None
        command = [self.binary, self.kind, "--model", f"{self.directory}/model", "--memory", str(budget), "--json", "--quiet",
                   *self.options, *more]
        code, peak, out, text = child_peak.run(command, group.path)
        group.close()
        if code == 2:
            raise Refused(text.strip().splitlines()[0])
        if code == 0 and peak > budget:
            raise Violation(f"peak {peak} above the budget {budget} by {peak - budget}")
        if code == 0:
            self.slack = min(self.slack or budget, budget - peak)
        return code, out, text

    def least(self, *more):
        code, out, text = self.infer(LITTLE, *more)
        found = re.search(r"minimum_bytes\D*(\d+)|--memory (\d+) or more", out + text)
        if code != 3 or not found:
            raise Violation(f"a budget of {LITTLE}: exit {code}: {text.strip()[-300:]}")
        return int(found[1] or found[2])

    def answer(self, budget, *more):
        code, out, text = self.infer(budget, *more)
        if code != 0:
            raise Violation(f"{'killed' if code < 0 else 'failed'}: exit {code} with a budget of {budget}: {text.strip()[-300:]}")
        return json.loads(out)

    def same(self, one, other):
        if self.kind == "generate":
            return one == other
        return one["tokens"] == other["tokens"] and abs(one["loss"] - other["loss"]) <= CLOSE * abs(one["loss"])

    def run(self):
        """Returns a description of the run. Throws Violation or Refused."""
        self.make_model()
        more = [*self.adapter(), "--threads", "1"]
        least = self.least(*more)
        if self.infer(least - 1, *more)[0] != 3:
            raise Violation(f"one byte below the least of {least} is not refused")
        answers = [self.answer(least, *more), self.answer(PLENTY, *more), self.answer(PLENTY, *more[:-1], "2")]
        for other in answers[1:]:
            if not self.same(answers[0], other):
                raise Violation(f"the answer depends on the budget or threads: {json.dumps(answers[0])[:300]} and {json.dumps(other)[:300]}")
        return f"{self.config['architectures'][0]}, {self.kind} ({least}), {' '.join([*self.options, *more])}"


if __name__ == "__main__":
    main(__doc__, InferenceRun)
