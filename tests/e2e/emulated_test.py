#!/usr/bin/env python3
"""emulated_test.py HEADROOM: the program on other processors, under QEMU's user-mode emulation.

Haswell has AVX2 and nothing above, Nehalem (x86-64-v2) has no AVX. There, too, init, plan, train, evaluate and generate work
without an illegal instruction. Exit codes: 0 passed, 1 failed, 77 qemu-x86_64 is not installed."""
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
EMULATOR = "qemu-x86_64"
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
BUDGET = ["--memory", "256MiB", "--threads", "2"]
SHORT = [*BUDGET, "--max-seq-length", "16", "--global-batch-size", "4"]
# Precisions, and fp32 products in bf16 parts: each has its own kernels.
TRAININGS = {"fp32": [], "mixed": ["--precision", "bf16-mixed"], "true": ["--precision", "bf16-true"], "half": ["--precision", "16-mixed"], "high": ["--matmul-precision", "high"]}


def run(processor, program, folder, *words):
    environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder, "LC_ALL": "C.UTF-8"}
    environment.pop("ONEDNN_MAX_CPU_ISA", None)
    done = subprocess.run([EMULATOR, "-cpu", processor, program, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=500,
                          stdin=subprocess.DEVNULL, errors="replace")
    if done.returncode != 0:
        raise SystemExit(f"{processor}: {' '.join(words)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done


def losses_of(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line)["loss"] for line in lines]


def check(processor, program, folder):
    """Every command once; training lowers the loss by about as much in all arithmetics."""
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as out:
        json.dump(CONFIG, out)
    with open(os.path.join(folder, "data.txt"), "w", encoding="utf-8") as out:
        out.write("the quick brown fox jumps over the lazy dog.\n" * 4)
    run(processor, program, folder, "init", "--config", "config.json", "--tokenizer", "bytes", "--output-dir", "model")
    plan = json.loads(run(processor, program, folder, "plan", "--model", "model", *SHORT, "--json").stdout)
    assert plan["feasible"], plan
    for name, options in TRAININGS.items():
        run(processor, program, folder, "train", "--model", "model", "--data", "data.txt", *SHORT, "--max-steps", "3", "--learning-rate", "1e-2", "--output-dir", name,
            *options)
        losses = losses_of(os.path.join(folder, name, "metrics.jsonl"))
        assert len(losses) == 3 and losses[-1] < losses[0], (processor, name, losses)
        assert abs(losses[0] - losses_of(os.path.join(folder, "fp32", "metrics.jsonl"))[0]) < 0.05, (processor, name, losses)
    found = json.loads(run(processor, program, folder, "evaluate", "--model", "fp32", "--data", "data.txt", *BUDGET, "--max-seq-length", "16", "--json").stdout)
    assert 0 < found["loss"] < 10, found
    text = json.loads(run(processor, program, folder, "generate", "--model", "fp32", "--prompt", "the", "--max-new-tokens", "4", *BUDGET, "--json").stdout)
    assert len(text["ids"]) >= 1, text


def main():
    if platform.machine() != "x86_64" or not shutil.which(EMULATOR):
        print(f"skipped: {EMULATOR} is not installed here")
        return SKIPPED
    for processor in ("Haswell", "Nehalem"):
        with tempfile.TemporaryDirectory(prefix="headroom-emulated-") as folder:
            check(processor, os.path.abspath(sys.argv[1]), folder)
        print(f"{processor}: init, plan, train, evaluate and generate ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
