"""Usage errors: the nearest name is suggested, the value is named, nothing is written."""

import json
import unittest
from pathlib import Path

from program import CONFIG, ProgramTest


class Usage(ProgramTest):
    def test_help_and_version(self):
        commands = ["init", "info", "plan", "train", "generate", "evaluate", "tokenize", "profile"]
        done = self.call("--help")
        self.assertEqual(done.returncode, 0)
        for command in commands:
            self.assertIn(f"\n  {command} ", done.stdout)
            own = self.call(command, "--help")
            self.assertEqual((own.returncode, own.stderr), (0, ""))
            self.assertIn(f"headroom {command}", own.stdout)
        self.assertIn("chunked-loss", self.call("plan", "--help").stdout)
        version = self.call("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^headroom \d+\.\d+\.\d+\n$")

    def test_unknown_names(self):
        self.assert_refused([], 2, "headroom --help")
        self.assert_refused(["trian"], 2, "unknown command 'trian'", "'train'")
        self.assertNotIn("did you mean", self.assert_refused(["vectorise"], 2, "unknown command 'vectorise'", "headroom --help").stderr)
        self.assert_refused(["tokenize", "--model", "model"], 2, "standard input:1: malformed JSON", '{"text": "..."}', stdin="plain text\n")
        self.assert_refused(["tokenize", "--model", "model", "--decode"], 2, "standard input:2: no row", '{"ids": [1, 2]}', stdin='{"ids": [65]}\n{"text": "a"}\n')
        self.assert_refused(["train", "--modle", "model"], 2, "unknown option '--modle'", "'--model'")
        self.assert_refused(self.train_arguments("out", "--learnign-rate=1"), 2, "unknown option '--learnign-rate'", "'--learning-rate'")
        self.assert_refused(self.train_arguments("out", "stray"), 2, "stray")
        self.assert_refused(self.train_arguments("out", "--technique", "recompote=on"), 2, "recompote", "recompute")
        self.assert_refused(self.train_arguments("out", "--technique", "recompute=perhaps"), 2, "perhaps")
        self.assert_refused(self.train_arguments("out", "--technique", "recompute"), 2, "recompute", "NAME=on")
        self.assert_refused(self.train_arguments("out", "--technique", "ring-attention=on"), 2, "ring-attention", "not built")
        self.assert_refused(self.train_arguments("out", "--allow", "anything"), 2, "anything")
        self.assert_refused(self.train_arguments("out", "--device", "cuda:0"), 2, "cuda:0")
        self.assert_refused(self.train_arguments("out", "--profile", "rtx-9999"), 2, "rtx-9999")

    def test_permission_for_what_it_does_not_change_is_refused(self):
        takes = "--allow takes lossy, data-order, packing, length-buckets"  # and those in the order of their passes
        for named, meant in [("bf16-true", "give --precision bf16-true; "), ("lora", "give --lora-r 16; "), ("freeze", "give --freeze "),
                             ("quantize-training", "give --technique quantize-training=int8; "), ("attention-order", "give --attention-order any; ")]:
            with self.subTest(named=named):
                self.assert_refused(self.train_arguments("out", "--allow", named), 2, f"--allow {named}: it is used only when named", meant, takes)
        for free, meant in [("recompute", "--technique recompute=on"), ("micro-batch", "--micro-batch-size 1"), ("chunked-loss", "--technique chunked-loss=256")]:
            with self.subTest(free=free):
                self.assert_refused(self.train_arguments("out", "--allow", free), 2, f"--allow {free}: the planner uses it without permission",
                                    f"leave it out, or give {meant} to have it in the plan", takes)
        self.assert_refused(self.train_arguments("out", "--allow", "anything"), 2, "--allow anything is not known", takes)
        for permission in ("lossy", "data-order", "packing", "length-buckets", "compress-activations"):
            with self.subTest(permission=permission):
                done = self.call("plan", "--model", "model", "--memory", "64MiB", "--threads", 1, "--allow", permission)
                self.assertEqual(done.returncode, 0, done.stderr)
        # Permission does not ask for it: a GPU has no kernels for compress-activations.
        done = self.call("plan", "--model", "model", "--device", "cuda:0", "--profile", "H100-80GB", "--memory", "1GiB", "--allow", "lossy")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_names_of_other_trainers(self):
        for wrong, meant in [("--lr", "'--learning-rate'"), ("--epochs", "'--num-train-epochs'"), ("--bf16", "'--precision bf16-mixed'"),
                             ("--batch-size", "'--global-batch-size'"), ("--max_seq_length", "'--max-seq-length'"), ("--model_name_or_path", "'--model'")]:
            with self.subTest(wrong=wrong):
                self.assert_refused(self.train_arguments("out", wrong, "1"), 2, f"unknown option '{wrong}'", f"did you mean {meant}?")
        done = self.assert_refused(["generate", "--model", "model", "--beams", "4"], 2, "unknown option '--beams'", "headroom generate --help")
        self.assertNotIn("did you mean", done.stderr)
        for wrong, meant in [("-p", "'--prompt'"), ("-n", "'--max-new-tokens'"), ("-m", "'--model'")]:
            self.assert_refused(["generate", "--model", "model", wrong, "hi"], 2, f"unknown option '{wrong}'", f"did you mean {meant}?")
        (self.root / "run.yaml").write_text("model: model\nbf16: true\n")
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml:2", "did you mean 'precision bf16-mixed'?")

    def test_a_switch_needs_no_value(self):
        plan = lambda *more: json.loads(self.call("plan", "--model", "model", "--memory", "64MiB", "--threads", 1, *more, "--json").stdout)
        self.assertTrue(plan("--packing")["packing"])
        self.assertFalse(plan("--packing", "false")["packing"])
        self.assertTrue(plan("--packing", "--max-steps", 2)["packing"])
        recompute = {t["name"]: t for t in plan("--gradient-checkpointing")["techniques"]}["recompute"]
        self.assertNotIn("keep-all", recompute["value"])

    def test_resuming_needs_no_value(self):
        self.train("resumed", "--max-steps", 2, "--save-steps", 1, "--lr-scheduler-type", "constant")
        done = self.train("resumed", "--lr-scheduler-type", "constant", "--resume-from-checkpoint", "--max-steps", 3)
        self.assertIn("resuming resumed/checkpoint-2 after step 2 of 3", done.stderr)
        for wrong, remedy in (("resumed", "give resumed/checkpoint-3, or true for it"), ("latest", "give resumed/checkpoint-3, or true for it")):
            done = self.call(*self.train_arguments("resumed", "--resume-from-checkpoint", wrong))
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{wrong} is not a checkpoint", done.stderr)
            self.assertIn(remedy, done.stderr)

    def test_settings_of_adapters_without_adapters(self):
        for option, value in [("--lora-alpha", "16"), ("--lora-dropout", "0.1"), ("--lora-rslora", "true"), ("--lora-target-modules", "q_proj"), ("--modules-to-save", "lm_head")]:
            with self.subTest(option=option):
                self.assert_refused(self.train_arguments("out", option, value), 2, f"{option} without --lora-r", "--lora-r 16")

    def test_names_that_mean_nothing_to_train(self):
        (self.root / "untied.json").write_text(json.dumps({**CONFIG, "tie_word_embeddings": False}))
        self.call("init", "--config", "untied.json", "--tokenizer", "bytes", "--output-dir", "untied")
        adapters = ("--lora-r", 2, "--lora-target-modules")
        for model, options, *parts in (
            ("untied", (*adapters, "lm_head"), "lm_head matches lm_head.weight, which cannot have an adapter", "--modules-to-save lm_head trains it in full"),
            ("model", (*adapters, "embed_tokens"), "matches model.embed_tokens.weight, which cannot have an adapter", "--modules-to-save embed_tokens trains it in full"),
            ("model", (*adapters, "lm_head"), "matches no linear layer", "v_proj; head and embeddings cannot have an adapter: --modules-to-save trains them in full"),
            ("model", (*adapters, "q_porj"), "matches no linear layer", "did you mean 'q_proj'?"),
            ("model", (*adapters, "q_proj,v_proj"), "q_proj,v_proj is not a name", "no commas between patterns: --lora-target-modules q_proj v_proj\n"),
            ("model", ("--lora-r", 2, "--modules-to-save", "embed_tokens,norm,"), "matches no weight", "no commas between patterns: --modules-to-save embed_tokens norm\n"),
            ("model", ("--freeze", "layers.0,norm"), "matches no weight", "no commas between patterns: --freeze layers.0 --freeze norm\n"),
        ):
            with self.subTest(options=options, model=model):
                done = self.assert_refused(self.train_arguments("out", *options, model=model), 2, *parts)
                if "head" in parts[-1]:
                    self.assertNotIn("did you mean", done.stderr)

    def test_accumulation_alone_keeps_the_batch_of_transformers(self):
        plan = lambda *more: json.loads(self.call("plan", "--model", "model", "--memory", "64MiB", "--threads", 1, *more, "--json").stdout)
        for options, batch in [(("--gradient-accumulation-steps", 4), 32), (("--per-device-train-batch-size", 4), 4)]:
            chosen = plan(*options, "--micro-batch-size", 1)
            self.assertEqual(chosen["gradient_accumulation_steps"], batch)

    def test_values(self):
        cases = [("--max-steps", "-2"), ("--max-steps", ""), ("--max-steps", "many"), ("--max-steps", "1.5"), ("--max-steps", "9999999999999999"), ("--learning-rate", "-1"), ("--learning-rate", "nan"),
                 ("--learning-rate", "fast"), ("--global-batch-size", "0"), ("--micro-batch-size", "-2"), ("--max-seq-length", "1"), ("--max-seq-length", "65"), ("--adam-beta1", "1"),
                 ("--adam-beta2", "inf"), ("--num-train-epochs", "-1"), ("--warmup-steps", "-1"), ("--save-total-limit", "0"), ("--logging-steps", "0"), ("--threads", "-1"),
                 ("--lr-scheduler-type", "wavy"), ("--precision", "8-true"), ("--fp16-preset", "apex"), ("--optim", "sgdd"), ("--optim-args", "beta3"), ("--on-nan", "hope"), ("--save-dtype", "float64"),
                 ("--shuffle", "perhaps"), ("--seed", "-1"), ("--seed", "x"), ("--gradient-checkpointing", "perhaps"), ("--arithmetic", "loose"), ("--packing", "perhaps"),
                 ("--disk-memory", "x:1GiB")]
        for option, value in cases:
            with self.subTest(option=option, value=value):
                done = self.assert_refused(self.train_arguments("out", option, value), 2, option)
                if option != "--disk-memory":
                    self.assertIn(value, done.stderr)

    def test_no_limit_of_steps_is_said_as_elsewhere(self):
        one_epoch = ("--num-train-epochs", 1, "--max-steps")
        self.train("by-epochs", *one_epoch, -1)
        self.train("limited", *one_epoch, 3)
        steps = lambda run: len((self.root / run / "metrics.jsonl").read_text().splitlines())
        self.assertEqual(steps("limited"), 3)
        self.assertGreater(steps("by-epochs"), 3)

    def test_an_unknown_precision_is_told_which_there_are(self):
        self.assert_refused(self.train_arguments("out", "--precision", "bf16"), 2, "--precision 'bf16' is not known", "one of 32-true, bf16-mixed, bf16-true, 16-mixed, 16-true\n")

    def test_missing_values(self):
        self.assert_refused(["train", "--data", "data.txt", "--output-dir", "out"], 2, "--model")
        self.assert_refused(["train", "--model", "model", "--output-dir", "out", "--threads", "1"], 2, "--data")
        self.assert_refused(["train", "--model", "model", "--data", "data.txt", "--threads", "1"], 2, "--output-dir")
        self.assert_refused(["train", "--model"], 2, "--model")
        self.assert_refused(["train", "--model", "absent", "--data", "data.txt", "--output-dir", "out"], 2, "absent")

    def test_sizes(self):
        self.assert_refused(self.train_arguments("out", "--memory", "12"), 2, "--memory 12", "12GiB")
        for size in ("8g", "8Gi", "8G"):
            self.assert_refused(self.train_arguments("out", "--memory", size), 2, size, "did you mean 8GiB?")
        for size in ("0", "1KiB"):
            done = self.assert_refused(self.train_arguments("out", "--memory", size), 2, size, "give at least 1MiB")
            self.assertNotIn("did you mean", done.stderr)
        self.assert_refused(self.train_arguments("out", "--seed", "-1"), 2, "--seed -1 is out of range")
        for size in ("12XB", "-4GiB", "GiB", "1e99GiB", "99999999999TiB", "nan", ""):
            with self.subTest(size=size):
                self.assert_refused(self.train_arguments("out", f"--memory={size}"), 2, size)
        self.assert_refused(self.train_arguments("out", "--host-memory", "4GiB"), 2, "--host-memory", "--memory")

    def test_a_plan_for_a_gpu_has_two_tiers(self):
        gpu = ["plan", "--model", "model", "--profile", "H100-80GB", "--threads", "1"]
        planned = self.call(*gpu, "--memory", "24GiB", "--host-memory", "100GiB", "--technique", "offload-optimizer=on", "--json")
        self.assertEqual(planned.returncode, 0, planned.stderr)
        plan = json.loads(planned.stdout)
        self.assertEqual(plan["tiers"]["device"], {"budget_bytes": 24 << 30, "peak_bytes": plan["peak_bytes"]})
        self.assertEqual(plan["tiers"]["host"]["budget_bytes"], 100 << 30)
        self.assertGreater(plan["tiers"]["host"]["peak_bytes"], plan["host_arena_bytes"])
        self.assertEqual(plan["host_breakdown"]["optimizer"], plan["host_arena_bytes"] - plan["host_breakdown"]["alignment"])
        self.assert_refused([*gpu, "--memory", "24GiB", "--technique", "offload-optimizer=on"], 2, "offload-optimizer", "--host-memory")
        self.assert_refused([*gpu, "--memory", "601MiB", "--host-memory", "1MiB"], 3, "on the device", "on the host")

    def test_a_plan_names_the_sources_of_rates_that_nobody_measured_here(self):
        options = ["plan", "--model", "model", "--threads", "1", "--memory", "24GiB", "--explain"]
        explained = self.call(*options, "--profile", "A100-80GB")
        self.assertEqual(explained.returncode, 0, explained.stderr)
        self.assertRegex(explained.stdout, r"rates of the profile that headroom has not measured\n(  .*\n)*  streams +A100 80 GB, triad")
        self.assertRegex(explained.stdout, r"\n  other products +estimate")
        self.assertNotIn("has not measured", self.call(*options, "--profile", "H200-141GB").stdout)
        self.assertNotIn("has not measured", self.call(*options, "--profile", "cpu-avx2").stdout)

    def test_a_plan_by_the_profile_of_another_gpu_says_so(self):
        plan = self.call("plan", "--model", "model", "--profile", "H200-141GB", "--threads", "1", "--memory", "24GiB")
        self.assertIn("are those of another GPU of this kind, which the shipped profile H200-141GB was measured on", plan.stdout)

    def test_a_plan_by_a_shipped_profile_of_a_gpu_names_its_estimates(self):
        words = "600 MiB of the device and 512 MiB of the host outside the arenas, and every predicted time, are estimates of the shipped profile H100-80GB, not measured"
        gpu = ["plan", "--model", "model", "--profile", "H100-80GB", "--threads", "1", "--memory", "24GiB"]
        explained, as_json, quiet = self.call(*gpu), self.call(*gpu, "--json"), self.call(*gpu, "--json", "--quiet")
        self.assertIn(words, explained.stdout)
        self.assertNotIn(words, explained.stderr)
        self.assertIn("note: " + words, as_json.stderr)
        self.assertEqual(json.loads(as_json.stdout)["process_bytes"], 632 << 20)
        self.assertNotIn(words, quiet.stderr)
        cpu = self.call("plan", "--model", "model", "--threads", "1", "--memory", "128MiB")
        self.assertNotIn("estimates", cpu.stdout + cpu.stderr)
        profile = json.loads((Path(__file__).parents[2] / "src/cost/profiles/H100-80GB.json").read_text())
        (self.root / "gpu.json").write_text(json.dumps(profile | {"name": "cuda-0", "context_bytes": 0}))
        untold = self.call("plan", "--model", "model", "--profile", "gpu.json", "--threads", "1", "--memory", "24GiB")
        self.assertIn("600 MiB of the device outside the arena are an estimate, those of the shipped profile H100-80GB: profile cuda-0 has no context_bytes", untold.stdout)

    def test_generate_values(self):
        for option, value in [("--temperature", "-1"), ("--temperature", "nan"), ("--top-p", "0"), ("--top-p", "1.5"), ("--top-k", "-1"), ("--max-new-tokens", "0"), ("--max-new-tokens", "1000")]:
            with self.subTest(option=option, value=value):
                self.assert_refused(["generate", "--model", "model", "--prompt", "a", "--memory", "128MiB", "--threads", "1", option, value], 2, value)

    def test_both_spellings_and_the_last_wins(self):
        self.train("spelling", "--learning-rate=3e-4", "--learning-rate", "2e-4", "--lr-scheduler-type=constant", "--max-steps", "9", "--max-steps=2")
        rows = [json.loads(line) for line in (self.root / "spelling/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], [1, 2])
        self.assertEqual([row["learning_rate"] for row in rows], [2e-4, 2e-4])

    def test_familiar_names(self):
        done = self.call("plan", "--model", "model", "--memory", "128MiB", "--threads", "1", "--per-device-train-batch-size", "4", "--gradient-accumulation-steps", "8",
                         "--gradient-checkpointing", "true", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        self.assertGreaterEqual(plan["micro_batch_size"] * plan["gradient_accumulation_steps"], 32)
        self.assertIn("recompute", [technique["name"] for technique in plan["techniques"]])

    def test_output_directory_of_another_run(self):
        self.train("taken")
        before = (self.root / "taken/model.safetensors").read_bytes()
        self.assert_refused(self.train_arguments("taken"), 2, "taken", "another run", "--resume-from-checkpoint")
        self.assertEqual((self.root / "taken/model.safetensors").read_bytes(), before)
        self.assert_refused(["init", "--config", "config.json", "--output-dir", "taken"], 2, "taken", "not empty")
        (self.root / "a-file").write_text("x")
        self.assert_refused(self.train_arguments("a-file"), 2, "a-file")
        self.assert_refused(self.train_arguments("out", "--resume-from-checkpoint", "true"), 2, "out", "no complete checkpoint")
        self.assert_refused(self.train_arguments("out", "--resume-from-checkpoint", "model"), 2, "model", "state.json")


class RunFile(ProgramTest):
    def write(self, text):
        (self.root / "run.yaml").write_text(text)

    def test_the_command_line_wins(self):
        self.write("model: model\ndata:\n  - data.txt\noutput_dir: from-yaml\nmemory: 128MiB\nthreads: 1\nmax-seq-length: 32\nmax_steps: 9\nlearning_rate: 2.0e-4\nlr-scheduler-type: constant\nshuffle: true\n")
        done = self.call("train", "run.yaml", "--max-steps", "2", "--output-dir=yaml-out")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in (self.root / "yaml-out/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], [1, 2])
        self.assertEqual(rows[0]["learning_rate"], 2e-4)
        self.assertFalse((self.root / "from-yaml").exists())
        plan = self.call("plan", "run.yaml", "--json")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertEqual(json.loads(plan.stdout)["budget_bytes"], 128 << 20)

    def test_refusals(self):
        self.write("model: model\n# a comment\nlearnign_rate: 1e-4\n")
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml:3", "learnign-rate", "learning-rate")
        self.write("model: model\nmodel: other\n")
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml:2", "model")
        self.write("model: [unclosed\n")
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml")
        self.write("optimizer:\n  name: adamw\n")
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml:2", "optimizer")
        self.write("model: model\ndata: data.txt\noutput-dir: out\nmemory: 128MiB\nmax-steps: many\n")
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml:5: --max-steps many is not a whole number")
        self.assert_refused(["train", "absent.yaml"], 2, "absent.yaml")

    def test_a_wrong_value_names_its_line(self):
        good = "model: model\ndata:\n  - data.txt\noutput_dir: out\nmemory: 128MiB\nthreads: 1\n"
        cases = [("max_steps: -7", 7, "--max-steps -7 is out of range"), ("precision: fp8", 7, "--precision 'fp8' is not known"),
                 ("shuffle: perhaps", 7, "--shuffle perhaps is not true or false"), ("seed: -1", 7, "--seed -1"), ("lora_alpha: 3", 7, "--lora-alpha without --lora-r"),
                 ("disk_memory: here", 7, "--disk-memory"), ("allow:\n  - lossy\n  - anything", 9, "--allow anything"), ("technique: [recompote=on]", 7, "recompote"),
                 ("profile: rtx-9999", 7, "rtx-9999"), ("optim: sgd\noptim_args: beta1=0.5", 8, "--optim-args beta1: sgd has no such argument"), ("max-steps: [1, 2]", 7, "'max-steps' has 2 values")]
        for text, line, said in cases:
            with self.subTest(text=text):
                self.write(good + text + "\n")
                done = self.assert_refused(["train", "run.yaml"], 2, said)
                self.assertRegex(done.stderr, rf"^error: run\.yaml:{line}: ")
        self.write(good.replace("128MiB", "12"))
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml:5: --memory 12")
        self.write(good.replace("model: model", "model: absent"))
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml:1: ", "absent")
        self.write(good.replace("data.txt", "absent.txt"))
        self.assert_refused(["train", "run.yaml"], 2, "run.yaml:3: ", "absent.txt")

    def test_a_wrong_value_of_the_command_line_names_no_line(self):
        self.write("model: model\ndata: data.txt\noutput-dir: out\nmemory: 128MiB\nmax-steps: 5\n")
        done = self.assert_refused(["train", "run.yaml", "--max-steps", "-7"], 2, "--max-steps -7")
        self.assertNotIn("run.yaml", done.stderr)


if __name__ == "__main__":
    unittest.main()
