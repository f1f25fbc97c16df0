"""Shared by the tests of the program: running it, tiny models, safetensors files written by hand."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "data_files"), str(Path(__file__).resolve().parents[1])]
from data_files import DATA, SHARED  # noqa: E402,F401  (for the tests)

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 258,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
    "bos_token_id": 256,
    "eos_token_id": 257,
}
TEXT = "the quick brown fox jumps over the lazy dog, and the dog sleeps on.\n" * 40


def environment(home):
    """One thread and no cached profile, so that the plan is the same on every machine."""
    return {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "LC_ALL": "C.UTF-8"}


def read_safetensors(path):
    """(header, data) of a safetensors file."""
    raw = Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def write_safetensors(path, header, data, declared=None):
    """Writes a file from its parts without checks; `declared` is a false length of the header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text) if declared is None else declared) + text + data)


class ProgramTest(unittest.TestCase):
    """A scratch directory with a tiny model in model/ and a text in data.txt."""

    @classmethod
    def setUpClass(cls):
        cls.program = os.environ["HEADROOM"]
        cls.root = Path(tempfile.mkdtemp(prefix="headroom-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, True)
        (cls.root / "config.json").write_text(json.dumps(CONFIG))
        (cls.root / "data.txt").write_text(TEXT)
        made = cls.call("init", "--config", "config.json", "--tokenizer", "bytes", "--output-dir", "model")
        assert made.returncode == 0, made.stderr

    @classmethod
    def call(cls, *arguments, stdin=None, **options):
        return subprocess.run([cls.program, *map(str, arguments)], cwd=cls.root, env=environment(cls.root), input=stdin,
                              capture_output=True, text=True, timeout=300, **options)

    @staticmethod
    def train_arguments(output, *more, model="model", data="data.txt"):
        """A later option overrides an earlier one."""
        return ["train", "--model", model, "--data", data, "--output-dir", output, "--memory", "128MiB", "--threads", "1",
                "--max-seq-length", "32", "--global-batch-size", "4", "--max-steps", "3", *map(str, more)]

    def train(self, output, *more, **named):
        done = self.call(*self.train_arguments(output, *more, **named))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fresh_model(self, name):
        """A copy of the model for the test to modify."""
        directory = self.root / name
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(self.root / "model", directory)
        return directory

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))

    def assert_refused(self, arguments, code, *parts, stdin=None):
        """The program exits with `code`, prints every one of `parts` and a remedy on stderr, and writes no file."""
        shutil.rmtree(self.root / "out", ignore_errors=True)
        before = self.files()
        done = self.call(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        for part in parts:
            self.assertIn(str(part), done.stderr)
        self.assertRegex(done.stderr, r"(?m)^error: [^\n]+\n  \S", "an error line, and a remedy below it")
        self.assertEqual(self.files(), before, "a refusal writes nothing")
        return done


class DiskTest(ProgramTest):
    """The same, with a directory for --disk-memory that is not in memory itself."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kind = subprocess.run(["stat", "-f", "-c", "%T", cls.root], capture_output=True, text=True, check=True).stdout.strip()
        if kind in ("tmpfs", "ramfs"):
            raise unittest.SkipTest("the directory for temporary files is in memory")
        cls.scratch = cls.root / "scratch"
        cls.scratch.mkdir()

    def disk(self, size="1GiB"):
        return ["--disk-memory", f"{self.scratch}:{size}"]
