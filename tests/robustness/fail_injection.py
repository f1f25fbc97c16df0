#!/usr/bin/env python3
"""Makes every allocation and every I/O call fail in turn: the program ends cleanly and leaves nothing half-written.

Usage: fail_injection.py [HEADROOM_BINARY] --library LIBRARY [--case NAME] [--kind heap|io|disk] [--distinct]
           [--heap-stride K] [--first N] [--sample N] [--from NAME] [--part K/N]
LIBRARY is built from fail_calls.cpp. For each command (init, plan, train, a resumed train, train with an adapter, with states
on disk, merge, evaluate, generate) and each kind (an allocation; a call that may do I/O; a full disk from one write on), the
calls are counted, and then the command runs once per call N with that call failing.
Guarantees: exit code 0 to 3, never a signal. If it is not 0, there is an error message that names the file for I/O; for an
allocation it says that memory ran out, with exit code 1. If it is 0, the results are those of an undisturbed run. No
incomplete file or directory has a final name; a temporary name is left only if its removal failed. The same command, or its
resumption, then succeeds with the results of an undisturbed run.
`--distinct` fails only the first of the calls with the same call stack, in the first command that has it. `--sample N` spreads
N runs over all calls. The last line is "N passed, N failed". Standard library only.
"""

import argparse
import array
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 8, "intermediate_size": 16,
          "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "torch_dtype": "float32", "bos_token_id": 256,
          "eos_token_id": 257}
KINDS = ("io", "disk", "heap")
TEMPORARY = re.compile(r"\.(tmp|old)-\d+$")
REMOVALS = ("unlink", "unlinkat", "remove", "opendir", "fdopendir", "readdir", "openat", "lstat")
# These differ between runs, or only people read them.
VOLATILE = {"run.json", "process.json", "measured.json", "memory.json", "operations.json", "data.json"}
# Calls whose failure the program tolerates: the machine's figures, its own memory, caches that may be missing.
OPTIONAL_PLACES = ("/proc/", "/sys/", "/dev/", "/etc/")


class Fault(Exception):
    """What the program must not do."""


def contents(directory):
    """{relative name: bytes} of a tree; directories are named with a slash."""
    found = {}
    for path in sorted(directory.rglob("*")) if directory.is_dir() else []:
        name = str(path.relative_to(directory))
        found[name + "/" if path.is_dir() else name] = b"" if path.is_dir() else path.read_bytes()
    return found


def stable(name, data):
    """The part of a file that is the same in every undisturbed run; None if there is none."""
    base = os.path.basename(name)
    if base in VOLATILE or base.startswith("events.out"):
        return None
    if base == "metrics.jsonl":
        rows = [json.loads(line) for line in data.decode().splitlines()]
        return [(row["step"], row.get("loss"), row.get("eval_loss")) for row in rows]
    if base == "plan.json":  # a resumed run has the same settings for another reason
        plan = json.loads(data)
        for technique in plan.get("techniques", []):
            technique.pop("why", None)
        return plan
    return data


class Case:
    """One command; `prepared` is the content of its directory before it runs."""

    def __init__(self, name, command, output=None, prepared=None, resume=None):
        self.name, self.command, self.output, self.prepared = name, command, output, prepared
        self.resume = resume  # the command to continue with if the first one left its mark
        self.expected, self.expected_stdout = {}, ""


