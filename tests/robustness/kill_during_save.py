#!/usr/bin/env python3
"""kill -9 at random moments of saves: the newest complete checkpoint always loads and resumes bitwise.

Usage: kill_during_save.py [HEADROOM_BINARY] [--kills N] [--seed S] [--on-disk]
A run that saves at every step is killed repeatedly, each time at a random moment after a save's temporary directory has
appeared, and continues from the newest checkpoint; some kills happen while the final model is written. After each kill every
checkpoint with a final name must be complete and loadable, and so must a final model. At the end, the losses, weights and
optimizer states are bitwise those of a run that was never killed, and no temporary files are left. With --on-disk, the states
and gradients of the killed runs are on disk, and no kill leaves their file. The last line is "N passed, N failed". Standard
library only.
"""

import argparse
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "float32", "bos_token_id": 256,
          "eos_token_id": 257}
TEXT = "the quick brown fox jumps over the lazy dog, and the dog sleeps on.\n" * 60
CHECKPOINT_FILES = {"model.safetensors", "optimizer.safetensors", "config.json", "plan.json", "state.json"}


def whole(path):
    """Whether a safetensors file has all the bytes that its header states."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        tensors = json.loads(file.read(size))
    ends = [tensor["data_offsets"][1] for name, tensor in tensors.items() if name != "__metadata__"]
    return os.path.getsize(path) == 8 + size + max(ends)


class KilledRuns:
    def __init__(self, arguments):
        self.arguments, self.draw = arguments, random.Random(arguments.seed)
        self.root = Path(tempfile.mkdtemp(prefix="killed-runs-", dir="."))
        self.passed = self.failed = self.in_saves = self.in_final = 0
        self.save_seconds = 0.02
        self.scratch = self.root / "scratch"
        self.scratch.mkdir()
        (self.root / "config.json").write_text(json.dumps(CONFIG))
        (self.root / "data.txt").write_text(TEXT)
        subprocess.run([arguments.binary, "init", "--config", self.root / "config.json", "--tokenizer", "bytes", "--output-dir", self.root / "model"],
                       check=True, capture_output=True)

    def check(self, what, holds, figure=""):
        self.passed += bool(holds)
        self.failed += not holds
        if not holds:
            print(f"FAIL {what} {figure}")
            sys.stdout.flush()

    def command(self, name, steps, *more):
        out = self.root / name
        return [self.arguments.binary, "train", "--model", self.root / "model", "--data", self.root / "data.txt", "--output-dir", out,
                "--memory", "64MiB", "--threads", "1", "--max-seq-length", "32", "--global-batch-size", "4", "--max-steps", str(steps),
                "--save-steps", "1", "--save-total-limit", "2", "--learning-rate", "1e-3", "--lr-scheduler-type", "constant", "--quiet", *more]

    def killed_command(self, steps, *more):
        on_disk = ["--disk-memory", f"{self.scratch}:64MiB", "--technique", "offload-optimizer=on", "--technique", "offload-gradients=on"]
        return self.command("killed", steps, *(on_disk if self.arguments.on_disk else []), *more)

    def finish(self, name, command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=7200, check=False)
        self.check(f"{name} ends well", done.returncode == 0, done.stderr.strip()[-400:])

    def saving(self):
        """The existing temporary names: a save is in progress."""
        try:
            return [name for name in os.listdir(self.root / "killed") if ".tmp-" in name and name.startswith("checkpoint-")]
        except FileNotFoundError:
            return []

    def final_model(self):
        """The state of the directory with the final model's name, finished or not."""
        while True:
            try:
                return [(entry.name, entry.stat().st_ino, entry.stat().st_mtime_ns)
                        for entry in os.scandir(self.root / "killed") if entry.name.startswith("model.safetensors")]
            except FileNotFoundError:  # renamed since it was listed
                continue

    def kill_once(self, steps, in_final):
        """Starts or resumes, waits for a save (or for the final model), and kills at a random moment of it. Returns whether it was killed."""
        more = ["--resume-from-checkpoint", "true"] if (self.root / "killed/metrics.jsonl").exists() else []
        process = subprocess.Popen(self.killed_command(steps, *more), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        skip = 0 if in_final else self.draw.randint(0, 2)  # saves to skip
        seen = set()
        before = self.final_model() if in_final else None
        while process.poll() is None:
            seen.update(self.saving())
            if self.final_model() != before if in_final else len(seen) > skip:
                break
            time.sleep(0.0002)
        time.sleep(self.draw.random() * self.save_seconds * (0.3 if in_final else 1))
        alive = process.poll() is None
        process.kill()
        errors = process.communicate()[1]
        self.check("ends only by the kill", process.returncode in (0, -9), f"exit {process.returncode}: {errors.strip()[-400:]}")
        return alive

    def check_files(self):
        """What a reader finds after a kill."""
        for path in (self.root / "killed").glob("checkpoint-*"):
            if re.fullmatch(r"checkpoint-\d+", path.name):
                names = {file.name for file in path.iterdir()}
                self.check("a checkpoint is complete", CHECKPOINT_FILES <= names, f"{path.name} has only {sorted(names)}")
                self.check("a checkpoint's tensors are whole", CHECKPOINT_FILES <= names and all(whole(path / name) for name in names if name.endswith(".safetensors")), path.name)
        left = os.listdir(self.scratch)
        self.check("no scratch file is left", not left, left)
        model = self.root / "killed/model.safetensors"
        if model.exists():
            self.check("a final model is whole", whole(model), f"{model.stat().st_size} bytes")

    def losses(self, name):
        rows = [json.loads(line) for line in (self.root / name / "metrics.jsonl").read_text().splitlines()]
        return [(row["step"], row["loss"], row["grad_norm"]) for row in rows]

    def compare(self, steps):
        self.finish("killed", self.killed_command(steps, "--resume-from-checkpoint", "true"))
        self.finish("whole", self.command("whole", steps))
        self.check("every step is logged once, with the losses of the run that was never killed", self.losses("killed") == self.losses("whole"))
        for part in ("model.safetensors", f"checkpoint-{steps}/model.safetensors", f"checkpoint-{steps}/optimizer.safetensors"):
            self.check(f"{part} is that of the run that was never killed", (self.root / "killed" / part).read_bytes() == (self.root / "whole" / part).read_bytes())
        left = [path.name for path in (self.root / "killed").iterdir() if ".tmp-" in path.name or ".old-" in path.name]
        self.check("nothing temporary is left", not left, left)

    def measure_save(self):
        """The duration of a save here, from its temporary directory to its final name."""
        process = subprocess.Popen(self.killed_command(6), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        spent = begun = 0
        while process.poll() is None:
            if self.saving():
                begun = begun or time.monotonic()
            elif begun:
                spent, begun = max(spent, time.monotonic() - begun), 0
            time.sleep(0.0005)
        self.save_seconds = max(0.005, min(0.5, spent))
        shutil.rmtree(self.root / "killed")

    def run(self):
        self.measure_save()
        kills = steps = 0
        while kills < self.arguments.kills:
            # A long run is killed during its saves; sometimes, a run that needs only one more step is killed during its final model.
            in_final = (self.root / "killed/metrics.jsonl").exists() and self.draw.random() < 0.15
            reached = max([step for step, _, _ in self.losses("killed")], default=0) if in_final else 0
            if self.kill_once(reached + 1 if in_final else 1000000, in_final):
                kills += 1
                self.in_final += in_final
                self.in_saves += bool(self.saving())
            self.check_files()
        steps = max(step for step, _, _ in self.losses("killed")) + 3
        self.compare(steps)
        print(f"{kills} kills: {self.in_saves} left an unfinished save, {self.in_final} fell near the final model; "
              f"{steps} steps; a save takes {1000 * self.save_seconds:.0f} ms")
        shutil.rmtree(self.root)
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=re.split(r"\n\n", __doc__)[0])
    parser.add_argument("binary", nargs="?", default=os.environ.get("HEADROOM"))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on-disk", action="store_true")
    arguments = parser.parse_args()
    if not arguments.binary:
        parser.error("no program: give its path, or HEADROOM in the environment")
    arguments.binary = os.path.abspath(arguments.binary)
    sys.exit(KilledRuns(arguments).run())


if __name__ == "__main__":
    main()
