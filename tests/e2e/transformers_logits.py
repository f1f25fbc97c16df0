#!/usr/bin/env python3
"""Fine-tunes a Hugging Face checkpoint with headroom and compares the saved model with transformers.

Usage: transformers_logits.py HEADROOM [--shared ../shared] [--steps 30]
Needs torch and transformers; run by hand, results in docs/verification.md. Trains stories260K on tiny Shakespeare, checks
that its loss on held-out text falls, loads the saved model in transformers, and compares the loss over the held-out text
(1e-4) and greedy continuations token by token with the logits' margins. Exits 1 when a check fails.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data_files"))
from data_files import SHARED  # noqa: E402

import torch
from transformers import AutoModelForCausalLM

LENGTH = 256
TOLERANCE = 1e-4


def run(program, *arguments, stdin=None):
    done = subprocess.run([program, *map(str, arguments)], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{arguments[0]}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def evaluate(program, model, data):
    return json.loads(run(program, "evaluate", "--model", model, "--data", data, "--memory", "512MiB", "--max-seq-length", LENGTH, "--json"))


@torch.no_grad()
def transformers_loss(model, ids):
    """Mean loss over non-overlapping windows, cut as by `headroom evaluate`."""
    total, count = 0.0, 0
    for begin in range(0, len(ids), LENGTH):
        window = torch.tensor([ids[begin : begin + LENGTH]])
        if window.shape[1] < 2:
            continue
        logits = model(window).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(logits, window[0, 1:], reduction="sum").item()
        count += window.shape[1] - 1
    return total / count, count


@torch.no_grad()
def first_disagreement(model, prompt, new_ids):
    """How far, in logits, a greedy token of headroom is from transformers' largest, at most; 0 when all agree."""
    sequence, worst = list(prompt), 0.0
    for token in new_ids:
        logits = model(torch.tensor([sequence])).logits[0, -1].double()
        worst = max(worst, (logits.max() - logits[token]).item())
        sequence.append(token)
    return worst


@torch.no_grad()
def logit_difference(program, model_dir, model, ids, work):
    """Largest difference of log-probabilities of single tokens: one row per position, each scored separately by headroom."""
    window = ids[:48]
    ours = []
    for position in range(1, len(window)):
        row = {"input_ids": window[: position + 1], "labels": [-100] * position + [window[position]]}
        data = work / "row.jsonl"
        data.write_text(json.dumps(row) + "\n")
        ours.append(-evaluate(program, model_dir, data)["loss"])
    logits = model(torch.tensor([window])).logits[0, :-1].double()
    theirs = torch.log_softmax(logits, -1)[torch.arange(len(window) - 1), torch.tensor(window[1:])]
    return max(abs(a - b) for a, b in zip(ours, theirs.tolist()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--shared", default=str(SHARED))
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    program, shared = str(Path(arguments.program).resolve()), Path(arguments.shared)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        text = (shared / "data/text/tinyshakespeare.txt").read_text()
        (work / "train.txt").write_text(text[:200_000])
        (work / "held-out.txt").write_text(text[-20_000:])
        source = shared / "data/stories260K"
        before = evaluate(program, source, work / "held-out.txt")
        run(program, "train", "--model", source, "--data", work / "train.txt", "--output-dir", work / "out", "--memory", "512MiB", "--max-seq-length", LENGTH, "--global-batch-size", 8,
            "--max-steps", arguments.steps, "--learning-rate", "1e-3", "--lr-scheduler-type", "cosine", "--warmup-steps", 3, "--quiet")
        after = evaluate(program, work / "out", work / "held-out.txt")
        ids = json.loads(run(program, "tokenize", "--model", work / "out", stdin=json.dumps({"text": text[-20_000:]}) + "\n"))["ids"]
        model = AutoModelForCausalLM.from_pretrained(work / "out", dtype=torch.float32, attn_implementation="eager").eval()
        theirs, count = transformers_loss(model, ids)
        prompt = json.loads(run(program, "tokenize", "--model", work / "out", stdin=json.dumps({"text": "ROMEO:"}) + "\n"))["ids"]
        new = json.loads(run(program, "generate", "--model", work / "out", "--prompt", "ROMEO:", "--temperature", 0, "--max-new-tokens", 64, "--memory", "512MiB", "--json"))["ids"]
        result = {
            "eval_loss_before": before["loss"],
            "eval_loss_after": after["loss"],
            "transformers_loss": theirs,
            "relative_difference": abs(after["loss"] - theirs) / theirs,
            "largest_log_probability_difference": logit_difference(program, work / "out", model, ids, work),
            "largest_greedy_margin": first_disagreement(model, prompt, new),
            "tokens": [after["tokens"], count],
        }
    print(json.dumps(result, indent=1))
    failed = [
        name
        for name, good in {
            "the evaluation loss falls": result["eval_loss_after"] < result["eval_loss_before"] - 0.1,
            "the losses agree": result["relative_difference"] < TOLERANCE,
            "the same tokens are scored": after["tokens"] == count,
            "the log-probabilities agree": result["largest_log_probability_difference"] < TOLERANCE * math.log(model.config.vocab_size),
            "greedy tokens agree": result["largest_greedy_margin"] < TOLERANCE,
        }.items()
        if not good
    ]
    for name in failed:
        print(f"FAIL {name}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
