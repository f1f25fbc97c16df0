"""The script of `headroom doctor --probe` with programs of all shapes and a fake torch that only counts."""

import json
import subprocess
import sys
import unittest

from program import ProgramTest, environment

# Memory is what the program says it takes; everything else is as in torch.
TORCH = {
    "__init__.py": "from . import autograd, cuda, optim, utils\n",
    "cuda.py": """
now, peak = 0, 0
def take(size):
    global now, peak
    now += size
    peak = max(peak, now)
def is_available(): return True
def is_initialized(): return True
def synchronize(): pass
def max_memory_allocated(): return peak
def max_memory_reserved(): return peak + 100
def memory_allocated(): return now
def memory_reserved(): return now + 100
def reset_peak_memory_stats():
    global peak
    peak = now
def mem_get_info(): return 24 * 1024**3 - now - 100 - 700, 24 * 1024**3
""",
    "autograd.py": """
from . import cuda
work = [0]
def backward(loss):
    cuda.take(work[0])
    cuda.take(-work[0])
""",
    "optim.py": """
class Optimizer:
    def __init__(self, params): self.params = params
    def step(self): raise NotImplementedError
class Adam(Optimizer):
    made = False
    def step(self):
        from . import cuda
        if not self.made: cuda.take(8000)
        self.made = True
""",
    "utils/__init__.py": "from . import data\n",
    "utils/data.py": """
class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0):
        self.dataset, self.batch_size = dataset, batch_size
    def __iter__(self):
        return iter([self.batch_size] * 100)
""",
}
TRAIN = """
import sys, torch
from torch.utils.data import DataLoader
torch.cuda.take({load})
torch.cuda.take(4000 - {load})
optimizer = torch.optim.Adam([])
torch.autograd.work[0] = {backward}
steps = 0
for batch in DataLoader(range(9), {loader}):
    torch.cuda.take(1000 * batch)
    torch.autograd.backward(0)
    torch.cuda.take(-1000 * batch)
    try:
        optimizer.step()
    except Exception:
        pass
    steps += 1
    print("step", steps, sys.argv[1:])
"""


class Probe(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, text in TORCH.items():
            path = cls.root / "site" / "torch" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (cls.root / "probe.py").write_text(cls.call("doctor", "--probe").stdout)

    def probe(self, *arguments, train=None):
        (self.root / "train.py").write_text(train or TRAIN.format(load=4000, backward=500, loader="batch_size=16"))
        (self.root / "package").mkdir(exist_ok=True)
        (self.root / "package" / "train.py").write_text((self.root / "train.py").read_text())
        path = {**environment(self.root), "PYTHONPATH": str(self.root / "site")}
        return subprocess.run([sys.executable, "probe.py", *arguments], cwd=self.root, env=path, capture_output=True,
                              text=True, timeout=100)

    def points(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def test_every_loader_takes_the_batch(self):
        done = self.probe("train.py", "--lr", "1")
        one, two = self.points(done)
        # Weights 4000, states 8000, a sample 1000, and 500 for the backward pass.
        self.assertEqual((one["batch"], one["peak_bytes"]), (1, 13500))
        self.assertEqual((two["batch"], two["peak_bytes"]), (2, 14500))
        self.assertEqual({one["stage"], two["stage"]}, {"backward"})
        self.assertEqual(two["stages"]["forward"], 14000)
        self.assertEqual(one["outside_bytes"], 700)
        self.assertIn("step 2 ['--lr', '1']", done.stdout)
        self.assertNotIn("step 3", done.stdout, "ended after three steps")

    def test_the_placeholder_is_the_batch(self):
        train = TRAIN.format(load=4000, backward=0, loader="batch_size=int(sys.argv[1])")
        points = self.points(self.probe("--batches", "2,4,8", "--steps", "2", "train.py", "{batch}", train=train))
        self.assertEqual([point["batch"] for point in points], [2, 4, 8])
        self.assertEqual([point["peak_bytes"] for point in points], [14000, 16000, 20000])

    def test_a_module_and_a_positional_batch(self):
        points = self.points(self.probe("-m", "package.train", train=TRAIN.format(load=4000, backward=500, loader="16")))
        self.assertEqual([point["peak_bytes"] for point in points], [13500, 14500])

    def test_the_stage_of_the_peak(self):
        start = self.points(self.probe("train.py", train=TRAIN.format(load=90000, backward=0, loader="batch_size=16")))
        self.assertEqual({point["stage"] for point in start}, {"start"})
        one_step = self.points(self.probe("--steps", "1", "train.py", train=TRAIN.format(load=4000, backward=0, loader="16")))
        self.assertEqual(one_step[0]["stage"], "optimizer_step")

    def test_doctor_reads_it(self):
        (self.root / "probe.txt").write_text(self.probe("train.py").stdout)
        done = self.call("doctor", "probe.txt", "--gpu", "24GiB")
        self.assertIn("the largest that fits", done.stdout)
        self.assertIn("The peak is in the backward pass", " ".join(done.stdout.split()))

    def test_a_program_without_a_loader_is_told(self):
        train = "import torch\ntorch.cuda.take(9)\n"
        done = self.probe("train.py", train=train)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("write {batch} where", done.stderr)
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("{")], [])

    def test_a_program_that_fails_ends_it(self):
        done = self.probe("train.py", train="raise RuntimeError('out of memory')\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("batch 1 was not measured", done.stderr)
        self.assertIn("RuntimeError: out of memory", done.stderr)

    def test_without_a_program_it_says_how(self):
        self.assertIn("python probe.py", self.probe().stderr)


if __name__ == "__main__":
    unittest.main()
