#!/usr/bin/env python3
"""TensorBoard's own reader reads what `train --report-to tensorboard` wrote.

Usage: tensorboard_values.py HEADROOM
Needs the package tensorboard. Trains a tiny model with evaluation, resumes the run from an earlier checkpoint, and compares
every scalar that TensorBoard's EventAccumulator then has with metrics.jsonl. Prints N passed, N failed; exits 77 if the
package is missing.
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator
except ImportError:
    EventAccumulator = None

SKIPPED = 77
RATES = 1e-5  # metrics.jsonl has six digits
MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 16, "intermediate_size": 32,
         "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "float32", "bos_token_id": 256, "eos_token_id": 257}
CLASSIFIER = {"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 258, "hidden_size": 16, "intermediate_size": 32,
              "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 64, "type_vocab_size": 2, "hidden_act": "gelu",
              "layer_norm_eps": 1e-12, "num_labels": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "torch_dtype": "float32"}
TAGS = {"loss": "train/loss", "grad_norm": "train/grad_norm", "learning_rate": "train/learning_rate", "tokens_per_second": "train/tokens_per_second",
        "samples_per_second": "train/samples_per_second", "accuracy": "train/accuracy", "resident_bytes": "train/memory_mib",
        "eval_loss": "eval/loss", "eval_perplexity": "eval/perplexity", "eval_accuracy": "eval/accuracy"}
passed, failed = 0, 0


def check(name, holds, figure=""):
    global passed, failed
    print(("ok   " if holds else "FAIL ") + name, "" if holds else figure)
    passed, failed = passed + bool(holds), failed + (not holds)


def single(value):
    """The nearest fp32 number, which an event stores."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def expected(run):
    """{tag: {step: value}} of metrics.jsonl; for a repeated step the later line."""
    out = {}
    for row in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()):
        for key, value in row.items():
            if key in TAGS:
                out.setdefault(TAGS[key], {})[row["step"]] = value / 2**20 if key == "resident_bytes" else value
    if "train/samples_per_second" in out:
        out.pop("eval/perplexity", None)  # the event files have none for classes
    return out


def compare(name, run):
    reader = EventAccumulator(str(run / "runs"), size_guidance={SCALARS: 0})
    reader.Reload()
    wanted, tags = expected(run), set(reader.Tags()["scalars"])
    check(f"{name}: tags", tags == set(wanted), (sorted(tags), sorted(wanted)))
    for tag in sorted(tags & set(wanted)):
        got = [(event.step, event.value) for event in reader.Scalars(tag)]
        same = [step for step, _ in got] == sorted(wanted[tag]) and all(math.isclose(value, single(wanted[tag][step]), rel_tol=RATES if "per_second" in tag else 1e-6) for step, value in got)
        check(f"{name}: {tag}", same, (got, wanted[tag]))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if EventAccumulator is None:
        print("skipped: the package tensorboard is not installed\n0 passed, 0 failed, 1 skipped")
        return SKIPPED
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="headroom-tensorboard-") as folder:
        root = Path(folder)

        def call(*arguments):
            subprocess.run([program, *map(str, arguments)], cwd=root, check=True, stdout=subprocess.DEVNULL, timeout=300,
                           env={**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder})

        def train(model, data, output, *more):
            call("train", "--model", model, "--data", data, "--eval-data", data, "--eval-steps", 2, "--output-dir", output, "--memory", "128MiB", "--threads", 1,
                 "--max-seq-length", 32, "--global-batch-size", 4, "--save-steps", 2, "--lr-scheduler-type", "constant", "--quiet", "--report-to", "tensorboard", *more)

        (root / "rows.jsonl").write_text("".join(json.dumps({"text": "the quick brown fox " * (1 + n % 4)}) + "\n" for n in range(40)))
        (root / "classes.tsv").write_text("".join(f"good {n}\t1\nbad {n}\t0\n" for n in range(20)))
        for name, config, data in (("language", MODEL, "rows.jsonl"), ("classes", CLASSIFIER, "classes.tsv")):
            (root / f"{name}.json").write_text(json.dumps(config))
            call("init", "--config", f"{name}.json", "--tokenizer", "bytes", "--output-dir", f"{name}-model")
            train(f"{name}-model", data, name, "--max-steps", 5)
            compare(name, root / name)
            train(f"{name}-model", data, name, "--max-steps", 7, "--resume-from-checkpoint", f"{name}/checkpoint-4")
            compare(f"{name}, resumed", root / name)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
