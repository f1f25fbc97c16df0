// The measuring script: it runs the user's program at several batch sizes.
#include "doctor/remedies/probe.h"

namespace headroom::doctor {
namespace {

constexpr const char* kScript =
    R"py(#!/usr/bin/env python3
"""Peak GPU memory of your own PyTorch program at two batch sizes, and the stage of the peak.

    python probe.py [--batches 1,2] [--steps 3] train.py --per_device_train_batch_size {batch} ...
    python probe.py -m package.train ...

Runs the program once per batch size, each time in a process of its own, and ends it after a few optimizer steps.
"{batch}" in its arguments stands for the batch size; without it every DataLoader is made with that size.
Give the output to: headroom doctor FILE --gpu 24GiB
"""
import json, os, runpy, subprocess, sys


class Measured(BaseException):
    """Enough steps are measured; no `except Exception` of the program takes it."""


class Probe:
    def __init__(self, torch, batch, steps, set_loaders):
        self.torch, self.batch, self.steps_left, self.set_loaders = torch, batch, steps, set_loaders
        self.stage, self.peaks, self.reserved, self.begin = "start", {}, 0, 0
        self.loaders, self.wrapped = 0, set()

    def enter(self, stage):
        """What was the peak since the last call belongs to the stage that ends here."""
        cuda = self.torch.cuda
        if cuda.is_available() and cuda.is_initialized():
            cuda.synchronize()
            peak = cuda.max_memory_allocated()
            if peak > self.begin:  # what only lay there while it ran is not its own
                self.peaks[self.stage] = max(self.peaks.get(self.stage, 0), peak)
            self.begin = cuda.memory_allocated()
            self.reserved = max(self.reserved, cuda.max_memory_reserved())
            cuda.reset_peak_memory_stats()
        self.stage = stage

    def wrap_step(self, kind):
        """Optimizer.step() of the first class that has one of its own; once per class."""
        owner = next((c for c in kind.__mro__ if "step" in c.__dict__), None)
        if owner is None or owner in self.wrapped:
            return
        self.wrapped.add(owner)
        plain, probe = owner.step, self

        def step(optimizer, *args, **kwargs):
            outer = probe.stage != "optimizer_step"  # an optimizer around another counts once
            if outer:
                probe.enter("optimizer_step")
            result = plain(optimizer, *args, **kwargs)
            if outer:
                probe.enter("forward")
                probe.steps_left -= 1
                if probe.steps_left <= 0:
                    raise Measured()
            return result

        owner.step = step

    def hook(self):
        torch, probe = self.torch, self
        optimizer, loader = torch.optim.Optimizer, torch.utils.data.DataLoader
        plain_init, plain_loader, plain_backward = optimizer.__init__, loader.__init__, torch.autograd.backward

        def made(this, *args, **kwargs):
            plain_init(this, *args, **kwargs)
            probe.wrap_step(type(this))

        def loading(this, dataset, *args, **kwargs):
            by_batches = kwargs.get("batch_sampler") is not None or (len(args) > 3 and args[3] is not None)
            if probe.set_loaders and not by_batches:
                args = (probe.batch,) + args[1:] if args else args
                if not args:
                    kwargs["batch_size"] = probe.batch
                probe.loaders += 1
            plain_loader(this, dataset, *args, **kwargs)

        def backward(*args, **kwargs):
            probe.enter("backward")
            try:
                return plain_backward(*args, **kwargs)
            finally:
                probe.enter("forward")

        optimizer.__init__, loader.__init__, torch.autograd.backward = made, loading, backward

    def line(self):
        self.enter("end")
        if not self.peaks or (self.set_loaders and not self.loaders):
            return None
        cuda = self.torch.cuda
        free, total = cuda.mem_get_info()
        stage = max(self.peaks, key=self.peaks.get)
        return {"batch": self.batch, "peak_bytes": self.peaks[stage], "stage": stage, "stages": self.peaks,
                "reserved_bytes": self.reserved, "total_bytes": total,
                "outside_bytes": max(0, total - free - cuda.memory_reserved())}


def measure(batch, steps, program):
    """In a process of its own."""
    import torch, torch.optim, torch.utils.data
    arguments = [word.replace("{batch}", str(batch)) for word in program]
    probe = Probe(torch, batch, steps, arguments == program)
    probe.hook()
    module = arguments[0] == "-m"
    sys.argv = arguments[1:] if module else arguments
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(arguments[0]))
    try:
        if module:
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(arguments[0], run_name="__main__")
    except (Measured, SystemExit):
        pass
    line = probe.line()
    if line is None:
        sys.exit("probe: nothing was measured: no CUDA, or the batch size is not a DataLoader's: write {batch} where "
                 "the arguments of the program give it")
    if os.environ.get("RANK", "0") == "0":
        print("\n" + json.dumps(line))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # loader workers and other ranks are not waited for


def main(words):
    options = {"--batches": "1,2", "--steps": "3", "--one": ""}
    while len(words) > 1 and words[0] in options:
        options[words[0]] = words[1]
        words = words[2:]
    if not words:
        sys.exit(__doc__)
    if options["--one"]:
        measure(int(options["--one"]), int(options["--steps"]), words)
    for batch in options["--batches"].split(","):
        command = [sys.executable, os.path.abspath(__file__), "--steps", options["--steps"], "--one", batch]
        if subprocess.run(command + words).returncode != 0:
            sys.exit("probe: batch " + batch + " was not measured")


if __name__ == "__main__":
    main(sys.argv[1:])
)py";

}  // namespace

std::string probe_script() { return kScript; }

}  // namespace headroom::doctor
