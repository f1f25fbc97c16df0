"""--profile: its facts determine the plan on any machine; a run skips what its machine lacks and says so."""

import json
import subprocess
import unittest
from pathlib import Path

from program import CONFIG, ProgramTest, environment

# What a machine offers: an instruction set that oneDNN may use, and CPUs.
MACHINES = [{"ONEDNN_MAX_CPU_ISA": word} for word in ("SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16")] + [{}, {"OMP_NUM_THREADS": "5"}]
PROFILES = Path(__file__).resolve().parents[2] / "src/cost/profiles"
WIDE = {**CONFIG, "vocab_size": 1009, "hidden_size": 192, "intermediate_size": 512, "num_attention_heads": 3, "num_key_value_heads": 1, "max_position_embeddings": 512}
PLANS = [["--matmul-precision", "high"], ["--precision", "bf16-mixed"], ["--lora-r", "8"], ["--technique", "recompute=off", "--global-batch-size", "32"]]


class ProfileFacts(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.root / "wide.json").write_text(json.dumps(WIDE))
        shipped = json.loads((PROFILES / "cpu-avx512.json").read_text())
        for name, isa, threads in (("tiles", 514, 3), ("old", 0, 1)):
            (cls.root / f"{name}.json").write_text(json.dumps({**shipped, "name": name, "isa": isa, "threads": threads}))

    def on(self, machine, *words, cpus=None):
        """A run on a simulated machine with that instruction set; `cpus` limits the CPUs."""
        prefix = ["taskset", "-c", cpus] if cpus else []
        own = {key: value for key, value in environment(self.root).items() if key != "ONEDNN_MAX_CPU_ISA"}
        return subprocess.run([*prefix, self.program, *words], cwd=self.root, env={**own, **machine}, capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL)

    def test_a_plan_is_the_same_wherever_it_is_made(self):
        names = sorted(path.stem for path in PROFILES.glob("*.json"))
        self.assertIn("cpu-avx2", names)
        for profile in [*names, "tiles.json", "old.json"]:
            chosen = PLANS if profile.startswith(("cpu-avx512", "tiles")) else PLANS[:1]
            for options in chosen:
                plans = set()
                for machine, cpus in [*((machine, None) for machine in MACHINES), ({}, "0")]:
                    done = self.on(machine, "plan", "--model", "wide.json", "--memory", "1GiB", "--profile", profile, "--json", "--emit-text", "plan.txt", *options, cpus=cpus)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    plans.add((done.stdout, (self.root / "plan.txt").read_bytes()))
                self.assertEqual(len(plans), 1, f"{profile} {options}")

    def test_threads_are_the_profiles_unless_named(self):
        plan = ["plan", "--model", "wide.json", "--memory", "1GiB", "--json", "--profile", "tiles.json"]
        self.assertEqual(json.loads(self.on({}, *plan).stdout)["threads"], 3)
        self.assertEqual(json.loads(self.on({}, *plan, "--threads", "7").stdout)["threads"], 7)

    def test_runs_leave_out_what_the_machine_lacks_and_say_so(self):
        """A plan for AMX on a machine without it."""
        machine = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
        named = ["--memory", "256MiB", "--profile", "tiles.json", "--threads", "1"]
        for words in (["train", "--model", "model", "--data", "data.txt", "--max-steps", "2", "--global-batch-size", "2", "--output-dir", "named"],
                      ["evaluate", "--model", "model", "--data", "data.txt"], ["generate", "--model", "model", "--prompt", "the", "--max-new-tokens", "2"]):
            done = self.on(machine, *words, *named)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("profile tiles describes AMX, but this machine has AVX2: the plan is made for this machine", done.stderr)
        done = self.on(machine, "evaluate", "--model", "model", "--data", "data.txt", "--memory", "256MiB", "--profile", "cpu-avx2")
        self.assertNotIn("the plan is made for this machine", done.stderr)

    def test_the_plan_of_a_run_is_the_plan_shown(self):
        """On a machine that has all that the profile describes."""
        words = ["--model", "model", "--memory", "256MiB", "--profile", "cpu-avx2", "--global-batch-size", "2"]
        shown = json.loads(self.on({}, "plan", *words, "--json").stdout)
        done = self.on({}, "train", *words, "--data", "data.txt", "--max-steps", "1", "--output-dir", "shown")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads((self.root / "shown" / "plan.json").read_text()), shown)

    def test_an_instruction_set_that_is_none_is_refused(self):
        text = (self.root / "tiles.json").read_text()
        (self.root / "strange.json").write_text(json.dumps({**json.loads(text), "isa": 300}))
        self.assert_refused(["plan", "--model", "wide.json", "--memory", "1GiB", "--profile", "strange.json"], 2, "'isa' should be none, avx2, avx512, avx512_bf16 or amx of a cpu")


if __name__ == "__main__":
    unittest.main()