class Injection:
    def __init__(self, arguments):
        self.arguments = arguments
        self.root = Path(tempfile.mkdtemp(prefix="headroom-fail-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        self.run_directory, self.temporary = self.root / "run", self.root / "tmp"
        self.scratch = Path(tempfile.mkdtemp(prefix="headroom-fail-", dir="."))  # not in memory
        self.report, self.stacks = self.root / "report", self.root / "stacks"
        self.seen = collections.defaultdict(set)  # by kind, the call stacks of the commands so far
        self.unreached = 0
        self.passed, self.failed = 0, 0
        self.outcomes = collections.Counter()

    # --- running
    def reset(self, case):
        shutil.rmtree(self.run_directory, ignore_errors=True)
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()
        shutil.copytree(case.prepared, self.run_directory) if case.prepared else self.run_directory.mkdir()

    def call(self, command, kind=None, at=0, **more):
        environment = {**os.environ, "HOME": str(self.root), "XDG_CACHE_HOME": str(self.root), "TMPDIR": str(self.temporary), "LC_ALL": "C.UTF-8"}
        if kind:
            environment |= {"LD_PRELOAD": self.arguments.library, "HEADROOM_FAIL_KIND": kind, "HEADROOM_FAIL_AT": str(at),
                            "HEADROOM_FAIL_REPORT": str(self.report)}
            environment |= {f"HEADROOM_FAIL_{name.upper()}": value for name, value in more.items()}
            self.report.unlink(missing_ok=True)
        return subprocess.run([self.arguments.binary, *command], cwd=self.run_directory, env=environment, capture_output=True, text=True,
                              timeout=7200, check=False)

    def reported(self):
        """(count, function, errno, path) of the failing call, or of the whole run."""
        count, function, code, path = (self.report.read_text().rstrip("\n").split(" ", 3) + [""])[:4]
        return int(count), function, int(code), path

    # --- the cases
    def cases(self):
        (self.root / "config.json").write_text(json.dumps(CONFIG))
        (self.root / "data.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 4)
        self.temporary.mkdir()
        self.run_directory.mkdir()
        model, data = ["--model", "../model"], ["--data", "../data.txt"]
        common = [*model, *data, "--memory", "64MiB", "--threads", "1", "--max-seq-length", "8"]
        train = ["train", *common, "--global-batch-size", "2", "--micro-batch-size", "2", "--technique", "recompute=off", "--technique",
                 "chunked-loss=off", "--output-dir", "out", "--learning-rate", "1e-3", "--lr-scheduler-type", "constant"]
        full = [*train, "--eval-data", "../data.txt", "--eval-max-batches", "1", "--report-to", "tensorboard", "--save-steps", "1"]
        adapter = [*train, "--lora-r", "2", "--max-steps", "1"]
        on_disk = ["--disk-memory", f"{self.scratch.absolute()}:64MiB", "--technique", "offload-optimizer=on", "--technique", "offload-gradients=on"]
        resume = ["--resume-from-checkpoint", "true"]
        for command, kept in ((["init", "--config", "../config.json", "--output-dir", "../model"], None), ([*full, "--max-steps", "1"], "begun"), (adapter, "adapted")):
            done = self.call(command)
            if done.returncode:
                raise SystemExit(f"{command}: exit {done.returncode}: {done.stderr}")
            if kept:
                self.run_directory.rename(self.root / kept)
                self.run_directory.mkdir()
        return [Case("init", ["init", "--config", "../config.json", "--output-dir", "out"], "out"),
                Case("plan", ["plan", *model, "--memory", "64MiB", "--threads", "1", "--max-seq-length", "8", "--global-batch-size", "2", "--micro-batch-size", "2", "--json"]),
                Case("train", [*full, "--max-steps", "2"], "out", resume=resume),
                Case("resume", [*full, "--max-steps", "2", "--save-total-limit", "1", *resume], "out", self.root / "begun", resume=[]),
                Case("adapter", adapter, "out", resume=resume),
                Case("on-disk", [*train, *on_disk, "--max-steps", "1"], "out", resume=resume),
                Case("merge", ["merge", *model, "--adapter", "../adapted/out", "--output-dir", "out"], "out"),
                Case("evaluate", ["evaluate", *common, "--json"]),
                Case("generate", ["generate", *model, "--memory", "64MiB", "--threads", "1", "--prompt", "the", "--max-new-tokens", "3", "--temperature", "0", "--json"])]

    def undisturbed(self, case):
        """Runs it; returns whether it can run here."""
        self.reset(case)
        done = self.call(case.command)
        if done.returncode == 2 and "is in memory" in done.stderr:
            print(f"{case.name}: left out: {done.stderr.splitlines()[0]}")
            return False
        if done.returncode:
            raise SystemExit(f"{case.name}: exit {done.returncode}: {done.stderr}")
        case.expected, case.expected_stdout = contents(self.run_directory), done.stdout
        return True

    def count(self, case, kind):
        """The call stack of each call, or zeros."""
        self.reset(case)
        self.call(case.command, kind, **({"stacks": str(self.stacks)} if self.arguments.distinct else {}))
        total = self.reported()[0]
        if not self.arguments.distinct:
            return [0] * total
        with open(self.stacks, "rb") as file:
            return array.array("Q", file.read(8 * total)).tolist()

    # --- the verdict
    def check_end(self, case, done, kind, path):
        if done.returncode < 0:
            raise Fault(f"signal {-done.returncode}: {done.stderr.strip()[-300:]}")
        if done.returncode > 3:
            raise Fault(f"exit {done.returncode}: {done.stderr.strip()[-300:]}")
        if done.returncode == 0:
            if case.expected_stdout != done.stdout:
                raise Fault(f"exit 0 with another output: {done.stdout[:200]}")
            return
        if not re.search(r"(?m)^error: \S", done.stderr):
            raise Fault(f"exit {done.returncode} without a message: {done.stderr.strip()[-300:]!r}")
        if "defect of headroom" in done.stderr:
            raise Fault(f"an invariant broke: {done.stderr.strip()[-300:]}")
        if kind == "heap" and (done.returncode != 1 or not re.search("[Oo]ut of memory|Cannot allocate memory", done.stderr)):
            raise Fault(f"exit {done.returncode} does not say that memory ran out: {done.stderr.strip()[-300:]}")
        if path.endswith(" (deleted)"):  # a nameless file is named by its directory
            path = os.path.dirname(path)
        named = TEMPORARY.sub("", os.path.basename(path.rstrip("/")))
        # A removal relative to a directory is named by that directory.
        if kind != "heap" and named and named not in done.stderr and not path.startswith(OPTIONAL_PLACES) and "cannot remove" not in done.stderr:
            raise Fault(f"the message does not name {path}: {done.stderr.strip()[-300:]}")

    def check_file(self, case, name, data):
        """A file of a disturbed run, under its final name."""
        expected = case.expected.get(name)
        base = os.path.basename(name)
        if base.startswith("events.out"):
            return
        if base == "metrics.jsonl":
            stable(name, data)  # every line parses
        elif base.endswith(".json") and base in VOLATILE | {"plan.json"}:
            json.loads(data)
        elif expected is None:
            raise Fault(f"{name} is there, which an undisturbed run does not write")
        elif data != expected and not (name.startswith("out/") and case.prepared and data == (case.prepared / name).read_bytes()):
            raise Fault(f"{name} is not whole: {len(data)} bytes of {len(expected)}")

    def check_files(self, case, done, function):
        found = contents(self.run_directory)
        before = contents(case.prepared) if case.prepared else {}
        known = before | case.expected
        for name, data in found.items():
            first = [part for part in Path(name).parts if TEMPORARY.search(part)]
            if first:
                # When memory runs out, the program may end at once (src/cli/memory_exhaustion.h), or fail to remove a file.
                excuse = rf"[Oo]ut of memory|error: cannot remove \S*{re.escape(first[0])}"
                if function not in REMOVALS and not re.search(excuse, done.stderr):
                    raise Fault(f"{name} is left")
                continue
            if name.endswith("/"):
                if name not in known and not name.startswith("out/runs"):
                    raise Fault(f"a directory {name}")
                missing = [other for other in known if Path(other).parent == Path(name) and other not in found]
                if re.search(r"checkpoint-\d+/$", name) and missing:
                    raise Fault(f"{name} lacks {missing}")
            elif name in before and name not in case.expected:
                if data != before[name]:
                    raise Fault(f"{name} was changed")
            else:
                self.check_file(case, name, data)
        if done.returncode == 0:
            self.check_same(case, found)
        if case.name in ("init", "merge") and "out/" in found and done.returncode:
            if {name: found[name] for name in found if not TEMPORARY.search(name)} != case.expected:
                raise Fault("the output directory is there, and is not whole")
        for directory in self.temporary, self.scratch:
            left = sorted(path.name for path in directory.iterdir())
            if left and function not in REMOVALS and "out of memory" not in done.stderr:
                raise Fault(f"{left} is left in the directory for temporary files")

    def check_same(self, case, found):
        """The results of an undisturbed run."""
        for name in case.expected:
            if name not in found:
                if os.path.basename(name).startswith("events.out"):
                    continue
                raise Fault(f"success without {name}")
            if stable(name, found[name]) != stable(name, case.expected[name]):
                raise Fault(f"success with another {name}")

    def check_again(self, case):
        """Runs the command, or its resumption, after the failure."""
        if not case.output:
            return
        again = self.call(case.command)
        if again.returncode == 2 and "holds another run" in again.stderr and case.resume:
            again = self.call([*case.command, *case.resume])
        if again.returncode == 2 and "is not empty" in again.stderr and contents(self.run_directory) == case.expected:
            return  # it had been committed
        if again.returncode:
            raise Fault(f"the same command afterwards: exit {again.returncode}: {again.stderr.strip()[-300:]}")
        found = contents(self.run_directory)
        left = [name for name in found if TEMPORARY.search(name.rstrip("/"))]
        if left:
            raise Fault(f"{left} is left by the same command afterwards")
        self.check_same(case, found)

    def one(self, case, kind, at, stack):
        self.reset(case)
        function, path = "?", ""
        # Some figures have more digits in one run than in another: start to look for the call stack a little earlier.
        where = {"at": max(1, at - 100), "stack": f"{stack:x}"} if stack else {"at": at}
        try:
            done = self.call(case.command, kind, **where)
            if not self.report.exists():
                self.unreached += 1  # fewer calls this time
                return
            at, function, _, path = self.reported()
            self.outcomes[f"{case.name} {kind}: exit {done.returncode}"] += 1
            self.check_end(case, done, kind, path)
            self.check_files(case, done, function)
            left = any(TEMPORARY.search(path.name) for path in self.run_directory.rglob("*"))
            if done.returncode and (kind != "heap" or left or at % 8 == 0):
                self.check_again(case)
            self.passed += 1
        except (Fault, subprocess.TimeoutExpired, ValueError, KeyError, OSError) as fault:
            self.failed += 1
            print(f"FAIL --case {case.name} --kind {kind} --first {at}: {function} {path}: {fault}")
            sys.stdout.flush()

    # --- which calls
    def chosen(self, stacks, kind):
        """(number, call stack) of each call to fail."""
        arguments = self.arguments
        if arguments.first:
            return [(arguments.first, 0)]
        numbered = list(enumerate(stacks, 1))
        if not arguments.distinct:
            return numbered[::arguments.heap_stride if kind == "heap" else 1]
        new = {stack: at for at, stack in reversed(numbered) if stack not in self.seen[kind]}
        self.seen[kind].update(new)
        return sorted((at, stack) for stack, at in new.items())

    def run(self):
        arguments = self.arguments
        work, names = [], []
        for case in self.cases():
            names.append(case.name)
            if arguments.case in (None, case.name) and self.undisturbed(case):
                for kind in KINDS:
                    if arguments.kind in (None, kind):
                        stacks = self.count(case, kind)
                        chosen = self.chosen(stacks, kind)
                        different = f" on {len(set(stacks))} call stacks" if arguments.distinct else ""
                        print(f"{case.name}: {len(stacks)} calls of kind {kind}{different}, {len(chosen)} chosen", flush=True)
                        work += [(case, kind, *call) for call in chosen]
        if arguments.sample and arguments.sample < len(work):
            # The same number for each command and kind, at random positions.
            groups = collections.defaultdict(list)
            for item in work:
                groups[item[0].name, item[1]].append(item)
            draw, each = random.Random(1), max(1, arguments.sample // len(groups))
            work = [item for group in groups.values() for item in sorted(draw.sample(group, min(each, len(group))), key=lambda i: i[2])]
        if arguments.begin:
            if arguments.begin not in names:
                sys.exit(f"no command is called {arguments.begin}: {', '.join(names)}")
            begin = names.index(arguments.begin)
            work = [item for item in work if names.index(item[0].name) >= begin]
        part, parts = (int(number) for number in arguments.part.split("/"))
        for item in work[part - 1::parts]:
            self.one(*item)
        shutil.rmtree(self.root)
        shutil.rmtree(self.scratch)
        for outcome, times in sorted(self.outcomes.items()):
            print(f"{outcome}: {times}")
        if self.unreached:
            print(f"{self.unreached} not reached in their runs")
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def main():
    parser = argparse.ArgumentParser(description=re.split(r"\n\n", __doc__)[0])
    parser.add_argument("binary", nargs="?", default=os.environ.get("HEADROOM"))
    parser.add_argument("--library", required=True)
    parser.add_argument("--case")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--distinct", action="store_true")
    parser.add_argument("--heap-stride", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="only this call")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--from", dest="begin", help="leaves out the calls of the commands before this one")
    parser.add_argument("--part", default="1/1", help="2/3: every third call from the second on, for several at a time")
    arguments = parser.parse_args()
    if not arguments.binary:
        parser.error("no program: give its path, or HEADROOM in the environment")
    arguments.binary, arguments.library = os.path.abspath(arguments.binary), os.path.abspath(arguments.library)
    sys.exit(Injection(arguments).run())


if __name__ == "__main__":
    main()
