#!/usr/bin/env python3
"""Random runs of `headroom train` with a GPU's plans and kernels, over the shim, compared with the CPU.

Usage: random_runs_on_shim.py [HEADROOM_BINARY] --shim HEADROOM_ON_SHIM [--seed S] [--first I] [--count N] [--keep DIR] [--verbose]
Runs as in tests/robustness/random_runs.py, with a budget of the device between the least and plenty, and a host that keeps what
the device does not in some of them. Guarantees: a budget that fits is never refused, the arena is the planned one, the losses are
those of the CPU up to rounding and, with fixed arithmetic, bit for bit those of a run with plenty. Skipped are models that would
take the shim long. Standard library only.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "robustness"))
from random_runs import RandomRun, Refused, Violation, main  # noqa: E402
from tiny_models import layers_of  # noqa: E402

GPU = ["--device", "cuda:0", "--profile", "H100-80GB"]
HOST = 1 << 30
PLENTY = 4 << 30
CLOSE = {"32-true": 2e-3, "bf16-mixed": 2e-2, "16-mixed": 1e-2, "bf16-true": 4e-2, "16-true": 2e-2}  # of losses, of the first step
LATER = 4  # times as much for later steps
MOST_WORK = 1e8  # multiply-adds of a step, forward


def work_of(config, options):
    """Multiply-adds of a step's forward pass, roughly."""
    hidden = config.get("n_embd") or config["hidden_size"]
    weights = config["vocab_size"] * hidden + layers_of(config) * (4 * hidden + 3 * config.get("intermediate_size", 4 * hidden)) * hidden
    number = lambda option: int(options[options.index(option) + 1])
    return weights * number("--max-seq-length") * number("--global-batch-size")


class ShimRun(RandomRun):
    def __init__(self, binary, seed, index, directory):
        super().__init__(binary, seed, index, directory)
        self.shim = os.environ["HEADROOM_ON_SHIM"]
        self.host = self.draw.choice((HOST, 2 * HOST))

    def trained(self, binary, out, *more):
        """Losses of a run."""
        done = self.call("train", "--output-dir", f"{self.directory}/{out}", "--max-steps", str(self.steps), *self.common(), *self.schedule,
                         *more, program=binary)
        if done.returncode == 2:
            raise Refused(done.stderr.strip().splitlines()[0])
        if done.returncode != 0:
            raise Violation(f"{out}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
        return self.losses(out)

    def on_device(self, out, budget):
        losses = self.trained(self.shim, out, *GPU, "--memory", str(budget), "--host-memory", str(self.host))
        record = json.loads(Path(f"{self.directory}/{out}/run.json").read_text())
        plan = json.loads(Path(f"{self.directory}/{out}/plan.json").read_text())
        if plan["peak_bytes"] > budget or record["arena_measured_bytes"] != plan["arena_bytes"]:
            raise Violation(f"{out}: peak {plan['peak_bytes']} of {budget}, arena {record['arena_measured_bytes']} of {plan['arena_bytes']}")
        return losses

    def planned(self):
        done = self.call("plan", "--json", *GPU, "--memory", str(PLENTY), "--host-memory", str(self.host), *self.common(), program=self.shim)
        if done.returncode == 2:
            raise Refused(done.stderr.strip().splitlines()[0])
        if done.returncode != 0:
            raise Violation(f"plan: exit {done.returncode}: {done.stderr.strip()[-500:]}")
        return json.loads(done.stdout)

    def check_near(self, found, expected):
        precision = self.options[self.options.index("--precision") + 1]
        for step, (a, b) in enumerate(zip(found, expected)):
            if not abs(a - b) <= CLOSE[precision] * (LATER if step else 1) * abs(b):
                raise Violation(f"losses {found} on the device, {expected} on the CPU")

    def run(self):
        """Returns a description of the run. Throws Violation or Refused."""
        if work_of(self.config, self.options) > MOST_WORK:
            raise Refused("too large for the shim")
        self.make_model()
        plan = self.planned()
        least, plenty = plan["minimum_bytes"], plan["peak_bytes"]
        budget = self.draw.choice((least, self.draw.randint(least, max(least, plenty)), PLENTY))
        found = self.on_device("out", budget)
        self.check_near(found, self.trained(self.binary, "cpu", "--memory", str(PLENTY), "--force"))
        if "fixed" in self.options and self.on_device("plenty", PLENTY) != found:
            raise Violation("losses depend on the budget")
        return f"{self.config['architectures'][0]}, {budget} of {least} to {plenty}, {' '.join(self.options)}"


if __name__ == "__main__":
    at = sys.argv.index("--shim") if "--shim" in sys.argv else 0
    if at:
        os.environ["HEADROOM_ON_SHIM"] = os.path.abspath(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    main(__doc__, ShimRun)
