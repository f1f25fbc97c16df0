#!/usr/bin/env python3
"""Random runs of `headroom train` on tiny models, inside a memory cgroup whose limit is the budget.

Usage: random_runs.py [HEADROOM_BINARY] [--seed S] [--first I] [--count N] [--keep DIR] [--verbose]
Run I of a seed is the same on every machine: a family, dimensions, data, options, techniques, and a budget between the least
that `plan` names and twice what the run takes without a limit, or one byte below the least. Guarantees: a budget that fits is
never refused (even the least one), its run succeeds, its arena is the planned one and its peak at most the planned one; with
fixed arithmetic its losses are, bit for bit, those of a run with plenty; a budget that is one byte too small exits with 3 and
writes nothing; nothing is ever killed. Some runs resume from their checkpoint with another budget that fits. The last line is
"N passed, N failed, N skipped"; skipped runs have options that the program refuses by name (exit code 2), in both `plan` and
`train`. Standard library only.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
import child_peak  # noqa: E402
from memory_group import MemoryGroup  # noqa: E402
from tiny_models import MODELS, deepened, draw_config, draw_rows, layers_of, positions_of, widened  # noqa: E402

PLENTY = 16 << 30
QUANTIZED_WEIGHTS = ("nf4", "nf4-dq", "fp4", "int8", "int4", "int8-g32", "int4-row")
LOW_BIT_TRAINING = ("quantize-training=int8", "quantize-training=int8-mixed", "qat=int8-int4", "qat=int4", "qat=int8")
OPTIMIZERS = ("adafactor", "adagrad", "adam", "adamw_bnb_8bit", "lion_32bit", "lion_8bit", "muon", "nadam", "rmsprop", "sgd", "sophia")


class Violation(Exception):
    """A guarantee that a run broke."""


class Refused(Exception):
    """Options that the program refuses by name."""


def draw_techniques(draw, options, batch):
    """Adds pinned techniques and precision."""
    add = lambda chance, *more: options.extend(more) if draw.random() < chance else None
    precision = draw.choices(("32-true", "bf16-mixed", "bf16-true", "16-mixed", "16-true"), (5, 4, 3, 2, 2))[0]
    options += ["--precision", precision]
    if precision == "32-true":
        add(0.25, "--matmul-precision", draw.choice(("high", "medium")))
    add(0.35, "--technique", "recompute=" + draw.choice(("on", "off", "drop-cheap", "drop-attention", "keep-attention", "drop-cheap+mlp", "block-input")))
    add(0.1, "--technique", "compress-activations=int8")
    add(0.1, "--technique", "compress-gradients=bf16")
    add(0.30, "--technique", "chunked-loss=" + draw.choice(("on", "off", "1", "7", "64")))
    pinned = draw.random() < 0.25
    if pinned:
        options += ["--micro-batch-size", str(draw.randint(1, batch))]
    if draw.random() < 0.4:
        options += ["--max-grad-norm", "0"]
        if not pinned:
            add(0.5, "--technique", "fused-optimizer=" + draw.choice(("on", "off")))
    add(0.3, "--arithmetic", "fixed")
    add(0.15, "--technique", "recompute-segments=" + draw.choice(("on", "off", "1")))
    add(0.15, "--technique", "sequence-chunks=" + draw.choice(("on", "off", "2", "5")))


def draw_trained_part(draw, options, config):
    """Adds LoRA or frozen weights to some runs."""
    chosen = draw.random()
    if chosen < 0.25:
        options += ["--lora-r", str(draw.choice((1, 2, 3, 8))), "--lora-alpha", "16"]
        if draw.random() < 0.3:
            options += ["--lora-rslora", "true"]
        if draw.random() < 0.3 and not {"num_experts", "num_local_experts"} & set(config):
            options += ["--lora-dropout", "0.1"]
        if draw.random() < 0.25:
            options += ["--use-dora", "true"]
        if draw.random() < 0.4:
            options += ["--technique", "quantize-weights=" + draw.choice(QUANTIZED_WEIGHTS)]
        if draw.random() < 0.3 and config["architectures"][0].endswith("CausalLM"):
            options += ["--modules-to-save", {"gpt2": "ln_f", "gpt_neox": "final_layer_norm"}.get(config["model_type"], "model.norm")]
    elif chosen < 0.4 and layers_of(config) > 1:
        stem = {"gpt2": "h", "bert": "layer", "roberta": "layer"}.get(config["model_type"], "layers")
        options += ["--freeze", f"{stem}.0-{draw.randrange(layers_of(config))}"]
    elif chosen < 0.55:
        options += ["--technique", draw.choice(LOW_BIT_TRAINING)]


def draw_optimizer(draw, options):
    """Adds another optimizer than adamw to half of the runs."""
    if draw.random() < 0.5:
        options += ["--optim", draw.choice(OPTIMIZERS)]


def draw_batches(draw, options, config):
    """Adds packing or batches of similar length to some runs."""
    if draw.random() < 0.15 and not config["architectures"][0].endswith("SequenceClassification"):
        options += ["--packing", "true"]
    elif draw.random() < 0.1:
        options += ["--group-by-length", "true"]


def draw_disk(draw, options, config, directory):
    """Adds a disk to some runs; in some of these, certain tensors must or must not be on it, or a large head is used in slices."""
    if draw.random() > 0.25:
        return
    os.mkdir(f"{directory}/scratch")
    pinned = {part: draw.choice(("on", "off")) for part in ("optimizer", "gradients", "activations", "parameters") if draw.random() < 0.3}
    # What must be there needs room.
    size = "1GiB" if "on" in pinned.values() else draw.choice(("1MiB", "4MiB", "16MiB", "1GiB"))
    options += ["--disk-memory", f"{directory}/scratch:{size}"]
    for part, value in pinned.items():
        options += ["--technique", f"offload-{part}={value}"]
    if config["vocab_size"] > 2000 and draw.random() < 0.5:
        options += ["--technique", "vocabulary-slices=" + draw.choice(("on", "off"))]


def draw_run(draw, model, directory):
    """(config, file name of the data, its text, options of the run), for both `plan` and `train`."""
    config = draw_config(draw, *model)
    if draw.random() < 0.4:
        config = widened(config)
    if draw.random() < 0.1:
        config = deepened(draw, config)
    length = draw.randint(2, positions_of(config))
    name, text = draw_rows(draw, config, length)
    batch = draw.randint(1, 16)
    options = ["--max-seq-length", str(length), "--global-batch-size", str(batch), "--learning-rate", "1e-3",
               "--threads", "2" if draw.random() < 0.15 else "1", "--seed", str(draw.randrange(1000)),
               "--lr-scheduler-type", draw.choice(("linear", "cosine", "constant"))]
    draw_techniques(draw, options, batch)
    draw_trained_part(draw, options, config)
    draw_optimizer(draw, options)
    draw_batches(draw, options, config)
    draw_disk(draw, options, config, directory)
    return config, name, text, options


def draw_schedule(draw, data):
    """(steps, options that only `train` uses)."""
    steps = draw.randint(1, 4)
    options = ["--shuffle", draw.choice(("true", "false"))]
    if draw.random() < 0.5:
        options += ["--eval-data", data, "--eval-steps", str(draw.randint(1, 3)), "--eval-max-batches", str(draw.randint(1, 3))]
    for chance, more in ((0.4, ["--save-steps", str(draw.randint(1, 2))]), (0.2, ["--save-total-limit", "1"]),
                         (0.2, ["--save-dtype", "bfloat16"]), (0.2, ["--report-to", "tensorboard"]), (0.3, ["--weight-decay", "0.1"])):
        if draw.random() < chance:
            options += more
    return steps, options


def draw_budget(draw, least, plenty):
    """(what it is, bytes)."""
    kind = draw.choices(("below", "least", "between", "plenty", "more"), (15, 30, 35, 12, 8))[0]
    return kind, {"below": least - 1, "least": least, "between": draw.randint(least, max(least, plenty)), "plenty": plenty,
                  "more": 2 * plenty}[kind]


class RandomRun:
    def __init__(self, binary, seed, index, directory):
        self.binary, self.directory = binary, directory
        self.draw = random.Random(f"{seed}-{index}")
        self.slack = None  # planned peak minus the kernel's
        self.limited = True
        # Every model class has its turn.
        self.config, name, text, self.options = draw_run(self.draw, MODELS[index % len(MODELS)], directory)
        self.data = f"{directory}/{name}"
        Path(self.data).write_text(text)
        Path(f"{directory}/config.json").write_text(json.dumps(self.config))
        self.steps, self.schedule = draw_schedule(self.draw, self.data)

    def call(self, *arguments, program=None):
        return subprocess.run([program or self.binary, *arguments], capture_output=True, text=True, timeout=7200, check=False)

    def common(self):
        return ["--model", f"{self.directory}/model", "--data", self.data, *self.options]

    def plan(self, budget):
        done = self.call("plan", "--json", "--memory", str(budget), *self.common())
        if done.returncode == 2:
            raise Refused(done.stderr.strip().splitlines()[0])
        if done.returncode not in (0, 3):
            raise Violation(f"plan: exit {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def train(self, budget, steps, *more):
        """(exit code, stderr, peak resident bytes) of a run that the kernel limits to the budget."""
        group = MemoryGroup(budget)
        self.limited = self.limited and group.path is not None
        command = [self.binary, "train", "--memory", str(budget), "--output-dir", f"{self.directory}/out", "--max-steps", str(steps),
                   *self.common(), *self.schedule, *more]
        code, peak, _, text = child_peak.run(command, group.path)
        group.close()
        if code == 2 and "this version" in text:  # `plan` supports more models than `train`
            raise Refused(text.strip().splitlines()[0])
        return code, text, peak

    def rows(self, out="out"):
        return [json.loads(line) for line in Path(f"{self.directory}/{out}/metrics.jsonl").read_text().splitlines()]

    def hold(self, budget, steps, *more):
        """Trains up to `steps` and checks the guarantees."""
        code, text, resident = self.train(budget, steps, *more)
        if code != 0:
            raise Violation(f"{'killed' if code < 0 else 'failed'}: exit {code} with a budget of {budget}: {text.strip()[-600:]}")
        record = json.loads(Path(f"{self.directory}/out/run.json").read_text())
        plan = json.loads(Path(f"{self.directory}/out/plan.json").read_text())
        if plan["peak_bytes"] > budget:
            raise Violation(f"planned peak {plan['peak_bytes']} above the budget {budget}")
        if not record["arena_planned_bytes"] == record["arena_measured_bytes"] == plan["arena_bytes"]:
            raise Violation(f"arena planned {record['arena_planned_bytes']}, measured {record['arena_measured_bytes']}, plan {plan['arena_bytes']}")
        if resident > plan["peak_bytes"]:
            raise Violation(f"false fit: peak {resident} above the planned {plan['peak_bytes']} by {resident - plan['peak_bytes']}")
        slack = plan["peak_bytes"] - resident
        self.slack = slack if self.slack is None else min(slack, self.slack)
        logged = [row["step"] for row in self.rows() if "loss" in row]
        if logged != list(range(1, steps + 1)):
            raise Violation(f"logged steps {logged} of {steps}")

    def check_refused(self, budget):
        planned = self.call("plan", "--json", "--memory", str(budget), *self.common())
        if planned.returncode != 3 or json.loads(planned.stdout)["shortfall_bytes"] != 1:
            raise Violation(f"plan at one byte below the least: exit {planned.returncode}: {planned.stdout[:300]}")
        code, text, _ = self.train(budget, self.steps)
        if code != 3:
            raise Violation(f"train at one byte below the least: exit {code}: {text.strip()[-600:]}")
        if os.path.exists(f"{self.directory}/out"):
            raise Violation("a refused run wrote its output directory")

    def go_on(self, least, plenty):
        kind, budget = draw_budget(self.draw, least, plenty)
        if kind != "below":
            self.hold(budget, self.steps + self.draw.randint(1, 2), "--resume-from-checkpoint", "true")

    def losses(self, out="out"):
        return [row["loss"] for row in self.rows(out) if "loss" in row]

    def check_losses(self, plenty):
        """With fixed arithmetic the losses do not depend on the budget, bit for bit."""
        losses = self.losses()
        shutil.rmtree(f"{self.directory}/out")
        self.hold(2 * plenty, self.steps)
        if losses != self.losses():
            raise Violation(f"losses depend on the budget: {losses} and {self.losses()}")

    def make_model(self, *more, tokenizer="bytes"):
        made = self.call("init", "--config", f"{self.directory}/config.json", "--tokenizer", tokenizer, "--output-dir",
                         f"{self.directory}/model", *more)
        if made.returncode != 0:
            raise Violation(f"init: exit {made.returncode}: {made.stderr.strip()}")

    def run(self):
        """Returns a description of the run. Throws Violation or Refused."""
        self.make_model("--dtype", self.draw.choice(("float32", "float32", "bfloat16")))
        plan = self.plan(PLENTY)
        if not plan["feasible"]:
            raise Violation("infeasible with plenty")
        least, plenty = plan["minimum_bytes"], plan["peak_bytes"]
        kind, budget = draw_budget(self.draw, least, plenty)
        if kind == "below":
            self.check_refused(budget)
        else:
            self.hold(budget, self.steps)
            if "fixed" in self.options:
                self.check_losses(plenty)
            if self.draw.random() < 0.3:
                self.go_on(least, plenty)
        return f"{self.config['architectures'][0]}, {kind} ({budget} of {least} to {plenty}), {' '.join(self.options)}"


class Campaign:
    def __init__(self, arguments, make_run=RandomRun):
        self.arguments = arguments
        self.make_run = make_run
        self.passed = self.failed = self.skipped = self.unlimited = 0
        self.slacks = []

    def one(self, index):
        directory = tempfile.mkdtemp(prefix="random-run-", dir=self.arguments.keep or ".")
        run = None
        try:
            run = self.make_run(self.arguments.binary, self.arguments.seed, index, directory)
            what = run.run()
            self.passed += 1
            self.slacks += [run.slack] if run.slack is not None else []
            if self.arguments.verbose:
                print(f"ok   {index}: {what}")
        except Refused as refused:
            self.skipped += 1
            if self.arguments.verbose:
                print(f"left {index}: {refused}")
        except (Violation, subprocess.TimeoutExpired, OSError, ValueError, KeyError) as broken:
            self.failed += 1
            print(f"FAIL {index} (--seed {self.arguments.seed} --first {index} --count 1): {broken}")
            print(f"     {' '.join(run.options + run.schedule) if run else ''} of {json.dumps(run.config) if run else ''}")
        self.unlimited += run is not None and not run.limited
        if not self.arguments.keep:
            shutil.rmtree(directory, ignore_errors=True)
        sys.stdout.flush()

    def run(self):
        for index in range(self.arguments.first, self.arguments.first + self.arguments.count):
            self.one(index)
        if self.unlimited:
            print(f"{self.unlimited} runs without a kernel limit: no memory cgroup can be made here")
        if self.slacks:
            slacks = sorted(self.slacks)
            print(f"planned peak less the kernel's: least {slacks[0]}, median {slacks[len(slacks) // 2]}, most {slacks[-1]} bytes")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed or not self.passed else 0


def main(description=__doc__, make_run=RandomRun):
    parser = argparse.ArgumentParser(description=re.split(r"\n\n", description)[0])
    parser.add_argument("binary", nargs="?", default=os.environ.get("HEADROOM"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--keep", help="keep every run's directory in here")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if not arguments.binary:
        parser.error("no program: give its path, or HEADROOM in the environment")
    arguments.binary = os.path.abspath(arguments.binary)
    sys.exit(Campaign(arguments, make_run).run())


if __name__ == "__main__":
    main()
